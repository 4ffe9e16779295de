"""The account of a memory snapshot: closes to the byte, with known answers."""

import pytest
from build_memory_snapshot import Program, alloc, block, event, frames, free, segment, snapshot, write
from formats import FOLDER, needs_formats
from hypothesis import given, strategies as st
from properties import examples

from tracediff.memory.account import CALL_SITE, MODULE, SIZE_CLASS, VIEWS, account_of, devices_of, grouped, timeline

MIB = 1 << 20
REAL = {
    "memory_snapshot_False_ctx128.pickle.gz": (9_134, 5_615_814_656, 908, 61_480_108_032, 54_682_309_120),
    "memory_snapshot_bf16_False_ctx128.pickle.gz": (10_418, 10_306_684_928, 1_130, 66_148_368_384, 54_671_938_048),
}
"""File → blocks allocated, most above the start, segments, bytes reserved and allocated at the dump."""


def accounts(tmp_path, document, name="a.pickle"):
    found = account_of(str(write(tmp_path / name, document)))
    for account in found.devices:
        closes(account)
    return found


def closes(account):
    for view in VIEWS:
        assert sum(amount.size for amount in grouped(account, view).values()) == account.peak
    assert account.peak == max(account.levels)
    assert sum(s.reserved_bytes for s in account.segments) == account.reserved
    assert sum(s.allocated_bytes for s in account.segments) == account.peak
    levels, layers = timeline(account)
    assert [sum(column) for column in zip(*layers.values(), strict=True)] == [account.levels[k] for k in levels]
    assert account.peak_level in levels


def one(tmp_path, document):
    (account,) = accounts(tmp_path, document).devices
    return account


@needs_formats
@pytest.mark.parametrize("name", REAL)
def test_real_totals(name):
    blocks, above, segments, reserved, allocated = REAL[name]
    (account,) = account_of(str(FOLDER / "memory" / name)).devices
    assert account.actions == dict.fromkeys(("alloc", "free_completed", "free_requested"), blocks)
    assert account.peak - account.start == above
    assert account.start == allocated  # what the events add is 0
    assert len(account.segments) == segments
    assert account.reserved == account.reserved_at_dump == reserved
    assert account.allocated_at_dump == account.levels[-1] == allocated
    assert account.contradictions == 0
    closes(account)


@needs_formats
def test_autocast_keeps_copies_of_the_weights():
    sides = [account_of(str(FOLDER / "memory" / name)) for name in REAL]
    (device,) = devices_of(sides)
    first = device.changes(CALL_SITE)[0]
    assert (first.name, first.change, first.status) == ("_backends.py:288 einsum", 6_502_809_600, "grew")
    assert sum(row.change for row in device.changes(CALL_SITE)) == 4_680_499_200


def test_what_holds_the_peak(tmp_path):
    old, gone, mine = 10 * MIB, 2 * MIB, 300
    trace = [
        *alloc(100, mine, frames(7)),
        *alloc(900, 5, frames(8)),
        *free(50_000_000, gone, frames(9, "drop")),
        *free(100, mine),
    ]
    blocks = [block(900, 512, requested=5, stack=frames(8)), block(20_000_000, old), block(40_000_000, 64, "inactive")]
    account = one(tmp_path, snapshot([segment(0, 100 * MIB, *blocks)], trace))
    assert (account.start, account.peak, account.rounding) == (old + gone + 507, old + gone + 507 + mine + 5, 507)
    assert grouped(account, CALL_SITE) == {
        "model.py:7 forward": (mine, 1),
        "model.py:8 forward": (5, 1),
        "unknown: allocated before the recording": (old, 1),
        "unknown, freed at model.py:9 drop: allocated before the recording": (gone, 1),
        "rounding: added by the allocator": (507, 0),
    }
    assert grouped(account, MODULE)["model"] == (mine + 5, 2)
    assert grouped(account, SIZE_CLASS)["1 to 10 MiB"] == (old + gone, 2)
    assert account.unknown == old + gone
    assert account.fragmentation == 100 * MIB - account.peak


def test_allocated_falls_when_the_free_is_requested(tmp_path):
    requested, completed = free(100, 50)
    trace = [*alloc(100, 50, frames()), requested, *alloc(300, 60, frames()), completed]
    account = one(tmp_path, snapshot([segment(0, 1000, block(300, 60))], trace))
    assert account.levels == [0, 50, 0, 60, 60]


def test_a_block_from_before_keeps_its_stack(tmp_path):
    account = one(tmp_path, snapshot([segment(0, 1000, block(0, 512, stack=frames(3, "load")))], alloc(600, 8)))
    assert grouped(account, CALL_SITE)["model.py:3 load"] == (512, 1)
    assert grouped(account, CALL_SITE)["unknown: no stack recorded"] == (8, 1)


def test_a_stack_that_is_all_torch(tmp_path):
    compiled = {"filename": "/pytorch/c10/core/Alloc.cpp", "line": 0, "name": "c10::alloc"}
    stack = [compiled, {"filename": "/x/torch/optim/adam.py", "line": 5, "name": "step"}]
    account = one(tmp_path, snapshot([segment(0, 1000, block(0, 8, stack=stack))]))
    assert grouped(account, CALL_SITE) == {"adam.py:5 step": (8, 1)}
    assert one(tmp_path, snapshot([segment(0, 9, block(0, 8, stack=[compiled]))])).unknown == 8


def test_reserved_at_the_peak(tmp_path):
    """One segment freed after the peak, one allocated after it."""
    trace = [
        *alloc(0, 100, frames()),
        *free(0, 100),
        event("segment_free", 0, 4096),
        event("segment_alloc", 8192, 512),
        *alloc(8192, 50, frames()),
    ]
    account = one(tmp_path, snapshot([segment(8192, 512, block(8192, 50))], trace))
    assert (account.peak, account.reserved, account.fragmentation) == (100, 4096, 3996)
    assert [(s.type, s.reserved_bytes, s.allocated_bytes) for s in account.segments] == [("freed since", 4096, 100)]


def test_expandable_segments(tmp_path):
    grown = segment(0, 4096, block(0, 100), is_expandable=True)
    trace = [event("segment_map", 0, 2048), *alloc(0, 100, frames()), event("segment_map", 2048, 2048)]
    account = one(tmp_path, snapshot([grown], trace))
    assert [(s.type, s.reserved_bytes, s.allocated_bytes) for s in account.segments] == [("expandable", 2048, 100)]


def test_devices_are_apart(tmp_path):
    document = snapshot([segment(0, 64, block(0, 8), device=2)], [], alloc(0, 5, frames()))
    found = accounts(tmp_path, document)
    assert [(account.device, account.peak) for account in found.devices] == [(1, 5), (2, 8)]
    (lonely, _) = devices_of([found, accounts(tmp_path, snapshot([segment(0, 64, device=2)]), "b.pickle")])
    assert (lonely.accounts[1], lonely.changes(CALL_SITE)[0].status) == (None, "gone")


def test_out_of_memory_and_gaps(tmp_path):
    failed = {"action": "oom", "size": 1 << 40, "device_free": 7, "frames": []}
    trace = [*alloc(0, 5), *alloc(0, 6), *free(0, 6), *free(0, 6), failed]
    account = one(tmp_path, snapshot([], trace))
    assert account.out_of_memory == [1 << 40]
    assert (account.peak, account.contradictions) == (6, 2)


def test_a_dump_without_events(tmp_path):
    account = one(tmp_path, snapshot([segment(0, 64, block(0, 8))], []))
    assert (account.peak, account.peak_level, account.actions, account.times) == (8, 0, {}, None)


actions = st.lists(st.tuples(st.integers(0, 4 * MIB), st.integers(1, 9), st.booleans()), max_size=40)


def run(program, steps):
    for size, line, frees in steps:
        if frees and program.alive:
            program.free(sorted(program.alive)[size % len(program.alive)])
        else:
            program.alloc(size + 1, line)


def random_program(before, during):
    program = Program()
    run(program, before)
    program.record()
    run(program, during)
    return program


@examples(100)
@given(actions, actions)
def test_the_account_is_the_program_s_own(tmp_path, before, during):
    program = random_program([(s, n, False) for s, n, _ in before], [(1, 1, False), *during])
    document = snapshot(program.segments(), program.trace)
    account = one(tmp_path, document)
    assert (account.start, account.peak) == (program.start, program.peak)
    known = {}
    for size, line in program.at_peak.values():
        if line is not None:
            known[line] = known.get(line, 0) + size
    by_site = {name: amount.size for name, amount in grouped(account, CALL_SITE).items()}
    assert {f"model.py:{line} forward": size for line, size in known.items()}.items() <= by_site.items()
    assert account.unknown == program.peak - sum(known.values())
    shuffled = one(tmp_path, document | {"segments": document["segments"][::-1]})
    assert (shuffled.holders, shuffled.levels) == (account.holders, account.levels)


@examples(50)
@given(actions, actions)
def test_swapping_the_sides_negates_the_difference(tmp_path, first, second):
    sides = []
    for name, steps in (("a", first), ("b", second)):
        program = random_program([], [(1, 1, False), *steps])
        sides.append(accounts(tmp_path, snapshot(program.segments(), program.trace), name))
    (there,), (back,) = devices_of(sides), devices_of(sides[::-1])
    for view in VIEWS:
        changes = {row.name: row.change for row in there.changes(view)}
        assert {row.name: -row.change for row in back.changes(view)} == changes
        assert sum(changes.values()) == there.accounts[1].peak - there.accounts[0].peak
        assert not any(row.change for row in devices_of([sides[0], sides[0]])[0].changes(view))
