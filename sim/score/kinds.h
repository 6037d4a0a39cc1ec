// SPDX-License-Identifier: Apache-2.0
// The kinds of tables, recognised by their header, with their scorers.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/point/predict.h"
#include "sim/score/doubts.h"
#include "sim/score/known_machines.h"
#include "sim/score/table.h"
#include "sim/score/tally.h"

namespace commfuse::score {

/// A scorer's inputs besides the table.
struct Context {
  KnownMachines& machines;
  Predictor& predictor;
  Doubts& doubts;
  std::string_view file_name;  ///< Name of the table without its ending, which may name the machine.
  bool residuals = false;      ///< Rows that fits read are wanted too.
};

using Scorer = void (*)(const Table&, Context&, Tally&);

struct Kind {
  std::string_view name;                  ///< "gemm_layer"; empty: a known table of no kind that is scored.
  std::vector<std::string_view> columns;  ///< Columns that must all be present.
  Scorer score = nullptr;                 ///< Null: `why_not` is the reason.
  std::string_view why_not;
};

/// Returns all kinds; the first that matches counts.
std::span<const Kind> kinds();

/// Returns null where no kind has these columns.
const Kind* kind_of(const Table& table);

/// Returns a sentence where two columns have the same name, so that one would be ignored; otherwise empty.
std::string double_column(const Table& table);

/// Returns a sentence where the header matches a scored kind except for one column, or is missing; otherwise empty.
/// Used only for tables of no kind.
std::string mistake_in_header(const Table& table);

// The scorers, one file each.
void score_products(const Table& table, Context& context, Tally& tally);
void score_best_products(const Table& table, Context& context, Tally& tally);
void score_layer_shapes(const Table& table, Context& context, Tally& tally);
void score_attention(const Table& table, Context& context, Tally& tally);
void score_collectives(const Table& table, Context& context, Tally& tally);
void score_framework_all_reduces(const Table& table, Context& context, Tally& tally);
void score_bus_rates(const Table& table, Context& context, Tally& tally);
void score_exchanges(const Table& table, Context& context, Tally& tally);
void score_prefill(const Table& table, Context& context, Tally& tally);
void score_gemm_ar(const Table& table, Context& context, Tally& tally);
void score_overlap_pairs(const Table& table, Context& context, Tally& tally);
void score_schedules(const Table& table, Context& context, Tally& tally);
void score_gpt_steps(const Table& table, Context& context, Tally& tally);
void score_recomputed_steps(const Table& table, Context& context, Tally& tally);
void score_weak_scaling(const Table& table, Context& context, Tally& tally);
void score_llama_steps(const Table& table, Context& context, Tally& tally);
void score_step_pairs(const Table& table, Context& context, Tally& tally);
void score_recipes(const Table& table, Context& context, Tally& tally);
void score_memory_fits(const Table& table, Context& context, Tally& tally);
void score_layer_passes(const Table& table, Context& context, Tally& tally);
void score_variability(const Table& table, Context& context, Tally& tally);
void score_interference(const Table& table, Context& context, Tally& tally);

}  // namespace commfuse::score
