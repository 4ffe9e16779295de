"""Call trees: built per step, merged over steps, paired by content, shown as one."""

from build_trace import BACKWARD, call, document, event, kernel, op, step, write

from tracediff.aggregate.averages import call_tree, weighted_files
from tracediff.aggregate.call_tree import Call, CallTree
from tracediff.diff.call_trees import folded, merge_calls
from tracediff.diff.matching.call_pairs import pair_calls
from tracediff.engine import load_sets
from tracediff.explain.compare import compare_sets


def loaded(folder, **sides):
    paths = [str(write(folder / name / "trace.json", document(events))) for name, events in sides.items()]
    return load_sets(paths)


def tree_of(folder, events):
    (traces_,) = loaded(folder, one=events)
    return call_tree(traces_, traces_.has_gpu, weighted_files(traces_)[0])


def paths(tree):
    """Every call as its path of labels."""

    def path(node):
        return (*path(tree.calls[node].parent), tree.calls[node].label) if node >= 0 else ()

    return {path(i): call_ for i, call_ in enumerate(tree.calls)}


def module(name, ts, dur, tid=100):
    return event("python_function", f"nn.Module: {name}", ts, dur, tid=tid)


def launched(name, start, correlation, op_name, tid=100, length=10, **args):
    return [
        op(op_name, start, 4, tid=tid, **args),
        call("cudaLaunchKernel", start + 1, 2, correlation=correlation, tid=tid),
        kernel(name, start + 10, length, correlation=correlation),
    ]


def test_the_same_call_of_every_step_is_one_node(tmp_path):
    events = [step(k, 100 * k, 90) for k in (1, 2)] + [op("aten::mm", 100 * k + i, 5) for k in (1, 2) for i in (10, 20)]
    ops = [c for c in tree_of(tmp_path, events).calls if c.kind == "op"]
    assert [(c.name, c.ordinal, c.count) for c in ops] == [("aten::mm", 0, 2), ("aten::mm", 1, 2)]


def test_modules_are_paths_of_classes_with_ordinals_among_their_siblings(tmp_path):
    events = [
        step(1, 0, 100),
        module("Net_0", 0, 90),
        module("Linear_3", 5, 10),
        module("Linear_7", 20, 10),
        op("aten::mm", 7, 2),
        op("aten::mm", 22, 2),
    ]
    found = paths(tree_of(tmp_path, events))
    assert ("forward", "Net", "Linear[0]", "aten::mm") in found
    assert ("forward", "Net", "Linear[1]", "aten::mm") in found


def test_a_backward_operator_belongs_to_the_module_of_its_sequence_number(tmp_path):
    events = [
        step(1, 0, 100),
        module("Net_0", 0, 30),
        module("Linear_0", 5, 10),
        op("aten::addmm", 7, 2, **{"Sequence number": 5}),
        op("autograd::engine::evaluate_function: AddmmBackward0", 50, 20, tid=BACKWARD, **{"Sequence number": 5}),
        op("AddmmBackward0", 51, 18, tid=BACKWARD, **{"Sequence number": 5}),
        op("aten::mm", 52, 5, tid=BACKWARD),
    ]
    found = paths(tree_of(tmp_path, events))
    assert ("backward", "Net", "Linear", "AddmmBackward0", "aten::mm") in found


def test_phases_and_the_users_annotations(tmp_path):
    events = [
        step(1, 0, 100),
        event("user_annotation", "my loss", 0, 10),
        op("aten::mul", 1, 2),
        event("user_annotation", "Optimizer.step#Adam.step", 20, 10),
        op("aten::_foreach_add_", 21, 2),
        event("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", 40, 10),
        op("aten::stack", 41, 2),
    ]
    found = paths(tree_of(tmp_path, events))
    assert {
        ("forward", "my loss", "aten::mul"),
        ("optimizer", "aten::_foreach_add_"),
        ("other", "aten::stack"),
    } <= found.keys()


def test_replayed_graph_work_hangs_below_its_scope_and_is_told_apart_by_order(tmp_path):
    events = [step(1, 0, 100), op("CompiledFunction", 0, 10), call("cudaGraphLaunch", 1, 2, correlation=5)]
    events += [kernel("gelu", 10 + 5 * i, 4, correlation=5) for i in range(3)]
    tree = tree_of(tmp_path, events)
    assert [(tree.calls[w.node].name, w.name, w.ordinal, w.order) for w in tree.work] == [
        ("forward", "gelu", k, k) for k in range(3)
    ]


def tree_from(*calls):
    """A tree from (parent, label) pairs."""
    made = [Call(-1, "phase", "forward", None, 0, label="forward")]
    made += [Call(parent, "op", label, None, 0, label=label, count=1) for parent, label in calls]
    return CallTree(1, made)


def pairs_by_children(a, b):
    """Control call → test call, both named by what is below them."""
    pairing = pair_calls(a, b)
    kids = [tree.children() for tree in (a, b)]
    labels = [lambda n, k=k, t=t: "".join(t.calls[c].label for c in k[n]) for k, t in zip(kids, (a, b), strict=True)]
    return {labels[0](x): labels[1](y) for x, y in pairing.test_of.items() if a.calls[x].label == "f"}


def test_siblings_that_changed_places_are_paired_by_their_content():
    # f{a} f{b} f{c} against f{c} f{a} f{b}: equal names, equal counts
    control = tree_from((0, "f"), (1, "a"), (0, "f"), (3, "b"), (0, "f"), (5, "c"))
    test = tree_from((0, "f"), (1, "c"), (0, "f"), (3, "a"), (0, "f"), (5, "b"))
    assert pairs_by_children(control, test) == {"a": "a", "b": "b", "c": "c"}


def test_a_layer_that_gained_an_operator_keeps_its_place():
    # the second of three equal layers gains one: its neighbours must not move up
    control = tree_from(
        *((0, "f") if k == 0 else (3 * i + 1, x) for i in range(3) for k, x in enumerate(("f", "a", "b")))
    )
    test = tree_from(
        (0, "f"), (1, "a"), (1, "b"), (0, "f"), (4, "a"), (4, "new"), (4, "b"), (0, "f"), (8, "a"), (8, "b")
    )
    pairing = pair_calls(control, test)
    assert [(pairing.test_of[n]) for n in (1, 4, 7)] == [1, 4, 8]


def test_one_of_many_is_no_partner_of_what_stands_for_all():
    loop = tree_from(*((0, "aten::mm") for _ in range(40)))
    assert pair_calls(loop, tree_from((0, "aten::mm"), (0, "aten::mm"))).test_of == {0: 0}


def test_thousands_of_siblings_and_one_more():
    control = tree_from(*((0, f"op{i % 50}") for i in range(4000)))
    test = tree_from(
        *((0, f"op{i % 50}") for i in range(2000)), (0, "new"), *((0, f"op{i % 50}") for i in range(2000, 4000))
    )
    pairing = pair_calls(control, test)
    assert [pairing.test_of[i] for i in range(1, 4001)] == [*range(1, 2001), *range(2002, 4002)]


def test_the_merged_tree_holds_both_sides_and_adds_up(tmp_path):
    control = [step(1, 0, 100), *launched("gemm", 0, 1, "aten::mm"), *launched("old", 30, 2, "aten::relu")]
    test = [step(1, 0, 100), *launched("gemm", 0, 1, "aten::mm", length=30), *launched("new", 50, 2, "aten::gelu")]
    comparison = compare_sets(*loaded(tmp_path, control=control, test=test))
    nodes = merge_calls(comparison.trees, comparison.pairing)[0]
    ops = {n.call.name: (n.side, n.time.control, n.time.test) for n in nodes if n.call.kind == "op"}
    assert ops == {
        "aten::mm": ("both", 10_000, 30_000),
        "aten::relu": ("control", 10_000, 0),
        "aten::gelu": ("test", 0, 10_000),
    }
    forward = next(n for n in nodes if n.call.name == "forward")
    assert forward.time == (20_000, 40_000)
    assert ("forward;aten::mm;gemm", 10_000, 30_000) in folded(comparison.trees)
