// SPDX-License-Identifier: Apache-2.0
// Features of NCCL by version. The versions of header and library may differ, so a feature requires that both have it.
// Puts are the exception: their functions are looked up by name, with types of our own if the header has none.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Returns a version in the form of NCCL_VERSION_CODE and ncclGetVersion() since 2.9: 22809 is 2.28.9.
constexpr int nccl_code(int major, int minor, int patch) { return major * 10000 + minor * 100 + patch; }
/// Returns a string such as "2.28.9".
std::string nccl_in_words(int code);

/// Older versions cannot split a communicator.
inline constexpr int oldest_nccl = nccl_code(2, 18, 0);

enum class NcclFeature : std::uint8_t {
  registration,     ///< ncclMemAlloc, ncclCommRegister
  implicit_order,   ///< NCCL_LAUNCH_ORDER_IMPLICIT: lanes run concurrently in the order in which the host issued them
  cta_policy,       ///< ncclConfig_t.CTAPolicy
  zero_cta_policy,  ///< collectives by copy engines
  all_to_all,       ///< ncclAlltoAll
  graph_usage,      ///< ncclConfig_t.graphUsageMode
  windows,          ///< ncclCommWindowRegister, NCCL_WIN_COLL_SYMMETRIC
  put_signal,       ///< ncclPutSignal, ncclSignal, ncclWaitSignal
};

/// Returns the first version that has the feature.
int first_with(NcclFeature feature);

struct NcclVersions {
  int header = 0;   ///< Version with which the module was compiled.
  int library = 0;  ///< Version that it loaded.
};
bool has(const NcclVersions& versions, NcclFeature feature);

/// Since this version NCCL runs captured operations of all communicators one after another.
/// NCCL_GRAPH_STREAM_ORDERING=0 disables that, but only for programs that run one operation at a time on a GPU, unlike
/// our lanes.
inline constexpr int first_with_ordered_graphs = nccl_code(2, 30, 0);

/// Returns why these versions cannot be used with these options, as a sentence; empty if they can.
std::string refused(const NetworkOptions& options, const NcclVersions& versions);

/// Returns true if memory is registered as symmetric windows: on request, always for puts, which need windows, and
/// always for collectives without CTAs, because NCCL uses kernels with CTAs for other memory.
bool registers_windows(const NetworkOptions& options, const NcclVersions& versions);

/// Returns a sentence for each limitation of these versions that matters with these options.
std::vector<std::string> notes_on(const NetworkOptions& options, const NcclVersions& versions);

/// A variable that NCCL reads when its first communicator is made, once for the whole process. With `forced`, it
/// overrides the user's value.
struct NcclVariable {
  std::string name;
  std::string value;
  bool forced = false;
  friend bool operator==(const NcclVariable&, const NcclVariable&) = default;
};
std::vector<NcclVariable> process_variables(const NetworkOptions& options);
/// Returns NCCL_ALGO for making a communicator that must not use NVLS; empty otherwise.
std::string algorithms_without_nvls(const NetworkOptions& options);
/// Returns ncclConfig_t.graphUsageMode for communicators whose operations are captured; nothing if NCCL's default
/// applies: 2, which lets graphs mix with other operations. Mode 1 suffices here, and avoids the graph nodes that order
/// captured and other operations.
std::optional<int> graph_usage_mode(const NetworkOptions& options, const NcclVersions& versions);

}  // namespace commfuse::validate
