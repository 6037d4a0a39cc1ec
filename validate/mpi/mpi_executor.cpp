// SPDX-License-Identifier: Apache-2.0
#include "validate/mpi/mpi_executor.h"

#include <utility>

#include "validate/mpi/rank_run.h"
#include "validate/reference/interpreter.h"

namespace commfuse::validate {

MpiExecutor::MpiExecutor(Lowered lowered, Sizes sizes, Crew& crew)
    : lowered_(std::move(lowered)),
      sizes_(std::move(sizes)),
      crew_(crew),
      commands_(commands_of(lowered_, crew.process())),
      memory_(*lowered_.program, sizes_, crew.process()) {
  require_storable(program());
}

void MpiExecutor::prepare(std::span<const Matrix<float>> tensors) { fill(program(), sizes_, tensors, memory_); }

Execution MpiExecutor::run(const RunOptions& options) {
  RankRun rank(program(), sizes_, commands_, options, memory_, crew_);
  return reported_in(crew_.perform(program().mesh.ranks(), rank));
}

Matrix<float> MpiExecutor::fetch(Rank rank, const Rectangle& area) const { return memory_.read(rank, {&area, 1}); }

Verdict of_all_ranks(Crew& crew, int ranks, const Verdict& mine) {
  PayloadWriter writer;
  writer.put(mine);
  const std::vector<Payload> reports = crew.gather(ranks, writer.take());
  Verdict combined = mine;
  for (std::size_t rank = 1; rank < reports.size(); ++rank) {  // the leader's own is the first
    combined += PayloadReader(reports[rank]).get<Verdict>();
  }
  return combined;
}

}  // namespace commfuse::validate
