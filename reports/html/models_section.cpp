// SPDX-License-Identifier: Apache-2.0
#include "reports/html/models_section.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

#include "model/text/decimals.h"
#include "reports/crossover.h"
#include "reports/figure/crossing.h"
#include "reports/figure/markup.h"
#include "reports/figure/model_time.h"
#include "reports/figure/wording.h"
#include "reports/html/page_frame.h"
#include "reports/plan_names.h"
#include "reports/plan_verdicts.h"
#include "reports/step_pays.h"
#include "reports/step_rows.h"

namespace commfuse::reports {

namespace {

constexpr std::size_t max_figures = 4;  // figures of each kind; the table has more plans
constexpr std::size_t max_plan_rows = 400;
constexpr std::size_t max_plan_rows_on_paper = 30;

using Plan = std::vector<const StepRow*>;

/// A column of the table: the rows' numbers in `column`, times `factor`.
struct ModelCell {
  std::string_view title;
  std::string_view unit;
  std::string_view column;
  double factor = 1.0;
  int digits = 1;
};
constexpr std::array cells{ModelCell{"Time", "ms", "time_ms"},
                           ModelCell{"Error", "%", "time_error", 100.0},
                           ModelCell{"p99", "ms", "time_p99_ms"},
                           ModelCell{"Cost", "per Mtoken", "cost_per_mtok", 1.0, 4},
                           ModelCell{"Tokens", "per s", "tokens_per_second", 1.0, 0},
                           ModelCell{"Per GPU", "per s", "tokens_per_second_gpu", 1.0, 0},
                           ModelCell{"MFU", "%", "mfu", 100.0},
                           ModelCell{"HFU", "%", "hfu", 100.0},
                           ModelCell{"Compute", "ms", "compute_ms"},
                           ModelCell{"Attention", "ms", "attention_ms"},
                           ModelCell{"MLP", "ms", "mlp_ms"},
                           ModelCell{"Other", "ms", "other_ms"},
                           ModelCell{"Waiting", "ms", "waiting_ms"},
                           ModelCell{"Gradients", "ms", "gradients_ms"},
                           ModelCell{"Optimizer", "ms", "optimizer_ms"},
                           ModelCell{"Weights", "GB", "weights_gb"},
                           ModelCell{"KV cache", "GB", "cache_gb"},
                           ModelCell{"Memory", "GB", "memory_gb"}};

/// Returns the cells that at least one row has.
std::vector<ModelCell> cells_of(std::span<const StepRow> rows) {
  std::vector<ModelCell> present_cells;
  std::ranges::copy_if(cells, std::back_inserter(present_cells), [&](const ModelCell& cell) {
    return std::ranges::any_of(rows, [&](const StepRow& row) { return row.has(cell.column); });
  });
  return present_cells;
}

/// Returns the header of the table. `baseline` is "serial", or "baseline" if plans have frameworks.
std::string header(const std::vector<ModelCell>& shown, std::string_view baseline) {
  std::string html = fmt::format(
      "<thead><tr><th scope=\"col\">Strategy</th><th scope=\"col\">vs {}<span class=\"unit\">%</span></th>", baseline);
  for (const ModelCell& cell : shown) {
    html += fmt::format("<th scope=\"col\">{}<span class=\"unit\">{}</span></th>", cell.title, cell.unit);
  }
  return html + "</tr></thead>\n";
}

/// Returns the visible mark before the name, and its text for screen readers.
std::string_view mark_of(const StepRow* row, const PlanVerdict& verdict) {
  return !verdict.in_front(row) ? "<span class=\"mark\"></span>"
         : verdict.wins()
             ? "<span class=\"mark\" aria-hidden=\"true\">\u25b8</span><span class=\"unseen\">fastest: </span>"
             : "<span class=\"mark\" aria-hidden=\"true\">\u2248</span><span class=\"unseen\">tie: </span>";
}

std::string row_html(const StepRow& row, const StepRow* serial, const PlanVerdict& verdict,
                     const std::vector<ModelCell>& shown) {
  constexpr std::string_view absent = "\u2014";
  std::string html = fmt::format("<tr{}><th scope=\"row\">{}{}</th>",
                                 verdict.in_front(&row) && verdict.wins() ? " class=\"fastest\"" : "",
                                 mark_of(&row, verdict), escaped(label(row)));
  if (!row.feasible()) {
    return html + fmt::format("<td colspan=\"{}\" class=\"none\">no result: {}</td></tr>\n", shown.size() + 1,
                              escaped(row.text("reason")));
  }
  html += fmt::format(
      "<td>{}</td>", serial == nullptr || serial == &row
                         ? std::string(absent)
                         : with_minus(with_sign(100.0 * (row.number("time_ms") / serial->number("time_ms") - 1.0), 1)));
  for (const ModelCell& cell : shown) {
    html += fmt::format("<td>{}</td>", row.has(cell.column)
                                           ? fmt::format("{:.{}f}", cell.factor * row.number(cell.column), cell.digits)
                                           : std::string(absent));
  }
  return html + "</tr>\n";
}

/// Explains the shown columns of the table.
std::string terms_html(const std::vector<ModelCell>& shown) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 14> terms{{
      {"time_error", "Error: one standard error of the time."},
      {"time_p99_ms", "p99: over machines whose GPUs differ."},
      {"cost_per_mtok", "Cost: of a million prompt tokens, or generated tokens of a decoding step."},
      {"mfu", "MFU: FLOPs of the model over time \u00d7 GPUs \u00d7 dense peak."},
      {"hfu", "HFU: like MFU, but including recomputation in the backward pass."},
      {"compute_ms", "Compute: kernels of the stage that computes longest, and the collectives between them."},
      {"attention_ms", "Attention: of all layers, or their state spaces, with the collectives."},
      {"mlp_ms", "MLP: of all layers, or their experts, with the collectives."},
      {"other_ms", "Other: embedding, norms with residuals, and logits."},
      {"waiting_ms", "Waiting: pipeline bubble, sends, and a host slower than its GPU."},
      {"gradients_ms", "Gradients: the part of their reduction exposed after the last backward pass."},
      {"optimizer_ms", "Optimizer: one pass over weights, moments and gradients."},
      {"cache_gb", "KV cache: keys and values on one GPU."},
      {"memory_gb", "Memory: on the GPU that needs the most; 1 GB is 10\u2079 bytes."},
  }};
  std::string text;
  for (const auto& [column, words] : terms) {
    const bool is_shown =
        std::ranges::any_of(shown, [&, name = column](const ModelCell& cell) { return cell.column == name; });
    text += is_shown ? fmt::format("{}{}", text.empty() ? "" : " ", words) : "";
  }
  return fmt::format("<p class=\"note\">{} \u25b8 the fastest, \u2248 tied for the fastest.</p>\n", text);
}

/// Returns the verdict and the sites of implementations, and states whether rows of the plan do not fit in memory.
std::string plan_sentence(const Plan& plan, const PlanVerdict& verdict) {
  const bool is_full = !std::ranges::all_of(plan, [](const StepRow* row) { return fits(*row); });
  std::string text = is_full ? "Out of memory." : "";
  for (const std::string& sentence : {verdict.sentence(), implemented_sites_in_words(plan)}) {
    text += (text.empty() || sentence.empty() ? "" : " ") + sentence;
  }
  return text;
}

std::string table_html(std::span<const StepRow> rows, const VerdictRule& rule) {
  const std::vector<ModelCell> shown = cells_of(rows);
  std::string html = terms_html(shown) +
                     "<div class=\"scroll\" role=\"region\" aria-label=\"Whole models\" tabindex=\"0\">\n<table>\n"
                     "<caption><span>Whole models, plan by plan</span></caption>\n" +
                     header(shown, std::ranges::any_of(rows, is_framework) ? "baseline" : "serial");
  std::size_t count = 0;
  for (const Plan& plan : plans_of(rows)) {
    if (count > 0 && count + plan.size() > max_plan_rows) {
      break;
    }
    const PlanVerdict verdict(plan, rule);
    html += fmt::format(
        "<tbody{}>\n<tr class=\"point\"><th colspan=\"{}\" scope=\"rowgroup\"><span class=\"which\">{} <span "
        "class=\"verdict\">{}</span></span></th></tr>\n",
        count == 0 || count + plan.size() <= max_plan_rows_on_paper ? "" : " class=\"screen\"", shown.size() + 2,
        escaped(plan_heading(*plan.front())), escaped(for_page(plan_sentence(plan, verdict))));
    const StepRow* const serial = serial_of(plan);
    for (const StepRow* row : plan) {
      html += row_html(*row, serial, verdict, shown);
    }
    html += "</tbody>\n";
    count += plan.size();
  }
  html += "</table>\n</div>\n";
  html +=
      count > max_plan_rows_on_paper ? "<p class=\"note paper\">In print, only the first plans are shown.</p>\n" : "";
  return count == rows.size()
             ? html
             : html + fmt::format(
                          "<p class=\"note\">The first {} rows of {}; all of them are in the CSV and JSON of these "
                          "results.</p>\n",
                          count, rows.size());
}

/// Returns the plans with a result that fit in memory, the decisive one first; all plans with a result if none fits.
std::vector<Plan> drawn_plans(std::span<const StepRow> rows, const VerdictRule& rule) {
  std::vector<Plan> plans = plans_of(rows);
  if (const std::optional<std::size_t> first = plan_savings(rows, rule).decisive) {
    const auto decisive_plan = plans.begin() + static_cast<std::ptrdiff_t>(*first);
    std::rotate(plans.begin(), decisive_plan, decisive_plan + 1);
  }
  std::erase_if(plans, [](const Plan& plan) { return std::ranges::none_of(plan, &StepRow::feasible); });
  const auto can_run = [](const Plan& plan) {
    return std::ranges::any_of(plan, [](const StepRow* row) { return row->feasible() && fits(*row); });
  };
  if (std::ranges::any_of(plans, can_run)) {
    std::erase_if(plans, [&](const Plan& plan) { return !can_run(plan); });
  }
  return plans;
}

/// Draws plans as bars.
std::string times_html(std::span<const StepRow> rows, Charts& charts, const VerdictRule& rule) {
  std::string html;
  const std::vector<Plan> all_plans = plans_of(rows);
  const std::vector<Plan> plans = drawn_plans(rows, rule);
  const auto with_result = static_cast<std::size_t>(
      std::ranges::count_if(all_plans, [](const Plan& plan) { return std::ranges::any_of(plan, &StepRow::feasible); }));
  const std::size_t drawn = std::min(plans.size(), max_figures);
  for (std::size_t number = 1; number <= drawn; ++number) {
    const Plan& plan = plans[number - 1];
    const std::string heading = plan_heading(*plan.front());
    html += fmt::format("<div{}>\n<h3>{}</h3>\n{}</div>\n", number > 2 ? " class=\"screen\"" : "", escaped(heading),
                        charts.add(model_time_figure(plan, fmt::format("model-time-{}", number), rule), heading,
                                   all_plans.size() > 1 ? heading : std::string{}));
  }
  const std::string_view which = plans.size() < with_result ? ", only those that fit in memory" : "";
  return drawn == with_result
             ? html
             : html + fmt::format("<p class=\"note\">{}; the table lists all.</p>\n",
                                  charts.leave_out(fmt::format("{} of {} plans {} drawn{}", drawn, with_result,
                                                               drawn == 1 ? "is" : "are", which)));
}

/// Returns the maps of savings against serial. Decoding steps have none, because all_reduce, which may be faster than
/// serial, has no overlap either.
std::vector<CrossoverMap> saving_maps_of(std::span<const StepRow> rows, const VerdictRule& rule) {
  std::vector<StepRow> compared;
  std::ranges::copy_if(rows, std::back_inserter(compared),
                       [](const StepRow& row) { return row.text("scope") != "decode"; });
  return maps_of(compared, rule);
}

/// Draws savings of overlap; draws winners if several strategies win, or if no saving is known.
std::string maps_html(std::span<const StepRow> rows, Charts& charts, const VerdictRule& rule) {
  const std::vector<CrossoverMap> maps = maps_of(rows, rule);
  const std::vector<CrossoverMap> saving_maps = saving_maps_of(rows, rule);
  std::string html;
  for (std::size_t i = 0; i < std::min(maps.size(), max_figures); ++i) {
    const std::string heading = heading_of(maps[i]);
    const std::string subject = maps.size() > 1 ? heading : std::string{};
    html +=
        fmt::format("<div{}>\n<h3>{}</h3>\n<div class=\"maps\">\n", i > 1 ? " class=\"screen\"" : "", escaped(heading));
    const auto saving_map = std::ranges::find(saving_maps, maps[i].setting, &CrossoverMap::setting);
    const std::optional<Figure> saving = saving_map == saving_maps.end()
                                             ? std::nullopt
                                             : saving_figure(*saving_map, fmt::format("model-saving-{}", i + 1));
    html += saving ? charts.add(*saving, "What overlap saves, " + heading, subject) : std::string{};
    if (!saving || maps[i].strategies.size() > 1) {
      html +=
          charts.add(winner_figure(maps[i], fmt::format("model-winners-{}", i + 1)), "Winners, " + heading, subject);
    }
    html += "</div>\n</div>\n";
  }
  return maps.size() <= max_figures
             ? html
             : html + fmt::format("<p class=\"note\">{}.</p>\n",
                                  charts.leave_out(
                                      fmt::format("Maps of the first {} settings of {}", max_figures, maps.size())));
}

/// Returns "overlap saves 20.1% of serial's time".
std::string saving_in_words(const PlanSaving& saving) {
  const std::string share = percent(std::abs(saving.saved));
  const std::string& baseline = saving.baseline->text("strategy");
  const std::string text = saving.saved < 0.0 ? fmt::format("overlap takes {} more time than {}", share, baseline)
                                              : fmt::format("overlap saves {} of {}'s time", share, baseline);
  return saving.pays == Pays::close ? text + ", too close to call" : text;
}

}  // namespace

std::string models_sentence(std::span<const StepRow> rows, const VerdictRule& rule) {
  const auto feasible = std::ranges::find_if(rows, &StepRow::feasible);
  if (feasible == rows.end()) {
    return "No point has a result.";
  }
  const std::vector<Plan> plans = plans_of(rows);
  if (const std::optional<std::size_t> decisive = plan_savings(rows, rule).decisive) {
    const Plan& plan = plans[*decisive];
    const PlanSaving saving = *plan_saving(plan, rule);
    const std::string sentence = for_page(PlanVerdict(plan, rule).sentence());
    // The verdict on implementations states the same saving, with its interval.
    const std::string saved = saving.overlap->has("implements") ? std::string{} : saving_in_words(saving) + ". ";
    return fmt::format("{}: {}{}", plan_heading(*plan.front()), saved, sentence);
  }
  if (const std::string best = best_plan(rows, rule); !best.empty()) {
    return best + ".";
  }
  if (plans.size() > 1 && std::ranges::none_of(rows, [](const StepRow& row) { return row.feasible() && fits(row); })) {
    return "No plan fits in memory.";
  }
  const std::string sentence =
      plans.size() == 1 ? for_page(PlanVerdict(plans.front(), rule).sentence()) : std::string{};
  return sentence.empty() ? fmt::format("{} takes {}.", feasible->text("strategy"), model_time_text(*feasible))
                          : sentence;
}

std::string models_sum(std::span<const StepRow> rows, const VerdictRule& rule) {
  const PlanSavings savings = plan_savings(rows, rule);
  std::string text = savings_in_words(savings.count, "plans", savings.baseline);
  if (const std::string best = best_plan(rows, rule); savings.decisive && !best.empty()) {
    text += (text.empty() ? "" : " ") + best + ".";
  }
  return text;
}

std::string models_section(std::span<const StepRow> rows, bool leads, Charts& charts, const VerdictRule& rule) {
  if (rows.empty()) {
    return {};
  }
  std::string html = section_head("models", "Whole models");
  if (leads) {
    for (const std::string& sentence : {memory_sentence(rows), models_sentence(rows, rule), models_sum(rows, rule)}) {
      html += sentence.empty() ? "" : fmt::format("<p class=\"lead\">{}</p>\n", escaped(sentence));
    }
  }
  html += times_html(rows, charts, rule);
  html += maps_html(rows, charts, rule);
  return html + table_html(rows, rule) + "</section>\n";
}

}  // namespace commfuse::reports
