// SPDX-License-Identifier: Apache-2.0
// What every page begins and ends with: the policy that lets nothing in, the style, the title, links to its sections.
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

/// Up to the first section. The first link is where "skip" leads. `scripts` are the sources of scripts that may run, as
/// content policies name them; empty: none. `subject` says below the title what the page is of. Requires a link.
std::string page_head(std::string_view title, std::span<const SectionLink> links, std::string_view scripts = {},
                      std::string_view subject = {});
/// After the last section; any text may stand in the words.
std::string page_foot(std::string_view words);

/// Opens a <section> with its heading. `title` is markup already.
std::string section_head(std::string_view id, std::string_view title);

/// A figure as wide as the page, which scrolls on small screens. `about`, markup already, says to screen readers what
/// scrolls.
std::string wide_figure(const Figure& figure, std::string_view about);
/// Returns the figure with a second drawing for telephones, where the wide one is hidden. Their ids differ.
std::string figure_in_two_widths(const Figure& wide, const Figure& narrow, std::string_view about);

}  // namespace commfuse::reports
