// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/counting_driver.h"

#include <algorithm>

namespace commfuse::validate {

void CountingDriver::take(Duration time) {
  ++launches_;
  const auto nanoseconds = [](Duration at) { return std::chrono::floor<std::chrono::nanoseconds>(at).count(); };
  spans_.push_back({.label = label_, .begin = nanoseconds(clock_), .end = nanoseconds(clock_ + time), .ctas = 1});
  clock_ += time;
}

DeviceFacts CountingDriver::facts() const {
  return {.name = "a device that only counts",
          .uuid = "GPU-0",
          .multiprocessors = 132,
          .capability = 90,
          .memory = {std::int64_t{80} << 30U},
          .level2 = {50 << 20}};
}

Address CountingDriver::allocate(Bytes bytes) {
  clock_ += costs_.allocation;
  const Address at = next_;
  next_ += static_cast<Address>(rounded_up_to_alignment(bytes.count + 1));
  return at;
}

void CountingDriver::upload(Address /*to*/, std::span<const std::byte> bytes) {
  clock_ += stated_host_time(costs_, {static_cast<std::int64_t>(bytes.size())});
}

void CountingDriver::download(std::span<std::byte> bytes, Address /*from*/) {
  std::ranges::fill(bytes, std::byte{0});
  clock_ += stated_host_time(costs_, {static_cast<std::int64_t>(bytes.size())});
}

StreamId CountingDriver::make_stream(bool /*urgent*/) { return StreamId{streams_++}; }

EventId CountingDriver::make_event(bool /*timed*/) {
  events_.push_back(clock_);
  return EventId{static_cast<std::int32_t>(events_.size() - 1)};
}

Partition CountingDriver::make_partition(int multiprocessors) { return {partitions_++, multiprocessors}; }

StreamId CountingDriver::make_stream_on(const Partition& /*partition*/, bool urgent) { return make_stream(urgent); }

void CountingDriver::record(EventId event, StreamId /*stream*/) { events_[static_cast<std::size_t>(event)] = clock_; }

void CountingDriver::fill(StreamId /*stream*/, Address /*at*/, Bytes bytes, std::uint8_t /*byte*/) {
  take(stated_memory_time(costs_, bytes));
}

void CountingDriver::randomize(StreamId /*stream*/, const Panel& panel, std::uint64_t /*seed*/) {
  take(stated_memory_time(costs_, panel.bytes()));
}

void CountingDriver::product(StreamId /*stream*/, const ProductCall& call) { take(stated_time(costs_, call)); }

void CountingDriver::function(StreamId /*stream*/, const FunctionCall& call) { take(stated_time(costs_, call)); }

void CountingDriver::attend(StreamId /*stream*/, const AttentionCall& call) { take(stated_time(costs_, call)); }

void CountingDriver::move(StreamId /*stream*/, const MoveCall& call) { take(stated_time(costs_, call)); }

void CountingDriver::spin(StreamId /*stream*/, Duration time) { take(std::max(costs_.launch, time)); }

Duration CountingDriver::elapsed(EventId from, EventId to) {
  return events_[static_cast<std::size_t>(to)] - events_[static_cast<std::size_t>(from)];
}

void CountingDriver::begin_capture(StreamId /*origin*/) { capture_began_ = clock_; }

GraphId CountingDriver::end_capture() {
  graphs_.push_back(clock_ - capture_began_);
  return GraphId{static_cast<std::int32_t>(graphs_.size() - 1)};
}

void CountingDriver::launch(StreamId /*stream*/, GraphId graph) {
  take(std::max(costs_.launch, graphs_[static_cast<std::size_t>(graph)]));
}

}  // namespace commfuse::validate
