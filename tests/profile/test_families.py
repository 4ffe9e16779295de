"""Families of kernels and ops, on the real traces and by a user's own rules."""

import csv
import pickle
import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from traces import FILES, NAMES, needs_traces

from tracediff.errors import TracediffError
from tracediff.ingest.model import categories as cat
from tracediff.ingest.model.health import Notes
from tracediff.ingest.read import read_trace
from tracediff.profile.kernels.families import (
    DEFAULT,
    NEXT_WORD,
    RULES,
    Families,
    _built_in,
    _words,
    family_of,
    read_rules,
)
from tracediff.profile.kernels.match_names import is_wrapper
from tracediff.profile.placement.gpu_events import gpu_events
from tracediff.profile.placement.nesting import build_lanes
from tracediff.profile.placement.steps import find_steps

DEFINED = frozenset(
    (
        "gemm",
        "conv",
        "attention",
        "norm",
        "softmax",
        "pointwise",
        "reduction",
        "pool",
        "loss",
        "embedding",
        "optimizer",
        "quantise",
    )
) | {*("copy", "memset", "communication", "rng", "sort", "wait", "fused", "other")}


def kernels_with_ops(path):
    """Counter of (kernel, launching op or None) → ns: the innermost op around the launch that is no wrapper."""
    trace = read_trace(str(path))
    notes = Notes()
    gpu = gpu_events(trace, find_steps(trace, None, notes), notes)
    lane = build_lanes(trace, notes).ops
    position = {row: i for i, row in enumerate(lane.rows.tolist())}
    passed = [trace.category[r] != cat.CPU_OP or is_wrapper(trace.names[trace.name[r]]) for r in lane.rows.tolist()]
    time = Counter()
    for row, launch in zip(gpu.rows.tolist(), gpu.launch.tolist(), strict=True):
        scope = position.get(launch, -1)
        while scope >= 0 and passed[scope]:
            scope = int(lane.parent[scope])
        op = trace.names[trace.name[lane.rows[scope]]] if scope >= 0 else None
        time[trace.names[trace.name[row]], op] += int(trace.dur[row])
    return time


@needs_traces
@pytest.mark.parametrize("path", FILES, ids=NAMES)
def test_nearly_all_kernel_time_has_a_family(path):
    time = kernels_with_ops(path)
    by_family = Counter()
    for (name, op), ns in time.items():
        by_family[DEFAULT.of_kernel(name, op)] += ns
    assert set(by_family) <= DEFINED
    assert by_family["other"] <= 0.03 * time.total()


@needs_traces
@pytest.mark.parametrize("path", [p for p in FILES if "cpu_only" in str(p)], ids=lambda p: p.parent.name)
def test_cpu_ops_that_compute_have_a_family(path):
    trace = read_trace(str(path))
    ops = np.unique(trace.name[trace.category == cat.CPU_OP])
    other = {trace.names[n] for n in ops if family_of(trace.names[n]) == "other"}
    computing = ("mm", "add", "mul", "sum", "relu", "softmax", "copy", "norm", "embedding", "index")
    assert not [name for name in other if name.startswith("aten::") and any(word in name for word in computing)]


def test_every_rule_is_of_a_defined_family():
    assert {family for family, _ in RULES} == DEFINED - {"other"}


LOOP = "void at::native::vectorized_elementwise_kernel<4, at::native::{}, std::array<char*, 3ul> >(int)"


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("at::cuda::(anonymous namespace)::spin_kernel(long)", "wait"),
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("triton_poi_fused_add_mm_0", "fused"),
        ("triton_red_fused__softmax_3", "fused"),
        ("graph_0_cpp_fused_add_3", "fused"),
        ("triton_tem_fused_mm_relu_4", "gemm"),
        ("triton_tem_fused_flex_attention_1", "attention"),
        ("triton_tem_fused_convolution_2", "conv"),
        ("Memset (Device)", "memset"),
        (LOOP.format("FillFunctor<float>"), "memset"),
        (LOOP.format("CUDAFunctor_add<float>"), "pointwise"),
        (LOOP.format("direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}"), "copy"),
        (LOOP.format("mse_kernel_cuda(at::TensorIteratorBase&)::{lambda(float, float)#1}"), "loss"),
        ("Memcpy DtoH (Device -> Pageable)", "copy"),
        ("pytorch_flash::flash_fwd_kernel<X>(Flash_fwd_params)", "attention"),
        ("vllm::reshape_and_cache_flash_kernel<float>", "copy"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bEEvPT0_", "norm"),
        ("fbgemm_gpu::_compute_FP8_quantize_cuda_kernel<float>", "quantise"),
        ("fbgemm_gpu::permute_2D_data_kernel<false, int, int>", "copy"),
        ("split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float>", "embedding"),
        ("vllm::rotary_embedding_kernel<c10::BFloat16, true>", "pointwise"),
        ("nvjet_tst_128x64_64x8_2x2_h_bz_TNT", "gemm"),
        ("nvjet_sm100_tst_64x8_64x16_4x1_v_bz_TNT", "gemm"),
        ("bmm_E2m1_E2m1E2m1_Fp32_t128x8x512u2_s6_et64x8_m64x8x64_cga1x1x1_16dp256b_rM_TN_transOut_schS", "gemm"),
        ("cutlass3x_sm100_bstensorop_s256x192x64gemm_block_scaled_ue4m3xe2m1_ue4m3xe2m1_f32_bf16", "gemm"),
        ("Cijk_Alik_Bljk_F8BS_BH_Bias_HA_S_SAV_UserArgs_MT256x256x128_MI16x16x1_SN", "gemm"),
        ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<7168u, 2048u>", "gemm"),
        ("_w8a8_triton_block_scaled_mm", "gemm"),
        ("aiter::fmoe_bf16_blockscaleFp8_g1u1_vs_silu_1tg_ps_32x256", "gemm"),
        ("fused_moe_kernel", "gemm"),
        ("void qk_int_sv_f8_attn_kernel<128u, 64u, 32u, 64u, 128u, (DataType)1>", "attention"),
        ("qk_int8_sv_f8_attn_kernel", "attention"),
        ("_ZN5aiter36mla_a8w8_qh16_qseqlen1_gqaratio16_psE", "attention"),
        ("aiter::pa_bf16_noquant_gqa8_1tg_4w", "attention"),
        ("void ck_tile::kentry<256, 2, ck_tile::FmhaFwdKernel<ck_tile::BlockFmhaPipelineQRKSVSAsync>>", "attention"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90>>", "attention"),
        ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int, __nv_bfloat16>", "sort"),
        ("void moe_align_block_size_kernel<int>", "sort"),
        ("count_and_sort_expert_tokens_kernel", "sort"),
        ("void moe::dev::routing::routingCustom::routingIndicesClusterKernel<KernelParams>", "sort"),
        ("volta_scudnn_128x64_relu_medium_nn_v1", "conv"),
        ("void cudnn::ops::nchwToNhwcKernel<float, float>", "copy"),
        ("igemm_wrw_gtcx2_nhwc_bf16", "conv"),
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float, "
            "float> > >",
            "reduction",
        ),
        ("void at::native::index_elementwise_kernel<128, 4, X>", "copy"),
        ("void cub::DeviceRadixSortOnesweepKernel<X>", "sort"),
        (
            "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<A, FusedAdamMathFunctor<float, 4> >",
            "optimizer",
        ),
        ("aten::addmm", "gemm"),
        ("aten::linear", "gemm"),
        ("aten::add_", "pointwise"),
        ("aten::sum", "reduction"),
        ("aten::linalg_vector_norm", "reduction"),
        ("aten::native_layer_norm", "norm"),
        ("aten::normal_", "rng"),
        ("aten::gather", "copy"),
        ("aten::index_select", "embedding"),
        ("aten::view", "other"),
        ("aten::transpose", "other"),
        ("aten::empty", "other"),
        ("aten::max_pool2d", "pool"),
        ("aten::_fused_adamw_", "optimizer"),
        ("aten::_foreach_add_", "optimizer"),
        ("aten::_local_scalar_dense", "copy"),
        ("AddmmBackward0", "gemm"),
        ("SumBackward1", "reduction"),
        ("BinaryCrossEntropyWithLogitsBackward0", "loss"),
        ("TransposeBackward0", "other"),
        ("autograd::engine::evaluate_function: AddmmBackward0", "other"),
        ("CompiledFunctionBackward", "other"),
        ("Torch-Compiled Region: 0/0", "other"),
        ("", "other"),
    ],
)
def test_families(name, family):
    assert family_of(name) == family


def test_where_the_kernel_says_nothing_the_op_decides():
    assert family_of("my_kernel") == "other"
    assert DEFAULT.of_kernel("my_kernel", "aten::mm") == "gemm"
    assert DEFAULT.of_kernel("softmax_warp_forward", "aten::mm") == "softmax"
    assert DEFAULT.of_kernel("my_kernel", None) == "other"
    helper = "void cudnn::fusion::compute_dot_do_o_specialized<true, 128>(void const*)"
    assert DEFAULT.of_kernel(helper, "aten::_cudnn_attention_backward") == "attention"


def rules(tmp_path, text):
    path = tmp_path / "families.toml"
    path.write_text(text)
    return path


def test_own_rules_come_first_and_the_built_in_ones_stay(tmp_path):
    text = (
        '[[family]]\nname = "gemm"\npatterns = ["my gemm", "^corp_.*_mm$"]\n[[family]]\nname = "router"\npatterns '
        '= ["softmax"]\n'
    )
    families = read_rules(rules(tmp_path, text))
    assert [families.of_name(n) for n in ("a my gemm b", "corp_x_mm", "x_corp_mm_", "softmax_warp", "aten::sum")] == [
        "gemm",
        "gemm",
        "other",
        "router",
        "reduction",
    ]
    assert families.of_kernel("silent", "corp_x_mm") == "gemm"
    assert DEFAULT.of_name("softmax_warp") == "softmax"


def test_rules_travel_to_worker_processes():
    families = Families((("gemm", "mine"),))
    assert pickle.loads(pickle.dumps(families)) == families
    assert pickle.loads(pickle.dumps(families)).of_name("mine") == "gemm"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[[family", "not valid TOML"),
        ("", "not a list of"),
        ("family = 3", "not a list of"),
        ('[[families]]\nname = "gemm"', "not a list of"),
        ('[[family]]\npatterns = ["a"]', "no name"),
        ('[[family]]\nname = " "\npatterns = ["a"]', "no name"),
        ('[[family]]\nname = "gemm"', "no list of patterns"),
        ('[[family]]\nname = "gemm"\npatterns = "a"', "no list of patterns"),
        ('[[family]]\nname = "gemm"\npatterns = [1]', "no list of patterns"),
        ('[[family]]\nname = "gemm"\npatterns = ["("]', "is not a regular expression"),
    ],
)
def test_wrong_rules_are_refused_in_one_line(tmp_path, text, reason):
    path = rules(tmp_path, text)
    with pytest.raises(TracediffError) as error:
        read_rules(path)
    assert str(path) in error.value.subject
    assert reason in error.value.reason
    assert "\n" not in str(error.value)


def test_a_missing_file_of_rules_is_refused_in_one_line(tmp_path):
    with pytest.raises(TracediffError) as error:
        read_rules(tmp_path / "absent.toml")
    assert error.value.reason == "no such file"


@pytest.mark.slow
def test_rules_ignore_case_like_python():
    rules = [
        (family, re.compile("|".join(NEXT_WORD.sub("_", p) for p in patterns.split()), re.I))
        for family, patterns in RULES
    ]
    recorded = (Path(__file__).parent / "display_names.tsv").read_text().splitlines()
    for name in recorded:
        words = _words(name)
        for text in (words, words.upper()):
            assert _built_in(name, False) == next((f for f, p in rules if p.search(text)), None), name


LIBRARIES = {"TensorRT-LLM", "FlashInfer", "vLLM", "SGLang", "AITER", "Sage", "DeepGEMM", "CUTLASS", "cuDNN", "cuBLAS"}
NAMED = list(
    csv.DictReader(
        (Path(__file__).parent / "families.tsv").open(encoding="utf-8"), delimiter="\t", quoting=csv.QUOTE_NONE
    )
)
"""Names of kernels as profilers record them, by the library that brings them."""


@pytest.mark.parametrize("library", sorted(LIBRARIES | {"Triton", "Inductor"}))
def test_kernels_of_libraries_have_their_families(library):
    rows = [row for row in NAMED if row["library"] == library]
    assert rows
    found = {row["name"]: DEFAULT.of_kernel(row["name"], None) for row in rows}
    assert found == {row["name"]: row["family"] for row in rows}


def test_the_table_of_names_is_one_of_many_names():
    assert len({row["name"] for row in NAMED}) == len(NAMED) >= 150
    assert {row["library"] for row in NAMED} == LIBRARIES | {"Triton", "Inductor"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TopKTopPSamplingFromProbKernel", "top_k_top_p_sampling_from_prob_kernel"),
        ("void flashinfer::norm::RMSNormKernel<8u, cutlass::half_t>", "void ::norm::rms_norm_kernel<8u, >"),
        ("_ZN5aiter24add_rmsnorm_quant_kernelILi256EEEvPT_", "aiter::add_rmsnorm_quant_kernel"),
        ("_ZN5aiter999short", "aiter::short"),
        ("kernel_cutlass_kernel_quackRMSNorm_object_at__tensorptrfp8", "quack_rms_norm"),
    ],
)
def test_rules_search_the_words_of_a_name(name, words):
    assert _words(name) == words
