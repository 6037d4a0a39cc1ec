// SPDX-License-Identifier: Apache-2.0
// TransformerEngine's methods for the GEMMs of forward passes that meet a collective (tp_comm_overlap_cfg), chosen by
// the prices of its own kernels (configs/implementations/te.yaml) where these are known.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "model/strategies/scope.h"
#include "sim/step/site_times.h"
#include "sim/tune/plan_space.h"

namespace commfuse {

/// A GEMM of a layer's forward pass by its name in TransformerEngine: the keys of the overlap configuration begin with
/// this name, as in "fc1_fprop" and "fc1_dgrad".
struct OverlapGemm {
  std::string_view name;
  Scope scope = Scope::qkv;
  bool scatters = false;  ///< A reduce-scatter follows; otherwise an all-gather precedes.
};
inline constexpr std::array overlap_gemms{
    OverlapGemm{"qkv", Scope::qkv, false}, OverlapGemm{"proj", Scope::out_proj, true},
    OverlapGemm{"fc1", Scope::gate_up, false}, OverlapGemm{"fc2", Scope::down, true}};

enum class OverlapMethod : std::uint8_t {
  none,  ///< Collective and GEMM run one after the other.
  ring_exchange,
  pipeline  ///< For reduce-scatters. TransformerEngine's default, but nobody published its times.
};
/// Returns "none", "ring_exchange" or "pipeline".
std::string_view name_of(OverlapMethod method);

struct OverlapChoice {
  OverlapGemm gemm;
  OverlapMethod method = OverlapMethod::none;
  SiteTime overlapped;  ///< With the method or, if it is none, with the ring exchange; `serial` if no ring can run.
  SiteTime serial;

  /// Returns the time of the overlapped GEMM relative to serial's, minus 1: negative if overlap saves time.
  [[nodiscard]] double change() const;
};

struct OverlapChoices {
  std::vector<OverlapChoice> gemms;  ///< GEMMs that layers of the model have. Empty without sequence parallelism.
  std::string no_prices;   ///< Reason why the kernels have no prices, so that methods were chosen by ideal kernels.
  std::string unmeasured;  ///< The warning that nobody measured the kernels on such GPUs; may be empty.

  [[nodiscard]] bool by_own_prices() const { return no_prices.empty(); }
  /// Returns whether the GEMMs with a reduce-scatter, or those with an all-gather, include a GEMM that overlaps.
  [[nodiscard]] bool overlaps(bool scatters) const;
  /// Returns whether any GEMM overlaps.
  [[nodiscard]] bool overlap_somewhere() const { return overlaps(true) || overlaps(false); }
};

/// Chooses the methods for one micro-batch of the plan. With prices of its kernels, every GEMM has a ring exchange or
/// none, whichever takes less time; GEMMs with a reduce-scatter are switched together, as in Megatron-LM, and the sum
/// of their times decides. Without prices, every GEMM has a ring exchange, or a pipeline if a reduce-scatter follows
/// and the pipeline is faster, both with ideal kernels; it has none if neither can split the tokens. The prices are
/// those of the implementation te in configs/implementations. Throws ConfigError with every mistake in its file.
OverlapChoices overlap_choices(const PlanSpace& space, const TrainingPlan& plan);

}  // namespace commfuse
