// SPDX-License-Identifier: Apache-2.0
#include "sim/lab/lab.h"

#include <memory>
#include <utility>

#include "model/check.h"
#include "model/random/philox.h"
#include "model/record/recorder.h"
#include "model/schedule/builder.h"
#include "model/schedule/check_program.h"
#include "model/schedule/generate.h"
#include "model/schedule/strategies.h"
#include "sim/engine/engine.h"
#include "sim/replay/replay.h"

namespace commfuse {

namespace {

/// Step s sends the chunk that arrived in step s - 1, and goes round the ring once more for every P - 1 steps.
Program ring(const LabWorkload& lab, std::int32_t steps) {
  ProgramBuilder builder(lab.name, Mesh{{{"rank", lab.ranks}}});
  const Extent chunks{builder.dimension("chunks", lab.ranks), lab.ranks};
  const Extent bytes{builder.dimension("bytes", 1), 1};
  const TensorId whole = builder.input_tensor("x", chunks, bytes, DType::bf16);
  const BufferId buffer = builder.buffer("x", BufferRole::output, chunks, bytes, DType::bf16);
  const Index own = along(builder.mesh(), 0);
  builder.initially(builder.rows_of(buffer, own), whole, own, 0);
  builder.finally(builder.rows_of(buffer, 0, lab.ranks), whole, 0, 0);
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
  return generate(site, Mesh{{{"rank", lab.ranks}}}, 0, *find_strategy("commfuse"), {.form = Form::ring});
}

namespace {

/// One of the lengths a tile may have, each as likely; the same for a rank and step whatever the number of ranks.
Duration random_tile(const LabWorkload& lab, Rank rank, std::uint32_t step) {
  const auto here = static_cast<std::uint32_t>(rank);
  const std::uint32_t word = philox({here / 4, step, 0, 0}, lab.seed)[here % 4];
  const auto lengths = static_cast<std::uint64_t>((lab.longest_tile - lab.shortest_tile) / lab.tile_step) + 1;
  return lab.shortest_tile + static_cast<std::int64_t>(word * lengths >> 32) * lab.tile_step;
}

void draw_tiles(const LabWorkload& lab, const Program& program, Costs& costs) {
  costs.by_rank.reserve(program.ops.size() * static_cast<std::size_t>(lab.ranks));
  for (Rank rank = 0; rank < lab.ranks; ++rank) {
    std::uint32_t step = 0;
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const bool tile = program.ops[op].kind == OpKind::gemm;
      costs.by_rank.push_back(tile ? random_tile(lab, rank, step++) : costs.duration[op]);
    }
  }
}

}  // namespace

Costs lab_costs(const LabWorkload& lab, const Program& program) {
  Costs costs;
  const Duration message = lab.latency + lab.chunk / lab.rate;
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

LabRun run_lab(const LabWorkload& lab, Evaluator evaluator, bool symmetry) {
  const auto program = std::make_shared<const Program>(lab_program(lab));
  check(check_program(*program).ok(), "a lab workload passes its proof");
  const Costs costs = lab_costs(lab, *program);
  const auto ranks = static_cast<std::size_t>(lab.ranks);
  LabRun run;
  for (const Op& op : program->ops) {
    (op.kind == OpKind::exchange ? run.messages : run.tiles) += ranks;
  }
  if (evaluator == Evaluator::engine) {
    Recorder recorder(Recorder::Keep::ends);
    Engine{}.run(plan_of(lower(program)), costs, recorder);
    run.makespan = recorder.makespan().time_since_epoch();
    run.evaluator = Evaluator::engine;
    return run;
  }
  const Tape tape = tape_of(lower(program));
  run.one_for_all = symmetry && alike(tape, costs);
  run.makespan = Replay{}.makespan(*program, tape, costs, run.one_for_all ? Replay::Ranks::first : Replay::Ranks::all);
  return run;
}

}  // namespace commfuse
