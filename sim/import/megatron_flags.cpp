// SPDX-License-Identifier: Apache-2.0
// Source: NVIDIA/Megatron-LM, megatron/training/arguments.py.
#include "sim/import/megatron_flags.h"

#include <algorithm>
#include <array>
#include <cstddef>

#include "model/text/suggest.h"

namespace commfuse::import {

namespace {

/// The flags that are read.
constexpr auto known_flags = std::to_array<std::string_view>({
    "--account-for-embedding-in-pipeline-split",
    "--account-for-loss-in-pipeline-split",
    "--bf16",
    "--context-parallel-size",
    "--data-parallel-sharding-strategy",
    "--disable-bias-linear",
    "--expert-model-parallel-size",
    "--ffn-hidden-size",
    "--fp16",
    "--fp8-format",
    "--global-batch-size",
    "--group-query-attention",
    "--hidden-size",
    "--kv-channels",
    "--make-vocab-size-divisible-by",
    "--max-position-embeddings",
    "--micro-batch-size",
    "--moe-ffn-hidden-size",
    "--moe-router-topk",
    "--nnodes",
    "--normalization",
    "--nproc-per-node",
    "--nproc_per_node",
    "--num-attention-heads",
    "--num-experts",
    "--num-layers",
    "--num-layers-per-virtual-pipeline-stage",
    "--num-nodes",
    "--num-query-groups",
    "--num-virtual-stages-per-pipeline-rank",
    "--pipeline-model-parallel-size",
    "--position-embedding-type",
    "--recompute-activations",
    "--recompute-granularity",
    "--seq-length",
    "--sequence-parallel",
    "--swiglu",
    "--tensor-model-parallel-size",
    "--tp-comm-overlap",
    "--untie-embeddings-and-output-weights",
    "--use-custom-fsdp",
    "--use-distributed-optimizer",
    "--use-megatron-fsdp",
    "--use-torch-fsdp2",
    "--vocab-size",
});

constexpr std::array left_out{
    UnreadFlag{"--multi-latent-attention", "attention is that of --num-attention-heads"},
    UnreadFlag{"--moe-shared-expert-intermediate-size", "no expert is shared"},
    UnreadFlag{"--moe-layer-freq", "every layer has experts"},
    UnreadFlag{"--decoder-first-pipeline-num-layers", "stages have layers as evenly as can be"},
    UnreadFlag{"--decoder-last-pipeline-num-layers", "stages have layers as evenly as can be"},
    UnreadFlag{"--pipeline-model-parallel-layout", "stages have layers as evenly as can be"},
    UnreadFlag{"--fp4-format", "the other flags choose the dtype"},
};

/// Flags of others that look like known ones.
constexpr std::array<std::string_view, 1> look_alikes{"--nodes"};

}  // namespace

std::span<const UnreadFlag> flags_without_counterpart() { return left_out; }

std::optional<std::string_view> misspelled(std::string_view flag) {
  const auto is = [&](std::string_view known) { return known == flag; };
  constexpr std::size_t longest = 64;
  if (flag.size() > longest || std::ranges::any_of(known_flags, is) || std::ranges::any_of(look_alikes, is) ||
      std::ranges::any_of(left_out, is, &UnreadFlag::flag)) {
    return std::nullopt;
  }
  const auto meant = std::ranges::find_if(known_flags, [&](std::string_view known) {
    return known.size() <= flag.size() + 1 && flag.size() <= known.size() + 1 && edit_distance(flag, known) <= 1;
  });
  return meant == known_flags.end() ? std::nullopt : std::optional(*meant);
}

}  // namespace commfuse::import
