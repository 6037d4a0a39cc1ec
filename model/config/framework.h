// SPDX-License-Identifier: Apache-2.0
// What a training framework adds to the kernels of a step, and what it does where the user says nothing: a file of
// configs/frameworks, or the defaults below.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/hardware/nccl_tuning.h"
#include "model/hardware/parameter.h"
#include "model/strategies/strategies.h"
#include "model/units.h"
#include "model/workload/training_plan.h"

namespace commfuse {

struct Implementation;

struct Framework {
  std::string name;  ///< Empty: none was named.
  std::string summary;
  /// Host lane: one kernel or collective, from the framework's own code to the launch.
  Parameter<Duration> issue{std::chrono::microseconds(12), 0.3, Provenance::prior,
                            "11 to 18 us an eager operation of PyTorch, Megatron's fused ones fewer"};
  /// Whether the host goes on issuing while the device is behind. False: both begin every pass of a layer together.
  bool host_runs_ahead = true;
  /// Whether backward collectives of a column-parallel product run beside its two products.
  bool overlaps_backward = true;
  /// How tensor ranks run products that meet a collective: the fastest schedule of this strategy, forward and backward.
  /// None: forward one after the other, backward as overlaps_backward says.
  const Strategy* tensor_overlap = nullptr;
  /// Without a strategy: the kernels that run such products in forward passes where they are faster than a collective
  /// and a product one after the other; null: none.
  std::shared_ptr<const Implementation> implementation;
  /// Products whose rows do not begin at multiples of 16 bytes take (16 / alignment) to this power times as long: the
  /// matrix units are fed by narrower loads (NVIDIA, "Matrix Multiplication Background User's Guide", 2023, section
  /// 2.2, says that it matters, not how much).
  Parameter<double> misaligned_power{0.5, 0.2, Provenance::prior, "assumed"};
  /// By generation of GPUs: time of its fused attention over that of the machine's file, which is of the fastest
  /// kernels there are.
  std::array<Parameter<double>, all_nccl_generations.size()> attention_time = [] {
    std::array<Parameter<double>, all_nccl_generations.size()> all;
    all.fill({1.0, 0.0, Provenance::prior, "as the machine's file"});
    return all;
  }();
  /// Whether the product of a weight's gradient adds to 32-bit sums as it writes (Megatron-LM). False: it writes 16
  /// bits, and a kernel behind adds them (PyTorch's FSDP, `accumulate_unsharded_grad_if_needed`).
  bool fuses_accumulation = true;
  /// HBM bytes a logit of 16 bits, forward and backward together. 52: Megatron's unfused vocabulary-parallel
  /// cross-entropy, kernel by kernel (conversion 6, maximum 4, difference 8, exponential 8, sum 4, quotient 8;
  /// gradient 8, conversion 6). 14: one that reads and writes 16 bits (PyTorch's log-softmax, loss and their
  /// gradients).
  double loss_bytes = 52.0;
  /// Settings of `run` and their texts, where the user has not chosen any: what of a plan is the framework's.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// A name of configs/frameworks, or a path; "none": the defaults above. Throws ConfigError with every mistake of the
/// file.
Framework load_framework(std::string_view name_or_path);

/// How the framework runs the products of tensor ranks: of a step's strategies. None as Megatron-LM without
/// tp-comm-overlap.
std::vector<const Strategy*> strategies_by_default(const Framework& framework);

struct Field;
/// Whether a framework may choose the setting: training steps take it and layers do not, or it is the kind of
/// attention.
bool is_chosen_by_frameworks(const Field& field);

class Settings;
/// The settings with what the framework chooses where they are at their presets.
Settings with_defaults_of(const Framework& framework, Settings settings);

/// The plan with everything that the framework chooses.
TrainingPlan with_defaults_of(const Framework& framework, const TrainingPlan& plan);

}  // namespace commfuse
