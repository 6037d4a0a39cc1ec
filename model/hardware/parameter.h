// SPDX-License-Identifier: Apache-2.0
// A number of the cost model with its error and its source.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace commfuse {

/// Origin of a number, from weakest to strongest: assumed; a data sheet or a paper; a fit to a public table; this
/// project's own measurement.
enum class Provenance : std::uint8_t { prior, published, fitted, measured };

inline constexpr std::array all_provenances{Provenance::prior, Provenance::published, Provenance::fitted,
                                            Provenance::measured};

/// States for each Provenance, in order, whether it occurs.
using Provenances = std::array<bool, all_provenances.size()>;

constexpr std::string_view name_of(Provenance provenance) {
  switch (provenance) {
    case Provenance::prior: return "prior";
    case Provenance::published: return "published";
    case Provenance::fitted: return "fitted";
    case Provenance::measured: return "measured";
  }
  return "";
}

constexpr std::optional<Provenance> provenance_named(std::string_view name) {
  for (const Provenance provenance : all_provenances) {
    if (name_of(provenance) == name) {
      return provenance;
    }
  }
  return std::nullopt;
}

template <class T>
struct Parameter {
  T value{};
  double standard_error = 0.0;  ///< Relative to value; 0 means exact or unknown.
  Provenance provenance = Provenance::prior;
  std::string source;  ///< The part after the kind in `provenance: "fitted: table.csv"`.
};

}  // namespace commfuse
