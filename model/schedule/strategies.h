// SPDX-License-Identifier: Apache-2.0
// The list of strategies. A new one is one file with its generators, one declaration and one line in strategies.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule/stage.h"

namespace commfuse {

/// ring: data moves to the neighbour, step by step; direct: every shard goes straight to where it is needed.
enum class Form : std::uint8_t { ring, direct };

/// Everything that selects one schedule of a strategy. Fields that a strategy does not use keep their defaults.
struct StrategyOptions {
  std::int32_t slices = 4;                // sliced: k
  Form form = Form::ring;                 // commfuse
  LaneKind add_lane = LaneKind::compute;  // commfuse, gemm_rs, ring: compute or aux
  DType dtype = DType::bf16;              // of tensors and of the wire
  friend bool operator==(const StrategyOptions&, const StrategyOptions&) = default;
};

struct Strategy {
  std::string_view name;
  std::string_view summary;  // what it does, one line
  std::string_view exposed;  // what stays exposed, one line
  bool uses_slices = false;  // which of the options select a schedule of it
  bool uses_form = false;    // form, and add_lane where the form has adds on the way
  /// Blocks that one rank's shard of tokens is cut into.
  std::int32_t (*cuts)(const StrategyOptions&);
  Done (*ag_gemm)(const Stage&, const StrategyOptions&);
  Done (*gemm_rs)(const Stage&, const StrategyOptions&);
  /// Every distinct schedule of this strategy that is worth trying: slices, forms, lanes.
  std::vector<StrategyOptions> (*variants)(const StrategyOptions& fixed);
  /// The parameters in words: "k=8", "ring, add on aux"; empty when there are none.
  std::string (*describe)(const StrategyOptions&);
};

std::span<const Strategy> strategies();

/// nullptr when there is none of that name.
const Strategy* find_strategy(std::string_view name);

std::string_view name_of(Form form);
std::optional<Form> form_named(std::string_view name);

// The generators, one file each.
Done serial_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done serial_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done sliced_ag_gemm(const Stage& stage, const StrategyOptions& options);
Done sliced_gemm_rs(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_ring(const Stage& stage, const StrategyOptions& options);
Done fuse_ag_direct(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_ring(const Stage& stage, const StrategyOptions& options);
Done fuse_rs_direct(const Stage& stage, const StrategyOptions& options);

}  // namespace commfuse
