#!/usr/bin/python3
"""Passes frames between two interfaces, late: for kernels without netem.

Arguments: the two interfaces and the delay in seconds, for each direction. Runs until it is ended.
"""

import collections
import select
import socket
import sys
import time

ETH_P_ALL = 3
PACKET_OUTGOING = 4
SOL_PACKET, PACKET_VNET_HDR = 263, 15
LARGEST = 70000


def tap(interface):
    made = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    made.setsockopt(SOL_PACKET, PACKET_VNET_HDR, 1)  # keeps what is said of checksums that nobody has computed yet
    made.bind((interface, ETH_P_ALL))
    made.setblocking(False)
    return made


def main():
    first, second, delay = tap(sys.argv[1]), tap(sys.argv[2]), float(sys.argv[3])
    other = {first: second, second: first}
    waiting = collections.deque()  # (due, where to, frame): in order, as the delay is the same for all
    while True:
        limit = max(0, waiting[0][0] - time.monotonic()) if waiting else None
        for source in select.select([first, second], [], [], limit)[0]:
            frame, address = source.recvfrom(LARGEST)
            if address[2] != PACKET_OUTGOING:
                waiting.append((time.monotonic() + delay, other[source], frame))
        while waiting and waiting[0][0] <= time.monotonic():
            _, target, frame = waiting.popleft()
            try:
                target.send(frame)
            except OSError:
                pass  # the wire is down, or full: lost, as on a wire


if __name__ == "__main__":
    main()
