// SPDX-License-Identifier: Apache-2.0
// Traces the kernels and copies of a device by CUPTI. Traced work is slower, so makespans are measured without a trace.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "validate/cuda/driver.h"

namespace commfuse::validate {

/// Only one tracer may exist at a time in a process. A label applies to the calling thread.
class Tracer {
 public:
  Tracer() = default;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;
  /// Ends the trace.
  virtual ~Tracer() = default;

  /// Gives this label to later launches. Kernels of a graph have the label of their capture, if the capture was traced.
  virtual void label(std::uint64_t id) = 0;
  /// Returns everything that has ended, sorted by start. Requires that nothing runs.
  [[nodiscard]] virtual std::vector<DeviceSpan> spans() = 0;
};

/// Begins a trace. Throws std::runtime_error if CUPTI is missing or refuses, as it does under another profiler.
std::unique_ptr<Tracer> make_tracer();

}  // namespace commfuse::validate
