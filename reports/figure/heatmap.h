// SPDX-License-Identifier: Apache-2.0
// Maps over sequence length and ranks. A large map shows evenly spread points; its title covers all points.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "model/analysis/verdict.h"
#include "model/record/result.h"
#include "reports/figure/figure.h"
#include "reports/savings.h"

namespace commfuse::reports {

/// Colours for shares of the baseline's time: from 0 to the largest saving if overlap never loses, else from -s to s,
/// where s is the larger of the largest loss and the largest saving.
class SavingScale {
 public:
  explicit SavingScale(std::string baseline = "serial") : baseline_(std::move(baseline)) {}
  /// Ignores points that are too close to call, which have no colour of the scale.
  void add(double saved, Pays pays);
  [[nodiscard]] double level(double saved) const;
  /// Returns nothing if no cell has a colour of the scale.
  [[nodiscard]] std::optional<LevelScale> scale() const;

 private:
  std::string baseline_;
  double largest_ = 0.01;
  bool loses_ = false;
  bool is_used_ = false;
};

/// Formats a share: "+21%", "\u22125%", "0%".
std::string signed_share(double share);

/// Returns the legend of cells that are too close to call. Without a scale, it says what the numbers are.
std::string too_close_in_words(const std::optional<LevelScale>& scale, std::string_view baseline);

/// Returns the width of the plot of a map, in pixels: wide enough for the title of its x axis, however few its columns.
double map_width(std::size_t columns);

/// Draws the MFU of one strategy, its fastest schedule if a point has several. The colours cover the MFU of all `rows`,
/// so maps of several strategies made from the same rows are comparable. Points without a result are crossed out.
/// Requires rows that differ in seq, ranks and strategy only.
Figure mfu_heatmap(std::span<const ResultRow> rows, std::string_view strategy, std::string id = "mfu");

/// Draws the MFU of one strategy minus the best MFU of the other strategies, in percentage points, with a frame if the
/// two tie.
Figure mfu_difference(std::span<const ResultRow> rows, std::string_view strategy, std::string id = "mfu-difference",
                      const VerdictRule& rule = {});

/// Draws the saving of the recommended schedule against serial (reports/savings.h), as a share of serial's time; grey
/// if it is too close to call, crossed out if either has no result. Requires rows that differ in seq, ranks and
/// strategy only.
Figure saving_map(std::span<const ResultRow> rows, std::string id = "saving", const VerdictRule& rule = {});

}  // namespace commfuse::reports
