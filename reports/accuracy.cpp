// SPDX-License-Identifier: Apache-2.0
#include "reports/accuracy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <string_view>
#include <vector>

#include "model/text/counted.h"
#include "reports/accuracy_goals.h"
#include "reports/markdown.h"
#include "reports/pays.h"
#include "reports/percents.h"
#include "reports/reliability.h"

namespace commfuse::reports {

namespace {

using Errors = std::vector<double>;
using Scores = std::span<const TableScore>;

bool includes(const std::vector<std::string>& values, std::string_view value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::string gain(const Errors& errors, const Errors& unpenalised, double ErrorSummary::*member) {
  const double without_penalty = summary_of(unpenalised).*member;
  return without_penalty > 0.0 ? fmt::format("{:.0f}%", 100.0 * (1.0 - summary_of(errors).*member / without_penalty))
                               : "-";
}

/// Returns the number of errors, the median and p90 of the errors with and without a penalty, and the reductions, such
/// as "12 | 2.6, 8.3 | 4.2, 32.0 | 39%, 74%".
std::string penalty_cells(const std::vector<double>& errors, const std::vector<double>& unpenalised) {
  const ErrorSummary with_penalty = summary_of(errors);
  const ErrorSummary without_penalty = summary_of(unpenalised);
  return fmt::format("{} | {}, {} | {}, {} | {}, {}", with_penalty.n, percent_digits(with_penalty.median),
                     percent_digits(with_penalty.p90), percent_digits(without_penalty.median),
                     percent_digits(without_penalty.p90), gain(errors, unpenalised, &ErrorSummary::median),
                     gain(errors, unpenalised, &ErrorSummary::p90));
}

std::string penalty_row(std::string_view table, const PenaltyScore& penalty) {
  return fmt::format("| {} | {} | {} | {} |\n", table, penalty.parts,
                     penalty_cells(penalty.held_out, penalty.held_out_of_no_penalty),
                     penalty_cells(penalty.errors, penalty.of_no_penalty));
}

void add(PenaltyScore& to, const PenaltyScore& from) {
  const auto append = [](std::vector<double>& errors, const std::vector<double>& more) {
    errors.insert(errors.end(), more.begin(), more.end());
  };
  to.parts = from.parts;
  append(to.errors, from.errors);
  append(to.of_no_penalty, from.of_no_penalty);
  append(to.held_out, from.held_out);
  append(to.held_out_of_no_penalty, from.held_out_of_no_penalty);
}

std::string penalties_section(Scores scores) {
  std::string text =
      "## The slicing penalty\n\n"
      "Cutting the rows of a GEMM into P parts costs P x T(m / P) / T(m), and this decides whether slicing or\n"
      "decomposing pays. The score covers GEMMs with m / P >= 512 and n, k >= 1024. Its median and p90 errors "
      "should\nbe at least 30% below those of \"penalty = 1\", the prediction that cutting costs nothing. "
      "Held-out rows\ndecide; where they are few, all rows are more informative: a fit has fewer than 20 parameters, "
      "and thousands of rows.\n\n"
      "| table | P | held out: n | median, p90 | of \"penalty = 1\" | less error "
      "| all rows: n | median, p90 | of \"penalty = 1\" | less error |\n"
      "|---|---|---|---|---|---|---|---|---|---|\n";
  std::map<int, PenaltyScore> totals;
  for (const TableScore& score : scores) {
    for (const PenaltyScore& penalty : score.penalties) {
      text += penalty_row(fmt::format("`{}`", score.table), penalty);
      add(totals[penalty.parts], penalty);
    }
  }
  for (const auto& [parts, penalty] : totals) {
    text += penalty_row("all of these", penalty);
  }
  return text + "\n";
}

std::string table_rows(const TableScore& score) {
  const ErrorSummary summary = summary_of(score.errors);
  std::string text = fmt::format("| `{}`{} | {} | {} | {} | {} |\n", score.table, score.degraded ? " (degraded)" : "",
                                 score.skipped_rows(), error_cells(score.errors),
                                 summary.n == 0 ? "-" : percent_digits(summary.max), error_cells(score.held_out));
  for (const ScoredPart& part : score.parts) {
    const std::string machine = score.machines.size() > 1 ? part.machine + ": " : "";
    text += fmt::format("| \u2003{}{} | | {} | {} | {} |\n", machine, part.name, error_cells(part.errors),
                        percent_digits(summary_of(part.errors).max), error_cells(part.held_out));
  }
  if (score.variants) {
    text += fmt::format("| \u2003ratio; winner correct in {} of {} | | {} | {} | |\n", score.variants->agreed,
                        score.variants->compared, error_cells(score.variants->ratio_errors),
                        percent_digits(summary_of(score.variants->ratio_errors).max));
  }
  return text;
}

/// Returns the held-out errors of the parts with this name, or of the whole table if `part` is empty.
Errors held_out_of(const TableScore& score, std::string_view part) {
  if (part.empty()) {
    return score.held_out;
  }
  Errors errors;
  for (const ScoredPart& scored_part : score.parts) {
    if (scored_part.name == part) {
      errors.insert(errors.end(), scored_part.held_out.begin(), scored_part.held_out.end());
    }
  }
  return errors;
}

std::string digits_or_dash(std::int64_t rows, double share) { return rows == 0 ? "-" : percent_digits(share); }

/// Returns "yes" if the goal is met, otherwise "no"; without rows, returns "no rows".
std::string_view goal_cell(std::int64_t rows, bool is_met) { return rows == 0 ? "no rows" : is_met ? "yes" : "no"; }

/// Compares errors of whole models with the goals for each table.
std::string steps_section(Scores scores) {
  struct StepGoal {
    std::string_view table;
    std::string_view what;
    double limit;
    double ErrorSummary::*member;
    std::string_view part = {};  // part of the table; empty: the whole table
  };
  constexpr std::string_view prefill = "overlap_tokenweave_prefill_h100.csv";
  constexpr std::string_view serial = "serial over compute only";
  constexpr std::string_view overlapped = "overlapped over compute only";
  constexpr std::array goals{
      StepGoal{"e2e_megatron_korthikanti_a100.csv", "GPT 22B and 175B, DGX A100: largest error", 0.06,
               &ErrorSummary::max},
      StepGoal{"korthikanti2022_table4_layer.csv", "a layer of 22B, forward and backward: largest error", 0.08,
               &ErrorSummary::max},
      StepGoal{"mcore_h100_weak_scaling.csv", "GPT 1.7B to 462B, 48 to 6144 H100: median", 0.10, &ErrorSummary::median},
      StepGoal{prefill, "prefill on 8 H100, serial over compute only: median", 0.015, &ErrorSummary::median, serial},
      StepGoal{prefill, "prefill on 8 H100, serial over compute only: largest error", 0.04, &ErrorSummary::max, serial},
      StepGoal{prefill, "prefill, overlapped over compute only: median", 0.02, &ErrorSummary::median, overlapped},
      StepGoal{prefill, "prefill, overlapped over compute only: p90", 0.06, &ErrorSummary::p90, overlapped}};
  std::string text =
      "## Whole models\n\nErrors of the time of a training step, or of a ratio of two passes, in %.\n\n"
      "| what | goal | n | reached | met |\n|---|---|---|---|---|\n";
  for (const TableScore& score : scores) {
    if (score.steps) {
      const StepScore& steps = *score.steps;
      text += fmt::format("| `{}`: mean; rank correlation | 8.0; 0.98 | {} | {}; {} | {} |\n", score.table, steps.n,
                          percent_digits(steps.mean),
                          steps.rank_correlation ? fmt::format("{:.4f}", *steps.rank_correlation) : "-",
                          steps.mean <= 0.08 && steps.rank_correlation.value_or(0.0) >= 0.98 ? "yes" : "no");
      if (steps.layout_pairs > 0) {
        const double named = static_cast<double>(steps.better_named) / static_cast<double>(steps.layout_pairs);
        text += fmt::format(
            "| `{}`: the better of two layouts that differ by more than 5% is named | 95 | {} | {} | {} |\n",
            score.table, steps.layout_pairs, percent_digits(named), named >= 0.95 ? "yes" : "no");
      }
    }
    if (score.memory) {
      text += fmt::format("| `{}`: predicted to fit in memory exactly where it fitted | | {} | {} of {} | |\n",
                          score.table, score.memory->facts, score.memory->agreed, score.memory->facts);
    }
    if (score.gain_distance) {
      text +=
          fmt::format("| `{}`: largest error of the gain by overlap, in points | 4.0 | {} | {} | {} |\n", score.table,
                      score.scored, percent_digits(*score.gain_distance), *score.gain_distance <= 0.04 ? "yes" : "no");
    }
    if (score.mfu_distance) {
      text += fmt::format("| `{}`: largest error of MFU, in points | 3.0 | {} | {} | {} |\n", score.table, score.scored,
                          digits_or_dash(score.scored, *score.mfu_distance),
                          goal_cell(score.scored, *score.mfu_distance <= 0.03));
    }
    for (const StepGoal& goal : goals) {
      if (score.table == goal.table) {
        const ErrorSummary summary = summary_of(held_out_of(score, goal.part));
        text += fmt::format("| {} | {} | {} | {} | {} |\n", goal.what, percent_digits(goal.limit), summary.n,
                            digits_or_dash(summary.n, summary.*goal.member),
                            goal_cell(summary.n, summary.*goal.member <= goal.limit));
      }
    }
  }
  return text + "\n";
}

/// Returns each remark of a kind once; remarks are printed below the tables of the kind.
std::string remarks_of(std::string_view kind, Scores scores) {
  std::vector<std::string> remarks;
  for (const TableScore& score : scores) {
    for (const std::string& remark : score.remarks) {
      if (score.kind == kind && !includes(remarks, remark)) {
        remarks.push_back(remark);
      }
    }
  }
  std::string text;
  for (const std::string& remark : remarks) {
    text += "\n" + remark + "\n";
  }
  return text;
}

std::string tables_section(Scores scores) {
  std::string text = "## Table by table\n\nErrors in %. `n` counts times: a row of an overlap table holds several.\n";
  std::vector<std::string> kinds;
  for (const TableScore& score : scores) {
    if (score.note.empty() && !includes(kinds, score.kind)) {
      kinds.push_back(score.kind);
    }
  }
  for (const std::string& kind : kinds) {
    text += fmt::format(
        "\n### {}\n\n| table | skipped | n | median | p90 | max | held out: n | median | p90 |\n"
        "|---|---|---|---|---|---|---|---|---|\n",
        kind);
    for (const TableScore& score : scores) {
      text += score.note.empty() && score.kind == kind ? table_rows(score) : "";
    }
    text += remarks_of(kind, scores);
  }
  return text + "\n";
}

std::string skipped_section(Scores scores) {
  std::string text = "## What is not scored, and why\n\n| table | rows | reason |\n|---|---|---|\n";
  for (const TableScore& score : scores) {
    for (const Skipped& skipped : score.skipped) {
      text += fmt::format("| `{}` | {} | {} |\n", score.table, skipped.rows, markdown_cell(skipped.reason));
    }
  }
  return text;
}

/// Lists malformed rows, which are not scored; empty without them.
std::string faults_section(Scores scores) {
  std::string text;
  for (const TableScore& score : scores) {
    for (const RowFault& fault : score.faults) {
      text += fmt::format("| `{}` | line {} | {} |\n", score.table, fault.line, markdown_cell(fault.reason));
    }
    if (const auto more = score.fault_count - static_cast<std::int64_t>(score.faults.size()); more > 0) {
      text += fmt::format("| `{}` | {} | |\n", score.table, counted(more, "more row"));
    }
  }
  return text.empty() ? text : "\n## Malformed rows\n\n| table | place | reason |\n|---|---|---|\n" + text;
}

std::string sources_section(Scores scores) {
  std::string text = "\n## Where the tables are from\n\n| table | source |\n|---|---|\n";
  for (const TableScore& score : scores) {
    if (!score.source.empty()) {
      text += fmt::format("| `{}{}` | {} |\n", score.brought_along ? "configs/published/" : "", score.table,
                          markdown_cell(score.source));
    }
  }
  return text;
}

constexpr std::string_view accuracy_heading =
    "# How accurate it is\n\n"
    "Written by `commfuse-sim score -o markdown`, from the tables that are part of this project "
    "(`configs/published`) and a\nfolder of public measurements next to the project, which is not part of it. "
    "[Where the tables are\nfrom](#where-the-tables-are-from) names the source of each table. Without that "
    "folder, `commfuse-sim score` scores the\ntables of `configs/published`.\n\n"
    "<!-- test: skip run by AccuracyDoc.IsTheWholePageWhereTheMeasurementsLieBeside -->\n```console\n"
    "$ commfuse-sim score --data ../shared/data --data configs/published -o markdown > docs/accuracy.md\n"
    "$ commfuse-sim score --dynamic -o markdown >> docs/accuracy.md\n"
    "$ commfuse-sim score --verdicts --data ../shared/data/measured -o markdown >> docs/accuracy.md\n```\n\n"
    "An error is |predicted / measured - 1|. Nothing is looked up: a prediction comes from the parameters in\n"
    "`configs/hardware` and `configs/clusters`, and each states whether it was fitted, published or a prior.\n\n";

constexpr std::string_view peers =
    "## Comparison with other tools\n\n"
    "What others publish is mostly the mean error of end-to-end times. Nobody publishes the error for a GEMM "
    "that is sliced\nto overlap its communication, or for percentiles of a layer.\n\n"
    "| who | what | error |\n"
    "|---|---|---|\n"
    "| Calculon (rerun) | 8 training steps on A100 | 3.65% mean, 8.87% max |\n"
    "| vTrain | training steps, 8 and 512 A100 | 8.37 and 14.73% mean |\n"
    "| Lumos | training steps, replayed traces | 3.3% mean |\n"
    "| Echo | slowdown of overlapped kernels, black box | 8% |\n"
    "| arXiv 2509.22832 | training steps, two machines | 4.98 and 9.38% |\n"
    "| ATLAHS | traces of whole runs | below 5% |\n"
    "| TrioSim | traces of whole runs | typically below 10% |\n"
    "| ASTRA-sim 2 | NCCL collectives on H100 | 17% geometric mean |\n"
    "| FlashOverlap's tuner | overlapped GEMM and collective, tuned on the same GPU | 3.4% |\n"
    "| FiCCO's heuristic | the best schedule picked in unseen cases | right in 81% |\n"
    "| wave quantisation with 17 parameters per GPU | GEMM H100, A100, B200; median / p90 | 4.7 / 15.6, 6.5 / 19.8, "
    "6.7 "
    "/ 19.6% |\n"
    "| four parameters per machine and collective | collectives in one node; median / p90 | 4 to 13 / 13 to 30% |\n\n"
    "Measurements set a floor: the same GEMM in three frameworks on one GPU model differs by a median of "
    "2 to 8%, NCCL\nrepeated on one node by 0.5 to 2.4%.\n\n";

}  // namespace

std::string accuracy_page(Scores scores) {
  // External tables contain most rows of the project's own tables, so sections that join tables omit the latter if
  // external tables are scored. Overlapped kernels are an exception: some machines are in the project's tables only.
  std::vector<TableScore> external;
  std::copy_if(scores.begin(), scores.end(), std::back_inserter(external),
               [](const TableScore& score) { return !score.brought_along; });
  const Scores judged = external.empty() ? scores : Scores(external);
  return std::string(accuracy_heading) + goals_section(judged) + pays_section(scores) + reliability_section(judged) +
         steps_section(judged) + penalties_section(judged) + std::string(peers) + tables_section(scores) +
         skipped_section(scores) + faults_section(scores) + sources_section(scores);
}

}  // namespace commfuse::reports
