// SPDX-License-Identifier: Apache-2.0
// The kinds of tables, which are recognized by their header, and their scorers.
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

/// The inputs of a scorer in addition to the table.
struct Context {
  KnownMachines& machines;
  Predictor& predictor;
  Doubts& doubts;
  std::string_view file_name;  ///< File name of the table without extension; it may name the machine.
  bool residuals = false;      ///< Also collect the rows that fits read.
};

using Scorer = void (*)(const Table&, Context&, Tally&);

struct Kind {
  std::string_view name;                  ///< "gemm_layer"; empty for known tables that belong to no scored kind.
  std::vector<std::string_view> columns;  ///< Columns that must all be present.
  Scorer score = nullptr;                 ///< Null if the kind is not scored; `why_not` gives the reason.
  std::string_view why_not;
};

/// Returns all kinds, in the order in which kind_of() tries them.
std::span<const Kind> kinds();

/// Returns the first kind whose columns the table has; null if there is none.
const Kind* kind_of(const Table& table);

/// Returns a message if two columns have the same name, since one of them would be ignored; otherwise an empty text.
std::string repeated_column(const Table& table);

/// Returns a message if the header is missing, contains a number, or lacks exactly one of at least four columns of a
/// kind; otherwise an empty text. Requires `table` to be of no known kind.
std::string mistake_in_header(const Table& table);

inline double makespan_us(const Prediction& prediction) {
  return to_microseconds(prediction.analysis.critical.makespan);
}

// The scorers; related kinds share a file.
void score_products(const Table& table, Context& context, Tally& tally);
void score_best_products(const Table& table, Context& context, Tally& tally);
void score_layer_shapes(const Table& table, Context& context, Tally& tally);
void score_attention(const Table& table, Context& context, Tally& tally);
void score_decode_attention(const Table& table, Context& context, Tally& tally);
void score_latent_decode(const Table& table, Context& context, Tally& tally);
void score_expert_layers(const Table& table, Context& context, Tally& tally);
void score_quantization(const Table& table, Context& context, Tally& tally);
void score_collectives(const Table& table, Context& context, Tally& tally);
void score_framework_all_reduces(const Table& table, Context& context, Tally& tally);
void score_bus_rates(const Table& table, Context& context, Tally& tally);
void score_exchanges(const Table& table, Context& context, Tally& tally);
void score_prefill(const Table& table, Context& context, Tally& tally);
void score_throughput(const Table& table, Context& context, Tally& tally);
void score_fused_norms(const Table& table, Context& context, Tally& tally);
void score_fused_norm_ctas(const Table& table, Context& context, Tally& tally);
void score_gemm_ar(const Table& table, Context& context, Tally& tally);
void score_overlap_pairs(const Table& table, Context& context, Tally& tally);
void score_engine_passes(const Table& table, Context& context, Tally& tally);
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
