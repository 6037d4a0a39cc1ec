// SPDX-License-Identifier: Apache-2.0
// Figures on a page: each is a static drawing, which scripts replace by one that zooms and describes the value at the
// pointer.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/figure/figure.h"

namespace commfuse::reports {

class Charts {
 public:
  /// Returns a <figure>. `about` is plain text that names the scrolling content.
  std::string add(const Figure& figure, std::string_view about);
  /// Returns a figure that the page's own canvas replaces; `block` is the result of timeline_block(), under the
  /// figure's id.
  std::string add_timeline(const Figure& figure, std::string_view about, std::string_view block);

  /// Returns the figures in the order of the page.
  [[nodiscard]] const std::vector<Figure>& figures() const { return figures_; }
  /// Returns the data for all scripts, which comes after the figures.
  [[nodiscard]] std::string blocks() const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::string> drawn_;  // JSON of the figures that the chart library draws
  std::string blocks_;
};

}  // namespace commfuse::reports
