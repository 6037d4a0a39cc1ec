// SPDX-License-Identifier: Apache-2.0
// What which version of NCCL knows (gpu.md 3.1). Header and library may differ, so a feature needs both, but for puts:
// their functions are looked for by name, with types of our own where the header has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// As NCCL_VERSION_CODE and ncclGetVersion() count, from 2.9 on: 22809 is 2.28.9.
constexpr int nccl_code(int major, int minor, int patch) { return major * 10000 + minor * 100 + patch; }
/// "2.28.9"
std::string nccl_in_words(int code);

/// Older ones cannot split a communicator.
inline constexpr int oldest_nccl = nccl_code(2, 18, 0);

enum class NcclFeature : std::uint8_t {
  registration,     ///< ncclMemAlloc, ncclCommRegister
  implicit_order,   ///< NCCL_LAUNCH_ORDER_IMPLICIT: lanes run beside each other in the order the host issued them
  cta_policy,       ///< ncclConfig_t.CTAPolicy
  zero_cta_policy,  ///< collectives by copy engines
  all_to_all,       ///< ncclAlltoAll
  graph_usage,      ///< ncclConfig_t.graphUsageMode
  windows,          ///< ncclCommWindowRegister, NCCL_WIN_COLL_SYMMETRIC
  put_signal,       ///< ncclPutSignal, ncclSignal, ncclWaitSignal
};

/// The first version that has it.
int first_with(NcclFeature feature);

struct NcclVersions {
  int header = 0;   ///< What the module was compiled with.
  int library = 0;  ///< What it found.
};
bool has(const NcclVersions& versions, NcclFeature feature);

/// From here on NCCL runs captured operations of all communicators one after another. It can be told not to
/// (NCCL_GRAPH_STREAM_ORDERING=0), but only by programs that run one operation at a time on a GPU, and lanes do not.
inline constexpr int first_with_ordered_graphs = nccl_code(2, 30, 0);

/// Why these versions cannot be used with these options, as a sentence; empty when they can.
std::string refused(const NetworkOptions& options, const NcclVersions& versions);

/// Whether memory is registered as symmetric windows. Collectives without CTAs need them, and so do puts.
bool registers_windows(const NetworkOptions& options, const NcclVersions& versions);

/// What of these options has no effect with these versions, a sentence each.
std::vector<std::string> notes_on(const NetworkOptions& options, const NcclVersions& versions);

/// Variables that NCCL reads when its first communicator is made, once for the whole process. `forced`: over what the
/// user set.
struct NcclVariable {
  std::string name;
  std::string value;
  bool forced = false;
  friend bool operator==(const NcclVariable&, const NcclVariable&) = default;
};
std::vector<NcclVariable> process_variables(const NetworkOptions& options);
/// NCCL_ALGO while a communicator is made, where it is to do without NVLS; empty otherwise.
std::string algorithms_without_nvls(const NetworkOptions& options);
/// ncclConfig_t.graphUsageMode of communicators whose operations are captured; none: NCCL's default, 2, which lets
/// graphs mix with other operations. 1 is enough here and spares the graphs the nodes that order them among other
/// operations.
std::optional<int> graph_usage_mode(const NetworkOptions& options, const NcclVersions& versions);

}  // namespace commfuse::validate
