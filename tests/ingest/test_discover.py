"""Which files a set is made of, and what their names say."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

import pytest
from build_trace import document, op, write

from tracediff.errors import TracediffError
from tracediff.ingest.discover import find_traces, rank_in_name, run_in_path, worker_of
from tracediff.ingest.files.source import TraceFile

TRACE = document([op("a", 0, 1)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("run2/rank0.json", "run1/rank1.json.gz", "run1/rank0.json", "top.pt.trace.json", "z.json.zst"):
        write(tmp_path / name, TRACE)
    for name in (
        ".hidden.json",
        ".cache/t.json",
        "run1/manifest.json",
        "collection.json",
        "notes.txt",
        "trace.json.tmp",
        "picture.png",
    ):
        write(tmp_path / name, TRACE)
    return tmp_path


def names(files: list[TraceFile], below: Path) -> list[str]:
    return [str(f).removeprefix(f"{below}/") for f in files]


def test_a_folder_is_searched_below_in_order_of_name_and_other_files_passed_over(folder: Path) -> None:
    assert names(find_traces(folder), folder) == [
        "top.pt.trace.json",
        "z.json.zst",
        "run1/rank0.json",
        "run1/rank1.json.gz",
        "run2/rank0.json",
    ]


def test_a_hidden_folder_or_file_is_read_when_asked_for_by_name(folder: Path) -> None:
    assert names(find_traces(folder / ".cache"), folder) == [".cache/t.json"]
    assert names(find_traces(folder / ".hidden.json"), folder) == [".hidden.json"]


def test_a_pattern_a_list_and_a_file_give_their_files_once(folder: Path) -> None:
    assert names(find_traces(f"{folder}/run*/rank0.json"), folder) == ["run1/rank0.json", "run2/rank0.json"]
    assert names(find_traces(f"{folder}/**/*.gz"), folder) == ["run1/rank1.json.gz"]
    assert names(find_traces([folder / "run2", f"{folder}/run2/*.json", folder / "notes.txt"]), folder) == [
        "run2/rank0.json",
        "notes.txt",
    ]
    assert names(find_traces(folder / "notes.txt"), folder) == ["notes.txt"]


def test_brackets_in_a_real_path_are_no_pattern(tmp_path: Path) -> None:
    write(tmp_path / "[a]" / "t[0].json", TRACE)
    assert names(find_traces(tmp_path / "[a]"), tmp_path) == ["[a]/t[0].json"]
    assert names(find_traces(tmp_path / "[a]" / "t[0].json"), tmp_path) == ["[a]/t[0].json"]


def test_archives_give_their_traces_and_single_members(folder: Path) -> None:
    with zipfile.ZipFile(folder / "set.zip", "w") as archive:
        for name in (
            "b/rank1.json",
            "a/rank0.json.gz",
            "manifest.json",
            "b/manifest.json",
            "readme.md",
            "__MACOSX/._rank0.json",
            ".hidden/x.json",
            "b/.y.json",
        ):
            archive.writestr(name, "{}")
    assert names(find_traces(folder / "set.zip"), folder) == ["set.zip/a/rank0.json.gz", "set.zip/b/rank1.json"]
    assert find_traces(folder / "set.zip" / "b" / "rank1.json") == [TraceFile(str(folder / "set.zip"), "b/rank1.json")]
    assert "set.zip/b/rank1.json" in names(find_traces(folder), folder)
    refused(f"{folder}/set.zip/none.json", "no such member")


def test_urls_are_taken_as_they_are() -> None:
    assert find_traces("s3://bucket/trace.json.gz") == [TraceFile("s3://bucket/trace.json.gz")]


def refused(where: object, reason: str) -> None:
    with pytest.raises(TracediffError) as caught:
        find_traces(where)  # type: ignore[arg-type]
    assert reason in caught.value.reason
    assert "\n" not in str(caught.value)


def test_nothing_to_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("no trace")
    zipfile.ZipFile(tmp_path / "none.zip", "w").close()
    (tmp_path / "broken.zip").write_bytes(b"PK\x03\x04 and no more")
    refused(tmp_path / "empty", "the folder is empty")
    refused(tmp_path / "other", "no trace in the folder")
    refused(tmp_path / "absent", "no such file or folder")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to("nosuch")
    refused(tmp_path / "pipe", "a FIFO, not a file or folder")
    refused("/dev/zero", "a device, not a file or folder")
    refused(tmp_path / "link", "a symlink to nothing, not a file or folder")
    refused(f"{tmp_path}/*.json", "no file matches")
    refused(tmp_path / "none.zip", "no trace in the archive")
    refused(tmp_path / "broken.zip", "the archive is damaged")
    refused([], "none given")


@pytest.mark.parametrize(
    ("path", "rank"),
    [
        ("rank3.json", 3),
        ("rank-34.pt.trace.json.gz", 34),
        ("worker0.1623143089861.pt.trace.json.gz", 0),
        ("dlrm/worker7_step_12.1694128201553.pt.trace.json.gz", 7),
        ("1712195-TP-5.trace.json.gz", 5),
        ("tp_2_decode.json", 2),
        ("kineto_11.json", 11),
        ("run4/RANK_6/trace.json", 6),
        ("rank1/worker2.json", 2),
        ("frank3.json", None),
        ("resnet50_workers4/t.json", None),
        ("step_12.json", None),
        ("trace.json", None),
    ],
)
def test_the_rank_is_read_from_the_name_of_file_or_nearest_folder(path: str, rank: int | None) -> None:
    assert rank_in_name(TraceFile(path)) == rank
    assert rank_in_name(TraceFile("set.zip", path)) == rank


@pytest.mark.parametrize(
    ("path", "run"),
    [
        ("run3/rank0.json", 3),
        ("a/run_12/b/t.json", 12),
        ("Run-2/t.json", 2),
        ("run1/run2/t.json", 2),
        ("runs/t.json", None),
        ("run3.json", None),
        ("rerun3/t.json", None),
    ],
)
def test_the_run_is_read_from_the_nearest_folder_called_run(path: str, run: int | None) -> None:
    assert run_in_path(TraceFile(path)) == run


def test_the_worker_is_the_path_less_the_time_stamp() -> None:
    cycles = [
        worker_of(TraceFile(f"log/host_77.{stamp}.pt.trace.json{end}"))
        for stamp in (1752181589738, 1752181590999)
        for end in ("", ".gz")
    ]
    assert set(cycles) == {"log/host_77"}
    assert worker_of(TraceFile("log/host_78.1752181589738.pt.trace.json")) != cycles[0]
    assert worker_of(TraceFile("log/rank0.json")) == "log/rank0"
