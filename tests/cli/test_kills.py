"""Commands that are killed while they write: a handful of moments; `make kills` tries many more, of every command."""

import sys

import pytest
from kills import kill_often

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and PR_SET_PDEATHSIG"),
]


def test_a_command_that_is_killed_leaves_whole_files_and_nothing_else(tmp_path):
    assert kill_often("snapshot", 1, tmp_path).faults == []
