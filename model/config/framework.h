// SPDX-License-Identifier: Apache-2.0
// A training framework: the host time and kernels that it adds to a step, and its choices for settings that the user
// leaves open. It is loaded from a file of configs/frameworks, or has the defaults below.
#pragma once

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/field.h"
#include "model/hardware/nccl_tuning.h"
#include "model/hardware/parameter.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/units.h"
#include "model/workload/recomputation.h"
#include "model/workload/training_plan.h"

namespace commfuse {

struct Implementation;

/// GEMMs that an implementation may run in a step: all tensor-parallel GEMMs of forward passes and, in backward passes,
/// the GEMM that follows an all-gather and computes the input gradient of a row-parallel GEMM.
inline constexpr std::array implementation_scopes{Scope::qkv,  Scope::out_proj,          Scope::gate_up,
                                                  Scope::down, Scope::out_proj_backward, Scope::down_backward};

struct Framework {
  std::string name;  ///< Empty when no framework was named.
  std::string summary;
  /// Time of the host lane for one kernel or collective, from the framework's own code to the launch.
  Parameter<Duration> issue{std::chrono::microseconds(12), 0.3, Provenance::prior,
                            "PyTorch's eager operations take 11 to 18 us, Megatron's fused ones less"};
  /// True if the host keeps issuing while the device is behind. False: host and device begin every pass of a layer
  /// together.
  bool host_runs_ahead = true;
  /// True if backward collectives of a column-parallel GEMM overlap its two backward GEMMs.
  bool overlaps_backward = true;
  /// Strategy whose fastest schedule runs each tensor-parallel GEMM with its collective, forward and backward. If null,
  /// collective and GEMM run one after the other in forward passes, and overlaps_backward decides in backward passes.
  const Strategy* tensor_overlap = nullptr;
  /// Kernels for these GEMMs if tensor_overlap is null. Without implementation_sites, they run only in forward passes,
  /// and only where they are faster than a collective and a GEMM one after the other. May be null.
  std::shared_ptr<const Implementation> implementation;
  /// If set, the implementation runs exactly these of implementation_scopes, whether or not it saves time.
  std::optional<std::vector<Scope>> implementation_sites;
  /// If the rows of a GEMM do not begin at multiples of 16 bytes, the GEMM takes (16 / alignment)^misaligned_power
  /// times as long, because narrower loads feed the matrix units (NVIDIA, "Matrix Multiplication Background User's
  /// Guide", 2023, section 2.2, states that alignment matters, but not how much).
  Parameter<double> misaligned_power{0.5, 0.2, Provenance::prior, "assumed"};
  /// Time of the framework's fused attention relative to the time according to the machine's file, which describes the
  /// fastest kernels available; by generation of GPUs.
  std::array<Parameter<double>, all_nccl_generations.size()> attention_time = [] {
    std::array<Parameter<double>, all_nccl_generations.size()> factors;
    factors.fill({1.0, 0.0, Provenance::prior, "as the machine's file"});
    return factors;
  }();
  /// True if the GEMM of a weight's gradient adds to 32-bit sums as it writes (Megatron-LM). False: it writes 16 bits,
  /// and a separate kernel adds them (PyTorch's FSDP, `accumulate_unsharded_grad_if_needed`).
  bool fuses_accumulation = true;
  /// True if the weights of fp8 GEMMs are held, and gathered by replicas, in 8 bits (Megatron-Core's fp8_param_gather).
  /// False: in 16 bits.
  bool narrows_weights = false;
  /// HBM bytes per logit of 16 bits, forward and backward together. 52: Megatron's unfused vocabulary-parallel
  /// cross-entropy, kernel by kernel (conversion 6, maximum 4, difference 8, exponential 8, sum 4, quotient 8; gradient
  /// 8, conversion 6). 14: a loss that reads and writes 16 bits (PyTorch's log-softmax, loss and their gradients).
  double loss_bytes = 52.0;
  /// Bytes per logit of the loss's tensors that are live at the same time. 4: logits in 32 bits, which Megatron's loss
  /// overwrites with the softmax and its gradient. The logits in 16 bits, which are live while they are converted, are
  /// not counted. 12: PyTorch's loss in 32 bits (log-softmax, gradients of its output and of its input).
  Parameter<double> loss_memory{4.0, 0.0, Provenance::published,
                                "Korthikanti et al. 2022, section 4.3: logits in 32 bits"};
  /// The parts of a layer that `step.recompute: selective` runs again.
  SelectiveRecompute selective;
  /// The framework's part of a plan: settings of `run`, and the values that they get if the user has chosen none.
  std::vector<std::pair<std::string, std::string>> settings;
};

/// Loads a framework by its name in configs/frameworks or by path; "none" returns the defaults above. Throws
/// ConfigError with every mistake in the file.
Framework load_framework(std::string_view name_or_path);

/// Returns the strategies that the framework uses for the tensor-parallel GEMMs of a step; an empty list means the
/// schedule of Megatron-LM without tp-comm-overlap.
std::vector<const Strategy*> strategies_by_default(const Framework& framework);

/// Returns true if a framework may choose the setting: the kind of attention, or a setting of training steps but not of
/// layers, other than `framework`.
bool is_chosen_by_frameworks(const Field& field);

class Settings;
/// Returns the settings with the framework's choices in place of presets.
Settings with_defaults_of(const Framework& framework, Settings settings);

/// Returns the plan with the framework's `settings`, which replace any other values.
TrainingPlan with_defaults_of(const Framework& framework, const TrainingPlan& plan);

}  // namespace commfuse
