"""What explanations say of real pairs, judged by their true stories and by plain scripts on the raw JSON."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from pair_stories import STORIES, Story, Told

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets
from tracediff.explain.leaves import GPU
from tracediff.explain.tree import SINGLE

ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
WHOLE_FILES = ("deepseek_decode", "flux_attention", "particle_batch", "switch_batch")
"""Pairs of one file per side that is one step, so that all its GPU events are the step's."""
SMALL = ("deepseek", "particle_batch", "switch", "llama", "ascend", "unit", "transformer", "tinylm", "hta_tiny", "bert")
"""Pairs that are read in no time."""


def told(story: Story) -> Told:
    """The comparison of a pair."""
    return compared(*story.paths)


@cache
def compared(control: str, test: str) -> Told:
    """Once per process."""
    return Told(compare_sets(*load_sets([control, test]), force=True))


@cache
def events(side: str) -> list[dict[str, object]]:
    """The complete events of the only file of a folder, without any reader of the product."""
    (path,) = (p for p in Path(side).rglob("*.json*") if p.name != "manifest.json")
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        return [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]


def absent(story: Story) -> list[pytest.MarkDecorator]:
    missing = next((path for path in story.paths if not Path(path).exists()), None)
    marks = [pytest.mark.traces, pytest.mark.slow]
    return [*marks, pytest.mark.skip(reason=f"{missing} is not here: set TRACEDIFF_PAIRS")] if missing else marks


def pairs(*names: str) -> list[object]:
    """Parameters of the pairs, of those that ``names`` begins, if any."""
    chosen = [s for s in STORIES if not names or s.control.startswith(names)]
    return [pytest.param(s, id=s.name, marks=absent(s)) for s in chosen]


def broken(story: Story, sentence: str) -> list[pytest.MarkDecorator]:
    reason = story.broken.get(sentence)
    return [pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True)] if reason else []


def claims(kind: str) -> list[object]:
    return [
        pytest.param(s, holds, id=f"{s.name}: {sentence}", marks=[*absent(s), *broken(s, sentence)])
        for s in STORIES
        for sentence, holds in getattr(s, kind)
    ]


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_is_known_to_fail_is_a_claim(story):
    assert story.broken.keys() <= {sentence for sentence, _ in (*story.must, *story.never)}


@pytest.mark.parametrize(("story", "holds"), claims("must"))
def test_what_must_be_said_is_said(story, holds):
    assert holds(told(story)), told(story).text


@pytest.mark.parametrize(("story", "holds"), claims("never"))
def test_what_must_never_be_said_is_not_said(story, holds):
    assert not holds(told(story)), told(story).text


@pytest.mark.parametrize("story", pairs())
def test_lines_exposure_and_rest_add_up_to_the_change_of_the_step(story):
    comparison = told(story).comparison
    found = comparison.explanation
    parts = sum(cause.delta_us for cause in found.causes) + sum(found.exposure_us.values()) + found.rest_us
    assert parts == pytest.approx(found.change_us, abs=1e-3)
    assert found.change_us == pytest.approx(comparison.verdict.delta_us, abs=1e-3)


@pytest.mark.parametrize("story", pairs())
def test_every_node_is_the_sum_of_its_children_and_of_its_effects(story):
    for node in told(story).comparison.explanation.root.walk():
        assert node.effects.sum() == pytest.approx(node.change, abs=1)
        if node.children:
            for name in ("path", "total", "count", "effects"):
                whole = sum(getattr(child, name) for child in node.children.values())
                assert getattr(node, name) == pytest.approx(whole, abs=1), (node.label, name)


@pytest.mark.parametrize("story", pairs())
def test_no_line_claims_where_nothing_changed(story):
    for cause in told(story).causes:
        assert cause.delta_us, cause.label
        assert (cause.delta_us > 0) == (cause.test_us > cause.control_us), cause.label


@pytest.mark.parametrize("story", pairs(*SMALL))
def test_the_same_side_twice_has_no_line_and_no_fact_of_other_work(story):
    found = compared(*story.paths[:1] * 2).comparison.explanation
    assert found.causes == ()
    assert found.works_alike


@pytest.mark.parametrize("story", pairs(*WHOLE_FILES))
def test_gpu_work_is_all_of_the_gpu_events_of_the_files(story):
    node = told(story).comparison.explanation.root.children[GPU]
    for k, side in enumerate(story.paths):
        on_gpu = [event for event in events(side) if event.get("cat") in ON_GPU]
        assert node.total[k] == pytest.approx(1000 * sum(event["dur"] for event in on_gpu), rel=1e-6)
        assert node.count[k] == len(on_gpu)


@pytest.mark.parametrize("story", pairs(*WHOLE_FILES))
def test_a_single_event_is_an_event_of_the_file(story):
    for cause in told(story).causes:
        if cause.node.note != SINGLE or "stretch of Python" in cause.label:
            continue
        k = int(cause.test_us > cause.control_us)
        named = cause.label.removeprefix("one ").split(" in ")[0]
        on_gpu = told(story).on_gpu(cause)
        found = [
            e["dur"]
            for e in events(story.paths[k])
            if (e.get("cat") in ON_GPU if on_gpu else named.removeprefix("cuda") in str(e["name"]))
        ]
        assert np.isclose(found, max(cause.control_us, cause.test_us), atol=0.01).any(), cause.label


@pytest.mark.parametrize("story", pairs(*WHOLE_FILES))
def test_lines_of_the_gpu_take_no_longer_than_the_events_of_their_names(story):
    comparison = told(story).comparison
    for cause in filter(told(story).on_gpu, told(story).causes):
        if any(node.note == SINGLE for node in cause.node.walk()):
            continue  # an event apart from its group
        groups = [comparison.work.groups[step] for step in steps_below(cause.node)]
        for k, side in enumerate(story.paths):
            names = {member.name for group in groups for member in group.sides[k]}
            longest = sum(e["dur"] for e in events(side) if e.get("cat") in ON_GPU and e["name"] in names)
            assert (cause.control_us, cause.test_us)[k] <= longest + 0.01, cause.label


def steps_below(node) -> list[int]:
    """Indices of the groups of work below a node."""
    return [step for child in node.walk() for step in child.children if isinstance(step, int)]
