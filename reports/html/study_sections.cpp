// SPDX-License-Identifier: Apache-2.0
#include "reports/html/study_sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <string>
#include <vector>

#include "model/analysis/percentiles.h"
#include "model/math/functions.h"
#include "model/text/decimals.h"
#include "reports/commas.h"
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

std::string jitter_html(const PointStudy& study, Charts& charts) {
  if (study.samples.empty()) {
    return quiet("No percentiles: these results are without jitter. Add --jitter default to the report.");
  }
  const std::vector<Duration>& sorted = study.samples.front().sorted;
  const auto runs = static_cast<std::int64_t>(sorted.size());
  constexpr int highest = 999;  // per mille
  return charts.add(distribution_figure(study.samples), "Percentiles of the time") +
         quiet(fmt::format(
             "{} run{} of each schedule with the same random draws. Bands: the 95% interval of each "
             "percentile, by order statistics{}.",
             with_commas(runs), runs == 1 ? "" : "s",
             percentile(sorted, highest).range ? "" : "; the highest percentiles have too few runs for an interval"));
}

std::string sensitivity_html(const PointStudy& study, Charts& charts) {
  if (!study.explanation || !has_effects(*study.explanation)) {
    return quiet(study.explanation && !study.explanation->row.makespan_error
                     ? "Unknown: these results were made with --uncertainty off."
                     : "No parameter behind these times has a standard error, so their uncertainty is unknown.");
  }
  return charts.add(tornado_figure(*study.explanation), "Sensitivity of the time") +
         quiet(
             "The change of the time when one parameter, or the residual of one fit, changes by one standard error and "
             "everything else is fixed.");
}

}  // namespace

std::string study_section(const PointStudy& study, std::string_view title, Charts& charts) {
  std::vector<TracedRun> predicted;
  std::copy_if(study.runs.begin(), study.runs.end(), std::back_inserter(predicted),
               [](const TracedRun& run) { return !run.measured; });
  if (predicted.empty()) {
    return {};
  }
  std::string html = section_head("point", "One point") + quiet(fmt::format("{}.", escaped(title)));
  html += "<h3>Parts of the time</h3>\n" + charts.add(breakdown_figure(predicted), "Parts of the time");
  html += "<h3>Jitter</h3>\n" + jitter_html(study, charts);
  return html + "<h3>Uncertainty of the time</h3>\n" + sensitivity_html(study, charts) + "</section>\n";
}

std::string parameters_table(const Explanation& explanation, std::string_view place) {
  constexpr double least = 0.00005;  // share of the time that the table would show as 0.00%
  std::string rows;
  std::vector<std::string> minor_parameters;
  for (const Hold& hold : explanation.holds) {
    if (!hold.provenance) {
      continue;
    }
    const double change = math::expm1(hold.effect);
    if (std::abs(change) < least) {
      minor_parameters.push_back(fmt::format("{} ({})", hold.name, name_of(*hold.provenance)));
      continue;
    }
    rows += fmt::format(
        "<tr><th scope=\"row\">{}</th><td class=\"words\">{}</td><td>{}</td><td>{}%</td><td "
        "class=\"words source\">{}</td></tr>\n",
        escaped(hold.name), name_of(*hold.provenance), percent(hold.standard_error),
        with_minus(with_sign(100.0 * change, 2)), escaped(hold.source.empty() ? "\u2013" : hold.source));
  }
  std::string html = rows.empty()
                         ? std::string{}
                         : fmt::format(
                               "<div class=\"scroll\" role=\"region\" aria-label=\"Parameters\" tabindex=\"0\">\n"
                               "<table class=\"parameters\">\n"
                               "<caption><span>Parameters behind the time of {}, {}</span></caption>\n"
                               "<thead><tr><th scope=\"col\">Parameter</th><th scope=\"col\" "
                               "class=\"words\">Kind</th><th scope=\"col\">Standard error</th><th scope=\"col\">Change "
                               "of the time</th><th scope=\"col\" class=\"words\">Source</th></tr></thead>\n"
                               "<tbody>\n"
                               "{}</tbody>\n"
                               "</table>\n"
                               "</div>\n",
                               escaped(label_of(explanation.row)), escaped(place), rows);
  if (!minor_parameters.empty()) {
    html += fmt::format("<p class=\"note screen\">Less than 0.005% each: {}.</p>\n",
                        escaped(fmt::format("{}", fmt::join(minor_parameters, ", "))));
  }
  return html;
}

std::string agreement_section(std::span<const MeasuredPair> pairs, Charts& charts) {
  if (pairs.empty()) {
    return {};
  }
  return section_head("measured", "Predicted against measured") +
         charts.add(agreement_figure(pairs), "Predicted against measured") +
         quiet("Marks: the median round. Lines: the middle 80% of rounds.") + "</section>\n";
}

std::string fits_section(std::span<const FitCheck> fits, Charts& charts) {
  if (fits.empty()) {
    return {};
  }
  std::string html = section_head("fits", "Fits of single operations") +
                     quiet(
                         "Each mark is a measured row. Held out: rows that no fit has seen. Rows with an error above "
                         "50% are drawn at the edge.");
  for (std::size_t i = 0; i < fits.size(); ++i) {
    html += charts.add(residual_figure(fits[i], fmt::format("fit-{}", i + 1)), "Residuals, " + fits[i].name);
  }
  return html + "</section>\n";
}

}  // namespace commfuse::reports
