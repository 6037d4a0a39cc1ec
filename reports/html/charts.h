// SPDX-License-Identifier: Apache-2.0
// Figures on a page: each as a static drawing, which scripts replace by one that zooms and tells what a pointer is on.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "reports/figure/figure.h"

namespace commfuse::reports {

class Charts {
 public:
  /// A <figure>. `about`, plain text, names what scrolls.
  std::string add(const Figure& figure, std::string_view about);
  /// A figure that our own canvas replaces; `block` is what timeline_block() makes, under the figure's id.
  std::string add_timeline(const Figure& figure, std::string_view about, std::string_view block);

  /// In the order of the page.
  [[nodiscard]] const std::vector<Figure>& figures() const { return figures_; }
  /// All that scripts draw from, to stand behind the figures.
  [[nodiscard]] std::string blocks() const;

 private:
  std::vector<Figure> figures_;
  std::vector<std::string> drawn_;  // by the library: JSON
  std::string blocks_;
};

}  // namespace commfuse::reports
