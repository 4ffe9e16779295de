"""`ChangedCode`: which changed lines the changed work runs for (docs/source.md)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
from msgspec import Meta, Struct, field

from tracediff import bounds
from tracediff.arrays import Floats
from tracediff.diff.comparison import Comparison
from tracediff.diff.groups import Group
from tracediff.diff.statistics.many import compare_many
from tracediff.errors import TracediffError, quoted
from tracediff.explain.leaves import LOADING, UNPLACED, Leaves
from tracediff.git import CHANGES, Repository
from tracediff.profile.placement.scopes import CODE
from tracediff.source.code import BODY, Code, Definition, reached
from tracediff.source.revisions import ChangedFile, Lines, Revisions
from tracediff.structs import FrozenStruct

Part = Annotated[float, Meta(ge=0, le=1)]


class Touching(FrozenStruct, kw_only=True):
    """Changed lines that changed work runs for."""

    file: str
    """path in the repository"""
    name: str
    """the function, class or statement that changed; of control if test has none"""
    first: int
    """its first changed line"""
    last: int
    """its last changed line"""
    text: str
    """the lines from first to last, at most 20 of them"""
    lines: int
    """how many of its lines changed; 0 where lines were only taken out"""
    commit: str
    """the latest commit that changed them, abbreviated; empty where unknown"""
    part: Part
    """of the change of all changed work, the part that they touch"""
    distance: int
    """references between them and the work's own code: 0 where that changed"""


class ChangedCode(FrozenStruct, kw_only=True):
    """Which changed lines the changed work runs for."""

    commits: tuple[str, str]
    """of control and test"""
    touching: tuple[Touching, ...] = ()
    """the largest part first"""
    untouched: int = 0
    """changed definitions that no changed work runs for"""
    other_files: tuple[str, ...] = ()
    """changed files that are not Python"""
    changed_work: Part = 0.0
    """of all change, the part of work that is other work or takes significantly longer or shorter"""
    unplaced: Part = 0.0
    """of the change of all changed work, the part whose line is not known"""
    note: str = ""
    """why the changed lines are unknown; empty otherwise"""


Operation = tuple[str, str | None, str | None, str | None]
"""Match name, shapes, dtypes and strides of an operator."""


class Place(Struct):
    """One line of code on one side.

    Attributes:
        path: ns per step that the step waits for its work; over all places of a side they add up to the step.
        runs: float64[runs] ns per step of its work in each run, on the path or not.
        operations: the operators that it calls → numerators per step.
    """

    path: float
    runs: Floats
    operations: Counter[Operation] = field(default_factory=Counter)


Key = tuple[str, str]
"""The later path of a file, and the name of a definition in it; of statements that name nothing, their code."""
Keys = tuple[Key, ...] | None
"""Definitions that work runs for; None where none is known."""
Places = dict[str, Place]
"""``model.py(12): forward``, LOADING or UNPLACED → what runs for it."""
Sides = tuple[Places, Places]
"""Of control and of test."""
NO_LINES = "no line of code was recorded: record with_stack=True, or collect --detail structure"
SETTINGS = frozenset(
    ("backends", "environ", "set_num_threads", "set_float32_matmul_precision", "use_deterministic_algorithms")
)
"""What sets how all operators run, in any place."""


def changed_code(comparison: Comparison, revisions: Revisions) -> ChangedCode:
    """The changed code between the commits of both sides that changed work runs for.

    Raises:
        TracediffError: git or unidiff fails, see `Revisions`.
    """
    explanation = comparison.explanation
    if explanation is None:
        return ChangedCode(commits=revisions.commits, note="the sides were not compared")
    changed = revisions.changed
    python = [file for file in changed if file.path.endswith(".py")]
    places = _places(comparison, explanation.leaves, 0), _places(comparison, explanation.leaves, 1)
    if revisions.commits[0] != revisions.commits[1] and not any(side.keys() - {LOADING, UNPLACED} for side in places):
        return ChangedCode(commits=revisions.commits, note=NO_LINES)
    program = _Program(revisions, places, python)
    change_of, changed_work = program.work(places)
    touching, untouched = program.touching(change_of, changed_work)
    whole, of_changed = (sum(abs(change_of[keys]) for keys in some) for some in (change_of, changed_work))
    return ChangedCode(
        commits=revisions.commits,
        touching=tuple(touching),
        untouched=untouched,
        other_files=tuple(sorted(file.path for file in changed if not file.path.endswith(".py"))),
        changed_work=of_changed / whole if whole else 0.0,
        unplaced=abs(change_of[None]) / of_changed if None in changed_work and of_changed else 0.0,
    )


def _places(comparison: Comparison, leaves: Leaves, side: int) -> Places:
    by_op: dict[str, Counter[str]] = {}
    out: Places = {}

    def at(line: str) -> Place:
        return out.setdefault(line, Place(0.0, np.zeros(len(leaves.runs[side]))))

    for call in comparison.trees[side].calls:
        if call.kind == "op":
            line = call.line or UNPLACED
            by_op.setdefault(call.label, Counter())[line] += call.self_ns
            at(line).operations[call.label, call.shapes, call.types, call.strides] += call.count
    for leaf in np.flatnonzero(leaves.total[side]).tolist():
        for line, part in _parts(leaves, comparison.work.groups, by_op, leaf, side).items():
            place = at(line)
            place.path += part * float(leaves.path[side, leaf])
            place.runs = place.runs + part * leaves.runs[side][:, leaf]
    return out


def _parts(
    leaves: Leaves, groups: Sequence[Group], by_op: dict[str, Counter[str]], leaf: int, side: int
) -> dict[str, float]:
    """Line → the part of a leaf's time that is its."""
    name, kind, group = leaves.names[side, leaf], leaves.kinds[leaf], leaves.groups[leaf]
    if kind == "loading":
        return {LOADING: 1.0}
    if kind == "python" and CODE.search(name):
        return {name: 1.0}
    ns = Counter[str]()
    if group >= 0:
        for item in groups[group].items[side]:
            ns[item.line or UNPLACED] += item.ns
    else:
        ns = by_op.get(leaves.ops[side, leaf] or name, ns)
    whole = ns.total()
    return {line: part / whole for line, part in ns.items()} if whole else {UNPLACED: 1.0}


class _Program:
    """The definitions of both commits, by key."""

    def __init__(self, revisions: Revisions, places: Sides, changed: list[ChangedFile]) -> None:
        self.revisions = revisions
        self.changed_files = {file.path: file for file in changed}
        self.later = {file.before: file.path for file in changed if file.before}
        others = ([f.before for f in changed if f.before], [f.after for f in changed if f.after])
        self.code = tuple(Code(revisions, side, places[side], others[side]) for side in (0, 1))
        self.sides = tuple({self.key(d, side): d for d in self.code[side].definitions} for side in (0, 1))
        self.edges: dict[Key, set[Key]] = defaultdict(set)
        for side, code in enumerate(self.code):
            for key, definition in self.sides[side].items():
                self.edges[key] |= {self.key(other, side) for other in code.refers(definition)} - {key}
        loads = [(side, code) for side, code in enumerate(self.code) if LOADING in places[side]]
        loading = {self.key(d, side) for side, code in loads for d in code.loading()}
        self.inside = set(reached(loading, self.edges.__getitem__))
        """What runs while data is loaded: its operators and functions are of the loader, whose time is one."""
        makers = {self.key(d, side) for side, code in loads for d in code.definitions if d.loads}
        self.loading = tuple(sorted(self.inside | makers))
        """That, and what makes the loader."""

    def key(self, definition: Definition, side: int) -> Key:
        path = definition.file if side else self.later.get(definition.file, definition.file)
        return path, str(definition.code) if definition.name == BODY else definition.name

    def keys_of(self, line: str, side: int) -> Keys:
        """The definitions that a place runs."""
        if line == LOADING:
            return self.loading or None
        definition = self.code[side].of_frame(line) if line != UNPLACED else None
        key = self.key(definition, side) if definition else None
        return self.loading if key in self.inside else (key,) if key else None

    def work(self, places: Sides) -> tuple[dict[Keys, float], dict[Keys, bool]]:
        """(definitions → the change of their work, test − control ns per step on the path; those whose work changed →
        whether its operators differ, in number or in inputs, or it only takes significantly longer or shorter).
        """
        control, test = (self._by_definition(lines, side) for side, lines in enumerate(places))
        keys = list(dict.fromkeys((*control, *test)))
        if not keys:
            return {}, {}
        runs = [np.array([side[key].runs for key in keys]) / 1000 for side in (control, test)]
        tested = compare_many(runs[0], runs[1])
        changed_work: dict[Keys, bool] = {}
        for key, row in zip(keys, tested.rows, strict=True):
            before, after = control[key], test[key]
            is_other = before.operations != after.operations or not (before.runs.any() and after.runs.any())
            if is_other or row.time_change in ("slower", "faster"):
                changed_work[key] = is_other
        return {key: test[key].path - control[key].path for key in keys}, changed_work

    def _by_definition(self, lines: Places, side: int) -> dict[Keys, Place]:
        """Definitions → the sum of the work of one side that runs for them; nothing for any other."""
        runs = next((len(place.runs) for place in lines.values()), 0)
        out: dict[Keys, Place] = defaultdict(lambda: Place(0.0, np.zeros(runs)))
        for line, place in lines.items():
            whole = out[self.keys_of(line, side)]
            whole.path += place.path
            whole.runs += place.runs
            whole.operations += place.operations
        return out

    def touching(
        self, change_of: Mapping[Keys, float], changed_work: Mapping[Keys, bool]
    ) -> tuple[list[Touching], int]:
        """(the changed definitions that ``changed_work`` runs for, the number of the others)."""
        before, after = ({key: definition.code for key, definition in side.items()} for side in self.sides)
        changed = {key for key, _ in before.items() ^ after.items()}
        live = self._live(key for keys in change_of if keys for key in keys)
        near = self._neighbours(live)
        sides = [{key for key, definition in side.items() if definition.refers & SETTINGS} for side in self.sides]
        settings = changed & live & set().union(*sides)
        whole = sum(abs(change_of[keys]) for keys in changed_work)
        parts: dict[Key, float] = defaultdict(float)
        distances: dict[Key, int] = {}
        for keys, is_other in changed_work.items():
            if not keys:
                continue
            candidates = changed & live if is_other else changed & (set(keys) | settings)
            nearest, distance = _nearest(keys, candidates, near)
            nearest = nearest or settings
            for key in nearest:
                parts[key] += abs(change_of[keys]) / whole / len(nearest) if whole else 0.0
                distances[key] = min(distance, distances.get(key, distance))
        out = [self._touching(key, part, distances[key]) for key, part in parts.items()]
        return sorted(out, key=lambda t: (-t.part, t.file, t.first)), len(changed - parts.keys())

    def _live(self, roots: Iterable[Key]) -> set[Key]:
        """What runs when the roots do, and the files that they are in."""
        start = set(roots)
        for side, code in enumerate(self.code):
            start |= {self.key(d, side) for d in code.importing(path for path, _ in start)}
        return set(reached(start, self.edges.__getitem__))

    def _neighbours(self, live: set[Key]) -> dict[Key, set[Key]]:
        near: dict[Key, set[Key]] = defaultdict(set)
        for key in live:
            for other in self.edges[key] & live:
                near[key].add(other)
                near[other].add(key)
        return near

    def _touching(self, key: Key, part: float, distance: int) -> Touching:
        side = 1 if key in self.sides[1] else 0
        definition = self.sides[side][key]
        file = self.changed_files.get(key[0])
        inner = [
            d for d in self.code[side].definitions if d.file == definition.file and d.owner == f"{definition.name}."
        ]
        spans = (file.added if side else file.removed) if file else ()
        mine = [
            within
            for span in spans
            if (within := _within(span, definition)) and not any(_within(within, d) == within for d in inner)
        ]
        first, last = (mine[0][0], mine[-1][1]) if mine else (definition.first, definition.last)
        lines = self.code[side].files[definition.file].text.splitlines()
        commit = self.revisions.author_of(key[0], (first, last) if side else None)
        return Touching(
            file=definition.file,
            name=definition.name,
            first=first,
            last=last,
            text="\n".join(lines[first - 1 : last][: bounds.CHANGED_LINES_KEPT]),
            lines=sum(b - a + 1 for a, b in mine),
            commit=commit,
            part=part,
            distance=distance,
        )


def _within(span: Lines, definition: Definition) -> Lines | None:
    """What of ``span`` is in the definition."""
    first, last = max(span[0], definition.first), min(span[1], definition.last)
    return (first, last) if first <= last else None


def _nearest(start: Iterable[Key], targets: set[Key], near: Mapping[Key, set[Key]]) -> tuple[set[Key], int]:
    """(those of ``targets`` that are the fewest references away, how many references)."""
    here, reached, distance = set(start), set(start), 0
    while here:
        if nearest := here & targets:
            return nearest, distance
        here = {other for key in here for other in near.get(key, ())} - reached
        reached |= here
        distance += 1
    return set(), distance


REMEDY = "give the commits of both sides: --source REPO --commit ctrl=BEFORE --commit test=AFTER"


def with_changed_code(comparison: Comparison, source: Path, commits: tuple[str, str] | None) -> Comparison:
    """``comparison`` with the changed code between ``commits``, or those that the sets were collected from, of the
    repository around ``source``.

    Raises:
        TracediffError: a commit is unknown or not in the repository, or git fails.
    """
    repository = Repository(source)
    if repository.ask("rev-parse", "--git-dir") is None:
        raise TracediffError(source, "is not in a git repository, or git is not installed", "give --source REPO")
    names = commits or [(side.manifest.git_commit if side.manifest else None) or "" for side in comparison.sides]
    before, after = (_commit(repository, name.removesuffix(CHANGES)) for name in names)
    if any(name.endswith(CHANGES) for name in names):
        note = "a side was recorded with changes that no commit has"
        return comparison.replace(changed_code=ChangedCode(commits=(before, after), note=note))
    return comparison.replace(changed_code=changed_code(comparison, Revisions(repository, (before, after))))


def changed_between(comparison: Comparison, repository: Repository, commits: tuple[str, str]) -> ChangedCode | None:
    """The changed code between ``commits``; None where the repository lacks one, or git or unidiff cannot tell."""
    try:
        return with_changed_code(comparison, repository.folder, commits).changed_code
    except TracediffError:
        return None


def _commit(repository: Repository, name: str) -> str:
    if not name:
        raise TracediffError("changed lines", "the traces do not say which commit they were recorded from", REMEDY)
    commit = repository.commit(name)
    if commit is None:
        raise TracediffError(quoted(name), "is not a commit of the repository", REMEDY)
    return commit.name
