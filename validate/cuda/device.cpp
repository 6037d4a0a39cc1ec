// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/device.h"

#include <algorithm>
#include <exception>
#include <stdexcept>

#include "model/check.h"
#include "validate/reference/interpreter.h"
#include "validate/reference/memory.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

constexpr Duration longest_fill = std::chrono::minutes(1);

/// Returns the object with this number, after making all objects up to this number that do not exist yet.
template <class Id, class Make>
Id get_or_make(std::vector<Id>& made, std::size_t number, Make&& make) {
  while (made.size() <= number) {
    made.push_back(make());
  }
  return made[number];
}

Bytes bytes_of_all(const Program& program, const Sizes& sizes, std::size_t ranks) {
  return {Layout(program, sizes, 0).per_rank().count * static_cast<std::int64_t>(ranks)};
}

}  // namespace

StreamId Device::stream(std::size_t number, bool urgent) {
  return get_or_make(urgent ? urgent_ : streams_, number, [&] { return driver_.make_stream(urgent); });
}

Device::StreamsOnPartition& Device::streams_on_partition(int multiprocessors) {
  const auto known = partitions_.find(multiprocessors);
  return known != partitions_.end()
             ? known->second
             : partitions_.emplace(multiprocessors, StreamsOnPartition{driver_.make_partition(multiprocessors)})
                   .first->second;
}

const Partition& Device::partition(int multiprocessors) { return streams_on_partition(multiprocessors).partition; }

StreamId Device::stream_on_partition(std::size_t number, int multiprocessors) {
  StreamsOnPartition& partition_streams = streams_on_partition(multiprocessors);
  return get_or_make(partition_streams.streams, number,
                     [&] { return driver_.make_stream_on(partition_streams.partition, false); });
}

EventId Device::event(std::size_t number) {
  return get_or_make(events_, number, [&] { return driver_.make_event(false); });
}
EventId Device::timed_event(std::size_t number) {
  return get_or_make(timed_, number, [&] { return driver_.make_event(true); });
}

struct Device::Room {
  Bytes bytes;
  Allocation memory;
};

void Device::overwrite_level2(StreamId stream) {
  if (level2_ == nullptr) {
    const Bytes flush_bytes{2 * driver_.facts().level2.count};
    if (flush_bytes.count == 0) {
      return;
    }
    level2_ = std::shared_ptr<Room>(new Room{flush_bytes, {driver_, flush_bytes}});
  }
  driver_.fill(stream, level2_->memory.at(), level2_->bytes, 0);
}

ClosedGate::ClosedGate(Driver& driver, StreamId stream) : driver_(driver) {
  driver_.close_gate();
  try {
    driver_.gate(stream);
  } catch (...) {
    driver_.open_gate();
    throw;
  }
}

void ClosedGate::open() {
  if (closed_) {
    closed_ = false;
    driver_.open_gate();
  }
}

Capture::~Capture() {
  if (!open_) {
    return;
  }
  try {
    static_cast<void>(driver_.end_capture());
  } catch (const std::exception&) {  // the failure has also ended the capture
  }
}

GraphId Capture::end() {
  open_ = false;
  return driver_.end_capture();
}

Trace::~Trace() {
  if (open_) {
    driver_.drop_trace();
  }
}

std::vector<DeviceSpan> Trace::end() {
  std::vector<DeviceSpan> spans = driver_.end_trace();
  open_ = false;
  return spans;
}

Allocation::~Allocation() {
  try {
    driver_.release(at_);
  } catch (const std::exception&) {  // the device is lost, and its memory is lost with it
  }
}

ScratchRoom::ScratchRoom(Driver& driver, std::span<const Bytes> bytes_by_stream) {
  Bytes total{};
  for (const Bytes bytes : bytes_by_stream) {
    total += bytes;
  }
  if (total.count > 0) {
    allocation_.emplace(driver, total);
  }
  Address next = allocation_ ? allocation_->at() : 0;
  for (const Bytes bytes : bytes_by_stream) {
    bases_.push_back(next);
    next += static_cast<Address>(bytes.count);
  }
}

DeviceMemory::DeviceMemory(const Program& program, const Sizes& sizes, Driver& driver, std::vector<Rank> ranks,
                           std::optional<Address> at)
    : program_(program),
      sizes_(sizes),
      driver_(driver),
      ranks_(std::move(ranks)),
      base_(at ? *at : allocation_.emplace(driver, bytes_of_all(program, sizes, ranks_.size())).at()),
      layout_(program, sizes, base_) {}

bool DeviceMemory::holds(Rank rank) const { return std::ranges::find(ranks_, rank) != ranks_.end(); }

std::size_t DeviceMemory::place_of(Rank rank) const {
  const auto place = std::ranges::find(ranks_, rank);
  check(place != ranks_.end(), "the rank's memory belongs to this executor");
  return static_cast<std::size_t>(place - ranks_.begin());
}

void DeviceMemory::fill(std::span<const Matrix<float>> tensors) {
  std::vector<std::byte> bytes;
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    Memory host(program_, sizes_, ranks_[place]);
    validate::fill(program_, sizes_, tensors, host);
    for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
      const BufferId buffer{static_cast<std::int32_t>(id)};
      const Panel panel = layout_.panel(place, buffer);
      const Matrix<float> value = host.buffer(ranks_[place], buffer);
      bytes.resize(static_cast<std::size_t>(panel.bytes().count));
      encode(panel.dtype, value.values(), bytes);
      driver_.upload(panel.at, bytes);
    }
  }
}

void DeviceMemory::randomize(Device& device) {
  const StreamId stream = device.stream(0, false);
  for (std::size_t place = 0; place < ranks_.size(); ++place) {
    for (std::size_t id = 0; id < program_.buffers.size(); ++id) {
      driver_.randomize(stream, layout_.panel(place, BufferId{static_cast<std::int32_t>(id)}), id + 1);
    }
  }
  // The host waits, because other streams do not wait for this stream.
  if (!driver_.finish(longest_fill)) {
    throw std::runtime_error("the device did not fill its memory within a minute");
  }
}

std::vector<std::byte> DeviceMemory::snapshot() const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(bytes_of_all(program_, sizes_, ranks_.size()).count));
  driver_.download(bytes, base_);
  return bytes;
}

void DeviceMemory::restore(std::span<const std::byte> bytes) { driver_.upload(base_, bytes); }

Matrix<float> DeviceMemory::read(Rank rank, const Rectangle& area) const {
  const Panel panel = layout_.panel(place_of(rank), area);
  const std::int64_t width = bytes_of(panel.dtype);
  // The download includes the bytes between rows, because one download is faster than one per row.
  std::vector<std::byte> bytes(static_cast<std::size_t>(((panel.rows - 1) * panel.stride + panel.columns) * width));
  driver_.download(bytes, panel.at);
  Matrix<float> value(panel.rows, panel.columns);
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    decode(panel.dtype,
           std::span<const std::byte>(bytes).subspan(static_cast<std::size_t>(row * panel.stride * width),
                                                     static_cast<std::size_t>(panel.columns * width)),
           value.row(row));
  }
  return value;
}

}  // namespace commfuse::validate
