// SPDX-License-Identifier: Apache-2.0
#include "model/record/columns.h"

#include <algorithm>
#include <array>
#include <unordered_map>
#include <vector>

#include "model/check.h"

namespace commfuse {

namespace {

/// A column of rows of whole models. Without a doc, it is the column of that name in rows of layers.
struct ModelColumn {
  std::string_view name;
  std::string_view doc{};
  ColumnType type = ColumnType::text;
  ColumnRole role = ColumnRole::outcome;
  PlanWords plan_words = PlanWords::nothing;
};

constexpr ModelColumn setting(std::string_view name, std::string_view doc = {}, ColumnType type = ColumnType::count) {
  return {name, doc, type, ColumnRole::point, PlanWords::setting};
}
constexpr ModelColumn machine_setting(std::string_view name) {
  return {name, {}, ColumnType::text, ColumnRole::point, PlanWords::machine};
}
constexpr ModelColumn layout_setting(std::string_view name, std::string_view doc, ColumnType type = ColumnType::count) {
  return {name, doc, type, ColumnRole::point, PlanWords::layout};
}
constexpr ModelColumn number(std::string_view name, std::string_view doc) { return {name, doc, ColumnType::number}; }
constexpr ModelColumn flag(std::string_view name, std::string_view doc, PlanWords plan_words = PlanWords::nothing) {
  return {name, doc, ColumnType::flag, ColumnRole::outcome, plan_words};
}

/// Columns in the order of the rows; sim/step/predict_steps.cpp adds the values.
constexpr std::array model_columns{
    ModelColumn{"schema"},
    ModelColumn{"model_version"},
    setting("model"),
    machine_setting("hardware"),
    machine_setting("link_bandwidth"),
    machine_setting("network_bandwidth"),
    setting("all_reduce_kernel"),
    setting("scope"),
    layout_setting("gpus", "GPUs of all replicas"),
    layout_setting("tensor", "tensor-parallel ranks"),
    // Strategies with sequence parallelism compete with all-reduces of whole outputs, so this flag is part of the
    // schedule.
    flag("sequence_parallel", "whether tensor ranks share tokens between their layers"),
    layout_setting("pipeline", "pipeline stages"),
    setting("interleave", "model chunks on each stage"),
    layout_setting("pipeline_schedule", "order of micro-batches on a stage", ColumnType::text),
    layout_setting("data", "replicas"),
    layout_setting("context", "ranks that share a sequence's tokens"),
    layout_setting("context_exchange", "how context ranks read each other's keys; absent for one rank",
                   ColumnType::text),
    layout_setting("ulysses", "ranks that share a sequence's tokens, and its heads in attention"),
    setting("experts", "ranks that share the experts"),
    setting("zero", "ZeRO stage, 0 to 3"),
    setting("batch"),
    setting("micro_batch", "sequences of a micro-batch"),
    setting("seq"),
    setting("dtype"),
    setting("recompute", "activations that the backward pass computes again", ColumnType::text),
    setting("optimizer", "optimizer whose state is held in memory", ColumnType::text),
    setting("attention_kernel"),
    flag("dropout", "whether dropout follows attention and MLP", PlanWords::setting),
    setting("gradient_dtype", "element type in which gradients are summed", ColumnType::text),
    flag("overlap_gradients", "whether gradients are reduced during the backward pass", PlanWords::setting),
    setting("launch"),
    setting("jitter"),
    setting("framework", "framework whose step is the baseline; absent for none", ColumnType::text),
    setting("price", "price of a GPU-hour; absent if none was given", ColumnType::number),
    ModelColumn{"strategy"},
    ModelColumn{"implements"},
    ModelColumn{
        "implemented_sites",
        "implementations: sites whose forward pass they run; absent if they save no time at any site, or cannot run"},
    ModelColumn{"bound"},
    ModelColumn{"link_rate_gb_s"},
    ModelColumn{"network_rate_gb_s"},
    number("time_ms", "time of a training step, a prefill, or one token of every sequence"),
    number("tokens_per_second", "tokens of all GPUs per second"),
    number("tokens_per_second_gpu", "tokens per second per GPU"),
    ModelColumn{"mfu"},
    number("hfu", "MFU that includes recomputation in the backward pass"),
    number("time_p50_ms", "median over machines whose GPUs differ"),
    number("time_p95_ms", "percentile 95 over machines whose GPUs differ"),
    number("time_p99_ms", "percentile 99 over machines whose GPUs differ"),
    number("time_p99_9_ms", "percentile 99.9 over machines whose GPUs differ"),
    number("cost_per_mtok", "cost of a million tokens of a prefill or a decoding step; absent without a price"),
    number("compute_ms", "kernels of the stage that computes longest, and the collectives between them"),
    number("attention_ms", "prefill, decode: attention or state spaces of all layers, with their collectives"),
    number("mlp_ms", "prefill, decode: MLPs or experts of all layers, with their collectives"),
    number("other_ms", "prefill, decode: embedding, norms with residuals, and logits"),
    number("waiting_ms", "pipeline bubble, sends, and a host slower than its GPU"),
    number("gradients_ms", "exposed reduction of gradients and gathering of weights"),
    number("optimizer_ms", "one pass over weights, moments and gradients"),
    number("weights_gb", "weights of the fullest GPU"),
    number("cache_gb", "keys and values per GPU"),
    number("gradients_gb", "gradients of the fullest GPU"),
    number("optimizer_gb", "optimizer state of the fullest GPU"),
    number("activations_gb", "activations of the fullest GPU"),
    number("gathered_gb", "temporary whole copies of what replicas shard"),
    number("memory_gb", "memory of the fullest GPU"),
    number("capacity_gb", "memory capacity of a GPU"),
    flag("fits", "whether the plan fits in memory"),
    ModelColumn{"schedules",
                "schedule of each GEMM that meets a collective: options, and in parentheses its sites; "
                "absent where the strategy has a single schedule"},
    ModelColumn{"unmeasured_on"},
    ModelColumn{"warnings"},
    ModelColumn{"reason"},
    number("time_error", "one standard error of time_ms, as a share"),
    ModelColumn{"win_probability"},
    ModelColumn{"beats_serial"},
    ModelColumn{"saving_error"},
    number("correction", "factor on time_ms from --measured-step; absent without it"),
};

Column column_of(const ResultColumn& column) {
  return {column.name, column.doc, column.type, column.role, column.compare != nullptr, true, false};
}

Column column_of(const ModelColumn& column) {
  return {column.name, column.doc, column.type,      column.role, column.role != ColumnRole::outcome,
          false,       true,       column.plan_words};
}

/// Returns one list in which columns of both kinds are merged; settings come before the strategy.
std::vector<Column> joined_columns() {
  std::vector<Column> columns;
  for (const ResultColumn& column : result_columns()) {
    columns.push_back(column_of(column));
  }
  const auto place_of = [&](std::string_view name) { return std::ranges::find(columns, name, &Column::name); };
  bool is_before_strategy = true;
  for (const ModelColumn& column : model_columns) {
    if (column.doc.empty()) {
      check(place_of(column.name) != columns.end(), "a column without a doc is one of layers");
      place_of(column.name)->of_models = true;
      place_of(column.name)->plan_words = column.plan_words;
    } else {
      check(place_of(column.name) == columns.end(), "a column has one doc");
      columns.insert(is_before_strategy ? place_of("strategy") : columns.end(), column_of(column));
    }
    is_before_strategy = is_before_strategy && column.name != "strategy";
  }
  return columns;
}

}  // namespace

std::span<const Column> all_columns() {
  static const std::vector<Column> columns = joined_columns();
  return columns;
}

const Column* find_column(std::string_view name) {
  static const std::unordered_map<std::string_view, const Column*> by_name = [] {
    std::unordered_map<std::string_view, const Column*> columns_by_name;
    for (const Column& column : all_columns()) {
      columns_by_name.emplace(column.name, &column);
    }
    return columns_by_name;
  }();
  const auto entry = by_name.find(name);
  return entry == by_name.end() ? nullptr : entry->second;
}

}  // namespace commfuse
