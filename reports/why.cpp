// SPDX-License-Identifier: Apache-2.0
#include "reports/why.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <span>
#include <string_view>
#include <vector>

#include "model/columns.h"
#include "model/text/decimals.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "reports/percents.h"
#include "reports/point_rows.h"
#include "reports/rows.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

constexpr std::array all_path_kinds{PathKind::essential, PathKind::local, PathKind::communication, PathKind::issue};
constexpr double smallest_shown = 0.0005;  // change of ln(makespan); a smaller effect would be printed as 0.0%

// --- text ------------------------------------------------------------------------------------------------------------

std::string_view in_words(PathKind kind) {
  switch (kind) {
    case PathKind::essential: return "essential ops";
    case PathKind::local: return "adds and copies";
    case PathKind::communication: return "communication";
    case PathKind::issue: return "host";
  }
  return "";
}

std::string head(const Explanation& explanation, const Unit& unit) {
  const ResultRow& row = explanation.row;
  const std::string about =
      fmt::format("{} {} on {}, ranks {}, batch {}, seq {}, {}", row.model, row.scope, machine_in_words(row), row.ranks,
                  format_count(row.batch), format_count(row.seq), row.dtype);
  const std::string error =
      row.makespan_error ? fmt::format(", one standard error {:.1f}%", 100.0 * *row.makespan_error) : std::string{};
  std::string text = wrapped(about, "", "  ");
  text += wrapped(fmt::format("{} takes {} {}{}; MFU {:.1f}%.", label(row), unit.text(row.analysis.critical.makespan),
                              unit.name(), error, 100.0 * row.mfu),
                  "", "  ");
  if (row.tails) {
    const Percentiles& percentiles = row.tails->percentiles;
    text +=
        wrapped(fmt::format("Under jitter {}: p50 {}, p99 {} {}. All other numbers are without jitter; commfuse-sim "
                            "run states the causes of the p99.",
                            in_quotes(row.jitter), unit.text(percentiles.p50.value), unit.text(percentiles.p99.value),
                            unit.name()),
                "", "  ");
  }
  return text + (explanation.verdict.empty() ? std::string{} : wrapped(explanation.verdict, "", "  "));
}

std::string parts(const Explanation& explanation, const Unit& unit) {
  const Breakdown& row = explanation.row.analysis.critical;
  std::string text = fmt::format("\nWhere the {} go\n", unit.scale.in_words);
  const auto add_part = [&](Duration part, std::string_view name, std::string_view description) {
    if (part != Duration{}) {
      const std::string cells = fmt::format("  {:>10}  {:<9} ", unit.text(part), name);
      text += wrapped(description, cells, std::string(cells.size(), ' '));
    }
  };
  add_part(row.compute, "compute", "essential work, uncut and without interference");
  add_part(row.slicing, "slicing", "cost of cutting essential work");
  add_part(row.stretch, "stretch", "time added by interference");
  add_part(row.local, "local", "adds, packs and copies made by the strategy");
  add_part(row.exposed, "exposed",
           fmt::format("no compute runs: head {}, bubbles {}, tail {}{}", unit.text(row.head), unit.text(row.bubble),
                       unit.text(row.tail), row.local != Duration{} ? ", minus local work in them" : ""));
  double total = 0.0;
  for (const Duration time : explanation.on_path) {
    total += to_seconds(time);
  }
  std::string path;
  for (const PathKind kind : all_path_kinds) {
    const double time = to_seconds(explanation.on_path[static_cast<std::size_t>(kind)]);
    if (time > 0.0) {
      path += fmt::format("{}{} {:.1f}%", path.empty() ? "" : ", ", in_words(kind), 100.0 * time / total);
    }
  }
  return text + (path.empty() ? "" : wrapped(fmt::format("Critical path: {}.", path), "  ", "  "));
}

std::string ops(const Explanation& explanation, const Unit& unit) {
  std::string text = fmt::format("\nPrices of the ops of the critical rank ({})\n", unit.name());
  const auto price_of = [&](const ExplainedOp& op) {
    return op.shortest == op.longest ? unit.text(op.shortest)
                                     : fmt::format("{}..{}", unit.text(op.shortest), unit.text(op.longest));
  };
  std::size_t width = 14;
  for (const ExplainedOp& op : explanation.ops) {
    width = std::max(width, price_of(op).size());
  }
  text += fmt::format("  {:>5}  {:>{}}  {:>10}  {}\n", "times", "each", width, "together", "op");
  for (const ExplainedOp& op : explanation.ops) {
    text += fmt::format("  {:>5}  {:>{}}  {:>10}  {}\n", op.count, price_of(op), width, unit.text(op.together),
                        op_in_words(op.shape));
    text += op.how.empty() ? "" : wrapped(op.how, "           ", "           ");
  }
  return text;
}

std::string_view short_name(std::string_view name) {
  constexpr std::string_view common = "accelerator.";
  return name.starts_with(common) ? name.substr(common.size()) : name;
}

std::string hold_line(const Hold& hold) {
  constexpr std::size_t name_width = 42;
  const std::string effect_of_percent = hold.elasticity ? with_sign(*hold.elasticity, 2) + "%" : std::string{};
  return fmt::format("  {:>7}  {:>6}  {:>6}  {:<9}  {}\n", effect_of_percent,
                     hold.standard_error > 0.0 ? fmt::format("{:.1f}%", 100.0 * hold.standard_error) : "",
                     hold.effect != 0.0 ? signed_percent(hold.effect) : "",
                     hold.provenance ? name_of(*hold.provenance) : "residual",
                     cut(op_in_words(std::string{short_name(hold.name)}), name_width));
}

std::string holds(const Explanation& explanation, std::size_t max_shown) {
  constexpr double a_percent = 0.01;
  std::string text = "\nSensitivity: a parameter 1% higher, or higher by its standard error\n";
  text += fmt::format("  {:>7}  {:>6}  {:>6}  {:<9}  {}\n", "+1%", "error", "effect", "from", "parameter");
  std::size_t shown = 0;
  for (const Hold& hold : explanation.holds) {
    const bool is_visible = std::abs(hold.effect) >= smallest_shown ||
                            std::abs(hold.elasticity.value_or(0.0)) * a_percent >= smallest_shown;
    if (is_visible && shown < max_shown) {
      text += hold_line(hold);
      ++shown;
    }
  }
  return text;
}

/// Lists the parameters that change the time and are assumed.
std::string priors(const Explanation& explanation) {
  constexpr double min_elasticity = 0.01;  // change of the time, as a share of the parameter's change
  std::string names;
  for (const Hold& hold : explanation.holds) {
    if (hold.provenance == Provenance::prior && std::abs(hold.elasticity.value_or(0.0)) >= min_elasticity) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", short_name(hold.name));
    }
  }
  if (names.empty()) {
    return wrapped("Every parameter that changes the time was published, fitted or measured.", "", "  ");
  }
  return wrapped(fmt::format("Assumed, not measured: {}.", names), "", "  ");
}

// --- JSON ------------------------------------------------------------------------------------------------------------

nlohmann::ordered_json op_json(const ExplainedOp& op) {
  return {{"shape", op.shape},
          {"how", op.how},
          {"kind", name_of(op.kind)},
          {"count", op.count},
          {"shortest_us", to_microseconds(op.shortest)},
          {"longest_us", to_microseconds(op.longest)},
          {"together_us", to_microseconds(op.together)}};
}

nlohmann::ordered_json hold_json(const Hold& hold) {
  nlohmann::ordered_json json{{"name", hold.name}};
  json["provenance"] = hold.provenance ? nlohmann::ordered_json(name_of(*hold.provenance)) : nlohmann::ordered_json();
  json["source"] = hold.source;
  json["elasticity"] = hold.elasticity ? nlohmann::ordered_json(*hold.elasticity) : nlohmann::ordered_json();
  json["standard_error"] = hold.standard_error;
  json["effect"] = hold.effect;
  return json;
}

}  // namespace

std::string why_text(const Explanation& explanation, std::size_t max_shown) {
  const Rows rows(&explanation.row, 1);
  const Unit unit(rows);
  const std::string memory_text = memory_sentence(rows);
  std::string text = memory_text.empty() ? memory_text : wrapped(memory_text, "", "  ");
  text += head(explanation, unit) + parts(explanation, unit) + ops(explanation, unit);
  if (!explanation.holds.empty()) {
    text += holds(explanation, max_shown) + "\n" + priors(explanation);
  }
  if (const std::vector<std::string> warnings = warnings_of(rows); !warnings.empty()) {
    text += wrapped(fmt::format("Beyond the fit: {}.", fmt::join(warnings, "; ")), "", "  ");
  }
  return text;
}

std::string why_json(const Explanation& explanation) {
  nlohmann::ordered_json json{{"schema", "commfuse.why/1"}};
  json["result"] = nlohmann::ordered_json::parse(to_json_lines(std::span(&explanation.row, 1)));
  json["verdict"] = explanation.verdict;
  json["ops"] = nlohmann::ordered_json::array();
  for (const ExplainedOp& op : explanation.ops) {
    json["ops"].push_back(op_json(op));
  }
  for (const PathKind kind : all_path_kinds) {
    json["critical_path_us"][std::string{name_of(kind)}] =
        to_microseconds(explanation.on_path[static_cast<std::size_t>(kind)]);
  }
  json["holds"] = nlohmann::ordered_json::array();
  for (const Hold& hold : explanation.holds) {
    json["holds"].push_back(hold_json(hold));
  }
  return json.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

}  // namespace commfuse::reports
