// SPDX-License-Identifier: Apache-2.0
// Figures as SVG: the same bytes for the same figure, readable in light and dark themes, printed in light colours.
#pragma once

#include <string>
#include <string_view>

#include "reports/figure/figure.h"

namespace commfuse::reports {

/// Returns a complete file, including style and background.
std::string svg(const Figure& figure);

/// Returns markup for a page that has figure_style() once and shows the title as the figure's caption.
std::string svg_in_page(const Figure& figure);

/// Returns the style rules of all figures, for a <style> element. Colour-blind readers can distinguish the colours
/// (Okabe and Ito, 2008); maps also differ in lightness.
std::string_view figure_style();

}  // namespace commfuse::reports
