"""Load and call a user's ``make_step``, named as ``train.py:make_step`` or ``package.module:make_step``."""

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tracediff.collect.variant import Task, Variant
from tracediff.errors import TracediffError
from tracediff.git import CHANGES, Repository


def load_make_step(target: str) -> Callable[..., Any]:
    """The function named by ``FILE.py:NAME`` or ``MODULE:NAME``; NAME defaults to ``make_step``.

    Raises:
        TracediffError: no such file, module or function. Exceptions of the file itself are not caught.
    """
    path = file_of(target)
    location, _, name = target.rpartition(":") if ":" in target else (target, "", "make_step")
    module = _from_file(path) if path else _from_module(target, location)
    function = getattr(module, name, None)
    if not callable(function):
        raise TracediffError(target, f"no function {name!r} in it", "write def make_step(variant): … return step")
    return function


def file_of(target: str) -> Path | None:
    """The file of ``FILE.py:NAME``; None of a module.

    Raises:
        TracediffError: there is no such file, or it is none of Python.
    """
    path = Path(target.rpartition(":")[0] or target)
    if path.suffix != ".py":
        if path.is_file():
            raise TracediffError(target, "not a Python file", "give FILE.py:make_step")
        return None
    if not path.is_file():
        raise TracediffError(target, "no such file", "give FILE.py:make_step")
    return path


def _from_file(path: Path) -> Any:
    sys.path.insert(0, str(path.resolve().parent))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def _from_module(target: str, name: str) -> Any:
    sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name and name.startswith(error.name):
            raise TracediffError(
                target,
                f"no module {name!r}",
                "give FILE.py:make_step, or a module that is importable from the current folder",
            ) from None
        raise


def make_user_task(target: str, variant: Variant, arguments: Sequence[str]) -> Task:
    """The task of what ``make_step(variant, *arguments)`` returns: a callable, or an object with ``step()`` and
    optionally ``model`` and ``items``.

    Raises:
        TracediffError: as for `load_make_step`; or it takes other arguments, or returns neither.
    """
    make_step = load_make_step(target)
    try:
        inspect.signature(make_step).bind(variant, *arguments)
    except TypeError as error:
        reason = f"make_step cannot be called with the variant and {list(arguments)} ({error})"
        raise TracediffError(target, reason, "write def make_step(variant, …)") from None
    returned = make_step(variant, *arguments)
    if isinstance(returned, Task):
        return returned
    step = getattr(returned, "step", None)
    if callable(step):
        items = getattr(returned, "items", None)
        return Task(step, getattr(returned, "model", None), items if isinstance(items, int) and items > 0 else None)
    if callable(returned):
        return Task(returned)
    reason = f"make_step returned {type(returned).__name__}, which is not a step"
    raise TracediffError(target, reason, "return a callable, or an object with step()")


def git_commit(target: str) -> str | None:
    """The git commit of the user's code, with ``+changes`` if files are modified; None outside a checkout."""
    path = Path(target.rpartition(":")[0] or target)
    repository = Repository(path.resolve().parent if path.suffix == ".py" else Path.cwd())
    head = repository.commit("HEAD")
    return head.name + (CHANGES if repository.is_changed else "") if head else None
