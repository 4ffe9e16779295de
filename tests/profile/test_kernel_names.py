"""Readable names: the golden table of all kernel names of the real traces, and what holds for any name.

``PYTHONPATH=tests python tests/profile/test_names.py`` writes the table anew; read its difference line by line before
it is committed.
"""

import re
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, strategies as st
from traces import FILES, NAMES, needs_traces

from tracediff.ingest.model import categories as cat
from tracediff.ingest.read import read_trace
from tracediff.profile.kernels.display_names import display_name
from tracediff.profile.kernels.match_names import match_name

GOLDEN = Path(__file__).with_name("display_names.tsv")
"""raw<TAB>readable, sorted by raw."""


def kernel_names(path):
    trace = read_trace(str(path), only=frozenset())
    used = {int(n) for code in cat.GPU for n in trace.name[trace.category == code]}
    return {trace.names[n] for n in used}


def all_kernel_names():
    return sorted({name for path in FILES for name in kernel_names(path)})


def golden():
    return dict(line.split("\t") for line in GOLDEN.read_text(encoding="utf-8").splitlines())


def write_golden():
    GOLDEN.write_text("".join(f"{raw}\t{display_name(raw)}\n" for raw in all_kernel_names()), encoding="utf-8")


@needs_traces
def test_the_golden_table_has_every_kernel_name_of_the_real_traces():
    assert sorted(golden()) == all_kernel_names()


def test_display_names_are_the_golden_ones():
    table = golden()
    assert {raw: display_name(raw) for raw in table} == table


def test_nearly_all_fit_and_none_is_much_too_wide():
    lengths = sorted(len(name) for name in golden().values())
    assert lengths[-1] <= 100
    assert sum(n > 80 for n in lengths) <= 0.04 * len(lengths)


@needs_traces
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_unlike_kernels_of_a_trace_have_unlike_display_names(path):
    match_names = defaultdict(set)
    for name in kernel_names(path):
        match_names[display_name(name)].add(match_name(name))
    assert {short: names for short, names in match_names.items() if len(names) > 1} == {}


ATEN = "void at::native::"


@pytest.mark.parametrize(
    ("raw", "short"),
    [
        ("aten::add", "aten::add"),
        (
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
            "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
        ),
        ("autograd::engine::evaluate_function: AddmmBackward0", "autograd::engine::evaluate_function: AddmmBackward0"),
        ("graph_0_cpp_fused_add_3", "cpp_fused_add"),
        ("triton_poi_fused_add_gelu_12", "triton_poi_fused_add_gelu"),
        ("triton_tem_fused_mm_3", "triton_tem_fused_mm"),
        ("module.py(12): forward", "module.py(12): forward"),
        ("x.py(3): <lambda>", "x.py(3): <lambda>"),
        ("nn.Module: Linear_0", "nn.Module: Linear_0"),
        ("<built-in method conv2d of type object at 0x7f12ab>", "<built-in method conv2d of type object at 0x#>"),
        (
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
            "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
        ),
        ("Torch-Compiled Region: 0/0", "Torch-Compiled Region: 0/0"),
        ("ProfilerStep #12", "ProfilerStep#"),
        ("Memcpy HtoD (Pinned -> Device)", "Memcpy HtoD"),
        ("CopyDeviceToHost", "Memcpy DtoH"),
        ("Memset (Device)", "Memset"),
        (
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        ),
        ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t"),
        ("rccl_main_kernel(ncclDevComm*)", "rccl_main_kernel"),
        ("nvjet_tst_128x64_64x8_2x2_h_bz_TNT", "nvjet_tst_128x64_64x8_2x2_h_bz_TNT"),
        (
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(AttentionKernel<cutlass::bfloat16_t>::Params)",
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
        ),
        ("MIOpenBatchNormFwdTrainSpatial.kd", "MIOpenBatchNormFwdTrainSpatial.kd"),
        (
            f"{ATEN}vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >(int)",
            "elementwise add<float> [vec4]",
        ),
        (
            (
                f"{ATEN}vectorized_elementwise_kernel<8, at::native::FillFunctor<c10::BFloat16>, "
                f"std::array<char*, 1ul> >(int)"
            ),
            "elementwise Fill<bf16> [vec8]",
        ),
        (
            "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(X::Params)",
            "cutlass_80_simt_sgemm_128x64_8x5_nt_align1 [Kernel2]",
        ),
        (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)",
            "softmax_warp_forward<float,float,float,10,1,0>",
        ),
        ("", "(no name)"),
        (" \n", "(no name)"),
        ("void f<(", "void f<("),
    ],
)
def test_forms(raw, short):
    assert display_name(raw) == short


def test_what_does_not_fit_is_a_beginning_and_a_digest_of_the_whole():
    traits = (
        "Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t, Flash_kernel_traits<64, "
        "128, 128, 4> >"
    )
    causal, plain = (
        display_name(f"void flash_fwd_kernel<{traits}, {flag}, true, false>(Flash_fwd_params)")
        for flag in ("true", "false")
    )
    assert re.fullmatch(r"flash_fwd_kernel<Flash_fwd_kernel_traits<64,128,128,4,0,0,bfloat16_t…#[0-9a-f]{6}", causal)
    assert causal != plain
    assert causal[:-6] == plain[:-6]


def test_names_that_are_no_kernels_are_cut_only_where_they_are_endless():
    assert display_name("aten::" + "r" * 100) == "aten::" + "r" * 100
    cut_off = "void at::native::vectorized_elementwise_kernel<4, " + "at::native::x<" * 100
    assert len(display_name(cut_off)) == 160
    assert display_name(cut_off) != display_name(cut_off + "y")


def test_a_tile_is_no_address():
    assert match_name("gemm_MT64x160x128_MI16") == "gemm_MT64x160x128_MI16"


def test_a_collective_of_hccl_matches_without_its_communicator_and_counters():
    assert match_name("hcom_allReduce__868_3_1") == match_name("hcom_allReduce__586_0_1") == "hcom_allReduce"
    assert match_name("hcom_broadcast__816_0") == "hcom_broadcast"
    assert match_name("hcom_allReduce__") == "hcom_allReduce__"
    assert display_name("gemm_64x160x128") != display_name("gemm_64x160x64")


@given(st.text())
def test_any_name_has_a_readable_one_on_one_line(raw):
    short = display_name(raw)
    assert short.strip()
    assert len(short.splitlines()) == 1
    assert short.isprintable()


@given(st.text(alphabet="ab:<>(){}[], *#~_1", max_size=60))
def test_any_broken_signature_has_a_readable_name(raw):
    assert display_name(raw).strip()
    assert display_name(f"void {raw}").strip()
    assert display_name(f"_ZN{raw}").strip()


ADDRESSES = st.integers(0, 2**64 - 1).map("0x{:x}".format)


@given(
    st.sampled_from(
        ["<built-in method mm of object at {}>", "foo_{}", "void f<float>(int) at {}", "CompiledFxGraph {}"]
    ),
    ADDRESSES,
    ADDRESSES,
)
def test_addresses_do_not_show(form, first, second):
    assert display_name(form.format(first)) == display_name(form.format(second))


GENERATED = (
    "triton_poi_fused_add_mul_{}",
    "graph_{}_cpp_fused_sum_1",
    "cpp_fused_add_{}",
    "triton_per_fused_" + "native_layer_norm_" * 9 + "{}",
)


@given(st.sampled_from(GENERATED), st.integers(0, 9999), st.integers(0, 9999))
def test_counters_of_generated_kernels_do_not_show(form, first, second):
    assert display_name(form.format(first)) == display_name(form.format(second))


HASHES = st.text(alphabet="abcdefghijklmnopqrstuvwxyz234567", min_size=44, max_size=52).map(lambda text: "a2" + text)


@given(
    st.sampled_from(["CompiledFxGraph f:{}", "## Call CompiledFxGraph {} ##", "triton_poi_fused_add.{}"]),
    HASHES,
    HASHES,
)
def test_hashes_do_not_show(form, first, second):
    assert display_name(form.format(first)) == display_name(form.format(second))


TYPES = st.sampled_from(["float", "double", "int", "long", "unsigned int", "c10::BFloat16", "c10::Half", "bool"])
VALUES = st.one_of(
    TYPES,
    st.integers(-4, 512).map(str),
    st.tuples(st.sampled_from(["at::native::Foo", "b::Bar"]), TYPES).map("{0[0]}<{0[1]}>".format),
)


@given(st.lists(VALUES, min_size=1, max_size=14), st.lists(VALUES, min_size=1, max_size=14))
def test_other_template_arguments_make_another_readable_name(first, second):
    same = display_name(f"void a::k<{', '.join(first)} >(int)") == display_name(f"void a::k<{', '.join(second)} >(int)")
    assert same == (first == second)


LAMBDAS = st.tuples(st.integers(1, 16), TYPES, st.integers(1, 30))


@given(LAMBDAS, LAMBDAS)
def test_other_widths_types_and_lambdas_make_another_readable_name(first, second):
    def name(width, type_, ordinal):
        function = (
            f"at::native::exp_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#2}}::operator()() "
            f"const::{{lambda()#{ordinal}}}::operator()() const"
        )
        return (
            f"{ATEN}vectorized_elementwise_kernel<{width}, {function}::{{lambda({type_})#1}}, std::array<char*, 2ul> "
            f">(int)"
        )

    assert (display_name(name(*first)) == display_name(name(*second))) == (first == second)


if __name__ == "__main__":
    write_golden()
