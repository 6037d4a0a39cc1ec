// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/probe_tools.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <optional>
#include <stdexcept>

namespace commfuse::validate::probing {

namespace {

constexpr Duration patience = std::chrono::seconds(30);
/// Filling matrices for more turns would take longer than timing the GEMMs.
constexpr std::int64_t max_turns = 64;

}  // namespace

std::string number(std::int64_t value) { return fmt::format("{}", value); }

void ProbeRows::push_back(ProbeRow row) {
  if (options_.on_row) {
    options_.on_row(row);
  }
  rows_.push_back(std::move(row));
}

void finish(Device& device) {
  if (!device.driver().finish(patience)) {
    throw std::runtime_error("a probe did not finish within 30 s");
  }
}

Micros behind_gate(Device& device, const std::function<void()>& issue) {
  Driver& driver = device.driver();
  const StreamId first = device.stream(0, false);
  static_cast<void>(device.timed_event(1));  // both events are made before the gate closes
  ClosedGate gate(driver, first);
  driver.record(device.timed_event(0), first);
  issue();
  driver.record(device.timed_event(1), first);
  gate.open();
  finish(device);
  return driver.elapsed(device.timed_event(0), device.timed_event(1));
}

void run_without_gate(Device& device, const std::function<void()>& issue) {
  issue();
  finish(device);
}

std::vector<double> sampled(const ProbeOptions& options, const std::function<Micros()>& once) {
  once();
  std::vector<double> samples;
  for (int i = 0; i < options.repetitions; ++i) {
    samples.push_back(once().count());
  }
  return samples;
}

std::vector<double> gated_samples(Device& device, const ProbeOptions& options, const std::function<void()>& issue,
                                  int parts) {
  run_without_gate(device, issue);
  return sampled(options, [&] { return behind_gate(device, issue) / parts; });
}

std::vector<DeviceSpan> spans_if_traced(Device& device, const std::function<void()>& issue) {
  std::optional<Trace> trace;
  try {
    trace.emplace(device.driver());
  } catch (const std::runtime_error& error) {
    fmt::print(stderr, "kernels and copies cannot be traced: {}\n", error.what());
    return {};
  }
  run_without_gate(device, issue);
  return trace->end();
}

std::size_t turns_for(Device& device, Bytes bytes) {
  const std::int64_t level2 = device.driver().facts().level2.count;
  const std::int64_t needed_turns = 2 * level2 / std::max<std::int64_t>(bytes.count, 1) + 1;
  return static_cast<std::size_t>(std::clamp<std::int64_t>(needed_turns, Matrices::usual_turns, max_turns));
}

Matrices::Matrices(Device& device, std::int64_t rows, std::int64_t columns, DType dtype, std::size_t turns)
    : panel_{0, rows, columns, columns, dtype},
      stride_((panel_.bytes().count + 255) / 256 * 256),
      turns_(turns),
      memory_(device.driver(), {static_cast<std::int64_t>(turns) * stride_}) {
  for (std::size_t i = 0; i < turns_; ++i) {
    device.driver().randomize(device.stream(0, false), at(i), i + 1);
  }
  finish(device);
}

Panel Matrices::at(std::size_t turn) const {
  Panel panel = panel_;
  panel.at = memory_.at() + static_cast<Address>(static_cast<std::int64_t>(turn % turns_) * stride_);
  return panel;
}

}  // namespace commfuse::validate::probing
