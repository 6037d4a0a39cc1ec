// SPDX-License-Identifier: Apache-2.0
// A device that runs nothing and counts its work. It determines, without a GPU, how many launches a command makes and
// about how long the command would take on a device.
#pragma once

#include <cstdint>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/cuda/stated_costs.h"

namespace commfuse::validate {

/// Memory holds nothing: downloads return zeros. All streams share one clock, as if nothing ran concurrently.
class CountingDriver final : public Driver {
 public:
  explicit CountingDriver(StatedCosts costs = {}) : costs_(costs) {}

  [[nodiscard]] std::int64_t launches() const { return launches_; }
  /// Returns the sum of the stated times of all calls.
  [[nodiscard]] Duration device_time() const { return clock_; }

  [[nodiscard]] DeviceFacts facts() const override;
  Address allocate(Bytes bytes) override;
  void release(Address /*at*/) override {}
  void upload(Address to, std::span<const std::byte> bytes) override;
  void download(std::span<std::byte> bytes, Address from) override;
  StreamId make_stream(bool urgent) override;
  EventId make_event(bool timed) override;
  Partition make_partition(int multiprocessors) override;
  void end_partition(const Partition& /*partition*/) override {}
  StreamId make_stream_on(const Partition& partition, bool urgent) override;
  void record(EventId event, StreamId stream) override;
  void wait(StreamId /*stream*/, EventId /*event*/) override {}
  void fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) override;
  void randomize(StreamId stream, const Panel& panel, std::uint64_t seed) override;
  void product(StreamId stream, const ProductCall& call) override;
  void function(StreamId stream, const FunctionCall& call) override;
  void attend(StreamId stream, const AttentionCall& call) override;
  void move(StreamId stream, const MoveCall& call) override;
  void spin(StreamId stream, Duration time) override;
  void gate(StreamId /*stream*/) override {}
  void close_gate() override {}
  void open_gate() override {}
  [[nodiscard]] bool gate_held() override { return true; }
  [[nodiscard]] bool finish(Duration /*patience*/) override { return true; }
  [[nodiscard]] Duration elapsed(EventId from, EventId to) override;
  void begin_capture(StreamId origin) override;
  GraphId end_capture() override;
  void launch(StreamId stream, GraphId graph) override;
  void label(std::uint64_t id) override { label_ = id; }
  void begin_trace() override { spans_.clear(); }
  void drop_trace() override {}
  [[nodiscard]] std::vector<DeviceSpan> end_trace() override { return spans_; }

 private:
  void take(Duration time);

  StatedCosts costs_;
  std::int64_t launches_ = 0;
  Duration clock_{};
  Address next_ = 1 << 20;
  std::int32_t streams_ = 0;
  std::int32_t partitions_ = 0;
  std::vector<Duration> events_;  // by event: time of its last record
  Duration capture_began_{};
  std::vector<Duration> graphs_;
  std::uint64_t label_ = 0;
  std::vector<DeviceSpan> spans_;
};

}  // namespace commfuse::validate
