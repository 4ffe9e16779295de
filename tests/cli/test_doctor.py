"""``tracediff doctor`` and ``python -m tracediff``."""

import subprocess
import sys
from importlib.metadata import PackageNotFoundError

import pytest
from tracediff_cli import doctor
from tracediff_cli.doctor import EXTRAS, installed_parts

from tracediff import __version__


def run(*arguments):
    return subprocess.run([sys.executable, "-m", "tracediff", *arguments], capture_output=True, text=True, check=False)


def test_the_package_is_the_command_line():
    assert run("--version").stdout.startswith(f"tracediff, version {__version__}")
    assert run("compare", "nothing", "nothing").returncode == 2


@pytest.mark.torch
def test_every_part_is_shown_with_what_it_is_for():
    result = run("doctor")
    assert result.returncode == 0
    lines = result.stdout.splitlines()
    assert len(lines) == len(installed_parts())
    assert all(line.startswith(("ok ", "missing ")) for line in lines)
    assert f"{__version__}, Python" in lines[0]


def test_what_is_missing_has_a_remedy(monkeypatch):
    def missing(package):
        raise PackageNotFoundError(package)

    monkeypatch.setattr(doctor, "version", missing)
    monkeypatch.setattr(doctor, "find_spec", lambda _: None)
    monkeypatch.setattr(doctor.shutil, "which", lambda _: None)
    monkeypatch.setenv("TRACEDIFF_NATIVE", "0")
    monkeypatch.delenv("BROWSER_PATH", raising=False)
    parts = {part.name: part for part in installed_parts()}
    for name in EXTRAS:
        assert parts[name].version is None
        assert parts[name].remedy == f"pip install 'torch-tracediff[{name}]'"
    assert parts["native reader"].remedy == "it is turned off: unset TRACEDIFF_NATIVE"
    assert "Chromium" in parts["browser"].remedy
    assert parts["torch"].version is None
