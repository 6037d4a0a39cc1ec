// SPDX-License-Identifier: Apache-2.0
// Subject of a report's results, and the requested settings.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/record/row_table.h"
#include "model/record/step_row.h"

namespace commfuse::reports {

/// Values of the settings of all rows, each once, in order of first appearance.
struct RequestedSettings {
  std::vector<std::pair<std::string, std::vector<std::string>>> fields;  ///< {"Model", {"llama-3.1-8b", ...}}
  std::vector<std::string> hardware;                                     ///< Names without the rates of links.
  std::vector<std::string> links;                                        ///< {"x1", "450 GB/s", ...}
  std::vector<std::string> networks;
  std::vector<std::string> conditions;  ///< Each different list of unusual settings: {"", ", faults slow-rank"}.
  [[nodiscard]] const std::vector<std::string>& values(std::string_view name) const;
};
RequestedSettings requested_settings(const RowTable& rows);

/// Returns the page's subject, below its title: "llama-3.1-70b mlp on h100-sxm, batch 1, bf16; ranks 2, 4, 8; seq 1K to
/// 128K (8 values); 24 points, predicted". Names conditions that all rows share. Empty without rows.
std::string subject_in_words(const RequestedSettings& settings, std::size_t points);
/// Returns the line below the title of a page of whole models.
std::string subject_in_words(const std::vector<StepRow>& models);

/// Returns the settings as a definition list, with a description of each strategy.
std::string settings_html(const RequestedSettings& settings);
/// Returns the kinds of provenance on which the rows depend: "prior", "fitted".
std::vector<std::string> kinds_of(const RowTable& rows);
/// Returns the digests of all schedules in a collapsed section; empty without schedules.
std::string digests_html(const RowTable& rows);

}  // namespace commfuse::reports
