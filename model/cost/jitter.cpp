// SPDX-License-Identifier: Apache-2.0
#include "model/cost/jitter.h"

#include <algorithm>
#include <cmath>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr std::uint64_t all_words = std::uint64_t{1} << 32;
// 100 s in picoseconds. The limit keeps sums of times below 2^52 ps, where doubles hold whole picoseconds.
constexpr double longest_stall = 100e12;

bool is_always_one(double sigma, const std::vector<double>& ratios) { return sigma == 0.0 && ratios.empty(); }

Quantile factor(double sigma, const std::vector<double>& ratios) {
  return ratios.empty() ? lognormal(sigma) : empirical(ratios);
}

std::uint32_t stalling_words(double probability) {
  check(probability >= 0.0 && probability <= highest_stall_probability, "stalls are rare");
  return static_cast<std::uint32_t>(std::llround(probability * static_cast<double>(all_words)));
}

}  // namespace

std::array<bool, all_provenances.size()> provenances_of(const Jitter& jitter) {
  std::array<bool, all_provenances.size()> kinds{};
  const auto lean = [&](bool draws, Provenance provenance) {
    kinds[static_cast<std::size_t>(provenance)] = kinds[static_cast<std::size_t>(provenance)] || draws;
  };
  lean(!is_always_one(jitter.compute_sigma.value, jitter.compute_ratios), jitter.compute_sigma.provenance);
  lean(!is_always_one(jitter.communication_sigma.value, jitter.communication_ratios),
       jitter.communication_sigma.provenance);
  lean(jitter.rank_sigma.value > 0.0, jitter.rank_sigma.provenance);
  for (const Provenance provenance :
       {jitter.stall_probability.provenance, jitter.stall_scale.provenance, jitter.stall_shape.provenance}) {
    lean(jitter.stall_probability.value > 0.0, provenance);
  }
  return kinds;
}

JitterTables::JitterTables(const Jitter& jitter) : stalls_(stalling_words(jitter.stall_probability.value)) {
  const auto kernel = [&](double sigma, const std::vector<double>& ratios) -> std::optional<QuantileTable> {
    if (stalls_ == 0 && is_always_one(sigma, ratios)) {
      return std::nullopt;
    }
    return QuantileTable(factor(sigma, ratios), all_words - stalls_);
  };
  compute_ = kernel(jitter.compute_sigma.value, jitter.compute_ratios);
  communication_ = kernel(jitter.communication_sigma.value, jitter.communication_ratios);
  if (jitter.rank_sigma.value > 0.0) {
    rank_.emplace(lognormal(jitter.rank_sigma.value), all_words);
  }
  if (stalls_ > 0) {
    const auto scale = static_cast<double>(jitter.stall_scale.value.count());
    stall_.emplace(pareto({.scale = scale, .shape = jitter.stall_shape.value}), stalls_);
  }
}

const QuantileTable* JitterTables::kernel(bool communication) const {
  const std::optional<QuantileTable>& table = communication ? communication_ : compute_;
  return table ? &*table : nullptr;
}

double JitterTables::stall(std::uint32_t word) const {
  check(word < stalls_, "the word is one that stalls");
  return std::nearbyint(std::min(stall_->at(word), longest_stall));
}

}  // namespace commfuse
