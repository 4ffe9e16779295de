"""`TraceSet`: the profiles of one side, arranged as runs and ranks, and the steps of them that count. Files whose
tables have the same rows are added up row by row, so that what follows costs as much as for one file.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import Annotated, Generic, TypeVar

import msgspec
import numpy as np
from msgspec import Struct

from tracediff import bounds
from tracediff.arrays import Bools, Int64, combined, distinct, int64_of, marked, tuples
from tracediff.formatting import plural, ranges
from tracediff.ingest.manifest import Manifest, TorchLog
from tracediff.ingest.model.health import Note
from tracediff.profile.kernels.families import DEFAULT, Families
from tracediff.profile.model.columns import columns_of
from tracediff.profile.model.profile import CallTable, OpTable, Profile, TableRows, WorkTable
from tracediff.profile.model.selection import Selection
from tracediff.profile.tables import ALL
from tracediff.structs import FrozenStruct

Name = Annotated[str, msgspec.Meta(min_length=1, max_length=bounds.REASON)]


class Recorded(FrozenStruct):
    """Of what a set was recorded.

    Attributes:
        commit: of the code, a hash or another name. committed: its time, in s since 1970.
        machine: what it ran on. configuration: what ran. Sets of one machine and configuration are comparable.
    """

    commit: Name
    committed: Annotated[int, msgspec.Meta(ge=0, lt=1 << 40)]
    machine: Name
    configuration: Name


class Run(Struct):
    """One execution: rank → its files in order (several where one worker wrote several cycles)."""

    name: str
    ranks: dict[int, list[Profile]] = {}

    @property
    def profiles(self) -> list[Profile]:
        """Those of all its files."""
        return [profile for files in self.ranks.values() for profile in files]

    @property
    def world_size(self) -> int:
        """How many ranks its program has, as its files record; 0 where none does."""
        return max((p.origin.world_size or 0 for p in self.profiles), default=0)


class TraceSet(Struct, kw_only=True):
    """One side of a comparison.

    Attributes:
        label: its short name.
        runs: the runs in order.
        selection: the steps used.
        notes: health notes of the set and of all its files.
        manifest: what the collector wrote of it, None for traces from elsewhere.
        torch_log: what logs of torch.compile say of its compiled kernels, None without logs.
        families: rules that map a name to its kind of work.
        tables: names of the further tables that it was loaded with; ``all`` for those that its files have.
        recorded: of what, in a history; None for other sets.
    """

    label: str
    runs: list[Run]
    selection: Selection
    notes: tuple[Note, ...]
    manifest: Manifest | None = None
    torch_log: TorchLog | None = None
    families: Families = DEFAULT
    tables: tuple[str, ...] = (ALL,)
    recorded: Recorded | None = None

    @property
    def files(self) -> list[tuple[Run, int, Profile]]:
        """The run, the rank and the profile of each file."""
        return [(run, rank, p) for run in self.runs for rank, profiles in run.ranks.items() for p in profiles]

    @property
    def profiles(self) -> list[Profile]:
        """All files' profiles."""
        return [profile for _, _, profile in self.files]

    @property
    def ranks(self) -> list[int]:
        """All ranks, ascending."""
        return sorted({r for run in self.runs for r in run.ranks})

    @property
    def has_gpu(self) -> bool:
        """Whether any file holds GPU events."""
        return any(p.has_gpu for p in self.profiles)

    @property
    def steps_used(self) -> list[int]:
        """The numbers of the used steps over all files, ascending."""
        return sorted({int(n) for p in self.profiles for n in p.step_numbers[self.selection.used(p)]})

    @property
    def steps_recorded(self) -> list[int]:
        """The numbers of all steps over all files, ascending."""
        return sorted({int(n) for p in self.profiles for n in p.step_numbers})

    def __repr__(self) -> str:
        runs, ranks = plural(len(self.runs), "run"), plural(len(self.ranks), "rank")
        steps = f"steps {ranges(self.steps_used)} of {ranges(self.steps_recorded)}"
        return f"<TraceSet {self.label}: {runs}, {ranks}, {steps}>"


def in_steps(profile: Profile, step: Int64, used: Sequence[int] | Int64) -> Bools:
    """bool[n]: whether the ``step`` of each row of a table of ``profile`` is among the ``used`` ones, by position."""
    return marked(used, len(profile.step_numbers) + 2)[step]  # the last two places are those of no step, −1 and −2


def rows_named(profile: Profile, table: OpTable | WorkTable, category: str, matches: Callable[[str], bool]) -> Int64:
    """Rows of a table of ``profile`` that are of a category and whose name ``matches`` accepts."""
    if category not in profile.categories:
        return np.zeros(0, np.intp)
    rows = np.flatnonzero(table.category == profile.categories.index(category))
    codes = [code for code in distinct(table.name[rows]).tolist() if matches(profile.names[code])]
    return rows[marked(codes, len(profile.names))[table.name[rows]]]


Key = TypeVar("Key", bound=Hashable)
T = TypeVar("T", OpTable, CallTable, WorkTable, TableRows)
Weighted = Sequence[tuple[Profile, list[int], int]]
"""Profiles with the positions of their used steps and the weight of a step."""

LARGEST, MOST_FILES = 1 << 48, 1 << 14
"""Sums of so many amounts that are no larger fit 64 bits."""


class Alike(Struct, Generic[T]):
    """Files whose tables have the same rows, the same used steps and the same weight.

    Attributes:
        profile: the first of them. table: their sum.
        used, weight: see `Weighted`. files: their positions in the set.
    """

    profile: Profile
    table: T
    used: list[int]
    weight: int
    files: list[int]

    def add(self, file: int, table: T) -> None:
        """Add the table of another file."""
        merged = {
            name: merge(getattr(self.table, name), getattr(table, name))
            for how, merge in (("sum", np.add), ("least", np.minimum))
            for name in _merged(table, how)
        }
        self.table = self.table.replace(**merged)
        self.files.append(file)


def alike(weighted: Weighted, tables: Sequence[T], meanings: Sequence[tuple[object, ...]]) -> list[Alike[T]]:
    """The files of ``weighted`` with the sums of their ``tables``, in order of the first file of each sum.

    Args:
        meanings: of each table, what its codes mean; tables are added if this and their columns are identical
            (`SharedColumns`), not only equal.
    """
    groups: list[Alike[T]] = []
    last: dict[tuple[object, ...], Alike[T]] = {}
    for file, ((profile, used, weight), table, meaning) in enumerate(zip(weighted, tables, meanings, strict=True)):
        columns = [getattr(table, name) for name in _equal(table)]
        alone = None if _is_small(table) else file
        key = (tuple(map(id, meaning)), tuple(map(id, columns)), tuple(used), weight, alone)
        latest = last.get(key)
        if latest and len(latest.files) < MOST_FILES:
            latest.add(file, table)
        else:
            last[key] = Alike(profile, table, used, weight, [file])
            groups.append(last[key])
    return groups


def _merged(table: T, how: str) -> list[str]:
    return [name for name, column in columns_of(table).items() if column.merged == how]


def _equal(table: T) -> list[str]:
    """The fields in which tables that are added up agree: the keys of a further table are not a column."""
    columns = columns_of(table)
    return [name for name in table.__struct_fields__ if name not in columns or columns[name].merged == "equal"]


def _is_small(table: T) -> bool:
    columns = (getattr(table, name) for name in _merged(table, "sum"))
    return all(max(-int(c.min(initial=0)), int(c.max(initial=0))) < LARGEST for c in columns)


class Numbering(Generic[Key]):
    """The numbers of keys, in order of their first occurrence; those of files with the same columns, as of the ranks
    and runs of a program, are looked up once.

    Attributes:
        numbers: key → its number.
    """

    def __init__(self) -> None:
        self.numbers: dict[Key, int] = {}
        self._rows: dict[Hashable, Int64] = {}

    def of(self, meaning: Hashable, columns: Callable[[], Sequence[Int64]], key: Callable[..., Key]) -> Int64:
        """int64[n]: the number of each row's key.

        Args:
            meaning: decides both: what is equal for two files, and the ids of what is identical (`SharedColumns`).
            columns: gives codes of the rows' keys, int64[n] each. key: gives the key of a row of them.
        """
        if meaning not in self._rows:
            codes = columns()
            code, first = combined(*codes)
            keys = (key(*row) for row in tuples(*(column[first] for column in codes)))
            numbers = [self.numbers.setdefault(own, len(self.numbers)) for own in keys]
            self._rows[meaning] = int64_of(numbers)[code]
        return self._rows[meaning]
