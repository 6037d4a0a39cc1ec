// SPDX-License-Identifier: Apache-2.0
#include "reports/html/study_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "model/math/functions.h"
#include "reports/figure/agreement.h"
#include "reports/figure/breakdown.h"
#include "reports/figure/distribution.h"
#include "reports/figure/markup.h"
#include "reports/figure/tornado.h"
#include "reports/figure/wording.h"
#include "reports/html/page_frame.h"

namespace commfuse::reports {

namespace {

std::string quiet(std::string_view text) { return fmt::format("<p class=\"quiet\">{}</p>\n", text); }

std::string sampled(const PointStudy& study, Charts& charts) {
  if (study.samples.empty()) {
    return quiet("No jitter was asked for, so there are no percentiles; add --jitter and --samples to the run.");
  }
  return charts.add(distribution_figure(study.samples), "How often a step takes how long") +
         quiet(fmt::format("{} runs of each schedule under the same draws. Bands: where each percentile lies with 95% "
                           "confidence, by order statistics.",
                           study.samples.front().sorted.size()));
}

std::string hangs_on(const PointStudy& study, Charts& charts) {
  if (!study.explanation || !has_effects(*study.explanation)) {
    return quiet("No parameter behind these times has an error, so nothing says how sure they are.");
  }
  return charts.add(tornado_figure(*study.explanation), "Sensitivity of the time") +
         quiet("Each parameter, and what each fit leaves, one standard error up and down, everything else as it is.");
}

}  // namespace

std::string study_section(const PointStudy& study, Charts& charts) {
  std::vector<TracedRun> predicted;
  std::copy_if(study.runs.begin(), study.runs.end(), std::back_inserter(predicted),
               [](const TracedRun& run) { return !run.measured; });
  if (predicted.empty()) {
    return {};
  }
  const ResultRow& row = predicted.front().row;
  std::string html =
      section_head("point", "One point, taken apart") +
      quiet(escaped(fmt::format("{} {} on {}, {}.", row.model, row.scope, machine_in_words(row), point_of(row))));
  html += "<h3>What the time is made of</h3>\n" + charts.add(breakdown_figure(predicted), "What the time is made of");
  html += "<h3>Jitter</h3>\n" + sampled(study, charts);
  return html + "<h3>How sure the time is</h3>\n" + hangs_on(study, charts) + "</section>\n";
}

std::string parameters_table(const Explanation& explanation) {
  std::string rows;
  for (const Hold& hold : explanation.holds) {
    if (hold.provenance) {
      rows += fmt::format(
          "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td>{}</td><td>{:+.2f}%</td><td "
          "class=\"words source\">{}</td></tr>\n",
          escaped(hold.name), name_of(*hold.provenance), percent(hold.standard_error), 100.0 * math::expm1(hold.effect),
          escaped(hold.source.empty() ? "\u2013" : hold.source));
    }
  }
  return rows.empty()
             ? std::string{}
             : fmt::format(
                   "<div class=\"scroll\" role=\"region\" aria-label=\"Parameters\" tabindex=\"0\">\n<table "
                   "class=\"parameters\">\n<caption>Parameters behind the time of {}, {}</caption>\n<thead><tr><th "
                   "scope=\"col\">Parameter</th><th scope=\"col\" class=\"words\">Kind</th><th scope=\"col\">Standard "
                   "error</th><th scope=\"col\">Moves the time by</th><th scope=\"col\" "
                   "class=\"words\">Source</th></tr>"
                   "</thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
                   escaped(label_of(explanation.row)), escaped(point_of(explanation.row)), rows);
}

std::string agreement_section(std::span<const MeasuredPair> pairs, Charts& charts) {
  if (pairs.empty()) {
    return {};
  }
  return section_head("measured", "Predicted against measured") +
         charts.add(agreement_figure(pairs), "Predicted against measured") +
         quiet("Marks: the median round. Lines: where eight of ten rounds lie.") + "</section>\n";
}

std::string fits_section(std::span<const FitCheck> fits, Charts& charts) {
  if (fits.empty()) {
    return {};
  }
  std::string html =
      section_head("fits", "How well the model fits single operations") +
      quiet("Each mark is a measured row. Held back: rows that no fit has seen. Beyond 50% marks stand at the edge.");
  for (std::size_t i = 0; i < fits.size(); ++i) {
    html += charts.add(residual_figure(fits[i], fmt::format("fit-{}", i + 1)), "Residuals, " + fits[i].name);
  }
  return html + "</section>\n";
}

}  // namespace commfuse::reports
