// SPDX-License-Identifier: Apache-2.0
#include "sim/score/sampled_op.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "model/math/functions.h"
#include "model/program/builder.h"
#include "model/program/lower.h"
#include "sim/replay/monte_carlo.h"

namespace commfuse::score {

namespace {

using Groups = std::vector<std::vector<double>>;

void add_kernel(ProgramBuilder& builder, int repeats) {
  const Extent side{builder.dimension("side", 1), 1};
  const Region a = builder.whole(builder.buffer("a", BufferRole::input, side, side, DType::bf16));
  const Region w = builder.whole(builder.buffer("w", BufferRole::weight, side, side, DType::bf16));
  const Region out = builder.whole(builder.buffer("y", BufferRole::output, side, side, DType::bf16));
  for (int i = 0; i < repeats; ++i) {
    builder.gemm({.a = {a}, .b = {w}, .out = {out}, .purpose = Purpose::local});
  }
}

void add_all_gather(ProgramBuilder& builder, int repeats) {
  const Rank ranks = builder.mesh().ranks();
  const DimensionId rows = builder.dimension("rows", ranks);
  const Extent width{builder.dimension("columns", 1), 1};
  const BufferId shard = builder.buffer("shard", BufferRole::input, {rows, 1}, width, DType::bf16);
  const BufferId whole = builder.buffer("whole", BufferRole::output, {rows, ranks}, width, DType::bf16);
  for (int i = 0; i < repeats; ++i) {
    builder.collective(
        {.kind = CollectiveKind::all_gather, .in = {builder.whole(shard)}, .out = {builder.whole(whole)}});
  }
}

/// Adds sends from rank 0 to rank 1.
void add_send(ProgramBuilder& builder, int repeats) {
  const Extent side{builder.dimension("side", 1), 1};
  const BufferId from = builder.buffer("from", BufferRole::input, side, side, DType::bf16);
  const BufferId to = builder.buffer("to", BufferRole::output, side, side, DType::bf16);
  for (int i = 0; i < repeats; ++i) {
    const OpId send = builder.exchange({.shift = 1, .send = {builder.whole(from)}});
    builder.only_where(send, {.relation = Relation::equal, .axis = 0, .value = 0});
    const OpId receive = builder.exchange({.shift = 1, .receive = {builder.whole(to)}});
    builder.only_where(receive, {.relation = Relation::equal, .axis = 0, .value = 1});
  }
}

Program program_of(const SampledRuns& runs) {
  const int ranks = runs.op == SampledOp::kernel ? 1 : runs.op == SampledOp::send_recv ? 2 : runs.ranks;
  ProgramBuilder builder("sampled", Mesh{{{"tp", ranks}}});
  switch (runs.op) {
    case SampledOp::kernel: add_kernel(builder, runs.repeats); break;
    case SampledOp::all_gather: add_all_gather(builder, runs.repeats); break;
    case SampledOp::send_recv: add_send(builder, runs.repeats); break;
  }
  return std::move(builder).build();
}

/// Splits the values into consecutive groups and sorts each group. Drops an incomplete group at the end.
Groups sorted_groups(const std::vector<double>& values, std::size_t group) {
  Groups groups;
  for (std::size_t first = 0; first + group <= values.size(); first += group) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first);
    groups.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(group));
    std::sort(groups.back().begin(), groups.back().end());
  }
  return groups;
}

}  // namespace

std::vector<double> sampled_us(const SampledRuns& runs) {
  const auto program = std::make_shared<const Program>(program_of(runs));
  const Plan plan = plan_of(lower(program));
  const Tape tape = tape_of(plan.lowered);
  const std::vector<DrawKey> keys = draw_keys(*program);
  Costs costs;
  costs.duration.assign(program->ops.size(), runs.price);
  costs.issue.assign(program->ops.size(), Duration{});
  MonteCarlo sampler;
  std::vector<double> times;
  for (const Duration time :
       sampler.makespans({plan, tape, keys, costs}, {.jitter = runs.jitter, .samples = runs.runs})) {
    times.push_back(to_microseconds(time));
  }
  return times;
}

double value_at(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double position = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(std::floor(position));
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (position - static_cast<double>(below)) * (values[above] - values[below]);
}

double variation_of(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0.0;
  for (const double value : values) {
    mean += value / count;
  }
  double squares = 0.0;
  for (const double value : values) {
    squares += (value - mean) * (value - mean) / count;
  }
  return std::sqrt(squares) / mean;
}

std::vector<double> log_ratios(const std::vector<double>& values) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) {
    ratios.push_back(std::abs(math::log(values[i] / values[i + 1])));
  }
  return ratios;
}

std::vector<double> largest_over_median(const std::vector<double>& values, std::size_t group) {
  std::vector<double> factors;
  for (const std::vector<double>& values_of_group : sorted_groups(values, group)) {
    factors.push_back(values_of_group.back() / value_at(values_of_group, 0.5));
  }
  return factors;
}

std::vector<double> largest_over_smallest(const std::vector<double>& values, std::size_t group) {
  std::vector<double> factors;
  for (const std::vector<double>& values_of_group : sorted_groups(values, group)) {
    factors.push_back(values_of_group.back() / values_of_group.front());
  }
  return factors;
}

}  // namespace commfuse::score
