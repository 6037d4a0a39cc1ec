// SPDX-License-Identifier: Apache-2.0
// Tables of the products and memory-bound ops of one framework layer, one GPU emulating a shard of tensor parallelism.
//
// Memory-bound rows do not say how wide they are; the products of the same degree of parallelism do: QKV reads the
// hidden size and writes all heads, the down projection reads a shard of the MLP's inner size.
#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>

#include "model/cost/gemm.h"
#include "model/cost/memory_bound.h"
#include "model/fit/holdout.h"
#include "sim/score/kinds.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

struct Columns {
  explicit Columns(const Table& table)
      : hw(table.column("hw")),
        op(table.column("op")),
        tp(table.column("tp")),
        m(table.column("m")),
        n(table.column("n")),
        k(table.column("k")),
        time(table.column("median_us")) {}
  Column hw, op, tp, m, n, k, time;
};

/// Of one degree of tensor parallelism, in elements a row; 0: no product told.
struct Widths {
  std::int64_t hidden = 0;
  std::int64_t heads_and_kv = 0;  // what QKV writes
  std::int64_t heads = 0;
  std::int64_t inner = 0;
};

std::map<std::int64_t, Widths> widths_in(const Table& table, const Columns& columns) {
  std::map<std::int64_t, Widths> by_degree;
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    if (!row.is_sound() || !row.has(columns.n) || !row.has(columns.k)) {
      continue;
    }
    const std::string_view op = row.text(columns.op);
    const std::int64_t n = row.count(columns.n);
    const std::int64_t k = row.count(columns.k);
    Widths& widths = by_degree[row.count(columns.tp)];
    if (row.is_sound() && op == "attn_pre_proj") {
      widths.hidden = k;
      widths.heads_and_kv = n;
    } else if (row.is_sound() && op == "attn_post_proj") {
      widths.heads = k;
    } else if (row.is_sound() && op == "mlp_down_proj") {
      widths.inner = k;
    }
  }
  return by_degree;
}

/// Elements a row of the op reads and writes, each once; nothing for an op the model does not have.
std::optional<std::int64_t> elements_moved(std::string_view op, const Widths& widths) {
  const std::int64_t kv = (widths.heads_and_kv - widths.heads) / 2;
  if (op == "add" && widths.hidden > 0) {
    return 3 * widths.hidden;
  }
  if (op == "input_layernorm" && widths.hidden > 0) {
    return 2 * widths.hidden;
  }
  if (op == "mlp_act" && widths.inner > 0) {
    return 3 * widths.inner;  // gate and up in, their product out
  }
  if (op == "attn_rope" && widths.heads > 0 && kv > 0) {
    return 2 * (widths.heads + kv);  // queries and keys, in place
  }
  return std::nullopt;
}

}  // namespace

void score_layer_shapes(const Table& table, Context& context, Tally& tally) {
  const Columns columns(table);
  const std::map<std::int64_t, Widths> widths = widths_in(table, columns);
  const DType dtype = table.comments_say("fp16") ? DType::fp16 : DType::bf16;
  MachineColumn machines(context.machines);
  constexpr std::array<std::string_view, 2> parts{"products", "memory-bound ops"};
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    const double measured = row.amount(columns.time);
    const std::int64_t m = row.count(columns.m);
    const std::int64_t tp = row.count(columns.tp);
    const std::string_view op = row.text(columns.op);
    const bool is_product = row.has(columns.n) || row.has(columns.k);
    const std::int64_t n = is_product ? row.count(columns.n) : 0;
    const std::int64_t k = is_product ? row.count(columns.k) : 0;
    const std::string_view hw = row.text(columns.hw);
    const bool back = held_back(gemm_group("gemm_layer", hw, name_of(dtype), n, k));
    if (!tally.takes(row, back)) {
      continue;
    }
    const FoundMachine& found = machines.of(hw);
    if (found.machine == nullptr) {
      tally.skip(found.why_not);
      continue;
    }
    const Accelerator& accelerator = found.machine->accelerator;
    if (is_product && !accelerator.supports(dtype)) {
      tally.skip(fmt::format("{} has no products in {}", found.machine->name, name_of(dtype)));
    } else if (is_product) {
      const GemmEstimate estimate =
          estimate_gemm(accelerator, {.m = m, .n = n, .k = k, .dtype = dtype}, accelerator.sms);
      tally.score(row, *found.machine, back, {{measured, to_microseconds(estimate.time), std::span(parts).first(1)}});
    } else if (const auto known = widths.find(tp); known == widths.end() || !elements_moved(op, known->second)) {
      tally.skip(fmt::format("the table does not tell what {} moves", op));
    } else {
      const Bytes traffic{m * *elements_moved(op, known->second) * bytes_of(dtype)};
      const Duration time = memory_bound_time(accelerator, traffic, accelerator.sms);
      tally.score(row, *found.machine, back, {{measured, to_microseconds(time), std::span(parts).last(1)}});
    }
  }
}

}  // namespace commfuse::score
