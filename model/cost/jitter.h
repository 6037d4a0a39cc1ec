// SPDX-License-Identifier: Apache-2.0
// Jitter: the variation of an op's time around its price from run to run.
//
//   time of an op = price x rank factor x kernel factor, or price x rank factor + stall
//
// The price is the median, since benchmarks report medians: all factors are lognormal with median 1, or drawn from a
// measured sample. The rank factor is one draw for each rank and run, for all of its ops except communication: a GPU
// that clocks lower is slower throughout. A stall (a host or network hiccup) is rare and Pareto distributed; an op that
// stalls has no kernel factor. An op whose price is zero takes no time and never stalls. Issue costs have no jitter.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "model/hardware/parameter.h"
#include "model/random/quantile_table.h"
#include "model/units.h"

namespace commfuse {

inline constexpr double highest_sigma = 1.0;
inline constexpr double highest_stall_probability = 0.1;
inline constexpr double least_stall_shape = 1.1;  // a shape of 1 has an infinite mean

/// Jitter parameters; `load_jitter` ensures the ranges given here.
struct Jitter {
  std::string name;
  Parameter<double> compute_sigma;           ///< Sigma of essential and local ops, in [0, highest_sigma].
  Parameter<double> communication_sigma;     ///< In [0, highest_sigma].
  Parameter<double> rank_sigma;              ///< In [0, highest_sigma].
  Parameter<double> stall_probability;       ///< Per op, in [0, highest_stall_probability].
  Parameter<Duration> stall_scale;           ///< Shortest stall, in [1 ps, 1 s].
  Parameter<double> stall_shape;             ///< Pareto shape, at least least_stall_shape.
  std::vector<double> compute_ratios;        ///< Measured / nominal times, sorted, above 0; they replace the lognormal.
  std::vector<double> communication_ratios;  ///< Like compute_ratios, for communication.
};

/// Returns the provenances of the jitter's parameters, by Provenance; parameters without an effect are ignored.
std::array<bool, all_provenances.size()> provenances_of(const Jitter& jitter);

/// Kinds of draws. Each has its own random words, because the kind is part of the purpose in a Philox counter.
enum class Draw : std::uint8_t { essential, local, communication, rank };

/// Tables of one Jitter, built once and shared by threads.
class JitterTables {
 public:
  explicit JitterTables(const Jitter& jitter);

  /// Returns true if nothing varies.
  [[nodiscard]] bool is_still() const { return !compute_ && !communication_ && !rank_; }
  /// Returns the number of random words that mean a stall: all words below this number.
  [[nodiscard]] std::uint32_t stalls() const { return stalls_; }
  /// Returns the factors of a kernel, indexed by the word minus stalls(); nullptr if the factor is always 1 and nothing
  /// stalls.
  [[nodiscard]] const QuantileTable* kernel(bool communication) const;
  /// Returns the factors of a rank by word; nullptr if the factor is always 1.
  [[nodiscard]] const QuantileTable* rank() const { return rank_ ? &*rank_ : nullptr; }
  /// Returns the stall in whole picoseconds for a word below stalls().
  [[nodiscard]] double stall(std::uint32_t word) const;

 private:
  std::uint32_t stalls_;
  std::optional<QuantileTable> compute_;
  std::optional<QuantileTable> communication_;
  std::optional<QuantileTable> rank_;
  std::optional<QuantileTable> stall_;
};

}  // namespace commfuse
