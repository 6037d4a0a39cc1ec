// SPDX-License-Identifier: Apache-2.0
// Residual of the fit of a kind of op, and the sizes over which the op was measured.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace commfuse {

/// Sizes of ops. A GEMM has m, n and k; an attention has seq; messages have bytes; collectives also have ranks.
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

/// The factor that limits the speed of an op. The residual of a fit depends on it more than on any size.
enum class Limit : std::uint8_t {
  latency,    ///< Launch, ramp and floor take at least half of the time.
  bandwidth,  ///< HBM traffic, or the wires of a message.
  few_tiles,  ///< One wave of tiles, or a split k loop.
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

/// Factor on the residual for each limit.
using ByLimit = std::array<double, all_limits.size()>;
inline constexpr ByLimit ones_by_limit{1.0, 1.0, 1.0, 1.0};

/// Range whose ends were both measured.
struct SeenRange {
  std::int64_t least = 0;
  std::int64_t most = 0;
  friend bool operator==(const SeenRange&, const SeenRange&) = default;
};

struct FitScope {
  /// Relative standard error of one op's price that the errors of the parameters do not explain: two thirds of the rows
  /// that the fit had not seen were off by no more than this. The default is assumed, for ops without a fit.
  double residual = 0.15;
  ByLimit by_limit = ones_by_limit;                                   ///< Factor on `residual`, by limit.
  std::array<std::optional<SeenRange>, all_fit_sizes.size()> seen{};  ///< Measured sizes; empty if none were.

  [[nodiscard]] const std::optional<SeenRange>& range(FitSize size) const {
    return seen[static_cast<std::size_t>(size)];
  }
  /// Returns the relative standard error of an op with this limit, at most 1.
  [[nodiscard]] double residual_at(Limit limit) const {
    return std::min(1.0, residual * by_limit[static_cast<std::size_t>(limit)]);
  }
  friend bool operator==(const FitScope&, const FitScope&) = default;
};

}  // namespace commfuse
