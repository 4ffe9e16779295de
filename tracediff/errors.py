"""Errors that a user can act on: the input at fault, what is wrong and what to do."""


class TracediffError(Exception):
    """An invalid input or request. ``str()`` is one line: ``subject: reason; remedy``.

    Attributes:
        subject: the file, set or option at fault.
        reason: what is wrong with it.
        remedy: what the user can do.
    """

    def __init__(self, subject: str, reason: str, remedy: str) -> None:
        super().__init__(subject, reason, remedy)  # all three, so that it pickles
        self.subject = subject
        self.reason = reason
        self.remedy = remedy

    def __str__(self) -> str:
        return printable(f"{self.subject}: {self.reason}; {self.remedy}")


class NotATrace(TracediffError):
    """A readable file that is not a PyTorch profiler trace; a folder may contain such files beside traces."""


class Refused(TracediffError):
    """Two sets whose comparison would be meaningless (no GPU events on one side, nothing shared)."""


def printable(text: str) -> str:
    """``text`` on one line, with control and direction-changing characters replaced: names in traces are untrusted."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\t\r" else "�" for c in text)
