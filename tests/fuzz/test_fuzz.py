"""Inputs that were faults once, and some of every kind; `make fuzz` tries as many as there is time for."""

import json
import warnings
from pathlib import Path
from random import Random

import odd_values
import pytest

from fuzz import mutate, seeds
from fuzz.run import WEIGHTS
from fuzz.targets import TARGETS, try_input

CORPUS = sorted((Path(__file__).parent / "corpus").iterdir())
OF_EACH, OF_PAIRS = 20, 2


@pytest.mark.parametrize("path", CORPUS, ids=lambda path: path.name)
def test_what_was_found_is_answered_or_refused_in_a_line(path, tmp_path):
    target = TARGETS[path.name.partition("-")[0]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for seed in range(3):  # each does other things with it
            try_input(target, path.read_bytes(), tmp_path, Random(seed))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name == "pair" else name for name in TARGETS]
)
def test_every_kind_is_answered_or_refused_in_a_line(name, tmp_path):
    results = set()
    for seed in range(OF_PAIRS if name == "pair" else OF_EACH):
        random = Random(seed)
        results.add(try_input(TARGETS[name], TARGETS[name].make(random), tmp_path, random))
    assert True in results  # otherwise nothing behind the reader was tried


def test_every_kind_has_its_share_of_the_inputs():
    assert set(WEIGHTS) == set(TARGETS)


def test_an_input_can_be_made_again():
    for target in TARGETS.values():
        assert target.make(Random(7)) == target.make(Random(7))


def test_every_fault_changes_something():
    written = odd_values.text(seeds.trace(Random(0)))
    for fault in mutate.FAULTS:
        assert any(odd_values.text(fault(Random(seed), json.loads(written))) != written for seed in range(20)), fault
