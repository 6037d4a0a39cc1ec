// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/nccl_features.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse::validate {

std::string nccl_in_words(int code) { return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100); }

int first_with(NcclFeature feature) {
  switch (feature) {
    case NcclFeature::registration: return nccl_code(2, 19, 0);
    case NcclFeature::implicit_order: return nccl_code(2, 26, 0);
    case NcclFeature::cta_policy:
    case NcclFeature::windows: return nccl_code(2, 27, 0);
    case NcclFeature::zero_cta_policy:
    case NcclFeature::all_to_all: return nccl_code(2, 28, 3);
    case NcclFeature::graph_usage:
    case NcclFeature::put_signal: return nccl_code(2, 29, 2);
  }
  return 0;
}

bool has(const NcclVersions& versions, NcclFeature feature) {
  if (feature == NcclFeature::put_signal) {
    return versions.library >= first_with(feature) && has(versions, NcclFeature::windows);
  }
  return std::min(versions.header, versions.library) >= first_with(feature);
}

std::string refused(const NetworkOptions& options, const NcclVersions& versions) {
  if (versions.library < oldest_nccl) {
    return fmt::format("NCCL {} cannot give every lane a communicator; install 2.18 or later",
                       nccl_in_words(versions.library));
  }
  if (options.puts && options.graphs) {
    return "the host counts signals of puts, which is impossible in a graph; use another --issue, or exchange by "
           "messages";
  }
  if (options.puts && !has(versions, NcclFeature::put_signal)) {
    return versions.library < first_with(NcclFeature::put_signal)
               ? fmt::format("NCCL {} has no ncclPutSignal; install {} or later, or exchange by messages",
                             nccl_in_words(versions.library), nccl_in_words(first_with(NcclFeature::put_signal)))
               : fmt::format(
                     "the plugin was compiled for NCCL {}, which has no windows to put into; compile it for "
                     "{} or later, or exchange by messages",
                     nccl_in_words(versions.header), nccl_in_words(first_with(NcclFeature::windows)));
  }
  return "";
}

bool registers_windows(const NetworkOptions& options, const NcclVersions& versions) {
  const bool without_ctas = options.cta_policy == 2 && has(versions, NcclFeature::zero_cta_policy);
  const bool requested = options.registered && options.windows && has(versions, NcclFeature::windows);
  return options.puts || without_ctas || requested;
}

std::vector<std::string> notes_on(const NetworkOptions& options, const NcclVersions& versions) {
  std::vector<std::string> notes;
  const auto note = [&](bool is_requested, NcclFeature feature, std::string_view without) {
    if (is_requested && !has(versions, feature)) {
      notes.push_back(fmt::format("NCCL {} {}; use {} or later",
                                  nccl_in_words(std::min(versions.header, versions.library)), without,
                                  nccl_in_words(first_with(feature))));
    }
  };
  note(options.registered, NcclFeature::registration, "cannot register buffers, so they are copied");
  if (has(versions, NcclFeature::registration)) {
    note(options.windows, NcclFeature::windows, "has no symmetric windows, so buffers are registered without windows");
  }
  note(options.cta_policy != 0, NcclFeature::cta_policy, "has no CTA policy, so the default is used");
  if (options.cta_policy == 2 && has(versions, NcclFeature::cta_policy)) {
    note(true, NcclFeature::zero_cta_policy, "has no collectives without CTAs, so the default is used");
  }
  note(true, NcclFeature::implicit_order, "keeps no order among communicators, so lanes may wait");
  note(options.graphs, NcclFeature::graph_usage,
       "adds nodes to graphs that order them among other operations, which costs time");
  if (options.graphs && versions.library >= first_with_ordered_graphs) {
    notes.push_back(
        fmt::format("NCCL {} runs captured operations one after another, so lanes wait for each other in a "
                    "graph; use another launch mode to see them overlap",
                    nccl_in_words(versions.library)));
  }
  if (versions.header / 100 != versions.library / 100) {
    notes.push_back(fmt::format("compiled for NCCL {}, running with {}", nccl_in_words(versions.header),
                                nccl_in_words(versions.library)));
  }
  return notes;
}

std::vector<NcclVariable> process_variables(const NetworkOptions& options) {
  std::vector<NcclVariable> variables{{"NCCL_LAUNCH_ORDER_IMPLICIT", "1"}};
  if (options.least_p2p_channels > 0) {
    variables.push_back({"NCCL_MIN_P2P_NCHANNELS", fmt::format("{}", options.least_p2p_channels), true});
  }
  return variables;
}

std::string algorithms_without_nvls(const NetworkOptions& options) { return options.nvls ? "" : "^NVLS,NVLSTree"; }

std::optional<int> graph_usage_mode(const NetworkOptions& options, const NcclVersions& versions) {
  return options.graphs && has(versions, NcclFeature::graph_usage) ? std::optional(1) : std::nullopt;
}

}  // namespace commfuse::validate
