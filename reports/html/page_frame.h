// SPDX-License-Identifier: Apache-2.0
// Beginning and end of every page: content policy, style, title, links to its sections.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "reports/figure/figure.h"

namespace commfuse::reports {

struct SectionLink {
  std::string_view id;  // "verdict"
  std::string_view text;
};

/// Returns everything up to the first section. The "Skip to" link leads to the section of the first of `links`, which
/// must not be empty. `scripts` goes into the content policy as the value of script-src; if empty, no script may run.
/// `subject` follows the title.
std::string page_head(std::string_view title, std::span<const SectionLink> links, std::string_view scripts = {},
                      std::string_view subject = {});
/// Returns everything after the last section. `words` is plain text, not markup.
std::string page_foot(std::string_view words);

/// Opens a <section> with its heading. `title` is markup.
std::string section_head(std::string_view id, std::string_view title);

/// Returns a figure as wide as the page, which scrolls on small screens. `about` is markup that names the scrolling
/// content to screen readers.
std::string wide_figure(const Figure& figure, std::string_view about);
/// Returns a wide drawing and a narrow one for phones; only one is visible. Their ids must differ.
std::string figure_in_two_widths(const Figure& wide, const Figure& narrow, std::string_view about);

}  // namespace commfuse::reports
