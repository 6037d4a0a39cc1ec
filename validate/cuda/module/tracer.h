// SPDX-License-Identifier: Apache-2.0
// What ran when on the device, by CUPTI: for a look at the order, never in a run that is timed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// One at a time in a process. A label is the calling thread's.
class Tracer {
 public:
  Tracer() = default;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  /// Ends the trace.
  virtual ~Tracer() = default;

  /// What is launched from here on has this label; kernels of a graph have that of their capture, if it was traced.
  virtual void label(std::uint64_t id) = 0;
  /// All that has ended, by begin. Requires that nothing runs.
  [[nodiscard]] virtual std::vector<DeviceSpan> spans() = 0;
};

/// Begins. Throws std::runtime_error where CUPTI refuses, as it does under another profiler, or is missing.
std::unique_ptr<Tracer> make_tracer();

}  // namespace commfuse::validate
