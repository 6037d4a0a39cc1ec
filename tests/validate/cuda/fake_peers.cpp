// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/cuda/fake_peers.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

namespace commfuse::validate::test {

namespace {

FlagValue flag_at(Address at) {
  FlagValue value = 0;
  std::memcpy(&value, bytes_at(at), sizeof value);
  return value;
}

void set_flag(Address at, FlagValue value) { std::memcpy(bytes_at(at), &value, sizeof value); }

}  // namespace

std::vector<MemoryKey> FakeMachine::exchange(int rank, const MemoryKey& mine) {
  std::unique_lock lock(mutex_);
  keys_[static_cast<std::size_t>(rank)] = mine;
  const std::size_t round = round_;
  if (++count_ == keys_.size()) {
    count_ = 0;
    ++round_;
    exchanged_keys_ = keys_;
    changed_.notify_all();
  } else {
    changed_.wait(lock, [&] { return round_ != round; });
  }
  return exchanged_keys_;
}

Peers::Shared FakePeers::share(Bytes bytes) {
  const Shared mine{.at = driver().allocate(bytes)};
  shared_.push_back(mine.at);
  const std::lock_guard lock(machine_.mutex_);
  machine_.opened_[mine.at] = 0;
  Shared shared = mine;
  std::memcpy(shared.key.data(), &mine.at, sizeof mine.at);
  return shared;
}

void FakePeers::unshare(Address at) {
  {
    const std::lock_guard lock(machine_.mutex_);
    const auto shared = machine_.opened_.find(at);
    require(shared != machine_.opened_.end() && std::erase(shared_, at) == 1, "memory is unshared that was not shared");
    require(shared->second == 0, "memory is unshared that another process has open");
    machine_.opened_.erase(shared);
  }
  driver().release(at);
}

Address FakePeers::open(const MemoryKey& key) {
  Address at = 0;
  std::memcpy(&at, key.data(), sizeof at);
  const std::lock_guard lock(machine_.mutex_);
  require(std::ranges::find(shared_, at) == shared_.end(), "memory is opened by the process that shares it");
  ++machine_.opened_.at(at);
  return at;
}

void FakePeers::close(Address at) {
  const std::lock_guard lock(machine_.mutex_);
  require(machine_.opened_.at(at)-- > 0, "memory is closed that was not open");
}

void FakePeers::set(Address flags, std::size_t count, FlagValue value) {
  const std::lock_guard lock(cluster_.mutex_);
  for (std::size_t i = 0; i < count; ++i) {
    set_flag(flags + i * sizeof value, value);
  }
  ++cluster_.happened_;
  cluster_.something_happened_.notify_all();
}

void FakePeers::signal(StreamId stream, Address flag, FlagValue value) {
  driver().issue_labelled(stream, {.kind = FakeOp::Kind::work, .work = [flag, value] { set_flag(flag, value); }});
}

void FakePeers::await(StreamId stream, Address flag, FlagValue value) {
  if (is_omitted_ && is_omitted_(static_cast<std::int64_t>(flag - shared_.back()) / flag_bytes)) {
    return;
  }
  driver().issue_labelled(stream, {.kind = FakeOp::Kind::await, .reached = [flag, value] {
                                     return static_cast<std::int32_t>(flag_at(flag) - value) >= 0;
                                   }});
}

void FakePeers::copy(StreamId stream, const Panel& from, const Panel& to) {
  require(from.rows == to.rows && from.columns == to.columns && from.dtype == to.dtype, "a copy moves bytes");
  driver().issue_labelled(stream, {.kind = FakeOp::Kind::work,
                                   .work =
                                       [from, to] {
                                         const std::int64_t width = from.columns * bytes_of(from.dtype);
                                         for (std::int64_t row = 0; row < from.rows; ++row) {
                                           std::memmove(bytes_at(to.at) + row * to.stride * bytes_of(to.dtype),
                                                        bytes_at(from.at) + row * from.stride * bytes_of(from.dtype),
                                                        static_cast<std::size_t>(width));
                                         }
                                       },
                                   .name = "copy"});
}

}  // namespace commfuse::validate::test
