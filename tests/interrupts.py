"""Interrupts of child processes."""

import signal


def heed_interrupts() -> None:
    """Take interrupts in the new process. A shell starts background jobs that ignore them, and so do their children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
