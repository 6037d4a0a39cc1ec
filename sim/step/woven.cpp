// SPDX-License-Identifier: Apache-2.0
#include "sim/step/woven.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "model/check.h"
#include "model/config/implementation.h"
#include "model/cost/implemented.h"
#include "model/strategies/strategies.h"
#include "model/workload/layers.h"
#include "sim/step/group_link.h"

namespace commfuse {

namespace {

/// Returns the two halves of a pass: of its sequences or, if there is only one, of its tokens.
std::array<StepPoint, 2> halves_of(const StepPoint& whole) {
  std::array halves{whole, whole};
  auto& [first, second] = halves;
  const std::int64_t sequences = whole.plan.micro_batch;
  if (sequences > 1) {
    first.plan.micro_batch = sequences / 2;
    second.plan.micro_batch = sequences - first.plan.micro_batch;
  } else {
    first.plan.seq = whole.plan.seq / 2;
    second.plan.seq = whole.plan.seq - first.plan.seq;
    second.earlier = whole.earlier + first.plan.seq;
  }
  return halves;
}

/// One half of the tokens: its kernels between sums in each kind of layer, and the time of a sum.
class Half {
 public:
  Half(const StepPoint& point, SiteTimes& sites, const ImplementedSite& site)
      : costs_(point, sites, site.sms.value), sum_(sum_of(point, site)) {}

  const std::vector<Stream>& between_sums(const LayerKind& kind) {
    const auto [parts, is_new] = known_.try_emplace(kind);
    if (is_new) {
      parts->second = costs_.forward_between_sums(kind);
    }
    return parts->second;
  }
  [[nodiscard]] const Transformer& model() const { return costs_.model(); }
  [[nodiscard]] Duration sum() const { return sum_; }

 private:
  static Duration sum_of(const StepPoint& point, const ImplementedSite& site) {
    const Bytes state{point.plan.tokens_per_pass() * point.model->hidden * bytes_of(DType::bf16)};
    const double stretch = slowest_of(point.plan.tensor, point.communication_sigma);
    const auto ranks = static_cast<int>(point.plan.tensor);
    return times(stretch, switch_sum_time(site, point.machine->link, ranks, state));
  }

  LayerCost costs_;
  Duration sum_;
  std::map<LayerKind, std::vector<Stream>> known_;
};

/// The times at which two halves are ready and at which SMs, links and host are free.
class Weave {
 public:
  explicit Weave(Duration issue) : issue_(issue) {}

  /// Adds the kernels of one half up to its next sum, and the sum.
  void add(std::size_t half, const Stream& kernels, Duration sum) {
    computing_ = counted(std::max(computing_, ready_[half]) + kernels.device);
    communicating_ = counted(std::max(communicating_, computing_) + sum);
    ready_[half] = communicating_;
    host_ = counted(host_ + kernels.host + issue_);
  }
  [[nodiscard]] WovenPass end() const { return {std::max(ready_[0], ready_[1]), host_}; }

 private:
  Duration issue_;
  Duration computing_{};
  Duration communicating_{};
  Duration host_{};
  std::array<Duration, 2> ready_{};
};

}  // namespace

bool replaces_sums(const Implementation& kernels) { return covers(kernels, SiteKind::mlp_ar); }

bool weaves(const Implementation& kernels) {
  return replaces_sums(kernels) && kernels.strategy == &tokenweave_strategy;
}

std::string why_no_sums(const StepPoint& point, const Implementation& kernels) {
  const TrainingPlan& plan = point.plan;
  if (plan.tensor == 1 || plan.sequence_parallel) {
    return fmt::format("{} sums over tensor ranks that do not share the tokens; choose {}", kernels.name,
                       plan.tensor == 1 ? "more --ranks" : "--sequence-parallel off");
  }
  if (!weaves(kernels)) {
    return {};
  }
  if (plan.sequence_ranks() > 1) {
    return fmt::format("{} halves whole sequences, which context or Ulysses ranks share here; set both to 1",
                       kernels.name);
  }
  if (!plan.fused_attention) {
    return fmt::format("{} needs fused attention; choose --attention-kernel fused", kernels.name);
  }
  if (plan.tokens_per_pass() < 2) {
    return fmt::format("{} halves the tokens, and there is only one; choose a larger --seq", kernels.name);
  }
  for (const LayerRun& run : layer_runs(*point.model)) {
    if (run.kind.state_space) {
      return fmt::format("{} has no kernels for the state-space layers of {}; choose another model", kernels.name,
                         point.model->name);
    }
  }
  return {};
}

WovenPass woven_pass(const StepPoint& point, SiteTimes& sites) {
  const Implementation* const kernels = point.implemented.kernels;
  check(kernels != nullptr && weaves(*kernels), "the implementation weaves halves");
  const ImplementedSite& site = kernels->costs.on(*point.machine).mlp_ar;
  const std::array points = halves_of(point);
  std::array halves{Half(points[0], sites, site), Half(points[1], sites, site)};
  Weave weave(point.framework.issue.value);
  for (const LayerRun& run : layer_runs(halves[0].model())) {
    const std::size_t sums = halves[0].between_sums(run.kind).size();
    for (std::int64_t layer = 0; layer < run.count; ++layer) {
      for (std::size_t sum = 0; sum < sums; ++sum) {
        for (std::size_t half = 0; half < halves.size(); ++half) {
          weave.add(half, halves[half].between_sums(run.kind)[sum], halves[half].sum());
        }
      }
    }
  }
  const WovenPass pass = weave.end();
  return {times(point.implemented.slowdown, pass.device), pass.host};
}

}  // namespace commfuse
