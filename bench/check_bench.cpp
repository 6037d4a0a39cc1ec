// SPDX-License-Identifier: Apache-2.0
// Measures the time to generate, prove, order and digest a schedule, before it is priced. The project's bars are 0.2 s
// to generate and prove FuseRS for 1,024 ranks, and 0.1 s to prove it for 65,536 ranks. A time that grows faster than
// the number of ranks indicates a problem.
#include <benchmark/benchmark.h>

#include <string>

#include "model/program/names.h"
#include "model/program/order.h"
#include "model/program_text/text.h"
#include "model/proof/check_program.h"
#include "model/strategies/scope.h"

namespace commfuse {
namespace {

/// Arguments: 0 for FuseAG (gate_up) or 1 for FuseRS (down), 0 for the ring or 1 for the direct form, ranks.
Program schedule_of(benchmark::State& state) {
  const Scope scope = state.range(0) == 0 ? Scope::gate_up : Scope::down;
  const Form form = state.range(1) == 0 ? Form::ring : Form::direct;
  const Mesh mesh{{{"tp", static_cast<std::int32_t>(state.range(2))}}};
  state.SetLabel((state.range(0) == 0 ? "FuseAG " : "FuseRS ") + std::string{name_of(form)});
  return generate(operation_of(scope, true), mesh, 0, commfuse_strategy, {.form = form});
}

void schedules(benchmark::internal::Benchmark* bench) {
  bench->ArgsProduct({{0, 1}, {0, 1}, {1024, 65536}})->Unit(benchmark::kMillisecond);
}

void generate_schedule(benchmark::State& state) {
  for (auto _ : state) {
    benchmark::DoNotOptimize(schedule_of(state));
  }
}
BENCHMARK(generate_schedule)->Apply(schedules);

void check_schedule(benchmark::State& state) {
  const Program program = schedule_of(state);
  for (auto _ : state) {
    if (!check_program(program).ok()) {
      state.SkipWithError("the schedule did not pass");
    }
  }
}
BENCHMARK(check_schedule)->Apply(schedules);

void meetings_of_schedule(benchmark::State& state) {
  const Program program = schedule_of(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(meetings_of(program, Order(program, 0)));
  }
}
BENCHMARK(meetings_of_schedule)->Apply(schedules);

void digest_schedule(benchmark::State& state) {
  const Program program = schedule_of(state);
  for (auto _ : state) {
    benchmark::DoNotOptimize(digest_of(program));
  }
}
BENCHMARK(digest_schedule)->Apply(schedules);

}  // namespace
}  // namespace commfuse
