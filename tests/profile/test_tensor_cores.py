"""What kernel names say about matrix units; the names are real ones, most of them from the published traces."""

import pytest

from tracediff.profile.kernels.families import uses_tensor_cores

USE = [
    (
        "void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align4>"
        "(cutlass_80_tensorop_s1688gemm_256x64_16x4_tn_align4::Params)"
    ),
    "void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_32x1_nn_align8>(X::Params)",
    "cutlass_tensorop_s1688wgrad_optimized_tf32_256x64_16x4_nhwc_align4",
    "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize64x128x32_stage5_warpsize2x2x1_g1_tensor16x8x8_execute_kernel_cudnn_infer",
    "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize128x64x32_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas",
    "ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x4_tn",
    "volta_h884gemm_128x64_ldg8_nn",
    "volta_fp16_s884cudnn_fp16_128x128_ldg8_relu_exp_small_nhwc_tn_v1",
    "nvjet_tst_128x64_64x8_2x2_h_bz_TNT",
    "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT32x32x256_MI16x16x1_SN_LDSB1_AFC1_ISA942",
    "igemm_bwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_wr2x2",
    "void paged_attention_ll4mi_QKV_mfma16_kernel<false, __hip_bfloat16>",
    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, "
    "cutlass::bfloat16_t> >(Params)",
    "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(X::Params)",
]
USE_NOT = [
    "ampere_sgemm_32x32_sliced1x4_nn",
    "volta_sgemm_128x64_tn",
    (
        "void cutlass::Kernel<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>"
        "(cutlass_80_simt_sgemm_128x32_8x5_nn_align1::Params)"
    ),
    "volta_scudnn_winograd_128x128_ldg1_ldg4_relu_tile148t_nt_v1",
    "cudnn_infer_ampere_scudnn_128x64_relu_xregs_large_nn_v1",
    "void implicit_convolve_sgemm<float, float, 128, 5, 5, 3, 3, 3, 1, false, false, true>(int)",
    "void wgrad_alg0_engine<float, 128, 5, 5, 3, 3, 3, false, 512>(int)",
    "void gemv2N_kernel<int, int, float, float, float, float, 128, 8, 4, 4, 1, false, cublasGemvParams<float> >(X)",
    "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 8, 9, false, cublasGemvTensorStridedBatched<float const> >(X)",
    "Cijk_Ailk_Bljk_SB_MT64x64x8_SE_TT4_4_WG16_16_1",
]
SAY_NOTHING = [
    "triton_poi_fused_add_cos_sin_0",
    "triton_tem_fused_mm_3",
    "attn_fwd",
    "fmha_cutlassF_f32_aligned_64x64_rf_sm80(X::Params)",
    "SubTensorOpWithScalar1d",
    "void splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(X)",
    "void reduce_1Block_kernel<float, 128, 7, cublasGemvTensorStridedBatched<float> >(X)",
    "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)",
    "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(X)",
    "Memcpy HtoD (Pinned -> Device)",
    "",
]


@pytest.mark.parametrize(
    ("name", "answer"), [*((n, True) for n in USE), *((n, False) for n in USE_NOT), *((n, None) for n in SAY_NOTHING)]
)
def test_a_name_says_yes_no_or_nothing(name, answer):
    assert uses_tensor_cores(name) is answer
