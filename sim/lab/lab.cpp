// SPDX-License-Identifier: Apache-2.0
#include "sim/lab/lab.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "model/cost/draw_keys.h"
#include "model/cost/op_time.h"
#include "model/program/builder.h"
#include "model/program/recorder.h"
#include "model/proof/check_program.h"
#include "model/random/philox.h"
#include "model/strategies/generate.h"
#include "model/strategies/strategies.h"
#include "model/text/suggest.h"
#include "sim/engine/engine.h"
#include "sim/replay/replay.h"

namespace commfuse {

namespace {

/// Step s sends the chunk that arrived in step s - 1. P - 1 steps bring each chunk to all ranks of the ring.
Program ring(const LabWorkload& lab, std::int32_t steps) {
  ProgramBuilder builder(lab.name, Mesh{{{"rank", lab.ranks}}});
  const Extent chunks{builder.dimension("chunks", lab.ranks), lab.ranks};
  const Extent bytes{builder.dimension("bytes", 1), 1};
  const TensorId input = builder.input_tensor("x", chunks, bytes, DType::bf16);
  const BufferId buffer = builder.buffer("x", BufferRole::output, chunks, bytes, DType::bf16);
  const Index own_rank = along(builder.mesh(), 0);
  builder.initially(builder.rows_of(buffer, own_rank), input, own_rank, 0);
  builder.finally(builder.rows_of(buffer, 0, lab.ranks), input, 0, 0);
  for (std::int32_t step = 0; step < steps; ++step) {
    builder.exchange({.send = {builder.rows_of(buffer, along(builder.mesh(), 0, -step))},
                      .receive = {builder.rows_of(buffer, along(builder.mesh(), 0, -step - 1))}});
  }
  return std::move(builder).build();
}

}  // namespace

Program lab_program(const LabWorkload& lab) {
  switch (lab.pattern) {
    case LabPattern::all_gather: return ring(lab, lab.ranks - 1);
    case LabPattern::all_reduce: return ring(lab, 2 * (lab.ranks - 1));
    case LabPattern::fuse_ag: break;
  }
  const Operation site{lab.name, {{.name = lab.name, .kind = SiteKind::ag_gemm, .contraction = "k", .columns = "n"}}};
  return generate(site, Mesh{{{"rank", lab.ranks}}}, 0, commfuse_strategy, {.form = Form::ring});
}

namespace {

/// Draws a tile length; all possible lengths are equally likely. The length for a given rank and step does not depend
/// on the number of ranks.
Duration random_tile(const LabWorkload& lab, Rank rank, std::uint32_t step) {
  const auto rank_number = static_cast<std::uint32_t>(rank);
  const std::uint32_t word = philox({rank_number / 4, step, 0, 0}, lab.seed)[rank_number % 4];
  const auto lengths = static_cast<std::uint64_t>((lab.longest_tile - lab.shortest_tile) / lab.tile_step) + 1;
  return lab.shortest_tile + static_cast<std::int64_t>(word * lengths >> 32) * lab.tile_step;
}

void draw_tiles(const LabWorkload& lab, const Program& program, Costs& costs) {
  costs.by_rank.reserve(program.ops.size() * static_cast<std::size_t>(lab.ranks));
  for (Rank rank = 0; rank < lab.ranks; ++rank) {
    std::uint32_t step = 0;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const bool is_tile = program.ops[op].kind == OpKind::gemm;
      costs.by_rank.push_back(is_tile ? random_tile(lab, rank, step++) : costs.duration[op]);
    }
  }
}

/// Checks that the run is no faster than its wires or its tiles allow.
void require_above_bounds(const LabWorkload& lab, const Program& program, Duration makespan) {
  const Duration chunk = lab.chunk / lab.rate;
  Duration wire{};
  Duration tiles{};
  for (const Op& op : program.ops) {
    op.kind == OpKind::exchange ? wire += chunk : tiles += lab.shortest_tile;
  }
  check(makespan >= wire && makespan >= tiles, "no run is faster than its bounds");
}

}  // namespace

Costs lab_costs(const LabWorkload& lab, const Program& program) {
  Costs costs;
  const Duration message = lab.latency + lab.chunk / lab.rate;
  costs.duration.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    costs.duration.push_back(op.kind == OpKind::exchange ? message : lab.shortest_tile);
  }
  costs.issue.assign(program.ops.size(), Duration{});
  costs.compute = lab.ranks * lab.shortest_tile;
  if (lab.longest_tile > lab.shortest_tile) {
    draw_tiles(lab, program, costs);
  }
  return costs;
}

namespace {

/// Rejects workloads whose makespan may exceed the limit. Each rank has at most 2 P messages and P tiles.
void require_in_range(const LabWorkload& lab) {
  const double message = to_seconds(lab.latency) + static_cast<double>(lab.chunk.count) / lab.rate.value;
  const double step = 2.0 * message + to_seconds(std::max(lab.shortest_tile, lab.longest_tile));
  if (lab.ranks * step > longest_op_seconds) {
    throw ConfigError(
        fmt::format("{}: {} ranks take up to {:.3g} s, over the limit of {:.0e} s; choose a smaller chunk, a higher "
                    "rate, shorter tiles or fewer ranks",
                    in_quotes(lab.name), lab.ranks, lab.ranks * step, longest_op_seconds));
  }
}

/// Refuses runs whose times per op and rank would not fit in memory.
void require_kept(const LabWorkload& lab, double ops, bool has_jitter) {
  constexpr double max_bytes = 1e9;
  constexpr double sampled_bytes = 80.0;  // per op and rank: its draw, its time, and the path through it
  const double bytes = ops * (has_jitter ? sampled_bytes : static_cast<double>(sizeof(Duration)));
  if (bytes > max_bytes) {
    throw ConfigError(fmt::format(
        "{}: {} over {} ranks {} of each of {:.0f} ops, {:.1f} GB, and the limit is {:.0f} GB; choose fewer ranks",
        in_quotes(lab.name), has_jitter ? "jitter" : "tiles of random length", lab.ranks,
        has_jitter ? "keeps the times" : "keep the time", ops, bytes / 1e9, max_bytes / 1e9));
  }
}

/// Limits the number of ops. With symmetry, only one rank is simulated, which is cheap at any number of ranks.
void require_few_ops(const LabWorkload& lab, const LabOptions& options, const Program& program) {
  constexpr double max_simulated = 17179869184.0;  // 2^34 ops take some minutes
  const double ops = static_cast<double>(program.ops.size()) * lab.ranks;
  const bool has_jitter = options.monte_carlo.jitter != nullptr;
  const bool has_random_tiles = lab.longest_tile > lab.shortest_tile;
  if (has_jitter || has_random_tiles) {
    require_kept(lab, ops, has_jitter);
  }
  const bool uses_engine = options.simulation.evaluator == Evaluator::engine || options.faults;
  if ((uses_engine || !options.simulation.symmetry) && ops > max_simulated) {
    throw ConfigError(
        fmt::format("{}: {} ranks simulated individually have more than {:.0f} ops; choose fewer ranks, or use "
                    "--symmetry on and --evaluator replay without faults",
                    in_quotes(lab.name), lab.ranks, max_simulated));
  }
}

}  // namespace

LabRun run_lab(const LabWorkload& lab, const LabOptions& options) {
  require_in_range(lab);
  if (options.faults && options.simulation.evaluator == Evaluator::replay) {
    throw ConfigError("replay cannot simulate faults: rates change at run time; choose --evaluator engine or auto");
  }
  const auto program = std::make_shared<const Program>(lab_program(lab));
  require_few_ops(lab, options, *program);
  Proof proof = prove(*program);
  check(proof.report.ok(), "a lab workload passes its proof");
  const Costs costs = lab_costs(lab, *program);
  const EngineOptions engine{.faults = options.faults.get()};
  const bool uses_engine = options.simulation.evaluator == Evaluator::engine || options.faults;
  const auto ranks = static_cast<std::size_t>(lab.ranks);
  LabRun run{.evaluator = uses_engine ? Evaluator::engine : Evaluator::replay};
  for (const Op& op : program->ops) {
    (op.kind == OpKind::exchange ? run.messages : run.tiles) += ranks;
  }
  // Builds only what the evaluator needs: at 65,536 ranks, the engine's plan and replay's tape are each slow to build.
  Plan plan{.lowered = lower(program, std::move(proof.matching))};
  Tape tape;
  if (uses_engine) {
    plan = plan_of(std::move(plan.lowered));
    Recorder recorder(Recorder::Keep::ends);
    Engine{}.run(plan, costs, recorder, engine);
    run.makespan = recorder.makespan().time_since_epoch();
  } else {
    tape = tape_of(plan.lowered);
    run.simulated_one_rank = options.simulation.symmetry && ranks_are_identical(tape, costs);
    run.makespan =
        Replay{}.makespan(*program, tape, costs, run.simulated_one_rank ? Replay::Ranks::distinct : Replay::Ranks::all);
  }
  require_above_bounds(lab, *program, run.makespan);
  if (options.monte_carlo.jitter) {
    const std::vector<DrawKey> keys = draw_keys(*program);
    MonteCarloOptions sampled = options.monte_carlo;
    sampled.engine = uses_engine ? &engine : nullptr;
    run.tails = MonteCarlo{options.for_each}.run({plan, tape, keys, costs}, sampled);
  }
  return run;
}

}  // namespace commfuse
