"""Synchronisations, data loading, Python functions and host time by module, on traces whose answer is known by hand."""

import pytest
from build_trace import BACKWARD, annotation, call, kernel, op, python, step
from hypothesis import given, strategies as st
from properties import examples
from random_traces import trace_events
from table_rows import first_step, measured, profile_with, rows_of


def test_a_synchronisation_is_told_by_operators_python_and_annotation_around_it(tmp_path):
    events = [
        step(1, 0, 100),
        annotation("validate", 0, 60),
        python("train.py(7): main", 0, 90, number=1),
        python("model.py(30): forward", 2, 40, number=2, parent=1),
        python("nn.Module: Net_0", 3, 38, number=3, parent=2, module=1),
        python("<built-in method item of Tensor object at 0x7f00>", 5, 30, number=4, parent=3),
        op("aten::item", 6, 28),
        op("aten::_local_scalar_dense", 7, 26),
        call("cudaStreamSynchronize", 10, 20),
        call("cudaMemcpy", 70, 5),
        call("cuStreamSynchronize", 71, 3),  # within the other: the same wait
        call("cudaDeviceSynchronize", 95, 4, tid=BACKWARD),
        call("cudaStreamSynchronize", 200, 5),  # outside the step
    ]
    assert measured(tmp_path, events, "synchronisations") == {
        (
            0,
            (
                "cudaStreamSynchronize",
                "aten::item > aten::_local_scalar_dense",
                "train.py(7): main > model.py(30): forward",
                "validate",
            ),
        ): {
            "time": 20_000,
            "calls": 1,
        },
        (0, ("cudaMemcpy", "", "train.py(7): main", "")): {"time": 5_000, "calls": 1},
        (0, ("cudaDeviceSynchronize", "", "", "")): {"time": 4_000, "calls": 1},
    }


def test_equal_call_sites_add_up_whichever_of_equal_operators_they_stand_under(tmp_path):
    events = [step(1, 0, 100)]
    for start in (10, 40):
        events += [op("aten::item", start, 20), call("cudaStreamSynchronize", start + 1, 10)]
    assert first_step(measured(tmp_path, events, "synchronisations"), "calls") == {
        ("cudaStreamSynchronize", "aten::item", "", ""): 2
    }


def test_loading_costs_what_nothing_else_hides(tmp_path):
    events = [
        step(1, 0, 50),
        annotation("enumerate(DataLoader)#next", 0, 30),
        annotation("enumerate(DataLoader)#other", 20, 20, tid=BACKWARD),
        call("cudaLaunchKernel", 1, 4, correlation=1),
        kernel("gemm", 10, 15, correlation=1),
        op("aten::mm", 26, 20),
        step(2, 50, 20),
        op("aten::mm", 51, 2),
        annotation("enumerate(DataLoader)#next", 45, 15),  # begins in step 1, lies in both periods
    ]
    assert measured(tmp_path, events, "loading") == {
        (0, ("enumerate(DataLoader)#next",)): {"exposed": 5_000 + 5_000 + 5_000, "time": 45_000, "calls": 2},
        (0, ("enumerate(DataLoader)#other",)): {"exposed": 10_000, "time": 20_000, "calls": 1},
        (1, ("enumerate(DataLoader)#next",)): {"exposed": 10_000, "time": 0, "calls": 0},
    }


def test_python_functions_lose_addresses_and_recursion_counts_each_level(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::mm", 0, 5),
        python("tree.py(3): walk", 0, 50, number=1),
        python("tree.py(3): walk", 10, 20, number=2, parent=1),
        python("<built-in method to of Tensor object at 0x7f01>", 12, 3, number=3, parent=2),
        python("<built-in method to of Tensor object at 0x7f02>", 16, 3, number=4, parent=2),
        python("nn.Module: Linear_0", 60, 10, number=5, module=1),
    ]
    assert measured(tmp_path, events, "python") == {
        (0, ("tree.py(3): walk", "function")): {"self": 30_000 + 14_000, "total": 70_000, "calls": 2},
        (0, ("<built-in method to of Tensor object at 0x#>", "built-in")): {"self": 6_000, "total": 6_000, "calls": 2},
        (0, ("nn.Module: Linear_0", "nn.Module")): {"self": 10_000, "total": 10_000, "calls": 1},
    }


def test_a_module_holds_the_modules_in_it_and_the_backward_of_its_operators(tmp_path):
    events = [
        step(1, 0, 100),
        op("aten::ones", 0, 4),
        python("nn.Module: Net_0", 5, 40, number=1, module=1),
        op("aten::add", 6, 2),
        python("nn.Module: Linear_4", 10, 10, number=2, parent=1, module=2),
        op("aten::linear", 10, 9, **{"Sequence number": 7}),
        op("aten::addmm", 11, 6, **{"Sequence number": 7}),
        python("nn.Module: Linear_5", 22, 5, number=3, parent=1, module=3),
        python("nn.Module: Linear_5", 30, 5, number=4, parent=1, module=3),
        op("aten::linear", 30, 5, **{"Sequence number": 8}),
        op("AddmmBackward0", 60, 8, tid=BACKWARD, **{"Sequence number": 7, "Fwd thread id": 1}),
        op("aten::mm", 61, 5, tid=BACKWARD),
    ]
    rows = measured(tmp_path, events, "host_modules")
    assert {key[0]: (v["self"], v["total"], v["operators"], v["calls"]) for (_, key), v in rows.items()} == {
        "outside modules": (4_000, 4_000, 1, 0),
        "Net": (2_000, 24_000, 1, 1),
        "Net/Linear[0]": (17_000, 17_000, 4, 1),
        "Net/Linear[1]": (5_000, 5_000, 1, 2),
    }


@pytest.mark.parametrize("name", ["synchronisations", "loading", "python", "host_modules"])
def test_what_was_not_recorded_has_no_rows(tmp_path, name):
    assert measured(tmp_path, [step(1, 0, 10), op("aten::mm", 1, 2)], name) == {}


@examples(40)
@given(trace_events(), st.randoms())
def test_the_order_of_the_file_changes_nothing_and_exposed_loading_is_the_state(tmp_path, events, random):
    names = ("synchronisations", "loading")
    in_order = profile_with(tmp_path, events, *names)
    shuffled = list(events)
    random.shuffle(shuffled)
    shuffled_order = profile_with(tmp_path, shuffled, *names)
    assert [rows_of(in_order, name) for name in names] == [rows_of(shuffled_order, name) for name in names]
    state = in_order.state_names.index("data_loading")
    for s, ns in enumerate(in_order.state_ns[:, state].tolist()):
        assert sum(v["exposed"] for (position, _), v in rows_of(in_order, "loading").items() if position == s) == ns
