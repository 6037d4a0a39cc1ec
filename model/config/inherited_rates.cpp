// SPDX-License-Identifier: Apache-2.0
#include "model/config/inherited_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>
#include <type_traits>

#include "model/hardware/change_shared.h"
#include "model/hardware/described.h"
#include "model/hardware/link_rates.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

/// Returns the nominal rate in a file; nullopt when the file has none or a wrong one.
std::optional<BytesPerSecond> nominal_rate(YamlMap root, std::string_view link) {
  const std::optional<BytesPerSecond> rate =
      parse_bandwidth(text_in(field_of(root.optional_value(link), "nominal_rate"), "value"));
  return rate && rate->value > 0.0 ? rate : std::nullopt;
}

double factor_at(const RateFactors& factors, int level) { return factors[static_cast<std::size_t>(level)]; }

void scale(Parameter<BytesPerSecond>& rate, double factor) {
  if (factor != 1.0) {
    rate.value.value *= factor;
    rate.provenance = Provenance::prior;
    rate.source.clear();
  }
}

/// Scales every rate of a described struct and of the maps inside it.
template <class S>
void scale_described(YamlMap map, S& described, const RateFactors& factors) {
  each_entry<S>([&](const auto& entry) {
    using Member = typename std::remove_cvref_t<decltype(entry)>::Member;
    Member& member = described.*entry.member;
    if constexpr (std::is_same_v<Member, Parameter<BytesPerSecond>>) {
      scale(member, factor_at(factors, map.level(entry.key)));
    } else if constexpr (std::is_same_v<Member, std::optional<Parameter<BytesPerSecond>>>) {
      if (member) {
        scale(*member, factor_at(factors, map.level(entry.key)));
      }
    } else if constexpr (is_optional<Member> && is_map_of_parameters<Member>) {
      if (member) {
        scale_described(map.map(entry.key), *member, factors);
      }
    } else if constexpr (is_map_of_parameters<Member>) {
      scale_described(map.map(entry.key), member, factors);
    }
  });
}

/// Scales the kernels among which NCCL chooses. Those that the file omits have NCCL's estimates, which scale by
/// `estimates`.
void scale_kernels(YamlMap map, NcclKernels& kernels, const RateFactors& factors, double estimates) {
  const auto scale_kernel = [&](std::string_view key, Parameter<BytesPerSecond>& rate) {
    const std::optional<YamlMap> kernel = map.optional_map(key);
    scale(rate, kernel ? factor_at(factors, kernel->level("rate")) : estimates);
  };
  kernels.tuning.hypothetical *= estimates;
  scale_kernel("ll", kernels.ll.rate);
  if (kernels.ll128) {
    scale_kernel("ll128", kernels.ll128->rate);
  }
  if (kernels.nvls) {
    scale_kernel("nvls", kernels.nvls->rate);
  }
}

}  // namespace

RateFactors rate_factors(YamlFile& file, std::string_view link) {
  const std::optional<BytesPerSecond> nominal = nominal_rate(file.root(), link);
  RateFactors factors{1.0};
  for (int level = 1; level <= file.bases(); ++level) {
    const std::optional<BytesPerSecond> inherited = nominal_rate(file.base_root(level), link);
    const double factor = nominal && inherited ? nominal->value / inherited->value : 1.0;
    if (!is_rate_factor(factor)) {
      file.root().map(link).mistake(
          "nominal_rate", fmt::format("{} differs from the {} of the extended file by a factor of more than {}; "
                                      "correct it, or extend a file with similar links",
                                      bandwidth_in_words(*nominal), bandwidth_in_words(*inherited), max_rate_factor));
    }
    factors.push_back(is_rate_factor(factor) ? factor : 1.0);
  }
  return factors;
}

std::vector<int> nics_by_level(YamlFile& file) {
  const auto nics_in = [](YamlMap root) {
    return static_cast<int>(parse_count(text_in(root.optional_value("network"), "nics_per_node")).value_or(0));
  };
  const int nics = nics_in(file.root());
  std::vector<int> counts{nics};
  for (int level = 1; level <= file.bases(); ++level) {
    const int inherited = nics_in(file.base_root(level));
    counts.push_back(inherited > 0 ? inherited : nics);
  }
  return counts;
}

void scale_inherited(YamlMap map, std::string_view key, Parameter<BytesPerSecond>& rate, const RateFactors& factors) {
  scale(rate, factor_at(factors, map.level(key)));
}

void scale_inherited(YamlMap map, PeerParameters& peer, const RateFactors& factors) {
  scale_inherited(map, map.has("aggregate_rate") ? "aggregate_rate" : "rate", peer.aggregate_rate, factors);
  scale_inherited(map, "rate", peer.rate, factors);
  if (peer.small) {
    scale_inherited(map.map("small"), "rate", peer.small->rate, factors);
  }
}

void scale_inherited(YamlMap map, CollectiveParameters& collective, const RateFactors& factors) {
  if (std::ranges::all_of(factors, [](double factor) { return factor == 1.0; })) {
    return;
  }
  const std::optional<YamlMap> nccl = map.optional_map("nccl");
  const int level_of_nccl = nccl ? std::min(nccl->level("channels"), nccl->level("channel_rate")) : 0;
  const double estimates = factor_at(factors, level_of_nccl);
  scale(collective.rate, map.has("rate") ? factor_at(factors, map.level("rate")) : estimates);
  change_shared(collective.nccl, [&](NcclKernels& kernels) { scale_kernels(*nccl, kernels, factors, estimates); });
  change_shared(collective.all_to_all, [&](AllToAllParameters& direct) {
    YamlMap direct_map = map.map("all_to_all");
    scale_inherited(direct_map.map("small"), "rate", direct.small.rate, factors);
    scale_inherited(direct_map.map("large"), "rate", direct.large.rate, factors);
  });
  each_algorithm([&](const auto& entry) {
    change_shared(collective.*entry.member,
                  [&](auto& algorithm) { scale_described(map.map(entry.key), algorithm, factors); });
  });
}

}  // namespace commfuse
