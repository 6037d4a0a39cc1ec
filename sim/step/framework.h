// SPDX-License-Identifier: Apache-2.0
// What a training framework adds to the kernels of a step.
#pragma once

#include <chrono>

#include "model/hardware/parameter.h"
#include "model/units.h"

namespace commfuse {

struct Framework {
  /// Host lane: one kernel or collective, from the framework's own code to the launch.
  Parameter<Duration> issue{std::chrono::microseconds(12), 0.3, Provenance::prior,
                            "11 to 18 us an eager operation of PyTorch, Megatron's fused ones fewer"};
  /// Whether the host goes on issuing while the device is behind. False: both begin every pass of a layer together.
  bool host_runs_ahead = true;
  /// Whether backward collectives of a column-parallel product run beside its two products.
  bool overlaps_backward = true;
  /// Products whose rows do not begin at multiples of 16 bytes take (16 / alignment) to this power times as long: the
  /// matrix units are fed by narrower loads (NVIDIA, "Matrix Multiplication Background User's Guide", 2023, section
  /// 2.2, says that it matters, not how much).
  Parameter<double> misaligned_power{0.5, 0.2, Provenance::prior, "assumed"};
  /// Whether the product of a weight's gradient adds to 32-bit sums as it writes (Megatron-LM). False: it writes 16
  /// bits, and a kernel behind adds them (PyTorch's FSDP, `accumulate_unsharded_grad_if_needed`).
  bool fuses_accumulation = true;
  /// HBM bytes a logit of 16 bits, forward and backward together. 52: Megatron's unfused vocabulary-parallel
  /// cross-entropy, kernel by kernel (conversion 6, maximum 4, difference 8, exponential 8, sum 4, quotient 8;
  /// gradient 8, conversion 6). 14: one that reads and writes 16 bits (PyTorch's log-softmax, loss and their
  /// gradients).
  double loss_bytes = 52.0;
};

}  // namespace commfuse
