// SPDX-License-Identifier: Apache-2.0
#include "sim/score/kinds.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "model/text/suggest.h"

namespace commfuse::score {

namespace {

constexpr std::string_view whole_models =
    "training steps whose machine, layers or recipe the table does not fully state, or that did not run on GPUs";

std::vector<Kind> scored_kinds_of_ops() {
  return {
      {"overlap_prefill",
       {"model", "tp", "prompt_tokens", "serial_ms", "compute_only_ms", "overlapped_ms"},
       score_prefill,
       {}},
      {"engine_pass", {"hw", "case", "shape", "torch_ms", "triton_dist_ms"}, score_engine_passes, {}},
      {"overlap_throughput", {"model", "tp", "chunk_size", "serial_tps", "overlapped_tps"}, score_throughput, {}},
      {"overlap_sums",
       {"BL", "hidden_size", "torch_all_reduce_us", "full_rms_norm_us", "fused_arln_us"},
       score_fused_norms,
       {}},
      {"overlap_sums", {"num_tokens", "hidden_size", "fused_arln_us_ctas_16"}, score_fused_norm_ctas, {}},
      {"overlap_gemm_ar",
       {"hw", "ranks", "M", "K", "N", "compute_only_us", "sequential_us", "pipelined_us"},
       score_gemm_ar,
       {}},
      {"overlap_schedules",
       {"hw", "model", "scope", "ranks", "batch", "seq", "dtype", "strategy", "time_us"},
       score_schedules,
       {}},
      {"overlap_experts", {"op", "M", "N", "K", "tp", "ep", "experts", "topk"}, score_overlap_pairs, {}},
      {"overlap_experts", {"config", "moe_layer"}, score_overlap_pairs, {}},
      {"overlap_pairs", {"M", "K", "ngpus"}, score_overlap_pairs, {}},
      {"overlap_pairs", {"M", "K_per_gpu", "ngpus"}, score_overlap_pairs, {}},
      {"overlap_pairs", {"op", "M", "N", "K", "tp"}, score_overlap_pairs, {}},
      {"gemm", {"hw", "dtype", "m", "n", "k", "time_us"}, score_products, {}},
      {"gemm_layer", {"hw", "op", "tp", "m", "n", "k", "median_us"}, score_layer_shapes, {}},
      {"gemm_best", {"hw", "dtype", "m", "n", "k", "tflops", "efficiency_pct"}, score_best_products, {}},
      {"attention", {"hw", "batch", "seqlen", "heads", "kv_heads", "head_dim", "time_us"}, score_attention, {}},
      {"decode_attention",
       {"hw", "batch", "kv_len", "heads", "kv_heads", "head_dim", "time_us"},
       score_decode_attention,
       {}},
      {"latent_decode",
       {"hw", "batch", "kv_len", "heads", "tp", "dtype", "kv_dtype", "time_us"},
       score_latent_decode,
       {}},
      {"expert_layer",
       {"hw", "tokens", "hidden", "inter", "topk", "experts", "tp", "ep", "distribution", "time_us"},
       score_expert_layers,
       {}},
      {"quantize", {"hw", "op", "m", "k", "in_dtype", "out_dtype", "time_us"}, score_quantization, {}},
      {"p2p", {"device", "op", "ngpus", "devices_per_node", "bytes", "median_us"}, score_exchanges, {}},
      {"collective", {"op", "ngpus", "bytes", "time_us"}, score_collectives, {}},
      {"framework_all_reduce", {"hw", "kernel", "ngpus", "bytes", "time_us"}, score_framework_all_reduces, {}},
      {"collective_rate", {"hw", "op", "ngpus", "bytes", "algo", "busbw_GBs"}, score_bus_rates, {}},
  };
}

std::vector<Kind> scored_kinds_of_models() {
  return {
      {"training_step",
       {"n_gpus", "global_batch", "micro_batch", "hidden_size", "attention_heads", "n_layers", "sequence_length",
        "tensor_parallelism", "data_parallelism", "pipeline_parallelism", "iteration_time_ms"},
       score_gpt_steps,
       {}},
      {"training_step",
       {"hidden", "heads", "layers", "seq_len", "tp", "pp", "interleave", "gbs", "mbs", "iter_s_full_recompute",
        "iter_s_seqpar_selective"},
       score_recomputed_steps,
       {}},
      {"training_step",
       {"heads", "hidden", "layers", "tp", "pp", "dp", "batch", "seq", "vocab", "tflops_per_gpu", "mfu_pct"},
       score_weak_scaling,
       {}},
      {"training_step",
       {"model", "gpus", "tp", "cp", "pp", "seq", "batch_per_dp", "tflops_per_gpu", "bf16_mfu_pct", "hardware"},
       score_llama_steps,
       {}},
      {"training_step",
       {"model", "gpus", "gbs", "mbs", "seq_len", "tp", "pp", "cp", "vp", "ep", "tokens_s_gpu"},
       score_recipes,
       {}},
      {"memory_fit",
       {"hw", "model", "layers", "hidden", "heads", "vocab", "tp", "sp", "pp", "dp", "zero", "mbs", "gbs", "seq",
        "recompute", "attention_kernel", "gradient_dtype", "fits"},
       score_memory_fits,
       {}},
      {"step_pairs", {"model", "local_batch", "async_tp", "peak_wps_per_gpu", "config_recalled"}, score_step_pairs, {}},
      {"variability", {"what", "where", "value", "unit", "trust"}, score_variability, {}},
      {"interference", {"what", "hardware", "value", "unit", "trust"}, score_interference, {}},
      {"layer_passes",
       {"model", "experiment", "tp", "micro_batch", "seq", "hidden", "forward_ms", "backward_ms"},
       score_layer_passes,
       {}},
  };
}

std::vector<Kind> known_tables() {
  constexpr std::string_view gains = "gains or shares without the times that they come from";
  constexpr std::string_view experts =
      "single kernels of mixtures of experts, which are priced only within whole models";
  constexpr std::string_view eager =
      "kernels of TokenWeave on NVSwitch multicast next to collectives that PyTorch issues";
  return {
      {"training_step", {"mfu_pct"}, nullptr, whole_models},
      {"training_step", {"tflops_gpu"}, nullptr, whole_models},
      {"training_step", {"tokens_s_npu"}, nullptr, whole_models},
      {"training_step", {"tflops_per_gpu"}, nullptr, whole_models},
      {"training_step", {"model_tflops_gpu"}, nullptr, whole_models},
      {"training_step", {"tflops_chip"}, nullptr, whole_models},
      {"training_step", {"iter_ms"}, nullptr, whole_models},
      {"training_step", {"MFU", "HFU"}, nullptr, whole_models},
      {"training_step", {"case", "step_s"}, nullptr, whole_models},
      {{}, {"e2e_gain_pct"}, nullptr, gains},
      {{}, {"training_speedup"}, nullptr, gains},
      {{}, {"claim", "trust"}, nullptr, gains},
      {{}, {"metric", "value"}, nullptr, gains},
      {{}, {"what", "value", "unit"}, nullptr, "single observations of interference, overhead and variation: priors"},
      {{}, {"mode", "ep", "dispatch_us"}, nullptr, experts},
      {{},
       {"mode", "ranks", "experts", "dispatch_us", "combine_us"},
       nullptr,
       "exchanges of experts by DeepEP, which steps price as all-to-alls of NCCL"},
      {{}, {"seqlen", "pto_us"}, nullptr, "the table does not state the number of heads"},
      {{}, {"bytes", "tget_GBs"}, nullptr, "one of many queues of a device, far below the link's rate"},
      {{}, {"BL", "hidden_size"}, nullptr, eager},
      {{}, {"serial_tps", "overlapped_tps"}, nullptr, "throughput of a serving engine over mixed batches"},
      {{},
       {"platform", "mode", "case", "torch_ms", "dist_ms"},
       nullptr,
       "the same times are scored in overlap_triton_distributed_qwen3_32b.csv"},
      {{}, {"accelerator", "bf16", "hbm_gb"}, nullptr, "data sheets, not measurements"},
  };
}

bool has_all(const Table& table, const Kind& kind) {
  return std::all_of(kind.columns.begin(), kind.columns.end(),
                     [&](std::string_view name) { return table.column(name).exists(); });
}

bool is_number(std::string_view cell) {
  return !cell.empty() && cell.find_first_not_of("0123456789.+-eE") == std::string_view::npos &&
         cell.find_first_of("0123456789") != std::string_view::npos;
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> all_kinds = [] {
    std::vector<Kind> list = scored_kinds_of_ops();
    for (std::vector<Kind>& more : std::array{scored_kinds_of_models(), known_tables()}) {
      std::move(more.begin(), more.end(), std::back_inserter(list));
    }
    return list;
  }();
  return all_kinds;
}

const Kind* kind_of(const Table& table) {
  const auto match =
      std::find_if(kinds().begin(), kinds().end(), [&](const Kind& kind) { return has_all(table, kind); });
  return match == kinds().end() ? nullptr : &*match;
}

std::string repeated_column(const Table& table) {
  const auto& header = table.header();
  for (auto at = header.begin(); at != header.end(); ++at) {
    if (!at->empty() && std::find(header.begin(), at, *at) != at) {
      return fmt::format("the column {} is given twice; keep one of them", in_quotes(*at));
    }
  }
  return {};
}

std::string mistake_in_header(const Table& table) {
  const auto& header = table.header();
  if (header.empty()) {
    return "the table is empty; the first line that is not a comment names the columns";
  }
  if (std::any_of(header.begin(), header.end(), is_number)) {
    return fmt::format("{} is not a column name; the first line that is not a comment names the columns",
                       in_quotes(*std::find_if(header.begin(), header.end(), is_number)));
  }
  for (const Kind& kind : kinds()) {
    std::vector<std::string_view> missing;
    std::copy_if(kind.columns.begin(), kind.columns.end(), std::back_inserter(missing),
                 [&](std::string_view name) { return !table.column(name).exists(); });
    if (kind.columns.size() >= 4 && missing.size() == 1 && !kind.name.empty()) {
      std::vector<std::string_view> others;  // a column that the kind needs is not a misspelling of another column
      std::copy_if(header.begin(), header.end(), std::back_inserter(others), [&](std::string_view name) {
        return std::find(kind.columns.begin(), kind.columns.end(), name) == kind.columns.end();
      });
      const auto near = nearest(missing.front(), others);
      return fmt::format("the header lacks only the column {} of kind {}; {}", in_quotes(missing.front()), kind.name,
                         near ? fmt::format("is {} a misspelling?", in_quotes(*near)) : "add it");
    }
  }
  return {};
}

}  // namespace commfuse::score
