#!/usr/bin/env python3
"""Holds the sockets that any proxy must have, and nothing else: the measure of "the sockets' own".

    holder.py PORT SERVER_PORT

For each client it connects to the server, passes one request and its answer on, and keeps both.
"""

import socket
import sys


def whole_answer(server):
    text = b""
    while b"\r\n\r\n" not in text or len(text) < text.index(b"\r\n\r\n") + 4 + 1024:
        text += server.recv(4096)
    return text


def main():
    listener = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=4096)
    held = []
    while True:
        client, _ = listener.accept()
        request = client.recv(4096)
        if not request:  # somebody who asks whether this listens
            client.close()
            continue
        server = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
        server.sendall(request)
        client.sendall(whole_answer(server))
        held.append((client, server))


if __name__ == "__main__":
    main()
