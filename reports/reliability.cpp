// SPDX-License-Identifier: Apache-2.0
#include "reports/reliability.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "model/text/counted.h"
#include "model/wrapped.h"
#include "reports/joined_scores.h"
#include "reports/markdown.h"
#include "reports/pays.h"
#include "reports/percents.h"

namespace commfuse::reports {

namespace {

using Scores = std::span<const TableScore>;
using Json = nlohmann::ordered_json;

std::string name_of_bin(const ReliabilityBin& bin) {
  return bin.to == 1.0 ? ">99" : fmt::format("{}-{}", whole_percent(bin.from), whole_percent(bin.to));
}

/// With fewer measured times, a share means little.
constexpr std::int64_t fewest_to_rank = 10;

/// Returns at most three rows, farthest from their nominal coverage first; omits rows that chance explains or that have
/// too few times.
std::vector<const CoverageRow*> worst_of(const std::vector<CoverageRow>& rows) {
  std::vector<const CoverageRow*> worst;
  for (const CoverageRow& row : rows) {
    if (beyond_chance(row.coverage) > 0.0 && row.coverage.n >= fewest_to_rank) {
      worst.push_back(&row);
    }
  }
  std::stable_sort(worst.begin(), worst.end(), [](const CoverageRow* a, const CoverageRow* b) {
    return beyond_chance(a->coverage) > beyond_chance(b->coverage);
  });
  worst.resize(std::min<std::size_t>(worst.size(), 3));
  return worst;
}

/// Returns "GEMM fp8 on b200-sxm (no fit): 68% intervals hold 10%, 95% intervals 19% (14324 times)".
std::string in_words(const CoverageRow& row) {
  return fmt::format("{} on {}: 68% intervals hold {}%, 95% intervals {}% ({} times)", row.kind, row.machine_in_words(),
                     whole_percent(row.coverage.at[1].share), whole_percent(row.coverage.at[3].share), row.coverage.n);
}

constexpr const char* coverage_line = "  {:<32} {:>6} {:>7} {:>7} {:>7} {:>7} {:>6}\n";

std::string coverage_text(Scores scores) {
  const std::vector<CoverageRow> rows = coverage_rows(scores);
  if (rows.empty()) {
    return "";
  }
  std::string text = "\ncoverage of intervals, rows that no fit has seen\n";
  for (const CoverageRow* row : worst_of(rows)) {
    text += wrapped("worst: " + in_words(*row), "  ", "    ");
  }
  text += fmt::format(coverage_line, "share inside in %, sampling band", "n", "50%", "68%", "90%", "95%", "error");
  std::string_view kind;
  for (const CoverageRow& row : rows) {
    if (row.kind != kind) {
      text += fmt::format("  {}\n", row.kind);
      kind = row.kind;
    }
    const auto& at = row.coverage.at;
    text +=
        fmt::format(coverage_line, "  " + row.machine_in_words(), row.coverage.n, with_band(at[0]), with_band(at[1]),
                    with_band(at[2]), with_band(at[3]), "±" + percent_digits(row.coverage.median_error));
  }
  return text;
}

std::string bins_text(const std::string& name, const Reliability& reliability) {
  std::string names = fmt::format("  {:<21}", name);
  std::string pairs = fmt::format("    {:<19}", "pairs");
  std::string stated = fmt::format("    {:<19}", "stated, %");
  std::string observed = fmt::format("    {:<19}", "came true, %");
  for (const ReliabilityBin& bin : reliability.bins) {
    names += fmt::format(" {:>7}", name_of_bin(bin));
    pairs += fmt::format(" {:>7}", bin.n);
    stated += fmt::format(" {:>7}", bin.n == 0 ? "-" : percent_digits(bin.said));
    observed += fmt::format(" {:>7}", bin.n == 0 ? "-" : with_band(bin.observed));
  }
  return fmt::format("{}\n{}\n{}\n{}\n    Brier score {:.3f} over {}\n", names, pairs, stated, observed,
                     reliability.brier, counted(reliability.n, "pair"));
}

std::string reliability_text(Scores scores) {
  const PairsByMachine pairs = pairs_of(scores);
  if (pairs.empty()) {
    return "";
  }
  std::string text = "\nwin probabilities, pairs that no fit has seen\n";
  for (const auto& [machine, by_ways] : pairs) {
    text += bins_text(machine, reliability_of(merged_pairs(by_ways)));
    for (const auto& [ways, judged_pairs] : by_ways) {
      text += fmt::format("    {} of {}\n", judged_pairs.size(), ways);
    }
  }
  return text + (pairs.size() > 1 ? bins_text("all machines", reliability_of(merged_pairs(pairs))) : "");
}

std::string observations_text(Scores scores) {
  const std::vector<Observation> observations = observations_of(scores);
  if (observations.empty()) {
    return "";
  }
  std::string text = fmt::format("\n{:<52} {:>8} {:>9} {:>7}\n", "published variations and slowdowns, as factors",
                                 "measured", "predicted", "error");
  for (const Observation& observation : observations) {
    const std::string label = fmt::format("{}: {}", observation.machine, observation.what);
    const bool fits = label.size() <= 50;
    text += fits ? "" : wrapped(label, "  ", "    ");
    text += fmt::format("  {:<50} {:>8.3f} {:>9.3f} {:>6}%\n", fits ? label : "", observation.measured,
                        observation.predicted,
                        percent_digits(std::abs(observation.predicted / observation.measured - 1.0)));
  }
  return text;
}

Json coverage_json(const CoverageRow& row) {
  Json object{{"kind", row.kind},
              {"machine", row.machine},
              {"fitted", row.fitted},
              {"n", row.coverage.n},
              {"shapes", row.coverage.shapes},
              {"median_error", row.coverage.median_error},
              {"beyond_chance", beyond_chance(row.coverage)},
              {"levels", levels_json(row.coverage)}};
  return object;
}

Json reliability_json(const std::string& machine, const Json& ways, const Reliability& reliability) {
  Json object{{"machine", machine}, {"ways", ways}, {"n", reliability.n}, {"brier", reliability.brier}};
  object["bins"] = Json::array();
  for (const ReliabilityBin& bin : reliability.bins) {
    Json object_of_bin = share_json(bin.observed);
    object_of_bin["from"] = bin.from;
    object_of_bin["to"] = bin.to;
    object_of_bin["n"] = bin.n;
    object_of_bin["said"] = bin.said;
    object["bins"].push_back(std::move(object_of_bin));
  }
  return object;
}

/// Returns, in percent, the error within which this share of the times lies if the stated error is 4%.
std::string reach(std::span<const CheckedTime> times, double share) {
  std::vector<double> errors;
  for (const CheckedTime& time : times) {
    errors.push_back(time.error > 0.0 ? std::abs(time.distance) / time.error : 0.0);
  }
  std::sort(errors.begin(), errors.end());
  const auto index = static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1));
  return percent_digits(0.04 * errors[index]);
}

std::string plus_minus_in_practice(Scores scores) {
  std::string text;
  for (const bool fitted : {true, false}) {
    const std::vector<CheckedTime> times = times_of(scores, fitted);
    if (times.empty()) {
      continue;
    }
    text += fmt::format("- {} ({} times): within {}% in 68 of 100 cases, within {}% in 95.\n",
                        fitted ? "ops whose fit read other rows of the same table"
                               : "ops that no fit covers: other software, another cluster, a sibling machine",
                        times.size(), reach(times, 0.68), reach(times, 0.95));
  }
  return text;
}

std::string sure_in_practice(Scores scores) {
  const Reliability overall = reliability_of(merged_pairs(pairs_of(scores)));
  std::string text;
  for (const ReliabilityBin& bin : overall.bins) {
    if (bin.n > 0 && bin.from >= 0.7) {
      text += fmt::format("- {}% sure: stated {}% on average, {} of 100 came true ({} pairs).\n", name_of_bin(bin),
                          percent_digits(bin.said), whole_percent(bin.observed.share), bin.n);
    }
  }
  return text;
}

std::string planner_section(Scores scores) {
  return "## What \"± 4%\" and \"87% sure\" have meant so far\n\n"
         "\"± 4%\" is one standard error. It promises that the measured time is within 4% in 68 of 100 cases and "
         "within 10%\nin 95. On measured times that no fit has seen, a stated \"± 4%\" has meant:\n\n" +
         plus_minus_in_practice(scores) +
         "\n\"87% sure\" promises that 87 of 100 such calls come true. On measured pairs of ways to do the same work "
         "(a GEMM whole\nor in slices, a weight cut by rows or by columns, an all-reduce or its two halves, two "
         "schedules) the calls were:\n\n" +
         sure_in_practice(scores) +
         "\nBefore you bet money, run `commfuse-sim calibrate` on a few sizes from your own cluster: most "
         "surprises are software\nthat no fit covers. Treat a win below 80% as a tie, as verdicts do. The "
         "tables below show which kinds and machines are\noverconfident and which are underconfident.\n\n";
}

std::string coverage_section(Scores scores) {
  const std::vector<CoverageRow> rows = coverage_rows(scores);
  std::string text =
      "## Coverage of intervals\n\n"
      "Share of measured times inside the stated interval, in %, with the sampling band (95%, rows of one shape "
      "counted as\nthey vary together), over rows that no fit has seen. \"No fit\": no fit of the machine read the "
      "table. `error` is the\nmedian standard error that was stated.\n\n";
  const std::vector<const CoverageRow*> worst = worst_of(rows);
  text += worst.empty() ? "" : "The largest deviations beyond chance:\n\n";
  for (const CoverageRow* row : worst) {
    text += fmt::format("1. {}\n", in_words(*row));
  }
  text +=
      "\n| kind | machine | n | shapes | 50% | 68% | 90% | 95% | error | beyond chance |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  for (const CoverageRow& row : rows) {
    const auto& at = row.coverage.at;
    text += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | ±{}% | {} |\n", row.kind, row.machine_in_words(),
                        row.coverage.n, row.coverage.shapes, with_band(at[0]), with_band(at[1]), with_band(at[2]),
                        with_band(at[3]), percent_digits(row.coverage.median_error),
                        whole_percent(beyond_chance(row.coverage)));
  }
  return text + "\n";
}

std::string bins_rows(const std::string& machine, const std::string& ways, const Reliability& reliability) {
  std::string text = fmt::format("| {} | {} | {} | {:.3f} |", machine, ways, reliability.n, reliability.brier);
  for (const ReliabilityBin& bin : reliability.bins) {
    text +=
        bin.n == 0 ? " - |" : fmt::format(" {}: {} ({}) |", percent_digits(bin.said), with_band(bin.observed), bin.n);
  }
  return text + "\n";
}

std::string probabilities_section(Scores scores) {
  const PairsByMachine pairs = pairs_of(scores);
  std::string text =
      "## Reliability of win probabilities\n\n"
      "Each column is a range of stated probabilities, in %. A cell has the mean of the stated probabilities, "
      "the share that\ncame true with its sampling band, and the number of pairs. The Brier score is 0 if every "
      "call is certain and correct,\nand 0.25 for a coin toss.\n\n"
      "| machine | ways | n | Brier |";
  std::string rule = "\n|---|---|---|---|";
  for (const ReliabilityBin& bin : reliability_of({}).bins) {
    text += fmt::format(" {} |", name_of_bin(bin));
    rule += "---|";
  }
  text += rule + "\n";
  for (const auto& [machine, by_ways] : pairs) {
    for (const auto& [ways, judged_pairs] : by_ways) {
      text += bins_rows(machine, ways, reliability_of(judged_pairs));
    }
    text += by_ways.size() > 1 ? bins_rows(machine, "all of these", reliability_of(merged_pairs(by_ways))) : "";
  }
  return text + bins_rows("all machines", "all of these", reliability_of(merged_pairs(pairs))) + "\n";
}

std::string observations_section(Scores scores) {
  std::string text =
      "## Jitter and interference compared with public figures\n"
      "\n"
      "A factor of 1.013 means 1.3% above the value that it is compared with. Jitter comes from "
      "`configs/jitter/default.yaml`.\n"
      "Rows of these tables that cannot be scored are listed below, each with its reason.\n"
      "\n"
      "| figure | machine | measured | predicted | error | spread predicted / measured |\n"
      "|---|---|---|---|---|---|\n";
  for (const Observation& observation : observations_of(scores)) {
    text += fmt::format("| {} | {} | {:.3f} | {:.3f} | {}% | {} |\n", markdown_cell(observation.what),
                        observation.machine, observation.measured, observation.predicted,
                        percent_digits(std::abs(observation.predicted / observation.measured - 1.0)),
                        observation.measured > 1.0 && observation.predicted >= 1.0
                            ? fmt::format("{:.2f}", (observation.predicted - 1.0) / (observation.measured - 1.0))
                            : "-");
  }
  return text + "\n";
}

}  // namespace

std::string reliability_table(Scores scores) {
  return coverage_text(scores) + reliability_text(scores) + pays_table(scores) + observations_text(scores);
}

void add_reliability(Json& object, Scores scores) {
  object["coverage"] = Json::array();
  for (const CoverageRow& row : coverage_rows(scores)) {
    object["coverage"].push_back(coverage_json(row));
  }
  object["win_probabilities"] = Json::array();
  for (const auto& [machine, by_ways] : pairs_of(scores)) {
    object["win_probabilities"].push_back(reliability_json(machine, Json(), reliability_of(merged_pairs(by_ways))));
    for (const auto& [ways, judged_pairs] : by_ways) {
      object["win_probabilities"].push_back(reliability_json(machine, ways, reliability_of(judged_pairs)));
    }
  }
  object["observations"] = Json::array();
  for (const Observation& observation : observations_of(scores)) {
    object["observations"].push_back({{"what", observation.what},
                                      {"machine", observation.machine},
                                      {"measured", observation.measured},
                                      {"predicted", observation.predicted}});
  }
}

std::string reliability_section(Scores scores) {
  std::string text;
  if (!coverage_rows(scores).empty()) {
    text += planner_section(scores) + coverage_section(scores);
  }
  if (!pairs_of(scores).empty()) {
    text += probabilities_section(scores);
  }
  return text + (observations_of(scores).empty() ? "" : observations_section(scores));
}

}  // namespace commfuse::reports
