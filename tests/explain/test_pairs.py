"""What explanations say of real pairs, judged by their true stories and by plain scripts on the raw JSON."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from pair_stories import STORIES, Claim, Explained, Story, compared, sets

from tracediff.explain.compare import compare_sets
from tracediff.explain.leaves import CODE, GPU, STRETCH
from tracediff.explain.tree import SINGLE, Node

Check = Callable[[Story], None]
ON_GPU = ("kernel", "gpu_memcpy", "gpu_memset")
WHOLE_FILES = ("deepseek_decode", "particle_batch", "switch_batch")
"""Pairs of one file per side that is one step, so that all its GPU events are the step's."""
LARGE = ("flux",)
"""Pairs that take seconds."""


def explained(story: Story) -> Explained:
    """The comparison of a pair."""
    return Explained(compared(*story.paths))


@lru_cache(maxsize=2)
def events(side: str) -> list[dict[str, Any]]:
    """The complete events of the only file of a folder, without any reader of the product."""
    (path,) = (p for p in Path(side).rglob("*.json*") if p.name != "manifest.json")
    with gzip.open(path, "rt") if path.suffix == ".gz" else open(path) as file:
        return [event for event in json.load(file)["traceEvents"] if event.get("ph") == "X"]


def lines_exposure_and_rest_add_up_to_the_change_of_the_step(story: Story) -> None:
    comparison = explained(story).comparison
    found = comparison.explanation
    parts = sum(cause.delta_us for cause in found.causes) + found.exposure_us + found.rest_us
    assert parts == pytest.approx(found.change_us, abs=1e-3)
    assert found.change_us == pytest.approx(comparison.verdict.delta_us, abs=1e-3)


def every_node_is_the_sum_of_its_children_and_of_its_effects(story: Story) -> None:
    for node in explained(story).comparison.explanation.root.walk():
        assert sum(node.effects.values()) == pytest.approx(node.change, abs=1)
        if node.children:
            for name in ("path", "total", "count", "parts"):
                whole = sum(getattr(child, name) for child in node.children.values())
                assert getattr(node, name) == pytest.approx(whole, abs=1), (node.label, name)


def no_line_claims_where_nothing_changed(story: Story) -> None:
    for cause in explained(story).causes:
        assert cause.delta_us, cause.label
        assert (cause.delta_us > 0) == (cause.test_us > cause.control_us), cause.label


def a_side_and_itself_have_no_line_and_do_the_same_work(story: Story) -> None:
    control, _ = sets(*story.paths)
    found = compare_sets(control, control, force=True).explanation
    assert found.causes == ()
    assert not any(fact.is_other_work for fact in found.facts)


def gpu_work_is_all_of_the_gpu_events_of_the_files(story: Story) -> None:
    node = explained(story).comparison.explanation.root.children[GPU]
    for k, side in enumerate(story.paths):
        on_gpu = [event for event in events(side) if event.get("cat") in ON_GPU]
        assert node.total[k] == pytest.approx(1000 * sum(event["dur"] for event in on_gpu), rel=1e-6)
        assert node.count[k] == len(on_gpu)


def a_single_event_dominates_its_line_in_the_file(story: Story) -> None:
    for cause in explained(story).causes:
        if cause.node.note != SINGLE or cause.label in (CODE, STRETCH) or "." in cause.label:
            continue
        k = int(cause.test_us > cause.control_us)
        named = cause.label.removeprefix("one ").split(" in ")[0].removeprefix("cuda")
        on_gpu = explained(story).on_gpu(cause)
        found = [e["dur"] for e in events(story.paths[k]) if (e.get("cat") in ON_GPU if on_gpu else named in e["name"])]
        whole = max(cause.control_us, cause.test_us)
        assert any(whole / 2 <= took <= whole + 0.01 for took in found), cause.label


def lines_of_the_gpu_take_no_longer_than_the_events_of_their_names(story: Story) -> None:
    comparison = explained(story).comparison
    for cause in filter(explained(story).on_gpu, explained(story).causes):
        if any(node.note == SINGLE for node in cause.node.walk()):
            continue  # an event apart from its group
        groups = [comparison.work.groups[step] for step in groups_below(cause.node)]
        for k, side in enumerate(story.paths):
            names = {member.name for group in groups for member in group.members[k]}
            longest = sum(e["dur"] for e in events(side) if e.get("cat") in ON_GPU and e["name"] in names)
            assert (cause.control_us, cause.test_us)[k] <= longest + 0.01, cause.label


def groups_below(node: Node) -> list[int]:
    return [step for child in node.walk() for step in child.children if isinstance(step, int)]


OF_ALL: tuple[Check, ...] = (
    lines_exposure_and_rest_add_up_to_the_change_of_the_step,
    every_node_is_the_sum_of_its_children_and_of_its_effects,
    no_line_claims_where_nothing_changed,
)
OF_WHOLE_FILES: tuple[Check, ...] = (
    gpu_work_is_all_of_the_gpu_events_of_the_files,
    a_single_event_dominates_its_line_in_the_file,
    lines_of_the_gpu_take_no_longer_than_the_events_of_their_names,
)


def claimed(claim: Claim, expected: bool) -> Check:
    def check(story: Story) -> None:
        assert claim[1](explained(story)) == expected, explained(story).text

    return check


def checks(story: Story) -> Iterator[tuple[str, Check]]:
    """What is checked of one pair, and how it is called."""
    yield from ((f"must: {claim[0]}", claimed(claim, True)) for claim in story.must)
    yield from ((f"never: {claim[0]}", claimed(claim, False)) for claim in story.never)
    of_small = () if story.control.startswith(LARGE) else (a_side_and_itself_have_no_line_and_do_the_same_work,)
    of_whole = OF_WHOLE_FILES if story.control.startswith(WHOLE_FILES) else ()
    for check in (*OF_ALL, *of_small, *of_whole):
        yield check.__name__.replace("_", " "), check


def parameters() -> Iterator[object]:
    for story in STORIES:
        missing = next((path for path in story.paths if not Path(path).exists()), None)
        marks = [pytest.mark.skip(reason=f"{missing} is not here: set TRACEDIFF_PAIRS")] if missing else []
        for name, check in checks(story):
            reason = story.broken.get(name.partition(": ")[2])
            broken = [pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True)] if reason else []
            yield pytest.param(story, check, id=f"{story.name}: {name}", marks=[*marks, *broken])


@pytest.mark.slow
@pytest.mark.traces
@pytest.mark.parametrize(("story", "check"), list(parameters()))
def test_of_a_pair(story, check):
    check(story)


@pytest.mark.parametrize("story", STORIES, ids=lambda story: story.name)
def test_what_is_known_to_fail_is_a_claim(story):
    assert story.broken.keys() <= {sentence for sentence, _ in (*story.must, *story.never)}
