#!/usr/bin/env python3
"""A stand-in for the service manager's descriptor store, in a process of its own.

    store.py SOCKET

Answers each line on standard input with `MESSAGES DESCRIPTORS`: datagrams that were about
descriptors, and how many are held now.
"""

import array
import os
import select
import socket
import sys


def main():
    service = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    service.bind(sys.argv[1])
    held, messages = {}, 0
    while True:
        ready, _, _ = select.select([service, sys.stdin], [], [])
        if service in ready:
            text, descriptors, _, _ = socket.recv_fds(service, 8192, 64)
            words = text.decode().split("\n")
            names = [word[7:] for word in words if word.startswith("FDNAME=")]
            messages += 1 if "FDSTORE=1" in words or "FDSTOREREMOVE=1" in words else 0
            if "FDSTORE=1" in words and names:
                held.setdefault(names[0], array.array("i")).extend(descriptors)
            else:
                for one in (*descriptors, *(held.pop(names[0], ()) if names else ())):
                    os.close(one)
        elif not sys.stdin.readline():
            return
        else:
            print(messages, sum(len(each) for each in held.values()), flush=True)


if __name__ == "__main__":
    main()
