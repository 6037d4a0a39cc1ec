// SPDX-License-Identifier: Apache-2.0
// What probes have in common: how they take time, and where their matrices lie.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "validate/cuda/probes.h"

namespace commfuse::validate::probing {

using Micros = std::chrono::duration<double, std::micro>;

std::string number(std::int64_t value);
/// Throws std::runtime_error when the device does not come to its end within 30 s.
void finish(Device& device);
/// How long what `issue` gives to streams takes on the device, all of it issued before the first begins. The first
/// stream begins and ends it. Requires that the same was issued in the open before.
Micros behind_gate(Device& device, const std::function<void()>& issue);
/// Kernels, rooms and connections that are made when they are first needed cannot be made behind a gate.
void once_in_the_open(Device& device, const std::function<void()>& issue);
/// Samples of `once`, after one that does not count.
std::vector<double> sampled(const ProbeOptions& options, const std::function<Micros()>& once);
/// Samples of behind_gate(), divided by `parts`, after one run in the open and one sample that does not count.
std::vector<double> gated_samples(Device& device, const ProbeOptions& options, const std::function<void()>& issue,
                                  int parts = 1);

/// Turns of products that touch `bytes` each, so that none finds its factors in the second-level cache: together they
/// touch more than twice what it holds. 64 at most, so factors of small products may stay in the cache.
std::size_t turns_for(Device& device, Bytes bytes);

/// A matrix of the device's memory for every turn, filled.
class Matrices {
 public:
  static constexpr std::size_t usual_turns = 3;
  Matrices(Device& device, std::int64_t rows, std::int64_t columns, DType dtype, std::size_t turns = usual_turns);
  [[nodiscard]] Panel at(std::size_t turn) const;

 private:
  Panel panel_;
  std::int64_t stride_;
  std::size_t turns_;
  Allocation memory_;
};

/// The stages about attention.
std::vector<ProbeRow> ask_attention(Device& device, const ProbeOptions& options);
std::vector<ProbeRow> ask_fused_attention(Device& device, const ProbeOptions& options);

}  // namespace commfuse::validate::probing
