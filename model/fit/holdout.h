// SPDX-License-Identifier: Apache-2.0
// Selects the rows of a public table that every fit excludes, so that scores show how well the model predicts unseen
// shapes. Whole groups are held out, by the text of their key, because rows that differ only in m predict each other.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/attention.h"
#include "model/cost/expert_layer.h"
#include "model/cost/gemm.h"
#include "model/cost/latent_decode.h"
#include "model/cost/quantization.h"

namespace commfuse {

/// Returns the 64-bit FNV-1a hash, with the offset 14695981039346656037 and the prime 1099511628211 (Fowler, Noll, Vo).
std::uint64_t fnv1a(std::string_view text);

/// Returns true for 20% of the groups. The result depends only on the text of the key, so it is the same on every
/// machine and in every order of rows.
bool is_held_out(std::string_view key);

/// Rows of a fit, divided by is_held_out().
template <class Row>
struct RowSplit {
  std::vector<Row> kept;
  std::vector<int> groups;  ///< Number of each kept row's group, counted from 0 in the order of first occurrence.
  std::vector<Row> held_out;
};

/// Divides the rows; `group_of` returns the key of a row's group.
template <class Row, class GroupOf>
RowSplit<Row> split_by_group(std::span<const Row> rows, const GroupOf& group_of) {
  RowSplit<Row> split;
  std::map<std::string, int> numbers;
  for (const Row& row : rows) {
    const std::string group = group_of(row);
    if (is_held_out(group)) {
      split.held_out.push_back(row);
      continue;
    }
    split.kept.push_back(row);
    split.groups.push_back(numbers.try_emplace(group, static_cast<int>(numbers.size())).first->second);
  }
  return split;
}

// The keys. `kind` is the word that `commfuse-sim score` uses: gemm, gemm_layer, attention, collective, p2p. `machine`
// is the value of the table's own column (hw, device), unchanged; without such a column, the name of this project's
// hardware file.

/// Returns the key of rows with one n and k of a GEMM and any m: "gemm|H100-SXM5-80GB|bf16|4096|14336", with this
/// project's name of the dtype.
std::string gemm_group(std::string_view kind, std::string_view machine, std::string_view dtype, const GemmSize& size);

/// Returns the key of rows with one message size and any number of ranks: "collective|h100-sxm|all_gather|1048576", op
/// as in the table.
std::string link_group(std::string_view kind, std::string_view machine, std::string_view op, std::int64_t bytes);

/// Returns the key of rows with one attention layer and any batch and sequence: "attention|H100-SXM5-80GB|32|8|128".
std::string attention_group(std::string_view kind, std::string_view machine, const AttentionSize& size);

/// Returns the key of rows of decoding with one attention layer and any batch and number of keys:
/// "decode_attention|H100-SXM5|32|8|128", with "|fp8" if the cache is in fp8.
std::string decode_attention_group(std::string_view machine, const AttentionSize& size);

/// Returns the key of rows of latent attention in decoding with one number of heads and of sequences and any number of
/// keys, because all of its layers have the same widths: "latent_decode|H100-SXM5|16|64" for 16 heads and 64 sequences,
/// with "|fp8" if the cache is in fp8.
std::string latent_decode_group(std::string_view machine, const LatentDecodeSize& size);

/// Returns the key of rows with one expert layer on a GPU and any number of tokens:
/// "expert_layer|H100-SXM5|2048|512|8|256|1|1|power_law_1.01", with "|fp8" in fp8; "balanced" without a power law.
std::string expert_layer_group(std::string_view machine, const ExpertLayerSize& size);

/// Returns the key of measurements of quantization with one width, of both parts and any number of rows, because
/// measurements of the scale are differences from those of the conversion: "quantize|H100-SXM5|4096".
std::string quantization_group(std::string_view machine, const QuantizationSize& size);

/// Returns the key of rows with one memory-bound kernel and width and any number of rows:
/// "framework_kernel|h100|mlp_act|11008", op as in the table.
std::string framework_kernel_group(std::string_view machine, std::string_view op, std::int64_t width);

}  // namespace commfuse
