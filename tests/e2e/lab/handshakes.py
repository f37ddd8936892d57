"""Counts the TLS handshakes that API servers complete with a host, by listening on its wire.

A ServerHello is not encrypted, and says whether the session is a resumed one (it selects a pre-shared key,
RFC 8446 4.2.11) or a full handshake, the one that costs the server a signature.
"""

import socket
import struct
import threading
from collections import Counter

from .network import inside

ETH_P_ALL = 3
HELLO_RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
PRE_SHARED_KEY = 41


class Handshakes:
    """Counts while the `with` block runs: `full[address]`, `resumed[address]`."""

    def __init__(self, host):
        self.host = host
        self.full, self.resumed = Counter(), Counter()

    def __enter__(self):
        with inside(self.host.switch.namespace):
            self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(ETH_P_ALL))
        self.socket.bind((self.host.name, ETH_P_ALL))
        self.socket.settimeout(0.2)
        self.stopped = threading.Event()
        self.thread = threading.Thread(target=self._listen)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stopped.set()
        self.thread.join()
        self.socket.close()

    def _listen(self):
        while not self.stopped.is_set():
            try:
                packet = self.socket.recv(65535)
            except TimeoutError:
                continue
            hello = server_hello(packet)
            if hello:
                address = socket.inet_ntoa(packet[12:16])
                (self.resumed if resumes(hello) else self.full)[address] += 1


def server_hello(packet):
    """The ServerHello in an IPv4 packet from port 6443, from its random on; nothing if there is none."""
    if len(packet) < 40 or packet[0] >> 4 != 4 or packet[9] != socket.IPPROTO_TCP:
        return None
    tcp = packet[(packet[0] & 15) * 4:]
    record = tcp[(tcp[12] >> 4) * 4:]
    if struct.unpack("!H", tcp[:2])[0] != 6443 or len(record) < 48 or record[0] != 22 or record[5] != 2:
        return None
    hello = record[11:]
    return None if hello.startswith(HELLO_RETRY) else hello


def resumes(hello):
    at = 33 + hello[32] + 3  # random, session id, cipher suite, compression
    end = at + 2 + struct.unpack_from("!H", hello, at)[0]
    at += 2
    while at + 4 <= min(end, len(hello)):
        kind, length = struct.unpack_from("!HH", hello, at)
        if kind == PRE_SHARED_KEY:
            return True
        at += 4 + length
    return False
