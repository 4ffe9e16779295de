"""Names cut to a width."""

import pytest
from hypothesis import given, strategies as st
from properties import examples

from tracediff.present.plain_text import ARROW, cut_left, shortened, shortened_pairs

NAMES = st.lists(st.text("abc_<>64 ", min_size=1, max_size=60), min_size=1, max_size=6)
PAIRS = st.lists(
    st.lists(st.text("abc_64", min_size=1, max_size=40), min_size=1, max_size=2).map(ARROW.join), max_size=6
)


def test_names_that_begin_alike_are_cut_where_they_differ():
    first, second = shortened(["cutlass_80_tensorop_s1688gemm_256x64", "cutlass_80_tensorop_s1688gemm_128x64"], 20)
    assert (first, second) == ("cutlas…88gemm_256x64", "cutlas…88gemm_128x64")
    assert shortened(["cutlass_80_tensorop_s1688gemm_256x64"], 20) == ["cutlass_80_tensorop…"]


def test_both_sides_of_a_replacement_are_cut():
    assert shortened_pairs([f"{'a' * 30}{ARROW}b"], 20) == [f"{'a' * 15}…{ARROW}b"]
    assert shortened_pairs([f"{'a' * 30}{ARROW}{'b' * 30}"], 23) == [f"{'a' * 9}…{ARROW}{'b' * 9}…"]
    for width in range(38, 46):  # of which some show a character that differs, and some do not
        (text,) = shortened_pairs([f"{'node' * 4}: MulBackward0{ARROW}{'node' * 4}: AddBackward0"], width)
        before, after = text.split(ARROW)
        assert before != after


def test_a_call_has_as_many_of_its_shapes_as_fit_and_tell_it_apart():
    call, other = "aten::mm([64,64], [64,512])", "aten::mm([64,64], [64,128])"
    assert shortened_pairs([call], 30) == [call]
    assert shortened_pairs([call], 22) == ["aten::mm([64,64], …)"]
    assert shortened_pairs([call], 15) == ["aten::mm(…)"]
    assert shortened_pairs([call, "aten::mm([8,8], [8,512])"], 15) == ["aten::mm([64,6…", "aten::mm([8,8]…"]
    assert len(set(shortened_pairs([call, other], 20))) == 2


def test_a_path_keeps_its_end():
    assert cut_left("Model/Encoder/Layer[*]/Attention", 15) == "…r[*]/Attention"
    assert cut_left("Linear", 15) == "Linear"


@examples(200)
@given(NAMES, st.integers(1, 50))
def test_a_cut_name_is_no_wider_and_a_short_one_as_it_was(names, width):
    for name, text in zip(names, shortened(names, width), strict=True):
        assert len(text) <= width
        assert text == name if len(name) <= width else "…" in text


@examples(200)
@given(PAIRS, st.integers(8, 60))
def test_a_cut_pair_is_no_wider(pairs, width):
    for pair, text in zip(pairs, shortened_pairs(pairs, width), strict=True):
        assert len(text) <= width
        assert text == pair if len(pair) <= width else "…" in text


@pytest.mark.parametrize("width", [16, 20, 30])
def test_two_names_stay_two(width):
    stem = "elementwise_kernel<128, 4, at::native::gpu_kernel_impl"
    names = [f"{stem}<Mul>>", f"{stem}<Add>>"]
    assert len(set(shortened(names, width))) == 2


def test_that_time_is_the_hosts_is_never_cut():
    name = "aten::convolution_backward in ConvolutionBackward0 on the host"
    assert shortened([name], 40) == ["aten::convolution_backward … on the host"]
    assert shortened([name], 12) == ["aten::convo…"]
