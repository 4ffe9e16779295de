"""Where a chunk ends and how a file is laid out make no difference to what is read."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from build_trace import (
    LAYOUTS,
    annotation,
    call,
    document,
    flow,
    kernel,
    memory,
    op,
    process_name,
    python,
    rows,
    step,
    text,
)
from hypothesis import given, strategies as st
from properties import examples
from traces import needs_traces, trace

from tracediff.errors import TracediffError
from tracediff.ingest.files.documents import brackets, value_end
from tracediff.ingest.json import chunks

META = {"distributedInfo": {"rank": 3, "world_size": 8, "backend": "nccl"}, "odd": [{"a": [1]}, {"b": "},{"}]}

EVENTS = [
    step(1, 0, 100.5),
    op(
        "aten::mm",
        10,
        20.125,
        **{"External id": 1, "Input Dims": [[2, 3], [3]], "Concrete Inputs": ["{", "},{", "]", '"', "\\", ""]},
    ),
    op("nested", 12, 1, items=[{"a": 1}, {"b": [{"c": {}}, []]}, {}]),
    call("cudaLaunchKernel", 12, 3, 1),
    kernel("void k<{lambda(int)#1}>(a[], b)", 30, 5.25, 1, grid=[1, 1, 1], **{"est. achieved occupancy %": 12.5}),
    python("/home/x/model.py(3): forward", 5, 50, 1),
    memory(6, 512, 1024),
    annotation('quoted "name", with }, { and \\ and ünïcödé ✓', 50, 1),
    flow("s", 1, 12),
    flow("f", 1, 30),
    process_name("python"),
]

NESTED_LISTS = [op("many", i, 1, items=[{"a": j, "b": [{"c": "}, {"}]} for j in range(60)]) for i in range(6)]


def after(doc: dict[str, Any]) -> dict[str, Any]:
    """The same with the events in front of the metadata."""
    return {"traceEvents": doc["traceEvents"], **doc}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_layout_makes_no_difference(read, layout: str) -> None:
    found = read(text(document(EVENTS, **META), layout))
    assert found.notes == []
    assert rows(found) == rows(read(text(document(EVENTS, **META))))
    if layout != "list":
        assert found.meta.distributed_info.rank == 3


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("events", [EVENTS, NESTED_LISTS], ids=["all kinds", "lists of objects"])
@examples(30)
@given(data=st.data())
def test_the_chunk_size_makes_no_difference(
    read, layout: str, events: list[dict[str, Any]], data: st.DataObject
) -> None:
    content = text(
        data.draw(st.sampled_from([document, lambda e, **m: after(document(e, **m))]))(events, **META), layout
    )
    found = read(content, data.draw(st.integers(1, len(content) + 10)))
    expected = read(content)
    assert found.notes == expected.notes == []
    assert (rows(found), found.meta) == (rows(expected), expected.meta)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 2**40) | st.text(alphabet='a{}[],:"\\ \n\u00e9', max_size=8),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(alphabet='ab{}[]",', max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(
    args=st.lists(
        st.dictionaries(st.sampled_from(["a", "b", "c{", "traceEvents", "ph"]), JSON, max_size=4),
        min_size=1,
        max_size=8,
    ),
    data=st.data(),
)
def test_any_arguments_are_read_whatever_the_chunk(read, args: list[dict[str, Any]], data: st.DataObject) -> None:
    doc = document([op(f"op {i}", i, 1, **a) for i, a in enumerate(args)], more=data.draw(JSON))
    content = text(doc, data.draw(st.sampled_from(sorted(LAYOUTS))))
    found = read(content, data.draw(st.integers(1, 400)))
    assert found.notes == []
    assert len(found) == len(args)
    for row, written in enumerate(args):
        back = found.arguments_of(row)
        assert back.keys() == written.keys()
        for name, value in written.items():
            assert back[name] == value or json.loads(back[name]) == value


@needs_traces
@pytest.mark.parametrize(
    "name",
    [
        "hta_tiny/base.json.gz",
        "hta_backward_thread",
        "hta_triton",
        "hta_event_sync",
        "hta_amd_mi250",
        "kineto_gpu_metrics",
    ],
)
def test_the_chunk_size_makes_no_difference_to_real_traces(read, name: str) -> None:
    content = trace(name).read_bytes()
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    expected = read(content)
    for chunk in (64, 257, 1000, 5000):
        found = read(content, chunk)
        assert found.notes == expected.notes
        assert (rows(found), found.meta) == (rows(expected), expected.meta)


@pytest.mark.parametrize("chunk", [1, 7, 1 << 20])
def test_events_may_come_before_or_between_the_metadata(read, chunk: int) -> None:
    whole = document(EVENTS[:2], **META)
    between = {"odd": META["odd"], "traceEvents": whole["traceEvents"], "distributedInfo": META["distributedInfo"]}
    for doc in (whole, after(whole), between):
        found = read(text(doc, "compact"), chunk)
        assert len(found) == 2
        assert found.meta.distributed_info.rank == 3


@pytest.mark.parametrize(
    "before",
    [
        '"text": "\\"traceEvents\\": [1]", ',
        '"text\\"traceEvents": [{"ph": "X"}], ',
        '"nested": {"traceEvents": [{"ph": "X", "ts": 1}]}, ',
        '"listed": [{"traceEvents": [{"ph": "X", "ts": 1}]}], ',
        '"braces": "}}}]]]{{{[[[", ',
    ],
)
def test_only_the_root_key_traceEvents_holds_the_events(read, before: str) -> None:
    for chunk in (3, 1 << 20):
        found = read(
            ("{" + before + '"traceEvents" : [' + text(document(EVENTS[:1]), "list").decode()[1:-1] + "]}").encode(),
            chunk,
        )
        assert (found.names, found.notes) == (["ProfilerStep#1"], [])


def test_a_second_list_of_events_is_left_out_and_said(read, codes) -> None:
    event_list = text(document(EVENTS[:1]), "list")
    found = read(b'{"traceEvents": ' + event_list + b', "traceEvents": ' + event_list + b"}")
    assert len(found) == 1
    assert codes(found) == {"second-events": 1}


@pytest.mark.parametrize("before", [b"\xef\xbb\xbf", b"\r\n \t", b"\xef\xbb\xbf\n" + b" " * 5000])
@pytest.mark.parametrize("layout", ["list", "compact"])
def test_a_byte_order_mark_and_blanks_may_come_first(read, before: bytes, layout: str) -> None:
    for chunk in (1, 2, 100, 1 << 20):
        found = read(before + text(document(EVENTS), layout), chunk)
        assert (len(found), found.notes) == (len(EVENTS), [])


def test_blanks_between_events_may_be_long(read) -> None:
    content = text(document(EVENTS), "kineto").replace(b"},\n  {\n", b"}" + b" " * 3000 + b"," + b"\n" * 3000 + b"{")
    for chunk in (100, 5000, 1 << 20):
        assert rows(read(content, chunk)) == rows(read(text(document(EVENTS))))


def test_an_event_longer_than_many_chunks_is_read(read) -> None:
    events = [op("a", 0, 1), op("long", 1, 1, text="x" * 300_000, items=[{"a": i} for i in range(2000)]), op("b", 2, 1)]
    found = read(text(document(events)), 1000)
    assert found.names == ["a", "long", "b"]
    assert len(found.arguments_of(1)["text"]) == 300_000


def test_an_event_beyond_all_bounds_is_refused_in_one_line(read, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "LARGEST_EVENT", 100_000)
    with pytest.raises(TracediffError, match="an event is longer than"):
        read(text(document([op("long", 1, 1, text="x" * 400_000)])), 1000)


def test_metadata_beyond_all_bounds_is_refused_in_front_and_left_out_behind(
    read, codes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chunks, "LARGEST_HEAD", 100_000)
    large = document(EVENTS, large=["x" * 1000] * 400)
    with pytest.raises(TracediffError, match="without traceEvents"):
        read(text(large, "compact"), 1000)
    found = read(text(after(large), "compact"), 1000)
    assert len(found) == len(EVENTS)
    assert codes(found) == {"tail-damaged": 1}


@given(value=JSON)
def test_the_end_of_a_value_is_found_in_any_json(value: Any) -> None:
    for written in (json.dumps([value]), json.dumps({"a": value}, indent=1)):
        behind = written.encode() + b', {"x": [1]}'
        assert value_end(behind, 0) == len(written.encode())
        assert value_end(b" " + behind, 1) == len(written.encode()) + 1
        assert value_end(written.encode()[:-1], 0) == -1


@given(items=st.lists(JSON.map(lambda v: [v]) | JSON.map(lambda v: {"k": v}), max_size=6))
def test_the_items_of_a_list_and_its_end_are_found(items: list[Any]) -> None:
    written = json.dumps(items).encode()[1:]
    places = list(brackets(written + b', "tail": [{"a": [1]}]}'))
    close = next(end for end, depth in places if depth < 0) - 1
    ends = [end for end, depth in places if depth == 0 and end <= close]
    assert close == len(written) - 1
    assert [json.loads(b"[" + written[:end] + b"]") for end in ends] == [items[: i + 1] for i in range(len(items))]


def test_nesting_is_followed_without_recursion() -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    assert value_end(deep, 0) == 100_000
    assert max(depth for _, depth in brackets(deep)) == 50_000


@examples(300)
@given(st.text('{}[]"\\, a', max_size=60).map(str.encode), st.sampled_from([b"{", b"["]), st.integers(1, 70))
def test_the_end_of_a_value_is_where_its_first_bracket_closes(rest, first, stop):
    text_ = first + rest
    expected = next((behind for behind, depth in brackets(text_, 0, stop) if depth <= 0), -1)
    assert value_end(text_, 0, stop) == expected
