"""The sampled GPU work below operators is what the tree has below them."""

import pytest
from build_trace import document, write
from hypothesis import given
from properties import examples
from random_traces import trace_events

from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets


@examples(40)
@given(trace_events(most_steps=1), trace_events(most_steps=1))
def test_of_one_step_the_median_is_the_mean_of_the_tree(tmp_path, a, b):
    paths = [str(write(tmp_path / f"{k}.json", document(events), layout="compact")) for k, events in enumerate((a, b))]
    comparison = compare_sets(*load_sets(paths), force=True)
    sampled = {work.name: work.us for work in comparison.launched_work}
    below = {name: times.map(comparison.us) for name, times in comparison.gpu_below.items()}
    assert {name: us for name, us in sampled.items() if any(us)} == {
        name: pytest.approx(us) for name, us in below.items() if any(us)
    }
