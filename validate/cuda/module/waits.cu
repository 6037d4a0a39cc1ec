// SPDX-License-Identifier: Apache-2.0
// Single-thread kernels that wait for a given time, or for the host.
#include "validate/cuda/module/clocks.cuh"
#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"

namespace commfuse::validate {

namespace {

/// A gate opens on its own after this time, because a host that waits for work behind the gate would never open it.
constexpr std::int64_t watchdog_ns = 2'000'000'000;

__global__ void spin(std::int64_t nanoseconds) { wait_until(device_time() + nanoseconds); }

__global__ void gate(volatile GateFlags* flags) {
  const std::int64_t deadline = device_time() + watchdog_ns;
  while (read_of_host(&flags->open) == 0) {
    if (device_time() > deadline) {
      write_for_host(&flags->opened_alone, 1);
      break;
    }
    __nanosleep(100);
  }
  __threadfence_system();
}

}  // namespace

void launch_spin(cudaStream_t stream, Duration time) {
  launch("spin", spin, {1, 1, stream}, std::chrono::ceil<std::chrono::nanoseconds>(time).count());
  require(cudaGetLastError(), "a spin kernel");
}

void launch_gate(cudaStream_t stream, GateFlags* flags) {
  launch("gate", gate, {1, 1, stream}, flags);
  require(cudaGetLastError(), "a gate kernel");
}

}  // namespace commfuse::validate
