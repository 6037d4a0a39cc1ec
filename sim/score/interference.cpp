// SPDX-License-Identifier: Apache-2.0
// Scores tables of published statements about kernels that slow each other down. Each row states an observation in
// words. Some rows are compared with `--interference static` prices; the others are skipped, each with its reason.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/cost/gemm.h"
#include "model/program/builder.h"
#include "model/text/suggest.h"
#include "sim/score/figures.h"
#include "sim/score/kinds.h"

namespace commfuse::score {

namespace {

constexpr std::string_view speed_up = "a gain over workloads that the source does not describe";
constexpr std::string_view repeated_times = "the same times are scored in the table that they come from";
constexpr std::string_view occupancy = "not a time: how busy SMs are, or how many SMs a kernel uses";
constexpr std::string_view custom_kernel = "an all-reduce kernel of a serving framework, not NCCL's";
constexpr std::string_view host_prior = "this row is a source of the priors of host costs";

constexpr std::array unpredicted_slowdowns{
    UnpredictedRows{"naive concurrent", speed_up},
    UnpredictedRows{"with schedule prioritization", speed_up},
    UnpredictedRows{"with DMA-engine collectives", speed_up},
    UnpredictedRows{"sequential slower than overlapped", speed_up},
    UnpredictedRows{"T3 sub-layer", speed_up},
    UnpredictedRows{"occupancy shaping", speed_up},
    UnpredictedRows{"FiCCO DMA", speed_up},
    UnpredictedRows{"fused Triton AG-GEMM", repeated_times},
    UnpredictedRows{"TokenWeave overlapped", repeated_times},
    UnpredictedRows{"SM limit 108", occupancy},
    UnpredictedRows{"SMs per communication kernel", occupancy},
    UnpredictedRows{"CTAs needed", "the rate of a collective does not depend on its CTAs here"},
    UnpredictedRows{"kernel floor inside a CUDA graph", "used to fit kernel_floor"},
    UnpredictedRows{"custom all-reduce", custom_kernel},
    UnpredictedRows{"PyTorch tiny kernel", host_prior},
    UnpredictedRows{"CPU-side cudaLaunchKernel", host_prior},
    UnpredictedRows{"cudaEventRecord", host_prior},
    UnpredictedRows{"B200 sparse attention dispatch", "sparse attention, which no model file has"},
    UnpredictedRows{"matmul 8192^3", "the data of a GEMM does not affect its time here"}};

/// The machines of a row, and the scorer's context.
struct SlowdownSetting {
  std::vector<const Machine*> machines;
  Context& context;
};

/// Returns the predicted factor, to compare with the first figure. Throws ConfigError for anything the machine lacks.
using PredictedSlowdown = std::function<double(const SlowdownSetting&)>;

/// A row that runs can predict, identified by the beginnings of its `what` and of its hardware.
struct SlowdownRow {
  std::string_view begins;
  std::string_view hardware;
  std::vector<std::string_view> machines;  ///< Names of the row's machines, as tables write them.
  PredictedSlowdown predicted;
};

/// Returns the number of SMs left to a kernel that runs during collectives of eight GPUs.
int sms_during_collectives(const Machine& machine) {
  const Program eight = ProgramBuilder("eight", Mesh{{{"tp", 8}}}).build();
  return sms_left(eight, machine, {.collective = true}, Interference::constant);
}

double slowdown_of(const Machine& machine, const GemmSize& size) {
  const Accelerator& accelerator = machine.accelerator;
  return to_seconds(estimate_gemm(accelerator, size, sms_during_collectives(machine)).time) /
         to_seconds(estimate_gemm(accelerator, size, accelerator.sms).time);
}

/// Returns the slowdown of a GEMM with a long k loop and 12 x 11 tiles of 128 x 256: one wave on the 132 SMs of an
/// H100.
double one_wave(const SlowdownSetting& setting) {
  return slowdown_of(*setting.machines.front(), {.m = 12LL * 128, .n = 11LL * 256, .k = 8192});
}

/// Returns the slowdown of the GEMM in overlap_ascend_gemm_allreduce_pto.csv.
double gemm_of_pto(const SlowdownSetting& setting) {
  return slowdown_of(*setting.machines.front(), {.m = 5504, .n = 1536, .k = 6144, .dtype = DType::fp16});
}

/// Returns 1, because kernels do not change the price of a concurrent collective.
double collective_during_gemm(const SlowdownSetting& /*setting*/) { return 1.0; }

/// Returns the slowdowns of an MLP's GEMM slices that overlap with a collective: Llama-3.1-70B, eight ranks, 2K to 32K
/// tokens.
std::vector<double> slowdowns_in_layers(const SlowdownSetting& setting) {
  std::vector<double> factors;
  const Strategy& sliced = *find_strategy("sliced");
  for (const Machine* machine : setting.machines) {
    for (const std::int64_t seq : {2048, 8192, 32768}) {
      const Point point{.model = load_model("llama-3.1-70b"), .machine = *machine, .seq = seq};
      require_possible(point);
      const Prediction prediction = setting.context.predictor.predict(point, sliced, {.slices = 4});
      const Structure& structure = *prediction.structure;
      const Costs costs = static_costs(point, *machine, structure, prediction.sizes);
      for (std::size_t op = 0; op < structure.program().ops.size(); ++op) {
        if (structure.program().ops[op].kind == OpKind::gemm && structure.meetings[op].collective) {
          factors.push_back(to_seconds(costs.duration[op]) / to_seconds(costs.undisturbed[op]));
        }
      }
    }
  }
  if (factors.empty()) {
    throw ConfigError("no GEMM overlaps with a collective");
  }
  return factors;
}

double mean_in_layers(const SlowdownSetting& setting) {
  const std::vector<double> factors = slowdowns_in_layers(setting);
  double sum = 0.0;
  for (const double factor : factors) {
    sum += factor;
  }
  return sum / static_cast<double>(factors.size());
}

double max_in_layers(const SlowdownSetting& setting) {
  const std::vector<double> factors = slowdowns_in_layers(setting);
  return *std::max_element(factors.begin(), factors.end());
}

const std::vector<SlowdownRow>& slowdown_rows() {
  static const std::vector<SlowdownRow> rows{
      {"average compute slowdown while overlapped", "A100/H100", {"A100-SXM4-80GB", "H100"}, mean_in_layers},
      {"maximum compute slowdown while overlapped", "A100/H100", {"A100-SXM4-80GB", "H100"}, max_in_layers},
      {"GEMM of exactly 132 CTAs next to a 24-CTA NCCL all-gather", "H100", {"H100"}, one_wave},
      {"all-reduce slow-down when overlapped with GEMM", "Ascend 910B", {"910B"}, collective_during_gemm},
      {"GEMM slow-down when overlapped", "Ascend 910B", {"910B"}, gemm_of_pto},
      {"GEMM slow-down when overlapped", "Ascend 950PR", {"950PR"}, gemm_of_pto}};
  return rows;
}

constexpr std::string_view remark =
    "Two of the four GPUs behind the mean and the largest slowdown have a machine file, and the source does not state "
    "its layers. The predictions are for the GEMMs of an MLP of Llama-3.1-70B in four slices next to NCCL's "
    "collectives, on eight A100 and H100, 2K to 32K tokens.";

class Slowdowns {
 public:
  Slowdowns(Context& context, Tally& tally) : context_(context), tally_(tally) {}

  void score(Row& row, std::string_view what, std::string_view hardware, double value, std::string_view unit) {
    const auto& known_rows = slowdown_rows();
    const auto entry = std::find_if(known_rows.begin(), known_rows.end(), [&](const SlowdownRow& candidate) {
      return what.starts_with(candidate.begins) && hardware.starts_with(candidate.hardware);
    });
    if (entry == known_rows.end()) {
      tally_.skip(why_not(what, hardware));
      return;
    }
    // After the unit, a row may explain in words how the value was counted.
    const std::optional<std::vector<Figure>> figures = figures_in(value, unit.substr(0, unit.find_first_of(" ,")));
    if (!figures) {
      tally_.fault(row, fmt::format("unit is {}; write pct or x", in_quotes(unit)));
      return;
    }
    predict(row, *entry, figures->front().factor);
  }

 private:
  void predict(const Row& row, const SlowdownRow& entry, double measured) {
    SlowdownSetting setting{{}, context_};
    for (const std::string_view name : entry.machines) {
      const FoundMachine match = context_.machines.by_name(name);
      if (match.machine == nullptr) {
        tally_.skip(match.why_not);
        return;
      }
      setting.machines.push_back(match.machine);
    }
    try {
      const Observation observation{std::string(entry.begins), setting.machines.back()->name, measured,
                                    entry.predicted(setting)};
      tally_.observe(row, *setting.machines.back(), std::span(&observation, 1));
    } catch (const ConfigError& mistake) {
      tally_.skip(mistake.what());
    }
  }

  static std::string why_not(std::string_view what, std::string_view hardware) {
    if (const std::optional<std::string_view> why = why_unpredicted(unpredicted_slowdowns, what)) {
      return std::string(*why);
    }
    return what.starts_with("GEMM slow-down") ? fmt::format("no hardware file is known as {}", in_quotes(hardware))
                                              : "figures of this kind are not predicted";
  }

  Context& context_;
  Tally& tally_;
};

}  // namespace

void score_interference(const Table& table, Context& context, Tally& tally) {
  Slowdowns slowdowns(context, tally);
  tally.result().remarks.emplace_back(remark);
  each_observation(table, "hardware", tally, [&](Row& row, const Observed& observed) {
    slowdowns.score(row, observed.what, observed.place, observed.value, observed.unit);
  });
}

}  // namespace commfuse::score
