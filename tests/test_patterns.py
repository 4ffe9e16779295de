"""No pattern of the packages takes more than linear time, whatever the name; users' own are stopped."""

import ast
import importlib
import json
import pkgutil
import re
import signal
import time
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from re import (
    _constants as sre,  # type: ignore[attr-defined]
    _parser as parser,
)
from types import ModuleType
from typing import Any

import pytest
import tracediff_cli
import tracediff_dashboards
from build_trace import annotation, document, op, step
from click.testing import CliRunner
from tracediff_cli.group import cli

import tracediff
from tracediff import bounds
from tracediff.diff.matching.items import fused_list
from tracediff.errors import TracediffError
from tracediff.hta.trace_diff import short_name
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.read import read_trace
from tracediff.patterns import Late
from tracediff.process.user_patterns import first_found
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.families import family_of, uses_tensor_cores
from tracediff.profile.kernels.match_names import match_name

PACKAGES = (tracediff, tracediff_cli, tracediff_dashboards)
ELSEWHERE = {
    ("runtimes", "_any_of"),  # called for module constants only
    ("runtimes", "_beginning"),  # likewise
    ("patterns", "__getattr__"),  # of those that `late` was called for
    ("display_names", "_without_own_scope"),  # an escaped name without repetitions
    ("flame", "_modules"),  # the same
    ("user_patterns", "check_pattern"),  # compiles only
}
"""Functions that may call `re`."""
SHORT, LONG = 12_000, 150_000
SUSPECT_S, LIMIT_S = 0.002, 0.3
"""Processor time: a search of a SHORT name that takes longer, and much longer than of a quarter of it, is tried on a
LONG one, where a quadratic search takes seconds and a linear one milliseconds.
"""
GENERAL = (" ", "a", "_", "1", "_1d", "const ", "/", "<", "(", "[", "\n")


def sources() -> Iterator[Path]:
    for package in PACKAGES:
        yield from Path(package.__path__[0]).rglob("*.py")


def modules() -> Iterator[ModuleType]:
    for package in PACKAGES:
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith("__main__") and not found.name.startswith("tracediff.collect"):
                yield importlib.import_module(found.name)


def patterns_in(value: Any) -> Iterator[re.Pattern[Any]]:
    if isinstance(value, re.Pattern):
        yield value
    elif isinstance(value, Late):
        yield re.compile(value.pattern, value.given_flags)
    elif isinstance(value, dict):
        yield from patterns_in(list(value.values()))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from patterns_in(item)


def collect_patterns() -> Iterator[tuple[str, re.Pattern[Any]]]:
    """Those of tracediff.collect, whose modules import torch."""
    for path in (Path(tracediff.__path__[0]) / "collect").rglob("*.py"):
        for line in ast.parse(path.read_text()).body:
            if isinstance(line, ast.Assign) and "re.compile" in ast.unparse(line):
                yield ast.unparse(line.targets[0]), eval(ast.unparse(line.value), {"re": re})


def all_patterns() -> dict[str, tuple[str, re.Pattern[Any]]]:
    """module.NAME (and the pattern, where a constant holds several) → (NAME, pattern)."""
    found = {f"tracediff.collect: {name}": (name, pattern) for name, pattern in collect_patterns()}
    distinct = {
        (pattern.pattern, pattern.flags): (f"{module.__name__}.{name}", name, pattern)
        for module in modules()
        for name, value in vars(module).items()
        for pattern in patterns_in(value)
    }
    return found | {f"{where} {pattern.pattern!r:.60}": (name, pattern) for where, name, pattern in distinct.values()}


def test_patterns_are_module_constants() -> None:
    """So that the test below sees each of them."""
    wrong = []
    for path in sources():
        text = path.read_text()
        if "import re\n" not in text and ".str." not in text and "late(" not in text:
            continue
        tree = ast.parse(text)
        functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.Lambda)]
        inside = {id(n): f for f in functions for n in ast.walk(f)}
        for call in ast.walk(tree):
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "late":
                within = getattr(inside.get(id(call)), "name", None)
                if within is not None and (path.stem, within) not in ELSEWHERE:
                    wrong.append(f"{path.name}:{call.lineno}: {ast.unparse(call)[:60]}")
            if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                continue
            is_re = isinstance(call.func.value, ast.Name) and call.func.value.id == "re"
            is_pandas = isinstance(call.func.value, ast.Attribute) and call.func.value.attr == "str"
            function = inside.get(id(call))
            known = (path.stem, getattr(function, "name", "")) in ELSEWHERE
            constant = function is None and call.func.attr in ("compile", "escape")
            if is_pandas or (is_re and not known and not constant and call.func.attr != "escape"):
                wrong.append(f"{path.name}:{call.lineno}: {ast.unparse(call)[:60]}")
    assert not wrong


def sample(items: Any) -> str:
    """A text that a parsed pattern matches, as far as its assertions allow."""
    return "".join(map(_sample_of, items))


def _sample_of(item: Any) -> str:
    kind, value = item
    if kind is sre.LITERAL:
        return chr(value)
    if kind is sre.IN:
        return _member(value)
    if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
        return sample(value[2]) * min(max(value[0], 1), 50)
    if kind is sre.SUBPATTERN:
        return sample(value[3])
    if kind is sre.ATOMIC_GROUP:
        return sample(value)
    if kind is sre.BRANCH:
        return sample(value[1][0])
    return "q" if kind in (sre.ANY, sre.NOT_LITERAL) else ""


def _member(members: Any) -> str:
    for kind, value in members:
        if kind is sre.LITERAL:
            return chr(value)
        if kind is sre.RANGE:
            return chr(value[0])
        if kind is sre.CATEGORY:
            return {sre.CATEGORY_SPACE: " ", sre.CATEGORY_DIGIT: "1", sre.CATEGORY_WORD: "w"}.get(value, "-")
    return "q"


def parts(items: Any, before: str = "") -> Iterator[tuple[str, str]]:
    """(what comes before, text) of the parts of a parsed pattern that are no literal, and of all of it."""
    for k, item in enumerate(items):
        kind, value = item
        if kind in (sre.LITERAL, sre.AT):
            continue
        here = before + sample(items[:k])
        yield here, _sample_of(item)
        yield before, sample(items[:k])
        inner = {
            sre.MAX_REPEAT: lambda v: [v[2]],
            sre.MIN_REPEAT: lambda v: [v[2]],
            sre.POSSESSIVE_REPEAT: lambda v: [v[2]],
            sre.SUBPATTERN: lambda v: [v[3]],
            sre.ATOMIC_GROUP: lambda v: [v],
            sre.BRANCH: lambda v: v[1],
            sre.ASSERT: lambda v: [v[1]],
            sre.ASSERT_NOT: lambda v: [v[1]],
        }.get(kind, lambda _: [])(value)
        for one in inner:
            yield from parts(one, here)
    yield before, sample(items)


def attacks(pattern: re.Pattern[Any]) -> Iterator[tuple[str, str, str]]:
    """(beginning, repeated text, end) of names to search."""
    text = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin1")
    found = set(parts(parser.parse(text, pattern.flags)))
    for before, pump in sorted(found | {("", general) for general in GENERAL}):
        if pump:
            yield before, pump, "\x01"
            yield "", f"{before}{pump}", "\n!"


def seconds(pattern: re.Pattern[Any], attack: tuple[str, str, str], length: int, used: set[str]) -> float:
    """The processor time of what the code does with ``pattern``, on a name of ``length``."""
    first, pump, last = attack
    name = first + pump * (length // len(pump)) + last
    text: Any = name if isinstance(pattern.pattern, str) else name.encode("latin1", "replace")
    before = time.thread_time()
    if used and used <= {"match", "fullmatch"}:
        pattern.match(text)
        pattern.fullmatch(text)
    elif used & {"sub", "finditer", "findall", "split"}:
        pattern.sub(text[:0], text)
    else:
        pattern.search(text)
    return time.thread_time() - before


def slow(pattern: re.Pattern[Any], used: set[str]) -> tuple[str, str, str] | None:
    """A name on which ``pattern`` takes more than linear time, None if none was found."""
    for attack in attacks(pattern):
        try:
            signal.setitimer(signal.ITIMER_VIRTUAL, LIMIT_S)
            taken = seconds(pattern, attack, SHORT, used)
            if taken > SUSPECT_S and taken > 8 * seconds(pattern, attack, SHORT // 4, used):
                seconds(pattern, attack, LONG, used)
        except TimeoutError:
            return attack
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return None


@pytest.fixture
def stopped() -> Iterator[None]:
    """A search beyond the time limit raises TimeoutError."""

    def stop(*_: object) -> None:
        raise TimeoutError

    old = signal.signal(signal.SIGVTALRM, stop)
    yield
    signal.signal(signal.SIGVTALRM, old)


@pytest.mark.slow
@pytest.mark.usefixtures("stopped")
def test_every_pattern_is_linear() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for path in sources():
        for name, use in re.findall(
            r"\b(\w+)\.(search|match|fullmatch|sub|finditer|findall|split)\b", path.read_text()
        ):
            used[name].add(use)
    known = all_patterns()
    assert len(known) > 100
    wrong = []
    for where, (name, pattern) in known.items():
        if found := slow(pattern, used[name]):
            wrong.append((where, found))
    assert not wrong


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(
    "pattern",
    [
        r"(?:\s*\bconst\b|[*&\s])+$",
        r"_\d+(?:d\w*)?$",
        r"multi_tensor_apply.*native::Copy<",
        r"\]\s*(?:\}|,?\s*\Z)",
        r"[sd]gemm(?!\w*tensor)",
    ],
)
def test_the_attacks_find_patterns_that_are_not(pattern: str) -> None:
    assert slow(re.compile(pattern), {"search"})


@pytest.mark.usefixtures("stopped")
@pytest.mark.parametrize(
    "name",
    [
        "void f<" + "const " * 2700 + ">()",
        "void f<" + "*" * 16_000 + ">()",
        "triton_" + "_1d" * 5300 + "!",
        "_fused_" * 2300 + "\n",
        "void " + "ab::" * 2000 + "k<" + ",".join(["ab::x"] * 1300) + ">()",
        "void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<a(b+)+, int> >("
        + "b" * 9000
        + ")",
    ],
)
def test_no_name_holds_what_is_made_of_it(name: str) -> None:
    signal.setitimer(signal.ITIMER_VIRTUAL, 2)
    for made in (display_name, match_name, family_of, uses_tensor_cores, short_name, fused_list):
        made(name)
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def test_names_are_bounded_where_they_enter(tmp_path: Path) -> None:
    long = "a" * 100_000
    path = tmp_path / "a.json"
    path.write_text(json.dumps(document([step(1, 0, 900), op(f"{long}x", 10, 5), op(f"{long}y", 20, 5)])))
    trace = read_trace(TraceFile(str(path)))
    kept = [name for name in trace.names if name.startswith("aaa")]
    assert len(set(kept)) == 2
    assert {len(name) for name in kept} == {bounds.KEPT_NAME}
    assert [note.count for note in trace.notes if note.code == "long-name"] == [2]


@pytest.mark.slow
def test_a_users_pattern_is_stopped(tmp_path: Path) -> None:
    """In a thread, where no signal arrives; in a worker, on the command line."""
    with ThreadPoolExecutor(1) as threads:
        searched = threads.submit(first_found, ("b", "^(a+)+$"), "a" * 60 + "!", "--families")
        with pytest.raises(TracediffError, match=re.escape("(a+)+")):
            searched.result()
    traces = [tmp_path / "a.json", tmp_path / "b.json"]
    for path in traces:
        events = [step(1, 0, 900), step(2, 1000, 900), op("a" * 60 + "!", 1010, 5)]
        path.write_text(json.dumps(document([*events, annotation("a" * 60 + "!", 1000, 50)])))
    (tmp_path / "f.toml").write_text('[[family]]\nname = "a"\npatterns = ["^(a+)+$"]\n')
    for options in (["--families", str(tmp_path / "f.toml"), "--jobs", "2"], ["--step-marker", "^(a+)+$"]):
        result = CliRunner().invoke(cli, ["compare", *map(str, traces), *options])
        assert isinstance(result.exception, TracediffError)
        assert "'^(a+)+$' takes too long" in str(result.exception)


def test_users_patterns_are_searched_as_python_does() -> None:
    assert first_found(("b", "^A", "a"), "\ud800aA", "--families") == 2
    assert first_found(("B", "^A", "a"), "aA\n", "--families", re.IGNORECASE) == 1
