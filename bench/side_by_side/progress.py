"""What is being measured, on standard error: a live line on a terminal, else a line each."""

import sys


def tell(words):
    """Replaces what was told last on a terminal; "" takes it away."""
    if sys.stderr.isatty():
        print(f"\r\033[K{words}", end="", file=sys.stderr, flush=True)
    elif words:
        print(words, file=sys.stderr, flush=True)
