"""Folders are rooms: none imports what lies beside it in the folder around it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("tracediff", "cli/tracediff_cli", "dashboards/tracediff_dashboards")
STAGES = 2
"""Parts of a stage's name: its own modules may import what lies beside the stages (`tracediff.errors`)."""
PLUGINS = {"tracediff.charts.figures", "tracediff.collect.workloads"}
"""Folders of modules that are listed by name in the folder around them, and imported when asked for: each of them is
made of what it finds there.
"""
CROSSED = {"tracediff.diff.gate", "tracediff.report.page"}
"""Folders that still do; none may be added."""


def modules() -> dict[str, Path]:
    """Name → file, of packages the ``__init__``."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            parts = path.relative_to((ROOT / package).parent).with_suffix("").parts
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imported(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = (f"{node.module}.{alias.name}" for alias in node.names)
            yield from (name if name in known else node.module for name in names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def folder_of(module: str, known: dict[str, Path]) -> str:
    return module if known[module].name == "__init__.py" else module.rpartition(".")[0]


def crossings() -> set[tuple[str, str]]:
    known = modules()
    pairs = {
        (folder_of(module, known), target)
        for module, path in known.items()
        for target in imported(path, known)
        if target in known
    }
    return {(f, target) for f, target in pairs if f.startswith(f"{folder_of(target, known)}.")}


def test_no_folder_imports_its_parent():
    found = {(folder, target) for folder, target in crossings() if target.count(".") >= STAGES}
    assert {folder for folder, _ in found} - PLUGINS == CROSSED
