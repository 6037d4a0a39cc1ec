// SPDX-License-Identifier: Apache-2.0
#include "reports/html/charts.h"

#include <fmt/format.h>

#include "reports/figure/figure_json.h"
#include "reports/figure/markup.h"
#include "reports/figure/svg.h"
#include "reports/html/blocks.h"

namespace commfuse::reports {

namespace {

std::string figure_html(const Figure& figure, std::string_view about, std::string_view attribute) {
  const std::string_view wide = figure.plot_width > 0.0 ? "" : " wide";
  return fmt::format(
      "<figure data-{}=\"{}\"><figcaption><span>{}</span></figcaption>\n<div class=\"scroll cf-static{}\" "
      "role=\"region\" aria-label=\"{}\" tabindex=\"0\">\n{}</div></figure>\n",
      attribute, figure.id, escaped(figure.title), wide, escaped(about), svg_in_page(figure));
}

}  // namespace

std::string Charts::add(const Figure& figure, std::string_view about) {
  figures_.push_back(figure);
  drawn_.push_back(figure_json(figure));
  return figure_html(figure, about, "figure");
}

std::string Charts::add_timeline(const Figure& figure, std::string_view about, std::string_view block) {
  figures_.push_back(figure);
  blocks_ += block_of(figure.id, block);
  return figure_html(figure, about, "timeline");
}

std::string Charts::blocks() const {
  return blocks_ + block_of("figures", fmt::format("[{}]", fmt::join(drawn_, ",\n")));
}

}  // namespace commfuse::reports
