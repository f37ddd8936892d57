#!/usr/bin/python3
"""An open-loop client: requests on a schedule, on held and on fresh TLS connections, through 127.0.0.1:6443.

A request is timed from when it was due, not from when it could be sent, so that a connection that hangs is seen
as long as it lasts. A held connection that ends is made again at once, and its request repeated. Runs until
standard input closes, then prints as JSON what happened; times are CLOCK_MONOTONIC, one for the whole machine.
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

LISTENER = ("127.0.0.1", 6443)
LIMIT = 45        # seconds after which client-go gives a silent connection up
NOTABLE = 0.01    # seconds of silence from which on it is reported
RETRY_PAUSE = 0.05
FINISHING = 1     # seconds that requests under way are given at the end
REQUEST = b"GET %s HTTP/1.1\r\nHost: kubernetes\r\n\r\n"


class Connection:
    def __init__(self, context, path):
        self.context = context
        self.request = REQUEST % path.encode()
        self.socket = None
        self.answered = False

    def ask(self):
        """One request, on a new connection if there is none: the status. Raises OSError."""
        if not self.socket:
            raw = socket.create_connection(LISTENER, LIMIT)
            raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.socket = raw  # until it is wrapped, so that it is closed if that fails
            self.socket = self.context.wrap_socket(raw, server_hostname=LISTENER[0])
        self.socket.sendall(self.request)
        answer = b""
        while not is_whole(answer):
            piece = self.socket.recv(4096)
            if not piece:
                raise ConnectionError("closed")
            answer += piece
        self.answered = True
        return int(answer[9:12])

    def close(self):
        if self.socket:
            self.socket.close()
        self.socket = None
        self.answered = False


def is_whole(answer):
    head, end, body = answer.partition(b"\r\n\r\n")
    return bool(end) and len(body) >= int(head.lower().partition(b"content-length:")[2].partition(b"\r")[0])


class Load:
    def __init__(self, options):
        self.options = options
        self.context = ssl.create_default_context(cafile=options.ca)
        self.silences = []  # on held connections: (from, until)
        self.silent_since = [0.0] * options.held
        self.ends = []      # of held connections on which something had been answered: (when, how)
        self.fresh = {}     # due -> (ended, error)
        self.stopped = False

    def run(self):
        for i in range(self.options.held):
            self.start(self.hold, i)
        self.start(self.begin_fresh)
        sys.stdin.read()
        now = time.monotonic()
        self.stopped = True
        time.sleep(FINISHING)
        return {"silences": self.silences + [(since, now) for since in self.silent_since if since < now - NOTABLE],
                "ends": self.ends,
                "fresh": [(due, *seen) if seen else (due, now, "unfinished") for due, seen in self.fresh.items()]}

    def start(self, function, *arguments):
        threading.Thread(target=function, args=arguments, daemon=True).start()

    def hold(self, i):
        every = self.options.every
        connection = Connection(self.context, self.options.path)
        due = self.silent_since[i] = time.monotonic() + every * i / self.options.held
        while not self.stopped:
            time.sleep(max(0, due - time.monotonic()))
            if self.good_answer(connection):
                now = time.monotonic()
                if now - self.silent_since[i] > NOTABLE:
                    self.silences.append((self.silent_since[i], now))
                due += every * (1 + max(0, now - due) // every)  # what is past waited less
                self.silent_since[i] = due
            else:
                due = max(due + every, time.monotonic())

    def good_answer(self, connection):
        began = time.monotonic()
        try:
            return connection.ask() == 200
        except OSError as error:
            if connection.answered:
                self.ends.append((time.monotonic(), type(error).__name__))
                connection.close()
                return self.good_answer(connection)  # at once, on a new one
            connection.close()
            time.sleep(max(0, began + RETRY_PAUSE - time.monotonic()))
            return False

    def begin_fresh(self):
        due = time.monotonic()
        while not self.stopped:
            self.fresh[due] = None
            self.start(self.ask_fresh, due)
            due += self.options.fresh_every
            time.sleep(max(0, due - time.monotonic()))

    def ask_fresh(self, due):
        connection = Connection(self.context, self.options.path)
        try:
            status = connection.ask()
            error = "" if status == 200 else str(status)
        except OSError as failure:
            error = str(failure) or type(failure).__name__
        connection.close()
        self.fresh[due] = (time.monotonic(), error)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--held", type=int, required=True, help="connections that stay")
    parser.add_argument("--every", type=float, required=True, help="seconds between two requests on each of them")
    parser.add_argument("--fresh-every", type=float, required=True, help="seconds between two fresh connections")
    parser.add_argument("--path", default="/api", help="what is asked for; default /api")
    load = Load(parser.parse_args())
    gc.freeze()  # later collections are short: a pause here would be blamed on a proxy
    json.dump(load.run(), sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # threads may hang in a request


if __name__ == "__main__":
    main()
