"""What is being done at the moment, on standard error: a live line on a terminal, else a line each."""

import sys
import threading

_lock = threading.Lock()


def tell(words):
    """Replaces what was told last on a terminal; "" takes it away before something else is printed."""
    with _lock:
        if sys.stderr.isatty():
            print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
        elif words:
            print(words, file=sys.stderr, flush=True)


def say(words):
    """A line on standard output, with nothing else on it."""
    tell("")
    print(words, flush=True)
