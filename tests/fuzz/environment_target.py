"""The target of the environment: a command with variables that other programs set, to values that nobody checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from random import Random

from build_trace import document, kernel, op, step
from command_here import run_here
from odd_values import text

from fuzz.invariants import require
from tracediff.errors import TracediffError

SIZES = ("COLUMNS", "LINES", "JUPYTER_COLUMNS", "JUPYTER_LINES")
SCREEN = ("TERM", "COLORTERM", "NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "UNICODE_VERSION")
PLACES = ("HOME", "TMPDIR", "TEMP", "TMP", "XDG_CACHE_HOME", "BROWSER", "BROWSER_PATH", "CXX", "SHELL", "PATH", "TZ")
LOCALE = ("LANG", "LC_ALL", "LC_NUMERIC", "LANGUAGE")
OWN = ("TRACEDIFF_NATIVE", "TRACEDIFF_DEBUG", "TRACEDIFF_TOKEN", "_TRACEDIFF_COMPLETE", "COMP_WORDS", "COMP_CWORD")
OTHERS = ("RANK", "WORLD_SIZE", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMEXPR_MAX_THREADS", "PLOTLY_RENDERER")
VARIABLES = (*SIZES * 3, *SCREEN, *PLACES, *LOCALE, *OWN, *OTHERS)
NUMBERS = ("0", "-1", "1", "7", "80", "10000", "10001", "99999999", "9" * 5000, "1e3", " 80 ", "0x50", "1_0", "²", "٣")
TEXTS = ("", "x", "true", "dumb", "xterm-256color", "C", "POSIX", "tr_TR.UTF-8", "bash_source", "zsh_complete", "é")
HOSTILE = ("\udcff", "a\nb", "\x1b[31m", "%s{}", "../..", "/dev/null", "/nonexistent/below", "~", "$(touch owned)", "'")
PYTHON = {
    "PYTHONUTF8": ("0", "1"),
    "PYTHONIOENCODING": ("ascii", "ascii:strict", "latin-1", "utf-8:surrogateescape"),
    "PYTHONHASHSEED": ("0", "1", "random"),
    "PYTHONOPTIMIZE": ("1", "2"),
    "PYTHONUNBUFFERED": ("1",),
    "PYTHONDONTWRITEBYTECODE": ("1",),
    "PYTHONCOERCECLOCALE": ("0", "1"),
    "PYTHONINTMAXSTRDIGITS": ("0", "640"),
    "PYTHONWARNINGS": ("ignore", "error"),
}
"""Values that the interpreter accepts: any other ends it before a line of ours is run."""
COMMANDS = (
    "compare a.json b.json",
    "compare a.json b.json -v",
    "compare a.json b.json --json -",
    "compare a.json b.json --markdown -",
    "explain a.json b.json gemm",
    "explain a.json b.json mm --events",
    "compare missing.json b.json",
    "analyze a.json",
    "analyze a.json --table all",
    "check a.json b.json --junit -",
    "matrix a.json b.json a.json",
    "mcp . --list",
    "collect --show missing",
    "collect --help",
    "export --help",
    "--version",
    "--help",
)
IN_A_PROCESS = 0.01
"""Part of the inputs for which the interpreter is started, too."""
MOST_PRINTED = 1 << 20
CODES = (0, 2, 3)


def make_environment(random: Random) -> bytes:
    """A command, and a few variables."""
    chosen = random.sample(VARIABLES, random.choice((1, 1, 2, 4, 8)))
    values = {name: random.choice(random.choice((NUMBERS, TEXTS, HOSTILE))) for name in chosen}
    return json.dumps({"command": random.choice(COMMANDS), "variables": values}).encode()


def use_environment(content: bytes, folder: Path, random: Random) -> None:
    """Run the command; its exit code is one of those documented, and an error is one line."""
    given = json.loads(content)
    words, variables = given["command"].split(), given["variables"]
    for name in ("a", "b"):
        events = [step(1, 0, 20), op("aten::mm", 1, 5), kernel("gemm_é", 8, 5), op("aten::add", 7, 2)]
        (folder / f"{name}.json").write_bytes(text(document(events)))
    if random.random() < IN_A_PROCESS:
        variables |= {name: random.choice(PYTHON[name]) for name in random.sample(list(PYTHON), 2)}
        code, printed, errors = _in_a_process(words, variables, folder)
    else:
        code, printed, errors = run_here(words, variables, folder)
    require(code in CODES, f"exit code {code}: {errors[-500:]}")
    require(len(printed) < MOST_PRINTED, f"{len(printed):,} characters printed")
    lines = errors.splitlines()
    require("unexpected" not in errors and "Fatal" not in errors, errors[-500:])
    if code == 2:
        is_one = len(lines) == 1 or variables.get("TRACEDIFF_DEBUG")
        require(is_one and lines[-1].startswith("tracediff: error: "), f"not one line: {errors[-500:]}")
        raise TracediffError("tracediff", lines[-1], "as the line says")


def _in_a_process(words: list[str], variables: dict[str, str], folder: Path) -> tuple[object, str, str]:
    """The same, of a new interpreter."""
    done = subprocess.run(
        [sys.executable, "-m", "tracediff", *words],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path)), **variables},
        cwd=folder,
        capture_output=True,
        stdin=subprocess.DEVNULL,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
