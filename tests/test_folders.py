"""Folders are rooms: none imports what lies beside it in the folder around it."""

import ast
import subprocess
import sys
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


WITHOUT_DEPENDENCIES = """
import sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("click", "isal", "jinja2", "msgspec", "pandas", "plotly", "rich", "scipy"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Absent())
for module in sys.argv[1:]:
    __import__(module)
"""


def test_collect_needs_torch_and_the_standard_library_only():
    folder = ROOT / "tracediff" / "collect"
    frameworks = ("lightning", "transformers")  # import their framework
    names = [f"tracediff.collect.{path.stem}" for path in folder.glob("[!_]*.py") if path.stem not in frameworks]
    command = [sys.executable, "-c", WITHOUT_DEPENDENCIES, "tracediff.collect.__main__", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
