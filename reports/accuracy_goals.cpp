// SPDX-License-Identifier: Apache-2.0
#include "reports/accuracy_goals.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string_view>
#include <utility>

#include "reports/percents.h"

namespace commfuse::reports {

namespace {

using Errors = std::vector<double>;
using Scores = std::span<const TableScore>;

/// Errors of all rows that a goal includes, and errors of the rows among them that every fit held out.
struct Pooled {
  Errors every_row;
  Errors held_out;
};

/// Limits for the median and the p90 of errors: of selected parts, on some machines, in tables of some kinds.
struct Goal {
  std::string_view what;
  std::vector<std::string_view> kinds;
  std::vector<std::string_view> machines;              // empty: any
  std::function<bool(std::string_view part)> selects;  // selects parts by name
  double median = 0.0;
  double p90 = 0.0;  // 0: no goal
};

/// Returns whether the list has the value. An empty list allows every value.
bool allows(const std::vector<std::string_view>& values, std::string_view value) {
  return values.empty() || std::ranges::find(values, value) != values.end();
}

bool begins(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }
bool contains(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

auto named(std::string_view name) {
  return [name](std::string_view part) { return part == name; };
}

bool ring_collective(std::string_view part) {
  return contains(part, "one node, >= 64 KiB") &&
         (begins(part, "all_gather") || begins(part, "reduce_scatter") || begins(part, "all_reduce"));
}

bool all_to_all(std::string_view part) { return part == "all_to_all, one node, >= 64 KiB"; }

bool over_nodes(std::string_view part, bool priors) {
  constexpr std::array<std::string_view, 3> nodes{", 2 nodes, >= 1", ", 4 nodes, >= 1", ", 8 nodes, >= 1"};
  return std::any_of(nodes.begin(), nodes.end(), [&](std::string_view node) { return contains(part, node); }) &&
         !begins(part, "send_recv") && contains(part, "from priors") == priors;
}

/// Returns the goals of GEMMs and attention, by machine; "h100-sxm-vllm" stands for a framework on a machine.
std::vector<Goal> kernel_goals() {
  const auto gemm = [](std::string_view what, std::vector<std::string_view> machines, std::string_view dtype,
                       double median,
                       double p90) { return Goal{what, {"gemm"}, std::move(machines), named(dtype), median, p90}; };
  const auto attention = [](std::string_view what, std::vector<std::string_view> machines, std::string_view part,
                            double median, double p90) {
    return Goal{what, {"attention"}, std::move(machines), named(part), median, p90};
  };
  const std::vector<std::string_view> fitted_together{"a100-sxm-80", "h100-sxm", "h200-sxm", "b200-sxm"};
  constexpr std::string_view is_long = "sequence >= 1K";
  constexpr std::string_view is_short = "sequence < 1K";
  return {
      gemm("GEMM bf16, H100", {"h100-sxm"}, "bf16", 0.035, 0.1),
      gemm("GEMM bf16, A100", {"a100-sxm-80"}, "bf16", 0.04, 0.13),
      gemm("GEMM bf16, B200", {"b200-sxm"}, "bf16", 0.045, 0.13),
      gemm("GEMM bf16, B300", {"b300-sxm"}, "bf16", 0.055, 0.15),
      gemm("GEMM fp8, H100", {"h100-sxm"}, "fp8", 0.028, 0.09),
      gemm("GEMM fp8, B200", {"b200-sxm"}, "fp8", 0.06, 0.18),
      gemm("GEMM bf16 of vLLM, H100", {"h100-sxm-vllm"}, "bf16", 0.05, 0.14),
      gemm("GEMM bf16 of SGLang, H100", {"h100-sxm-sglang"}, "bf16", 0.05, 0.14),
      gemm("GEMM bf16 of vLLM, B200", {"b200-sxm-vllm"}, "bf16", 0.05, 0.14),
      gemm("GEMM bf16, L40S", {"l40s-pcie"}, "bf16", 0.06, 0.2),
      gemm("GEMM bf16, RTX PRO 6000", {"pcie-rtx-pro-6000"}, "bf16", 0.06, 0.2),
      attention("attention of a prefill, sequence >= 1K, A100, H100, H200, B200", fitted_together, is_long, 0.03, 0.08),
      attention("attention of a prefill, sequence < 1K, A100, H100, H200, B200", fitted_together, is_short, 0.05, 0.12),
      attention("attention of a prefill, sequence >= 1K, B300", {"b300-sxm"}, is_long, 0.06, 0.15),
      attention("attention of vLLM, sequence >= 1K, H100", {"h100-sxm-vllm"}, is_long, 0.07, 0.18)};
}

/// Returns the goals of collectives, messages and overlapped kernels.
std::vector<Goal> communication_goals() {
  const std::vector<std::string_view> links{"collective", "p2p"};
  const std::vector<std::string_view> overlap{"overlap_pairs", "overlap_prefill", "overlap_gemm_ar"};
  const std::vector<std::string_view> measured{"a100-sxm-40", "a100-sxm-80", "h100-sxm", "b200-sxm"};
  const auto fitted_nodes = [](std::string_view part) { return over_nodes(part, false); };
  const auto prior_nodes = [](std::string_view part) { return over_nodes(part, true); };
  const auto is_implementation = [](std::string_view part) { return part != "serial"; };
  const auto one_nic = [](std::string_view part) { return begins(part, "send_recv, 2 nodes, >= 64 KiB"); };
  return {{"all-gather, reduce-scatter, all-reduce by nccl-tests, one node, >= 64 KiB, A100",
           {"collective"},
           {"a100-sxm-40", "a100-sxm-80"},
           ring_collective,
           0.03,
           0.09},
          {"all-gather, reduce-scatter, all-reduce by nccl-tests, one node, >= 64 KiB, H100",
           {"collective"},
           {"h100-sxm"},
           ring_collective,
           0.03,
           0.09},
          {"all-gather, reduce-scatter, all-reduce by nccl-tests, one node, >= 64 KiB, B200",
           {"collective"},
           {"b200-sxm"},
           ring_collective,
           0.03,
           0.09},
          {"all-to-all, one node, >= 64 KiB, A100, H100, B200", {"collective"}, measured, all_to_all, 0.04, 0.12},
          {"send/recv >= 64 KiB, H100 NVSwitch",
           {"p2p"},
           {"h100-sxm", "h100-sxm-torch"},
           named("send_recv, one node, >= 64 KiB"),
           0.025,
           0.09},
          {"send/recv >= 64 KiB, H100, one NIC", {"p2p"}, {"dgx-h100-x2"}, one_nic, 0.025, 0.09},
          {"2 to 8 nodes, >= 1 MiB, fitted", links, {}, fitted_nodes, 0.04, 0.15},
          {"2 to 8 nodes, >= 1 MiB, fitted, only tables of nccl-tests", {"collective"}, {}, fitted_nodes, 0.04, 0.15},
          {"2 to 8 nodes, >= 1 MiB, from priors only", links, {}, prior_nodes, 0.15, 0.35},
          {"overlap tables: serial", overlap, {}, named("serial"), 0.04, 0.0},
          {"overlap tables: overlapped, whole prefill and Ascend", overlap, {}, named("overlapped"), 0.08, 0.0},
          {"overlap tables: implementations on GPUs", {"overlap_pairs"}, {}, is_implementation, 0.12, 0.3}};
}

Pooled pooled(const Goal& goal, Scores scores) {
  Pooled errors;
  for (const TableScore& score : scores) {
    if (score.degraded || !allows(goal.kinds, score.kind)) {
      continue;
    }
    for (const ScoredPart& part : score.parts) {
      if (goal.selects(part.name) && allows(goal.machines, part.machine)) {
        errors.every_row.insert(errors.every_row.end(), part.errors.begin(), part.errors.end());
        errors.held_out.insert(errors.held_out.end(), part.held_out.begin(), part.held_out.end());
      }
    }
  }
  return errors;
}

std::string goal_row(const Goal& goal, Scores scores) {
  const Pooled errors = pooled(goal, scores);
  const ErrorSummary judged = summary_of(errors.held_out);
  const bool met = judged.median <= goal.median && (goal.p90 == 0.0 || judged.p90 <= goal.p90);
  const std::string limit = goal.p90 == 0.0
                                ? percent_digits(goal.median)
                                : fmt::format("{} / {}", percent_digits(goal.median), percent_digits(goal.p90));
  return fmt::format("| {} | {} | {} | {} | {} |\n", goal.what, limit, error_cells(errors.held_out),
                     error_cells(errors.every_row),
                     judged.n == 0 ? "no rows"
                     : met         ? "yes"
                                   : "no");
}

std::string ratio_row(Scores scores) {
  Errors ratios;
  for (const TableScore& score : scores) {
    if (!score.degraded && score.variants && begins(score.kind, "overlap") && score.kind != "overlap_schedules") {
      ratios.insert(ratios.end(), score.variants->ratio_errors.begin(), score.variants->ratio_errors.end());
    }
  }
  const ErrorSummary summary = summary_of(ratios);
  return fmt::format("| overlap tables: ratio of overlapped to serial | 6.0 | {} | {} | {} |\n", error_cells(ratios),
                     error_cells(ratios),
                     summary.n == 0           ? "no rows"
                     : summary.median <= 0.06 ? "yes"
                                              : "no");
}

}  // namespace

std::string error_cells(const Errors& errors) {
  const ErrorSummary summary = summary_of(errors);
  return summary.n == 0
             ? "0 | - | -"
             : fmt::format("{} | {} | {}", summary.n, percent_digits(summary.median), percent_digits(summary.p90));
}

std::string goals_section(Scores scores) {
  std::string text =
      "## Goals\n\n"
      "Median and 90th percentile of the error in %. Held-out rows decide whether a goal is met. These are the "
      "rows that every\nfit kept back, in whole groups (a group is a shape (n, k) or a message size; a hash of "
      "its name selects one group in\nfive), and all rows of a network that has only priors, which no fit has "
      "seen. Tables of degraded machines are excluded.\n\n"
      "| what | goal | held out: n | median | p90 | all rows: n | median | p90 | met |\n"
      "|---|---|---|---|---|---|---|---|---|\n";
  for (const std::vector<Goal>& goals : {kernel_goals(), communication_goals()}) {
    for (const Goal& goal : goals) {
      text += goal_row(goal, scores);
    }
  }
  return text + ratio_row(scores) + "\n";
}

}  // namespace commfuse::reports
