// SPDX-License-Identifier: Apache-2.0
// Versions of NCCL, and the errors of expected times for a version other than the fitted one.
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

/// Parses strings such as "2.23" and "2.28.9". Returns nullopt for any other string.
std::optional<NcclVersion> nccl_version_named(std::string_view text);

/// Returns the NCCL version of the measurements to which the machine's collectives were fitted, as named in the source
/// of link.collective.rate ("fitted: nccl_h100.csv, NCCL 2.29.2"). Returns nullopt if the rate is not fitted or its
/// source names no version.
std::optional<NcclVersion> fitted_version(const Machine& machine);

/// Relative error when the NCCL version differs: the difference in median times, as the root mean square over three
/// pairs of versions on H100 and B200, equally weighted (docs/decisions/0077).
inline constexpr SoftwareErrors between_versions{.bandwidth = 0.03, .latency = 0.07};

/// Returns no errors for the fitted version, regardless of the patch number; returns between_versions for any other
/// version, and if the fitted version is unknown.
SoftwareErrors errors_of(const Machine& machine, const NcclVersion& version);

/// Returns whether the version has NVLS (sums in the switch), which came with NCCL 2.17.
bool can_have_nvls(const NcclVersion& version);

/// Returns for example "2.28.9", or "2.23" if the patch number is 0.
std::string name_of(const NcclVersion& version);

}  // namespace commfuse::expect
