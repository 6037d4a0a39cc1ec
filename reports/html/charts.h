// SPDX-License-Identifier: Apache-2.0
// Figures on a page: each is a static drawing, which scripts replace by one that zooms and describes the value at the
// pointer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Returns the figure with `subject`, the settings that tell it apart from other figures, at the start of its title and
/// in a column of its data. Without a subject, the figure is unchanged.
Figure with_subject(Figure figure, std::string_view subject);

class Charts {
 public:
  /// Returns a <figure>. `about` is plain text that names the scrolling content. `subject` is stated by the heading
  /// above the figure, so the caption omits it; a saved figure has it (with_subject).
  std::string add(const Figure& figure, std::string_view about, std::string_view subject = {});
  /// Returns a figure that the page's own canvas replaces; `block` is the result of timeline_block(), under the
  /// figure's id.
  std::string add_timeline(const Figure& figure, std::string_view about, std::string_view block,
                           std::string_view subject = {});
  /// Keeps a clause that says which figures the page leaves out, for people who see only its figures. Returns the
  /// clause.
  std::string leave_out(std::string clause);

  /// Returns the figures in the order of the page.
  [[nodiscard]] const std::vector<Figure>& figures() const { return figures_; }
  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }
  /// Returns the data for all scripts, which comes after the figures.
  [[nodiscard]] std::string blocks() const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::string> left_out_;
  std::vector<std::string> drawn_;  // JSON of the figures that the chart library draws
  std::string blocks_;
};

}  // namespace commfuse::reports
