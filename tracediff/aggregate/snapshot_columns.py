"""The accounts of a file as a snapshot holds them, and the checks that those read are what a trace can have: every
column holds what its table declares (`columns`), and the accounts close.

A column is a list of integers: it packs as small as binary columns would on real traces, and can be read by people and
other programs. What a column holds says how it is written. Columns that are equal in several files are kept once: ranks
of a program differ in times, and hardly in calls.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import msgspec
import numpy as np
from msgspec import Struct
from msgspec.structs import asdict, replace

from tracediff.arrays import Int64, combined, concatenated, int64_of, last_equal, sums, zeros
from tracediff.ingest.files.source import TraceFile
from tracediff.ingest.json.arguments import is_well_formed
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.names import bounded
from tracediff.profile.analyses.leaf_keys import KINDS as LEAF_KINDS
from tracediff.profile.events.step_states import GPU_STATES, STATES
from tracediff.profile.model.columns import Column, columns_of
from tracediff.profile.model.profile import Accounts, Grid, LeafTable, Profile, TableRows
from tracediff.profile.placement.calls import KINDS, OP, PHASE
from tracediff.profile.placement.scopes import PHASES
from tracediff.profile.tables import OF_FILES, table_schema

TABLES = ("owned", "ops", "calls", "compiled_calls", "kernels", "host_work", "leaves")
LARGEST_SUM = float(1 << 62)
ARGUMENT_OF = {"shapes": "Input Dims", "types": "Input type", "strides": "Input Strides"}
"""Columns of a call table → the argument whose form their texts have."""


def check(profile: Profile) -> None:
    """Check what a comparison relies on, but for lengths.

    Raises:
        ValueError: the place and what is wrong there.
    """
    _check_columns(profile)
    _check_texts(profile)
    _check_steps(profile)
    _check_tree(profile)
    _check_work(profile)
    _check_sums(profile)
    _check_leaves(profile)
    _check_tables(profile)


def require(condition: object, otherwise: str) -> None:
    """Require ``condition``.

    Raises:
        ValueError: with the text ``otherwise``.
    """
    if not condition:
        raise ValueError(otherwise)


def check_lengths(accounts: Accounts) -> None:
    """Check that the columns of each table have a value for each of its rows.

    Raises:
        ValueError: the table.
    """
    for name, table in _tables(accounts):
        lengths = {(column.rows, len(values)) for _, column, values in _columns(name, table)}
        require(len(lengths) == len(dict(lengths)), f"{name} has columns of different lengths")
    steps = len(accounts.step_numbers)
    require(len(accounts.completions) == steps + 1, "completions and step_numbers: different numbers of steps")
    require(accounts.state_ns.shape == (steps, len(accounts.state_names)), "state_ns: a step without states")


def _tables(accounts: Accounts) -> Iterator[tuple[str, object]]:
    """(name, table) of all that have columns; the accounts themselves are one."""
    yield "the profile", accounts
    yield from ((name, getattr(accounts, name)) for name in TABLES)
    yield from accounts.tables.items()


def _columns(name: str, table: object) -> Iterator[tuple[str, Column, Int64]]:
    """(place, what it holds, values) of each column of a table."""
    prefix = "" if isinstance(table, Accounts) else f"{name}."
    for column_name, column in columns_of(table).items():
        yield prefix + column_name, column, getattr(table, column_name)


def _check_columns(profile: Profile) -> None:
    """Values are in their range, codes refer to something, no row occurs twice and sums stay exact."""
    sizes = {
        "steps": len(profile.step_numbers),
        "nodes": len(profile.calls.parent),
        "GPU states": len(GPU_STATES),
        "call kinds": len(KINDS),
        "leaf kinds": len(LEAF_KINDS),
        **{name: len(getattr(profile, name)) for name in ("categories", "names", "texts")},
    }
    for name, table in _tables(profile):
        sizes["keys"] = len(getattr(table, "keys", ()))
        keys: dict[str, list[Int64]] = {}
        for place, column, values in _columns(name, table):
            _check_range(place, column, values, sizes.get(column.refers_to))
            if column.is_key:
                keys.setdefault(column.rows, []).append(values - min(column.low + 1, 0))
            if column.merged == "sum":
                totals = np.abs(values.astype(np.float64)).sum(axis=0)
                require((totals < LARGEST_SUM).all(), f"the sum of {place} needs more than 64 bits")
        for rows, columns in keys.items():
            require(len(combined(*columns)[1]) == len(columns[0]), f"the {rows} of {name} have a duplicate")


def _check_range(place: str, column: Column, values: Int64, size: int | None) -> None:
    if not values.size:
        return
    lowest, highest = int(values.min()), int(values.max())
    if size is not None:
        require(lowest >= column.low and highest < size, f"{place} refers to nothing")
    require(lowest >= column.low, f"{place} has {lowest}, less than {column.low}")
    require(highest < column.high, f"{place} has {highest}, which is not below {column.high}")


def _check_texts(profile: Profile) -> None:
    origin = profile.origin
    has_standard_codes = (
        profile.categories[: len(cat.KNOWN)] == cat.KNOWN and profile.state_names[: len(STATES)] == STATES
    )
    require(has_standard_codes, "categories or state_names do not begin with those that every snapshot has")
    for name in ("categories", "names", "state_names"):
        texts = getattr(profile, name)
        require(len(set(texts)) == len(texts), f"{name} has a duplicate")
    numbers = (origin.rank or 0, origin.world_size or 0, origin.gpu_count)
    require(all(0 <= n < 1 << 31 for n in numbers), "origin: rank, world_size or gpu_count is negative or too large")
    require(all(note.count > 0 for note in profile.notes), "notes: a count below 1")


def _check_steps(profile: Profile) -> None:
    """The step account: states add up to the steps, and owners to the states."""
    steps, owned, state_ns = len(profile.step_numbers), profile.owned, profile.state_ns
    require(len(np.unique(profile.step_numbers)) == steps, "step_numbers has a duplicate")
    require((profile.periods >= 0).all(), "completions: a step ends before it begins")
    require(state_ns.sum(dtype=np.float64) < LARGEST_SUM, "the sum of state_ns needs more than 64 bits")
    require((state_ns.sum(axis=1) == profile.periods).all(), "state_ns: the states of a step do not add up to it")
    owned_ns = sums(owned.step * len(GPU_STATES) + owned.state, owned.ns, steps * len(GPU_STATES))
    require(
        (owned_ns.reshape(steps, -1) == state_ns[:, : len(GPU_STATES)]).all(),
        "owned: the owners of a GPU state do not add up to it",
    )


def _check_tree(profile: Profile) -> None:
    """The call tree: phases are its roots, nothing but an operator is below an operator, and inputs have the form that
    they are recorded in.
    """
    calls = profile.calls
    phase, root = calls.kind == PHASE, calls.parent < 0
    for which, size in ((phase, len(PHASES)), (~phase, len(profile.names))):
        require((calls.name[which] < size).all(), "calls.name refers to nothing")
    require((calls.parent < np.arange(len(root))).all(), "calls.parent: a call comes before its parent")
    require((phase == root).all(), "calls.kind: the phases are not the roots of the tree")
    parent_kinds = calls.kind[calls.parent[~root]]
    require((calls.kind[~root][parent_kinds == OP] == OP).all(), "calls.kind: a scope is below an operator")
    require((calls.kind[calls.node] == OP).all(), "calls.node: a row that is not an operator")
    for name, argument in ARGUMENT_OF.items():
        for code in np.unique(getattr(calls, name)).tolist():
            well_formed = code < 0 or is_well_formed(argument, profile.texts[code])
            require(well_formed, f"calls.{name}: text {code} is not a list of {name}")


def _check_work(profile: Profile) -> None:
    """Work of no step is at no place of the tree, and the lanes of operators are texts."""
    for name, work in (("kernels", profile.kernels), ("host_work", profile.host_work)):
        require((work.node[work.step < 0] == -1).all(), f"{name}.node: work of no step is in the call tree")
    lane = profile.host_work.lane
    require(((lane >= 0) & (lane < len(profile.texts))).all(), "host_work.lane refers to nothing")


def _check_sums(profile: Profile) -> None:
    """The tables of one profile are sums of the same events."""
    ops, calls, kernels, host = profile.ops, profile.calls, profile.kernels, profile.host_work
    for name, table in (("ops", ops), ("calls", calls)):
        require((table.self_ns <= table.total_ns).all(), f"{name}: self_ns > total_ns")
    on_gpu = np.isin(ops.category, cat.GPU)
    _require_same_sums(
        "kernels and the GPU events in ops",
        (np.maximum(kernels.step, -1), kernels.category, kernels.name, kernels.count, kernels.total_ns),
        [column[on_gpu] for column in (ops.step, ops.category, ops.name, ops.count, ops.total_ns)],
    )
    require((ops.self_ns == ops.total_ns)[on_gpu].all(), "ops: the self time of a GPU event is not its time")
    is_operator = (ops.category == cat.CPU_OP) & (ops.step >= 0)
    operators = [column[is_operator] for column in (ops.step, ops.category, ops.name, ops.count, ops.self_ns)]
    category = np.full(len(calls.node), cat.CPU_OP)
    nodes = (calls.step, category, calls.name[calls.node], calls.count, calls.self_ns)
    _require_same_sums("calls and ops", nodes, operators, wrappers=True)
    require(not (len(host.step) and len(kernels.step)), "host_work and kernels: a trace has one of them")
    if len(host.step):
        work = (host.step, host.category, host.name, host.count, host.total_ns)
        _require_same_sums("host_work and calls", work, nodes)
    launched = kernels.step >= 0
    busy = sums(kernels.step[launched], kernels.total_ns[launched], len(profile.busy_ns))
    require((profile.busy_ns <= busy).all(), "busy_ns is more than the GPU events of a step")
    counts = sums(ops.category, ops.count, len(profile.categories)).tolist()
    recorded = [profile.events.get(name, 0) for name in profile.categories]
    require(all(c <= r for c, r in zip(counts, recorded, strict=True)), "events: fewer than ops has")


def _check_leaves(profile: Profile) -> None:
    """The leaves of a step add up to it."""
    leaves = profile.leaves
    require((leaves.name[leaves.category >= 0] >= 0).all(), "leaves.name: work without a name")
    require((leaves.longest_ns <= leaves.path_ns).all(), "leaves: an instance is longer than all together")
    path = sums(leaves.step, leaves.path_ns, len(profile.step_numbers))
    require((path == profile.periods).all(), "leaves: those of a step do not add up to it")


def _check_tables(profile: Profile) -> None:
    """Keys of further tables occur once, and only bytes are negative."""
    for name, table in profile.tables.items():
        require(len(set(table.keys)) == len(table.keys), f"{name} has a duplicate key")
        for column, amounts in zip(table_schema(name).columns, table.values.T, strict=True):
            require(column.unit == "bytes" or (amounts >= 0).all(), f"{name}.{column.name} is negative")


def _require_same_sums(name: str, some: Sequence[Int64], others: Sequence[Int64], *, wrappers: bool = False) -> None:
    """Require equal sums of the last two columns for equal values of the first three; of ``others`` only what ``some``
    has where these leave out ``wrappers``.
    """
    *keys, counts, times = concatenated((some, others))
    sign = np.where(np.arange(len(counts)) < len(some[0]), 1, -1)
    code, first = combined(*keys)
    compared = np.zeros(len(first), bool)
    compared[code[sign > 0] if wrappers else code] = True
    same = [not sums(code, column * sign, len(first))[compared].any() for column in (counts, times)]
    require(all(same), f"{name} do not add up to the same")


T = TypeVar("T", bound=Struct)
P = TypeVar("P", bound=Accounts)


class SharedColumns:
    """Those met so far; whoever reads several files keeps one while it does."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[Any, ...], np.ndarray] = {}
        self._tuples: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def of(self, part: T) -> T:
        """``part`` (a profile, or a table of it) with the columns and names of equal ones before it, so that equal is
        identical.
        """
        changed = {
            name: shared
            for name in part.__struct_fields__
            if (shared := self._shared(value := getattr(part, name))) is not value
        }
        return replace(part, **changed) if changed else part

    def _shared(self, value: Any) -> Any:
        if isinstance(value, np.ndarray):
            key = value.dtype, value.shape, hash(value.tobytes())
            equal_array = self._arrays.setdefault(key, value)
            return equal_array if equal_array is value or np.array_equal(equal_array, value) else value
        if isinstance(value, tuple):
            return self._tuples.setdefault(value, value)
        if isinstance(value, dict):
            return {name: self._shared(table) for name, table in value.items()}
        return self.of(value) if isinstance(value, Struct) else value


def as_column(kind: type, values: list[Any]) -> Int64:
    """A column out of JSON; of a `Grid` the rows.

    Raises:
        ValueError: not integers of 64 bits, or rows of different lengths.
    """
    try:
        return int64_of(msgspec.convert(values, list[list[int]] if kind == Grid else list[int]))
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from None  # which msgspec completes by the place of the column
    except OverflowError:
        raise ValueError("a number needs more than 64 bits") from None


def accounts_of(profile: Profile) -> Accounts:
    """What a snapshot holds of ``profile``: columns that rise as differences, those names only that its tables use, and
    its file without folders.
    """
    profile = with_used_names(profile)
    origin = replace(profile.origin, file=TraceFile(_file_name(profile.origin.file)))
    profile = replace(profile, origin=origin, leaves=_relative(profile.leaves))
    accounts = Accounts(**{name: getattr(profile, name) for name in Accounts.__struct_fields__})
    return with_columns(accounts, lambda column, values: np.diff(values, prepend=0) if column.rises else values)


def profile_of(accounts: Accounts, snapshot: TraceFile) -> Profile:
    """The profile again; its file is named as a member of ``snapshot``.

    Raises:
        ValueError: the parts do not fit together.
    """
    check_lengths(accounts)
    accounts = with_columns(accounts, lambda column, values: np.cumsum(values) if column.rises else values)
    accounts = replace(
        accounts,
        leaves=_relative(accounts.leaves),
        origin=replace(accounts.origin, file=TraceFile(str(snapshot), accounts.origin.file.name)),
        names=tuple(map(bounded, accounts.names)),
        tables=known_tables(accounts.tables),
    )
    profile = Profile(**asdict(accounts))
    check(profile)
    return profile


def known_tables(tables: dict[str, TableRows]) -> dict[str, TableRows]:
    """``tables`` without those that this version does not know, or has with other columns."""
    usable: dict[str, TableRows] = {}
    for name, table in tables.items():
        if name in OF_FILES:
            keys, columns = (len(some) for some in (table_schema(name).keys, table_schema(name).columns))
            # JSON does not have the number of columns of a table without rows
            values = table.values if len(table.values) else zeros((0, columns))
            if values.shape[1] == columns and all(len(key) == keys for key in table.keys):
                usable[name] = replace(table, values=values)
    return usable


def _file_name(file: TraceFile) -> str:
    """Without folders, and of a URL without its query, which may hold a key."""
    return TraceFile(file.path.partition("?")[0], file.member).name if "://" in file.path else file.name


def with_columns(accounts: P, change: Callable[[Column, Int64], Int64]) -> P:
    """``accounts`` with the columns of `TABLES` as ``change`` makes them of what they hold and their values."""
    tables = ((name, getattr(accounts, name)) for name in TABLES)
    changed = {
        name: replace(table, **{c: change(column, getattr(table, c)) for c, column in columns_of(table).items()})
        for name, table in tables
    }
    return replace(accounts, **changed)


def _relative(leaves: LeafTable) -> LeafTable:
    """``leaves`` with total_ns and longest_ns as what path_ns exceeds them by, since most are one event on the path; of
    these the leaves again.
    """
    path_ns = leaves.path_ns
    return replace(leaves, total_ns=path_ns - leaves.total_ns, longest_ns=path_ns - leaves.longest_ns)


def with_used_names(profile: Profile) -> Profile:
    """``profile`` without names that only metadata, flows and instants have. Codes keep their order, so that rows do;
    those of categories are fixed and stay.
    """
    calls, has_name = profile.calls, profile.calls.kind != PHASE  # the name of a phase is not a code of a name
    every = (column for name, table in _tables(profile) for column in _columns(name, table))
    columns = [values for _, column, values in every if column.refers_to == "names"]
    used = np.unique(np.concatenate([calls.name[has_name], *columns]))
    used = used[used >= 0]
    profile = with_columns(
        profile, lambda column, values: last_equal(used, values) if column.refers_to == "names" else values
    )
    calls = replace(calls, name=np.where(has_name, last_equal(used, calls.name), calls.name))
    return replace(profile, calls=calls, names=tuple(profile.names[code] for code in used.tolist()))
