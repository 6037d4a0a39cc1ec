// SPDX-License-Identifier: Apache-2.0
// Which rows of a public table are kept back from every fit, so that scores tell what the model does with shapes it has
// not seen. Whole groups are kept back, by the text of their key: rows that differ only in m tell each other's times.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace commfuse {

/// FNV-1a with 64 bits: the offset 14695981039346656037 and the prime 1099511628211 (Fowler, Noll, Vo).
std::uint64_t fnv1a(std::string_view text);

/// One group in five, chosen by the text of its key alone: the same on every machine and in every order of rows.
bool held_back(std::string_view key);

// The keys. `kind` is the word `commfuse-sim score` uses: gemm, gemm_layer, attention, collective, p2p. `machine` is
// what the table's own column says (hw, device), letter by letter; where it has none, the name of our hardware file.

/// Rows of one shape of a matrix product, whatever their m: "gemm|H100-SXM5-80GB|bf16|4096|14336", dtype as we name it.
std::string gemm_group(std::string_view kind, std::string_view machine, std::string_view dtype, std::int64_t n,
                       std::int64_t k);

/// Rows of one message size, whatever the number of ranks: "collective|h100-sxm|all_gather|1048576", op as in the
/// table.
std::string link_group(std::string_view kind, std::string_view machine, std::string_view op, std::int64_t bytes);

/// Rows of one attention layer, whatever batch and sequence: "attention|H100-SXM5-80GB|32|8|128".
std::string attention_group(std::string_view kind, std::string_view machine, std::int64_t heads, std::int64_t kv_heads,
                            std::int64_t head_dim);

/// Rows of one memory-bound kernel and width, whatever their number: "framework_kernel|h100|mlp_act|11008", op as in
/// the table.
std::string framework_kernel_group(std::string_view machine, std::string_view op, std::int64_t width);

}  // namespace commfuse
