"""``tracediff doctor``."""

import os
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

import click

from tracediff import __version__
from tracediff.ingest.json.native import OFF, SWITCH, is_used
from tracediff.structs import FrozenStruct
from tracediff_cli.options.groups import grouped_command


@grouped_command
def doctor() -> int:
    """Show what is installed, what each part is for, and how to get what is missing.

    \b
    Example:
      tracediff doctor
    """
    from tracediff.errors import printable

    parts = installed_parts()
    name, purpose = (
        max(len(text) for text in texts) for texts in zip(*((p.name, p.purpose) for p in parts), strict=True)
    )
    for part in parts:
        mark = "ok     " if part.version else "missing"
        click.echo(printable(f"{mark}  {part.name:{name}}  {part.purpose:{purpose}}  {part.version or part.remedy}"))
    return 0


EXTRAS = {
    "hta": (("traceinsight",), "tracediff analyze --hta, tracediff.hta"),
    "dashboard": (("dash", "dash-ag-grid", "cachetools"), "tracediff dashboard"),
    "mcp": (("mcp", "cachetools"), "tracediff mcp"),
    "images": (("kaleido",), "charts as PNG, SVG or PDF"),
    "remote": (("fsspec", "aiohttp"), "traces at URLs"),
    "scale": (("distributed",), "--executor dask"),
    "history": (("unidiff",), "--source: changed code"),
    "onnx": (("onnx", "onnxruntime", "onnxscript"), "the variant onnx of tracediff collect"),
}
"""Extra → (its packages, what it is for)."""
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
COMPILERS = ("g++", "clang++", "c++")


class InstalledPart(FrozenStruct):
    """A part of the installation.

    Attributes:
        name: of the part. version: what there is, in words; None if it is missing.
        purpose: what it is for. remedy: how to get it.
    """

    name: str
    version: str | None
    purpose: str
    remedy: str = ""


def installed_parts() -> list[InstalledPart]:
    """Every part, in the order in which they are shown. Imports torch if it is installed."""
    browser = "install Chromium or Chrome (Debian: apt-get install chromium), or set BROWSER_PATH"
    return [
        InstalledPart("tracediff", f"{__version__}, Python {sys.version.split()[0]}", "all commands"),
        _native(),
        *(_extra(name, *extra) for name, extra in EXTRAS.items()),
        InstalledPart("browser", _program("BROWSER_PATH", BROWSERS), "charts as PNG, SVG or PDF", browser),
        *_of_torch(),
    ]


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _native() -> InstalledPart:
    installed = (_version("torch-tracediff-native") or "in use") if is_used() else None
    remedy = "in a checkout: pip install ./native (needs a C compiler)"
    if os.environ.get(SWITCH, "").lower() in OFF:
        remedy = f"it is turned off: unset {SWITCH}"
    return InstalledPart("native reader", installed, "reading traces three times as fast", remedy)


def _extra(name: str, packages: tuple[str, ...], purpose: str) -> InstalledPart:
    versions = {package: _version(package) for package in packages}
    listed = ", ".join(f"{package} {version}" for package, version in versions.items())
    installed = listed if all(versions.values()) else None
    return InstalledPart(name, installed, purpose, f"pip install 'torch-tracediff[{name}]'")


def _program(variable: str, names: tuple[str, ...]) -> str | None:
    """The name of the program that the environment variable names, else of the first of ``names`` that is there."""
    paths = (os.environ.get(variable), *map(shutil.which, names))
    return next((os.path.basename(path) for path in paths if path), None)


def _of_torch() -> list[InstalledPart]:
    """torch, its GPU, and the compiler that torch.compile needs on the CPU."""
    purpose = "tracediff collect"
    if find_spec("torch") is None:
        return [InstalledPart("torch", None, purpose, "pip install 'torch-tracediff[collect]'")]
    import torch

    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    compiler = "install g++ (Debian: apt-get install g++), or set CXX"
    return [
        InstalledPart("torch", torch.__version__, purpose),
        InstalledPart("GPU", gpu, "tracediff collect --device cuda", "torch finds no CUDA or ROCm device"),
        InstalledPart("C++ compiler", _program("CXX", COMPILERS), "torch.compile on the CPU", compiler),
    ]
