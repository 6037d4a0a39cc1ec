// SPDX-License-Identifier: Apache-2.0
#include "reports/html/page_frame.h"

#include <fmt/format.h>

#include "reports/figure/markup.h"
#include "reports/figure/svg.h"
#include "reports/html/page_style.h"

namespace commfuse::reports {

namespace {

/// Returns a policy that allows no network, no plug-ins, no forms, and no script except those listed by digest, so any
/// other text in the page is only text.
std::string content_policy(std::string_view scripts) {
  return fmt::format(
      "default-src 'none'; {}style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'",
      scripts.empty() ? std::string{} : fmt::format("script-src {}; ", scripts));
}

}  // namespace

std::string page_head(std::string_view title, std::span<const SectionLink> links, std::string_view scripts,
                      std::string_view subject) {
  const std::string name = escaped(title);
  std::string html = fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<meta name=\"color-scheme\" content=\"light "
      "dark\"/>\n<title>{}</title>\n<style>\n{}</style>\n<style id=\"figure-style\">\n{}</style>\n</head>\n<body>\n",
      content_policy(scripts), name, page_style(), figure_style());
  html +=
      fmt::format("<div class=\"page\">\n<a class=\"skip\" href=\"#{}\">Skip to the {}</a>\n<header>\n<h1>{}</h1>\n",
                  links.front().id, links.front().id, name);
  html += subject.empty() ? std::string{} : fmt::format("<p class=\"subject\">{}</p>\n", escaped(subject));
  html += "<nav aria-label=\"Sections\"><ul>";
  for (const SectionLink& link : links) {
    html += fmt::format("<li><a href=\"#{}\">{}</a></li>", link.id, link.text);
  }
  return html + "</ul></nav>\n</header>\n<main>\n";
}

std::string page_foot(std::string_view words) {
  return fmt::format("</main>\n<footer>{}</footer>\n</div>\n</body>\n</html>\n", escaped(words));
}

std::string section_head(std::string_view id, std::string_view title) {
  return fmt::format("<section aria-labelledby=\"{0}\">\n<h2 id=\"{0}\">{1}</h2>\n", id, title);
}

std::string wide_figure(const Figure& figure, std::string_view about) {
  return fmt::format(
      "<figure><figcaption>{}</figcaption>\n<div class=\"scroll wide\" role=\"region\" aria-label=\"{}\" "
      "tabindex=\"0\">\n{}</div></figure>\n",
      escaped(figure.title), about, svg_in_page(figure));
}

std::string figure_in_two_widths(const Figure& wide, const Figure& narrow, std::string_view about) {
  return fmt::format(
      "<figure><figcaption>{}</figcaption>\n<div class=\"scroll wide on-wide\" role=\"region\" aria-label=\"{}\" "
      "tabindex=\"0\">\n{}</div>\n<div class=\"on-narrow\">\n{}</div></figure>\n",
      escaped(wide.title), about, svg_in_page(wide), svg_in_page(narrow));
}

}  // namespace commfuse::reports
