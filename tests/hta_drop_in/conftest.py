"""The same traces on both sides: `ours` by tracediff, `theirs` by the real HTA where it is installed."""

from __future__ import annotations

import copy
import logging
import os
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import traces

from tracediff.hta import LabeledTrace


@pytest.fixture(scope="session")
def hta() -> ModuleType:
    """HTA's own module ``hta.trace_diff``."""
    module = import_module("hta.trace_diff")
    logging.getLogger("hta").setLevel(logging.CRITICAL)
    return module


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Real traces by name → a folder with links to just these, since HTA takes folders only."""

    @cache
    def made(*names: str) -> str:
        path: Path = tmp_path_factory.mktemp("traces")
        for i, name in enumerate(names):
            file = traces.trace(name)
            os.symlink(file, path / (file.name if len(names) == 1 else f"{i}_{file.name}"))
        return str(path)

    return made


@pytest.fixture(scope="session")
def theirs(hta: ModuleType, folder: Callable[..., str]) -> Callable[..., Any]:
    """Real traces by name → HTA's LabeledTrace of them, labelled ``one``; parsed once a session, a copy each time since
    HTA changes labels.
    """
    parsed = cache(lambda *names: hta.LabeledTrace("one", trace_dir=folder(*names)))
    return lambda *names: copy.copy(parsed(*names))


@pytest.fixture(scope="session")
def ours() -> Callable[..., LabeledTrace]:
    """Real traces by name → our LabeledTrace of the same files, labelled ``one``; read once a session."""
    read = cache(lambda *names: LabeledTrace("one", trace_dir=[traces.trace(name) for name in names]))
    return lambda *names: copy.copy(read(*names))
