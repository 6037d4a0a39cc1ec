// SPDX-License-Identifier: Apache-2.0
// What the fit of a kind of op leaves, and over which sizes somebody looked.
#pragma once

#include <array>
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
  std::array<std::optional<SeenRange>, all_fit_sizes.size()> seen{};  ///< Nothing: nobody looked.

  [[nodiscard]] const std::optional<SeenRange>& range(FitSize size) const {
    return seen[static_cast<std::size_t>(size)];
  }
  friend bool operator==(const FitScope&, const FitScope&) = default;
};

}  // namespace commfuse
