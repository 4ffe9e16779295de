"""How a command ends, whatever happens in it: with the exit codes of docs/stability.md and at most one line."""

from __future__ import annotations

import errno
import gc
import os
import signal
import sys
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:  # until `end` is called a signal meets no handler: nothing else is imported before
    from collections.abc import Callable
    from types import FrameType

DEBUG = "TRACEDIFF_DEBUG"
"""Environment variable that has the same effect as ``--debug``."""
LEAST_ADDRESS_SPACE = 128 << 20
"""With less, libraries end the process themselves, with an exit code and a message of their own, in bytes."""
NOT_LOADED = ("failed to map segment", "cannot allocate memory")
"""Of the errors of an import: the library does not fit into memory."""
UNWRITTEN = (errno.EBADF, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENOSPC)
"""Of errors that name no file: standard output does not take what is written to it."""
OUT_OF_MEMORY = "error: out of memory; read fewer files at a time (--rank) or use fewer processes (--jobs 1)"
ENDING = (signal.SIGINT, signal.SIGTERM)
SIZES = ("COLUMNS", "LINES", "JUPYTER_COLUMNS", "JUPYTER_LINES")
"""Variables from which libraries take the size of the screen."""

_received: list[int] = []
"""The signal that ends this process, once it has arrived."""


class Interrupted(KeyboardInterrupt):
    """A signal that ends the process. Python makes a KeyboardInterrupt itself the exit code where it passes an exec."""


def end(command: Callable[[], int]) -> NoReturn:
    """End the process with the exit code that ``command`` returns; after an error with 2, after a signal with 128 + its
    number, and with 141 if the reader of the output has closed it.
    """
    _open_closed_streams()
    sys.unraisablehook = _end_again
    handle_endings(_interrupt)
    try:
        try:
            _check_address_space()
            _drop_odd_sizes()
            code = command()
        finally:
            sys.stdout.flush()
            handle_endings(signal.SIG_DFL)
    except BaseException as error:
        code, message = _judge(error)
        _tell(message, error if code == 2 else None)
        _discard_unwritten()
    gc.disable()
    gc.freeze()  # else Python looks for cycles in all that is left, which the end of the process frees anyway
    sys.exit(code)


def _drop_odd_sizes() -> None:
    """Remove the sizes of a screen that no screen has: libraries would divide by them, or fill lines with them."""
    from tracediff.bounds import SCREEN
    from tracediff.errors import whole_number

    for name in SIZES:
        if name in os.environ and not 0 < (whole_number(os.environ[name]) or 0) <= SCREEN:
            del os.environ[name]


def _tell(message: str, error: BaseException | None) -> None:
    """Write the line, and for developers where ``error`` comes from."""
    import traceback

    from tracediff.errors import printable

    try:
        if error and (os.environ.get(DEBUG) or "--debug" in sys.argv):
            traceback.print_exception(error)
        if message:
            print(f"tracediff: {printable(message)}", file=sys.stderr, flush=True)
    except OSError:
        pass  # standard error is full or closed


def _interrupt(number: int, frame: FrameType | None) -> None:  # noqa: ARG001  # signal's signature
    """The first signal unwinds the process, so that it removes its files; the next one kills it."""
    _received.append(number)
    handle_endings(signal.SIG_DFL)
    raise Interrupted


def _end_again(swallowed: sys.UnraisableHookArgs) -> None:
    """What a callback of Python swallows: the end of the process comes again, when that is over; others are printed."""
    if not isinstance(swallowed.exc_value, Interrupted):
        sys.__unraisablehook__(swallowed)
        return
    signal.signal(signal.SIGALRM, _when_over)
    signal.setitimer(signal.ITIMER_REAL, 0.001)


def _when_over(number: int, frame: FrameType | None) -> None:
    """Raise once `_end_again` is over: within it, as on a busy machine, it would be swallowed again."""
    outer = frame
    while outer is not None and outer.f_code is not _end_again.__code__:
        outer = outer.f_back
    if outer is None:
        _interrupt(number, frame)
    signal.setitimer(signal.ITIMER_REAL, 0.001)


def handle_endings(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    """Have ``handler`` handle the signals that end a process, but for those that this one ignores."""
    for ending in ENDING:
        if signal.getsignal(ending) != signal.SIG_IGN:  # as nohup and background jobs have it
            signal.signal(ending, handler)


def _judge(error: BaseException) -> tuple[int, str]:
    """The exit code that ``error`` ends the process with, and the line that says why."""
    from tracediff.errors import TracediffError

    if _received or isinstance(error, KeyboardInterrupt):  # libraries turn it into errors of their own
        return 128 + (_received or [signal.SIGINT])[0], "interrupted"
    if isinstance(error, BrokenPipeError):
        return 141, ""
    if isinstance(error, SystemExit):
        if isinstance(error.__context__, BrokenPipeError):  # rich exits with 1 then
            return 141, ""
        return (error.code, "") if isinstance(error.code, int) else (2 if error.code else 0, str(error.code or ""))
    if isinstance(error, TracediffError):
        return 2, f"error: {error}"
    text = str(error)
    if isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and any(m in text.lower() for m in NOT_LOADED)
    ):
        return 2, OUT_OF_MEMORY
    if isinstance(error, OSError) and error.filename is None and error.errno in UNWRITTEN:
        reason = (error.strerror or text).lower()
        return 2, f"error: standard output: cannot be written ({reason}); check where it is redirected to"
    from traceback import extract_tb

    place = "".join(f" at {os.path.basename(f.filename)}:{f.lineno}" for f in extract_tb(error.__traceback__)[-1:])
    unexpected = f"unexpected {type(error).__name__}{place}"
    return 2, f"error: {unexpected}: {text}; report it with the output of tracediff --debug …"


def _check_address_space() -> None:
    if sys.platform == "win32":
        return
    import resource

    from tracediff.errors import TracediffError

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        raise TracediffError(
            "ulimit -v", f"{limit >> 10:,} KB are too little", f"allow {LEAST_ADDRESS_SPACE >> 10:,} KB or more"
        )


def _open_closed_streams() -> None:
    """Open what was closed when the process started, because a file opened later would take its place; standard output
    in such a way that writing to it is an error.
    """
    for descriptor, mode in ((0, os.O_RDONLY), (1, os.O_RDONLY), (2, os.O_WRONLY)):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, mode)  # the lowest that is free, which is this one
    if sys.stdout is None:
        sys.stdout = os.fdopen(1, "w", encoding="utf-8")
    if sys.stderr is None:
        sys.stderr = os.fdopen(2, "w", encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # names may hold what the terminal's encoding does not


def _discard_unwritten() -> None:
    """Discard what a stream does not take, which Python would try, and complain of, again at exit."""
    for stream, descriptor in ((sys.stdout, 1), (sys.stderr, 2)):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), descriptor)
