// SPDX-License-Identifier: Apache-2.0
// commfuse-sim plan: GPUs, time and money of a whole training run.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "model/config/command_line.h"
#include "sim/commands/commands.h"
#include "sim/plan/capacity.h"

namespace commfuse::sim {

void add_plan(CLI::App& app, int& status) {
  add_verb(app, "plan", "GPUs, time and money that a training run needs", [&status](CLI::App& command) {
    const auto file = std::make_shared<std::string>();
    command.add_option("PLAN", *file, "YAML")->required();
    command.callback([file, &status] {
      const CapacityPlan plan = plan_capacity(load_plan(*file));
      for (const auto& kind : plan.kinds) {
        fmt::print("{} layouts {} fit {} priced {} played {} err {} answer {} {}\n", kind.name, kind.layouts,
                   kind.fitting, kind.priced, kind.played, kind.step_error, kind.answer.value_or(999), kind.reason);
        for (const auto& r : kind.runs)
          fmt::print(
              "{} tp{} pp{} v{} cp{} dp{} mb{} z{} step {:.3f} mfu {:.3f} days {:.2f} cost {:.4g} good {:.4f} mem "
              "{:.1f} {}\n",
              r.gpus, r.layout.tensor, r.layout.pipeline, r.layout.interleave, r.layout.context, r.layout.data,
              r.layout.micro_batch, (int)r.layout.zero, r.step_s.value, r.mfu.value, r.days.value, r.cost.value,
              r.goodput.value, r.memory_gb, r.misses);
        for (const auto& d : kind.doubts) fmt::print("  {} {} {}\n", d.parameter, d.provenance, d.effect);
        for (const auto& d : kind.sites)
          fmt::print("  {} {} {} {} {}\n", d.name, d.schedule, d.serial_us, d.best_us, d.rate_to_hide.value_or(-1));
      }
      for (const auto& w : plan.what_ifs)
        fmt::print("{}: {} days {} cost {}\n", w.change, w.days, w.cost, w.break_even_gpu_hour.value_or(0));
      for (const auto& w : plan.curves)
        fmt::print("{}: knee {} plateau {} hide {}\n", w.links, w.knee.value_or(0), w.plateau.value_or(0),
                   w.to_hide.value_or(0));
      for (const auto& w : plan.sensitivities)
        fmt::print("{}: {} {} {} {}\n", w.input, w.days_low, w.days_high, w.cost_low, w.cost_high);
      status = exit_code::done;
    });
  });
}

}  // namespace commfuse::sim
