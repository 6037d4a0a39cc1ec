// SPDX-License-Identifier: Apache-2.0
#include "sim/expect/nccl_version.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "model/text/quantity.h"

namespace commfuse::expect {

std::optional<NcclVersion> nccl_version_named(std::string_view text) {
  constexpr std::int64_t largest = 9999;
  std::array<int, 3> parts{};
  std::size_t count = 0;
  for (std::size_t at = 0; at <= text.size(); ++count) {
    const std::size_t end = std::min(text.find('.', at), text.size());
    const std::optional<std::int64_t> part = parse_integer(std::string(text.substr(at, end - at)));
    if (count == parts.size() || !part || *part < 0 || *part > largest) {
      return std::nullopt;
    }
    parts.at(count) = static_cast<int>(*part);
    at = end + 1;
  }
  return count < 2 ? std::nullopt : std::optional(NcclVersion{parts[0], parts[1], parts[2]});
}

std::optional<NcclVersion> fitted_version(const Machine& machine) {
  const Parameter<BytesPerSecond>& rate = machine.link.collective.rate;
  constexpr std::string_view mark = "NCCL ";
  const std::size_t at = rate.source.rfind(mark);
  if (rate.provenance != Provenance::fitted || at == std::string::npos) {
    return std::nullopt;
  }
  const std::string_view version_text = std::string_view(rate.source).substr(at + mark.size());
  return nccl_version_named(version_text.substr(0, version_text.find_first_not_of("0123456789.")));
}

SoftwareErrors errors_of(const Machine& machine, const NcclVersion& version) {
  const std::optional<NcclVersion> fitted = fitted_version(machine);
  const bool is_fitted = fitted && fitted->major == version.major && fitted->minor == version.minor;
  return is_fitted ? SoftwareErrors{} : between_versions;
}

bool can_have_nvls(const NcclVersion& version) { return version >= NcclVersion{2, 17, 0}; }

std::string name_of(const NcclVersion& version) {
  return version.patch == 0 ? fmt::format("{}.{}", version.major, version.minor)
                            : fmt::format("{}.{}.{}", version.major, version.minor, version.patch);
}

}  // namespace commfuse::expect
