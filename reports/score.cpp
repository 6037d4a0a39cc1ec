// SPDX-License-Identifier: Apache-2.0
#include "reports/score.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "model/text/counted.h"
#include "model/wrapped.h"
#include "reports/pays.h"
#include "reports/percents.h"
#include "reports/reliability.h"
#include "reports/rows.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

void add_summary(Json& object, const std::vector<double>& errors) {
  const ErrorSummary summary = summary_of(errors);
  object["median"] = summary.n > 0 ? Json(summary.median) : Json();
  object["p68"] = summary.n > 0 ? Json(summary.p68) : Json();
  object["p90"] = summary.n > 0 ? Json(summary.p90) : Json();
  object["max"] = summary.n > 0 ? Json(summary.max) : Json();
}

Json summary_json(const std::vector<double>& errors) {
  Json object{{"n", errors.size()}};
  add_summary(object, errors);
  return object;
}

Json parts_json(const TableScore& score) {
  Json parts = Json::array();
  for (const ScoredPart& part : score.parts) {
    Json object{{"part", part.name}, {"machine", part.machine}, {"n", part.errors.size()}};
    add_summary(object, part.errors);
    object["held_out"] = summary_json(part.held_out);
    parts.push_back(std::move(object));
  }
  return parts;
}

Json penalties_json(const TableScore& score) {
  Json tables = Json::array();
  for (const PenaltyScore& penalty : score.penalties) {
    Json object{{"parts", penalty.parts}, {"n", penalty.errors.size()}};
    add_summary(object, penalty.errors);
    object["of_no_penalty"] = summary_json(penalty.of_no_penalty);
    object["held_out"] = summary_json(penalty.held_out);
    object["held_out_of_no_penalty"] = summary_json(penalty.held_out_of_no_penalty);
    tables.push_back(std::move(object));
  }
  return tables;
}

Json table_json(const TableScore& score) {
  Json object{{"table", score.table},
              {"path", score.path},
              {"source", score.source},
              {"kind", score.kind.empty() ? Json() : Json(score.kind)},
              {"machines", score.machines},
              {"n", score.scored},
              {"skipped", score.skipped_rows()},
              {"malformed", score.fault_count}};
  add_summary(object, score.errors);
  object["held_out"] = summary_json(score.held_out);
  Json skipped = Json::array();
  for (const Skipped& reason : score.skipped) {
    skipped.push_back({{"reason", reason.reason}, {"rows", reason.rows}});
  }
  object["skipped_why"] = std::move(skipped);
  Json faults = Json::array();
  for (const RowFault& fault : score.faults) {
    faults.push_back({{"line", fault.line}, {"reason", fault.reason}});
  }
  object["malformed_rows"] = std::move(faults);
  object["parts"] = parts_json(score);
  object["remarks"] = score.remarks;
  if (!score.penalties.empty()) {
    object["slicing_penalty"] = penalties_json(score);
  }
  if (score.steps) {
    object["steps"] = {
        {"n", score.steps->n},
        {"mean", score.steps->mean},
        {"rank_correlation", score.steps->rank_correlation ? Json(*score.steps->rank_correlation) : Json()},
        {"layout_pairs", score.steps->layout_pairs},
        {"better_named", score.steps->better_named}};
  }
  if (score.memory) {
    object["memory"] = {{"facts", score.memory->facts}, {"agreed", score.memory->agreed}};
  }
  if (score.variants) {
    object["ratio"] = summary_json(score.variants->ratio_errors);
    object["winners"] = {{"compared", score.variants->compared}, {"agreed", score.variants->agreed}};
  }
  return object;
}

/// Returns the scored kinds, in the order of their first table.
std::vector<std::string> kinds_in(std::span<const TableScore> scores) {
  std::vector<std::string> kinds;
  for (const TableScore& score : scores) {
    if (score.scored > 0 && std::find(kinds.begin(), kinds.end(), score.kind) == kinds.end()) {
      kinds.push_back(score.kind);
    }
  }
  return kinds;
}

Json kind_json(const std::string& kind, std::span<const TableScore> scores) {
  std::int64_t rows = 0;
  std::int64_t skipped = 0;
  std::vector<double> errors;
  for (const TableScore& score : scores) {
    if (score.kind == kind) {
      rows += score.scored;
      skipped += score.skipped_rows();
      errors.insert(errors.end(), score.errors.begin(), score.errors.end());
    }
  }
  Json object{{"kind", kind}, {"n", rows}, {"skipped", skipped}};
  add_summary(object, errors);
  return object;
}

constexpr const char* score_line = "  {:<37} {:>7} {:>7} {:>7} {:>7} {:>8}\n";

std::string summary_line(const std::string& name, std::int64_t n, std::int64_t skipped,
                         const std::vector<double>& errors) {
  const ErrorSummary summary = summary_of(errors);
  const bool has_errors = summary.n > 0;
  const std::string label = name.size() <= 37 ? name : "";
  return (label.empty() ? fmt::format("  {}\n", name) : "") +
         fmt::format(score_line, label, n, skipped, has_errors ? percent_digits(summary.median) : "-",
                     has_errors ? percent_digits(summary.p90) : "-", has_errors ? percent_digits(summary.max) : "-");
}

std::string detail_lines(const TableScore& score) {
  std::string text;
  for (const ScoredPart& part : score.parts) {
    const std::string machine = score.machines.size() > 1 ? part.machine + ": " : "";
    text += summary_line("  " + machine + part.name, static_cast<std::int64_t>(part.errors.size()), 0, part.errors);
  }
  for (const PenaltyScore& penalty : score.penalties) {
    const auto n = static_cast<std::int64_t>(penalty.errors.size());
    text += summary_line(fmt::format("  slicing penalty, P = {}", penalty.parts), n, 0, penalty.errors);
    text += summary_line("    of \"penalty = 1\"", n, 0, penalty.of_no_penalty);
  }
  if (score.variants) {
    text += summary_line("  ratio", static_cast<std::int64_t>(score.variants->ratio_errors.size()), 0,
                         score.variants->ratio_errors);
    text += fmt::format("    predicted winner is the measured winner: {} of {}\n", score.variants->agreed,
                        score.variants->compared);
  }
  if (score.steps) {
    const std::optional<double> correlation = score.steps->rank_correlation;
    text += fmt::format("    rows held out: mean {}%, {}\n", percent_digits(score.steps->mean),
                        correlation ? fmt::format("rank correlation {:.4f}", *correlation)
                                    : "no rank correlation, because all times are equal");
    text += wrapped(fmt::format("the better of two layouts whose times differ by more than 5% is predicted: {} of {}",
                                score.steps->better_named, score.steps->layout_pairs),
                    "    ", "      ");
  }
  if (score.memory) {
    text += fmt::format("    prediction of whether memory suffices is right: {} of {}\n", score.memory->agreed,
                        score.memory->facts);
  }
  for (const std::string& remark : score.remarks) {
    text += wrapped(remark, "    ", "      ");
  }
  for (const Skipped& skipped : score.skipped) {
    text += wrapped(fmt::format("{} skipped: {}", skipped.rows, skipped.reason), "    ", "      ");
  }
  return text;
}

/// Returns why no row of a table of a known kind was scored.
std::vector<std::string> reasons_of(const TableScore& score) {
  std::vector<std::string> reasons;
  for (const Skipped& skipped : score.skipped) {
    reasons.push_back(fmt::format("{} skipped: {}", skipped.rows, skipped.reason));
  }
  if (reasons.empty() && score.fault_count == 0) {
    reasons.emplace_back("it has no rows");
  }
  return reasons;
}

/// Lists the tables that are not listed under a scored kind, with reasons.
std::string not_scored(std::span<const TableScore> scores) {
  const std::vector<std::string> kinds = kinds_in(scores);
  std::string text;
  const auto add = [&](const TableScore& score, const std::string& reason) {
    text += wrapped(fmt::format("{}: {}", score.table, reason), "  ", "    ");
  };
  for (const TableScore& score : scores) {
    if (!score.note.empty()) {
      add(score, score.note);
    } else if (std::find(kinds.begin(), kinds.end(), score.kind) == kinds.end()) {
      for (const std::string& reason : reasons_of(score)) {
        add(score, reason);
      }
    }
  }
  return text.empty() ? text : "not scored\n" + text;
}

}  // namespace

std::string score_table(std::span<const TableScore> scores) {
  std::string text;
  for (const std::string& kind : kinds_in(scores)) {
    text += (text.empty() ? "" : "\n") +
            fmt::format(score_line, kind + ", error in %", "rows", "skipped", "median", "p90", "max").substr(2);
    for (const TableScore& score : scores) {
      if (score.kind == kind && score.note.empty()) {
        text += summary_line(score.table, score.scored, score.skipped_rows(), score.errors) + detail_lines(score);
      }
    }
  }
  text += reliability_table(scores);
  const std::string rest = not_scored(scores);
  return text + (text.empty() || rest.empty() ? "" : "\n") + rest;
}

std::string score_json(std::span<const TableScore> scores) {
  Json object{{"schema", score_schema}, {"tables", Json::array()}, {"kinds", Json::array()}};
  for (const TableScore& score : scores) {
    object["tables"].push_back(table_json(score));
  }
  for (const std::string& kind : kinds_in(scores)) {
    object["kinds"].push_back(kind_json(kind, scores));
  }
  add_reliability(object, scores);
  add_pays(object, scores);
  return object.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string score_rows_csv(std::span<const TableScore> scores) {
  std::string text = "table,line,machine,part,measured_us,predicted_us,error,measured_factor,predicted_factor\n";
  for (const TableScore& score : scores) {
    for (const ScoredTime& time : score.times) {
      const std::string both = fmt::format("{:.6g},{:.6g}", time.measured_us, time.predicted_us);
      text += fmt::format("{},{},{},{},{},{:.4f},{}\n", csv_text(score.table), time.line,
                          csv_text(score.machines[time.machine]), csv_text(time.part), time.is_factor ? "," : both,
                          time.predicted_us / time.measured_us - 1.0, time.is_factor ? both : ",");
    }
  }
  return text;
}

std::string score_faults(std::span<const TableScore> scores) {
  std::string text;
  for (const TableScore& score : scores) {
    for (const RowFault& fault : score.faults) {
      text += fmt::format("{}:{}: {}\n", score.path, fault.line, fault.reason);
    }
    if (const auto more = score.fault_count - static_cast<std::int64_t>(score.faults.size()); more > 0) {
      text += fmt::format("{}: and {} like these\n", score.path, counted(more, "more row"));
    }
  }
  return text;
}

}  // namespace commfuse::reports
