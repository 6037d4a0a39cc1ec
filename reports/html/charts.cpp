// SPDX-License-Identifier: Apache-2.0
#include "reports/html/charts.h"

#include <fmt/format.h>

#include "reports/figure/figure_json.h"
#include "reports/figure/markup.h"
#include "reports/figure/svg.h"
#include "reports/html/blocks.h"

namespace commfuse::reports {

namespace {

std::string figure_html(const Figure& figure, std::string_view caption, std::string_view about,
                        std::string_view attribute) {
  // A figure without a plot width of its own is as wide as the page.
  const std::string_view width_class = figure.plot_width > 0.0 ? "" : " wide";
  return fmt::format(
      "<figure data-{}=\"{}\"><figcaption><span>{}</span></figcaption>\n<div class=\"scroll cf-static{}\" "
      "role=\"region\" aria-label=\"{}\" tabindex=\"0\">\n{}</div></figure>\n",
      attribute, figure.id, escaped(caption), width_class, escaped(about), svg_in_page(figure));
}

}  // namespace

Figure with_subject(Figure figure, std::string_view subject) {
  if (subject.empty()) {
    return figure;
  }
  figure.title = fmt::format("{}: {}", subject, figure.title);
  if (!figure.data.columns.empty()) {
    figure.data.columns.emplace_back("setting");
    for (std::vector<std::string>& row : figure.data.rows) {
      row.emplace_back(subject);
    }
  }
  return figure;
}

std::string Charts::add(const Figure& figure, std::string_view about, std::string_view subject) {
  figures_.push_back(with_subject(figure, subject));
  drawn_.push_back(figure_json(figures_.back()));
  return figure_html(figures_.back(), figure.title, about, "figure");
}

std::string Charts::add_timeline(const Figure& figure, std::string_view about, std::string_view block,
                                 std::string_view subject) {
  figures_.push_back(with_subject(figure, subject));
  blocks_ += block_of(figure.id, block);
  return figure_html(figures_.back(), figure.title, about, "timeline");
}

std::string Charts::leave_out(std::string clause) {
  left_out_.push_back(clause);
  return clause;
}

std::string Charts::blocks() const {
  return blocks_ + block_of("figures", fmt::format("[{}]", fmt::join(drawn_, ",\n")));
}

}  // namespace commfuse::reports
