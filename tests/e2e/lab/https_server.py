#!/usr/bin/python3
"""A small API server: /readyz and /healthz say what they are told to, everything else is a request.

Obeys one JSON object a line on standard input; members left out go back to what they were at the start:
  ready    [status, body] of the checks
  delay    seconds until a check is answered
  failing  every so many-th check fails; 0: none
  serves   false: requests fail with 500
"""

import argparse
import gc
import json
import os
import socket
import ssl
import sys
import threading
import time

CHECKS = (b"/readyz", b"/healthz", b"/livez")
BACKLOG = 4096  # as Go has it
HELLO_LIMIT = 32  # seconds for the handshake, as kube-apiserver has it for headers


class Server:
    def __init__(self, options):
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(options.certificate, options.key)
        self.listener = socket.create_server((options.address, 6443), backlog=BACKLOG)
        self.checks = 0
        self.obey({})

    def obey(self, orders):
        self.ready = tuple(orders.get("ready", (200, "ok")))
        self.delay = orders.get("delay", 0)
        self.failing = orders.get("failing", 0)
        self.serves = orders.get("serves", True)

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, raw):
        with raw:
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            raw.settimeout(HELLO_LIMIT)
            try:
                with self.context.wrap_socket(raw, server_side=True) as connection:
                    connection.settimeout(None)
                    while self.answer(connection):
                        pass
            except OSError:
                pass  # it has left

    def answer(self, connection):
        """One request; false if the connection is to end."""
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            piece = connection.recv(4096)
            if not piece:
                return False
            head += piece
        status, body = self.say(head.split(b" ", 2)[1])
        connection.sendall(b"HTTP/1.1 %d -\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s"
                           % (status, len(body), body))
        return b" HTTP/1.0\r\n" not in head

    def say(self, path):
        if path not in CHECKS:
            return (200, b"{}") if self.serves else (500, b"etcd failed")
        if self.delay:
            time.sleep(self.delay)
        self.checks += 1
        if self.failing and self.checks % self.failing == 0:
            return 500, b"[+]ping ok\n[-]informer-sync failed: reason withheld\nreadyz check failed\n"
        status, body = self.ready
        return status, body.encode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--address", required=True)
    parser.add_argument("--certificate", required=True)
    parser.add_argument("--key", required=True)
    server = Server(parser.parse_args())
    gc.freeze()  # later collections are short: a pause here would be blamed on a proxy
    threading.Thread(target=server.accept, daemon=True).start()
    for line in sys.stdin:
        server.obey(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    main()
