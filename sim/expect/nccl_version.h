// SPDX-License-Identifier: Apache-2.0
// Versions of NCCL, and the errors of expected times for another version than that of the fit.
#pragma once

#include <compare>
#include <optional>
#include <string>
#include <string_view>

#include "model/expect/expectation.h"
#include "model/hardware/machine.h"

namespace commfuse::expect {

struct NcclVersion {
  int major = 0;
  int minor = 0;
  int patch = 0;
  friend auto operator<=>(const NcclVersion&, const NcclVersion&) = default;
};

/// Reads "2.23" and "2.28.9"; nullopt for any other text.
std::optional<NcclVersion> nccl_version_named(std::string_view text);

/// The version to whose times the collectives of a machine were fitted: the source of link.collective.rate names it, as
/// in "fitted: nccl_h100.csv, NCCL 2.29.2". nullopt if it does not.
std::optional<NcclVersion> fitted_version(const Machine& machine);

/// Errors between two versions: root mean square of medians over three pairs of versions on H100 and B200, every pair
/// counting once (docs/decisions/0077).
inline constexpr SoftwareErrors between_versions{.bandwidth = 0.03, .latency = 0.07};

/// None for the fitted version, whatever its patch; between_versions for others, and where the fitted one is not known.
SoftwareErrors errors_of(const Machine& machine, const NcclVersion& version);

/// NVLS, sums in the switch, came with NCCL 2.17.
bool can_have_nvls(const NcclVersion& version);

/// "2.28.9"; "2.23" without a patch.
std::string name_of(const NcclVersion& version);

}  // namespace commfuse::expect
