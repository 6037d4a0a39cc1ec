// SPDX-License-Identifier: Apache-2.0
// What the fit of a kind of op leaves, and over which sizes somebody looked.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace commfuse {

/// A product has m, n and k; an attention has seq; messages have bytes; collectives have ranks as well.
enum class FitSize : std::uint8_t { m, n, k, seq, bytes, ranks };

inline constexpr std::array all_fit_sizes{FitSize::m,   FitSize::n,     FitSize::k,
                                          FitSize::seq, FitSize::bytes, FitSize::ranks};

constexpr std::string_view name_of(FitSize size) {
  switch (size) {
    case FitSize::m: return "m";
    case FitSize::n: return "n";
    case FitSize::k: return "k";
    case FitSize::seq: return "seq";
    case FitSize::bytes: return "bytes";
    case FitSize::ranks: return "ranks";
  }
  return "";
}

/// What limits an op. How far off a fit is differs more by this than by any size.
enum class Limit : std::uint8_t {
  latency,    ///< Launch, ramp and floor take at least half of the time.
  bandwidth,  ///< HBM traffic, or the wires of a message.
  few_tiles,  ///< The tiles do not fill the SMs once, or the k loop is split until they do.
  compute,
};

inline constexpr std::array all_limits{Limit::latency, Limit::bandwidth, Limit::few_tiles, Limit::compute};

constexpr std::string_view name_of(Limit limit) {
  switch (limit) {
    case Limit::latency: return "latency";
    case Limit::bandwidth: return "bandwidth";
    case Limit::few_tiles: return "few_tiles";
    case Limit::compute: return "compute";
  }
  return "";
}

/// A factor of the residual for each limit.
using ByLimit = std::array<double, all_limits.size()>;
inline constexpr ByLimit alike_by_limit{1.0, 1.0, 1.0, 1.0};

/// Both ends were measured.
struct SeenRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  friend bool operator==(const SeenRange&, const SeenRange&) = default;
};

struct FitScope {
  /// Standard error of one op's price, relative, beside those of the parameters: two thirds of the rows that the fit
  /// had not seen were off by no more. The default is judgement, for what nobody has fitted.
  double residual = 0.15;
  ByLimit by_limit = alike_by_limit;                                  ///< Times residual: that of ops with this limit.
  std::array<std::optional<SeenRange>, all_fit_sizes.size()> seen{};  ///< Nothing: nobody looked.

  [[nodiscard]] const std::optional<SeenRange>& range(FitSize size) const {
    return seen[static_cast<std::size_t>(size)];
  }
  /// Standard error of an op with this limit, relative, at most 1.
  [[nodiscard]] double residual_at(Limit limit) const {
    return std::min(1.0, residual * by_limit[static_cast<std::size_t>(limit)]);
  }
  friend bool operator==(const FitScope&, const FitScope&) = default;
};

}  // namespace commfuse
