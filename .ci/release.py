"""Builds what a release publishes, both distributions as sdist and wheel, into dist/, and checks it; publishes nothing.

Files are those that git tracks; the texts render on PyPI; wheels and sdists install into a new environment and
compare the sample traces outside of the checkout; every extra can be installed; version, changelog and tag agree; the
part of plotly.js in pages is of the version that plotly has.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path

from plotly.offline import get_plotlyjs

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
SAMPLE = ROOT / "sample_traces" / "vit"
GENERATED = ("PKG-INFO", "setup.cfg", ".egg-info/", ".dist-info/")
"""What build backends add."""
MOST_LOG = 4000
"""Characters of the log of a build that failed."""
MOST_PAGE = 2_500_000
"""Bytes of the page of the sample traces."""
PLOTLY_VERSION = re.compile(r"plotly\.js v([\d.]+\d)")
HEADING = re.compile(r"^## (\S+) \((.*)\)$", re.MULTILINE)


def main() -> None:
    """Build and check, and end with one line for the first fault."""
    version = re.search(r'__version__ = "(.+)"', (ROOT / "tracediff" / "__init__.py").read_text())[1]
    check_version(version)
    check_plotly()
    build()
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, DIST.iterdir())], check=True)
    check_files()
    check_installed(version)
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(ROOT)}: {path.stat().st_size >> 10} KB")


def check_version(version: str) -> None:
    """The changelog begins with this version; under a tag, which is its name, it has a date."""
    heading = HEADING.search((ROOT / "CHANGELOG.md").read_text())
    if heading is None or heading[1] != version:
        sys.exit(f"CHANGELOG.md: the first heading is not that of version {version}")
    tags = [tag for tag in git("tag", "--points-at", "HEAD") if tag.startswith("v")]
    if tags and tags != [f"v{version}"]:
        sys.exit(f"tag {', '.join(tags)}: the version is {version}")
    if tags and not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[2]):
        sys.exit(f"CHANGELOG.md: version {version} is tagged, and its heading says ({heading[2]}) instead of its date")


def check_plotly() -> None:
    """The part of plotly.js in pages is of the version for which the pinned plotly makes figures."""
    ours = (ROOT / "tracediff" / "report" / "page" / "plotly.min.js").read_text()
    (part,), (whole,) = (PLOTLY_VERSION.findall(script[:MOST_LOG]) for script in (ours, get_plotlyjs()))
    if part != whole:
        sys.exit(f"plotly.min.js: version {part}, plotly has {whole}; set it in .ci/plotly, then make plotly")


def build() -> None:
    """Build the sdists, and the wheels from them."""
    shutil.rmtree(DIST, ignore_errors=True)
    for project in (ROOT, ROOT / "native"):
        command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(DIST), str(project)]
        done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode:
            sys.exit(f"{done.stdout[-MOST_LOG:]}\n{project.name}: cannot be built")


def check_files() -> None:
    """What git tracks of a distribution's folders is in it, and nothing else."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]
    packages = settings["wheel"]["packages"]
    included = [*(path.lstrip("/") for path in settings["sdist"]["include"]), "pyproject.toml", ".gitignore"]
    modules = {
        Path(package).name + path.removeprefix(package) for package in packages for path in git("ls-files", package)
    }
    native = {path.removeprefix("native/") for path in git("ls-files", "native")}
    for path in sorted(DIST.iterdir()):
        is_native, is_wheel = "native" in path.name, path.suffix == ".whl"
        expected = native if is_native else set(git("ls-files", *included))
        if is_wheel:
            expected = {"tracediff_native.abi3.so"} if is_native else modules
        found = {name for name in names_in(path) if not any(part in name for part in GENERATED)}
        if found != expected:
            sys.exit(f"{path.name}: {listed('missing', expected - found)}{listed('not tracked', found - expected)}")


def names_in(path: Path) -> Iterable[str]:
    """The files of a wheel, or of an sdist below its folder."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            return wheel.namelist()
    with tarfile.open(path) as sdist:
        return [member.name.partition("/")[2] for member in sdist if member.isfile()]


def listed(what: str, names: set[str]) -> str:
    return f"{len(names)} {what} ({', '.join(sorted(names)[:3])}); " if names else ""


def check_installed(version: str) -> None:
    """The wheels install into a new environment and work in a folder that is not the checkout; so do the sdists."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "environment" / "bin"
        run = runner(Path(folder))
        run(sys.executable, "-m", "venv", "--without-pip", str(environment.parent))
        pip = (sys.executable, "-m", "pip", "--python", str(environment / "python"), "--disable-pip-version-check")
        install = (*pip, "install", "-q", "--no-compile", "-c", str(ROOT / "constraints.txt"))
        for kind, options in (("*.whl", ()), ("*.tar.gz", ("--no-deps", "--force-reinstall"))):
            run(*install, *options, *map(str, sorted(DIST.glob(kind))))
            check_demo(run, str(environment / "tracediff"), version)
        run(*install, "hatchling")  # builds the checkout
        check_extras(run, (*install, "--dry-run", "--no-build-isolation"))


def check_extras(run: Callable[..., str], resolve: tuple[str, ...]) -> None:
    """pip finds all that the extras name, for the checkout and for the wheel, and says what it lacks. It installs
    nothing: torch is large.
    """
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = ",".join(settings["optional-dependencies"])
    (wheel,) = DIST.glob("torch_tracediff-*.whl")
    for source in (ROOT, wheel):
        try:
            run(*resolve, f"{source}[{extras}]")
        except subprocess.CalledProcessError:
            sys.exit(f"{source.name}[{extras}]: cannot be installed; name only what an index has")


def check_demo(run: Callable[..., str], tracediff: str, version: str) -> None:
    """``tracediff`` is this version with the native reader, and compares the sample traces in a small page."""
    printed = run(tracediff, "--version").strip()
    if version not in printed or "native" not in printed:
        sys.exit(f"tracediff --version prints {printed!r}, not version {version} with the native reader")
    sides = (str(SAMPLE / "eager"), str(SAMPLE / "compile"))
    answer = json.loads(run(tracediff, "compare", *sides, "--json", "-"))
    if answer["step_time"]["residual_us"] != 0:
        sys.exit("the states of the sample traces do not add up to the step")
    size = len(run(tracediff, "compare", *sides, "--html", "-").encode())
    if size > MOST_PAGE:
        sys.exit(f"the page of the sample traces takes {size:,} bytes, more than {MOST_PAGE:,}")


def runner(folder: Path) -> Callable[..., str]:
    """A function that runs a command in ``folder``, without the modules of the checkout."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str) -> str:
        return subprocess.run(
            command, cwd=folder, env=environment, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    return run


def git(*arguments: str) -> list[str]:
    """The lines that a git command prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout.splitlines()


if __name__ == "__main__":
    main()
