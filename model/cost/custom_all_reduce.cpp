// SPDX-License-Identifier: Apache-2.0
#include "model/cost/custom_all_reduce.h"

#include <algorithm>

#include "model/cost/op_time.h"

namespace commfuse {

Duration custom_all_reduce_time(const CustomAllReduce& kernels, int ranks, Bytes total) {
  const auto bytes = static_cast<double>(total.count);
  const int peers = ranks - 1;
  const auto time = [&](const Parameter<Duration>& latency, const Parameter<Duration>& step,
                        const Parameter<BytesPerSecond>& rate, double bytes_read) {
    return latency.value + peers * step.value + op_time(bytes_read / rate.value.value, "a collective");
  };
  const Duration one_shot = time(kernels.one_shot_latency, kernels.one_shot_step, kernels.one_shot_rate, peers * bytes);
  if (ranks <= 2) {
    return one_shot;
  }
  return std::min(one_shot, time(kernels.two_shot_latency, kernels.two_shot_step, kernels.two_shot_rate,
                                 2.0 * peers * bytes / ranks));
}

}  // namespace commfuse
