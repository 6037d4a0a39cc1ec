// SPDX-License-Identifier: Apache-2.0
// Scores tables of published statements about the variation of times. Each row states an observation in words. Some
// rows are compared with percentiles of a run under `--jitter default`; the others are skipped, each with its reason.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>

#include "model/config/catalogue.h"
#include "model/cost/communication.h"
#include "model/text/suggest.h"
#include "sim/score/figures.h"
#include "sim/score/kinds.h"
#include "sim/score/sampled_op.h"

namespace commfuse::score {

namespace {

constexpr std::string_view fleet = "the source does not state the number of GPUs or how it measures the variation";
constexpr std::string_view reliability = "failure rates of parts, which the time of a run does not include";
constexpr std::string_view jobs = "a share of a fleet's jobs or machines, not of one run's times";

constexpr std::array unpredicted_variations{
    UnpredictedRows{"fleet GPU variation", fleet},
    UnpredictedRows{"worst outlier against median", fleet},
    UnpredictedRows{"unexpected interruptions", reliability},
    UnpredictedRows{"of which ", reliability},
    UnpredictedRows{"NIC-ToR link failures", reliability},
    UnpredictedRows{"explicit / implicit failures", reliability},
    UnpredictedRows{"InfiniBand port-down", reliability},
    UnpredictedRows{"diurnal throughput swing",
                    "it follows the weather of the site, which no setting of a run describes"},
    UnpredictedRows{"MegaScale 175B", "a whole run without its layout"},
    UnpredictedRows{"cross-framework repeatability", "it compares libraries, and a run has one"},
    UnpredictedRows{"apparent speed-up that was only cloud-instance variation", jobs}};

/// The machine of a row, a cluster of two of these machines if there is one, and tables of jitter.
struct VariationSetting {
  const Machine& machine;
  const Machine* cluster = nullptr;
  std::shared_ptr<const JitterTables> jitter;      ///< The shipped jitter.
  std::shared_ptr<const JitterTables> on_one_gpu;  ///< Without variation of ranks, for repetitions on one GPU.
};

/// Returns the predicted factor for the figure of this name; nothing if no run predicts it.
using PredictedVariation =
    std::function<std::optional<double>(const VariationSetting& setting, std::string_view figure)>;

/// Rows that a run predicts, by the beginnings of their `what` and `where`.
struct VariationRows {
  std::string_view begins;
  std::string_view where_begins;  ///< Empty for any text.
  PredictedVariation predicted;
};

std::optional<double> share_of_percentile(std::string_view figure) {
  if (figure == "p50") {
    return 0.50;
  }
  return figure == "p90" ? std::optional(0.90) : figure == "p99" ? std::optional(0.99) : std::nullopt;
}

/// Returns why no run predicts the figure of this name.
std::string_view why_unscored(std::string_view figure) {
  if (figure.empty()) {
    return "the row does not state which percentile its value is";
  }
  const bool is_percentile = figure.front() == 'p' && figure.find_first_not_of("0123456789.", 1) == figure.npos;
  return is_percentile ? "this percentile is not predicted" : "the row does not state the number of runs";
}

using namespace std::chrono_literals;

/// Predicts the variation of a GEMM of 200 us. All GEMMs have the same distribution, so every percentile over GEMMs is
/// the same.
std::optional<double> gemm_variation(const VariationSetting& setting, std::string_view figure) {
  if (figure != "p50" && figure != "p90") {
    return std::nullopt;
  }
  return 1.0 + variation_of(sampled_us({.price = 200us, .jitter = setting.on_one_gpu, .runs = 4000}));
}

/// Predicts the spread between the eight GPUs of a node, each of which runs a GEMM of 1 ms.
std::optional<double> spread_of_node(const VariationSetting& setting, std::string_view /*figure*/) {
  return value_at(largest_over_smallest(sampled_us({.price = 1ms, .jitter = setting.jitter, .runs = 4000}), 8), 0.5);
}

/// Predicts the ratio of two runs of nccl-tests, each the mean of 100 all-gathers on eight GPUs.
PredictedVariation nccl_repeated(std::int64_t bytes) {
  return [bytes](const VariationSetting& setting, std::string_view figure) -> std::optional<double> {
    const std::optional<double> share = share_of_percentile(figure);
    if (!share) {
      return std::nullopt;
    }
    const Duration price = all_gather_time(setting.machine.link, 8, Bytes{bytes});
    const std::vector<double> times = sampled_us({.op = SampledOp::all_gather,
                                                  .ranks = 8,
                                                  .repeats = 100,
                                                  .price = price,
                                                  .jitter = setting.jitter,
                                                  .runs = 1000});
    return 1.0 + value_at(log_ratios(times), *share);
  };
}

/// Predicts the largest of three calls divided by their median, pooled over calls of 64 KiB, 1 MiB and 16 MiB.
std::optional<double> sends_repeated(const VariationSetting& setting, std::string_view figure) {
  const std::optional<double> share = share_of_percentile(figure);
  if (!share || setting.cluster == nullptr || !setting.cluster->network) {
    return std::nullopt;
  }
  std::vector<double> factors;
  for (const std::int64_t bytes : {std::int64_t{64} << 10, std::int64_t{1} << 20, std::int64_t{16} << 20}) {
    const Duration price = p2p_time(setting.cluster->network->peer, Bytes{bytes});
    const std::vector<double> ratios = largest_over_median(
        sampled_us({.op = SampledOp::send_recv, .price = price, .jitter = setting.jitter, .runs = 3000}), 3);
    factors.insert(factors.end(), ratios.begin(), ratios.end());
  }
  return value_at(std::move(factors), *share);
}

const std::vector<VariationRows>& variation_rows() {
  static const std::vector<VariationRows> list{
      {"per-node GPU spread", "", spread_of_node},
      {"GEMM repeat coefficient of variation", "", gemm_variation},
      {"NCCL run-to-run |log ratio| below 64 KiB", "H100", nccl_repeated(std::int64_t{8} << 10)},
      {"NCCL run-to-run 64 KiB - 4 MiB", "H100", nccl_repeated(std::int64_t{512} << 10)},
      {"NCCL run-to-run above 4 MiB", "H100", nccl_repeated(std::int64_t{64} << 20)},
      {"inter-node send/recv max over median", "H100", sends_repeated}};
  return list;
}

/// Returns the first machine that a cell such as "A100/H100" or "H100 one NIC" names.
FoundMachine machine_in(std::string_view cell, const KnownMachines& machines) {
  return machines.by_name(cell.substr(0, cell.find_first_of(" /")));
}

class Variability {
 public:
  Variability(Context& context, Tally& tally) : context_(context), tally_(tally) {
    Jitter jitter = load_jitter("default");
    jitter_ = std::make_shared<const JitterTables>(jitter);
    jitter.rank_sigma.value = 0.0;
    on_one_gpu_ = std::make_shared<const JitterTables>(jitter);
  }

  void score(Row& row, std::string_view what, std::string_view where, double value, std::string_view unit) {
    const auto& list = variation_rows();
    const auto known = std::find_if(list.begin(), list.end(), [&](const VariationRows& kind) {
      return what.starts_with(kind.begins) && where.starts_with(kind.where_begins);
    });
    if (known == list.end()) {
      tally_.skip(why_unpredicted(unpredicted_variations, what).value_or("figures of this kind are not predicted"));
      return;
    }
    const FoundMachine known_machine = machine_in(where, context_.machines);
    if (known_machine.machine == nullptr) {
      tally_.skip(known_machine.why_not);
      return;
    }
    const std::optional<std::vector<Figure>> figures = figures_in(value, unit);
    if (!figures) {
      tally_.fault(row, fmt::format("unit is {}; write pct or x, as in \"x p50; 1.09 p90\"", in_quotes(unit)));
      return;
    }
    observe(row, *known, *known_machine.machine, *figures);
  }

 private:
  void observe(const Row& row, const VariationRows& known, const Machine& machine, const std::vector<Figure>& figures) {
    const std::string_view what = known.begins;
    const FoundMachine cluster = context_.machines.over_nodes(machine, 2, "");
    const VariationSetting setting{machine, cluster.machine, jitter_, on_one_gpu_};
    std::vector<Observation> observed;
    for (const Figure& figure : figures) {
      if (const std::optional<double> factor = known.predicted(setting, figure.name)) {
        observed.push_back({figure.name.empty() ? std::string(what) : fmt::format("{}: {}", what, figure.name),
                            machine.name, figure.factor, *factor});
      } else {
        tally_.result().remarks.push_back(fmt::format("{}{}{}: {}, so it is not scored.", what,
                                                      figure.name.empty() ? "" : ", ", figure.name,
                                                      why_unscored(figure.name)));
      }
    }
    if (observed.empty()) {
      tally_.skip(why_unscored(figures.front().name));
    } else {
      tally_.observe(row, machine, observed);
    }
  }

  Context& context_;
  Tally& tally_;
  std::shared_ptr<const JitterTables> jitter_;
  std::shared_ptr<const JitterTables> on_one_gpu_;
};

}  // namespace

void score_variability(const Table& table, Context& context, Tally& tally) {
  Variability variability(context, tally);
  each_observation(table, "where", tally, [&](Row& row, const Observed& seen) {
    variability.score(row, seen.what, seen.place, seen.value, seen.unit);
  });
}

}  // namespace commfuse::score
