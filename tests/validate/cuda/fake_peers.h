// SPDX-License-Identifier: Apache-2.0
// Devices of a cluster that access each other's memory. Copies and flags are done in the random order of their streams,
// so that a missing wait shows in the values. Behaviour that CUDA leaves undefined throws: an owner that opens its own
// memory, and memory that is freed while another process has it open.
#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "tests/validate/cuda/fake_driver.h"
#include "validate/cuda/peers.h"

namespace commfuse::validate::test {

/// State that the processes of a machine share: shared memory, and a place to exchange keys.
class FakeMachine {
 public:
  explicit FakeMachine(int ranks) : keys_(static_cast<std::size_t>(ranks)) {}
  /// Exchanges keys as PeerWindows::Exchange does.
  std::vector<MemoryKey> exchange(int rank, const MemoryKey& mine);

 private:
  friend class FakePeers;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<MemoryKey> keys_;
  std::vector<MemoryKey> exchanged_keys_;
  std::size_t count_ = 0;
  std::size_t round_ = 0;
  std::map<Address, int> opened_;  // shared memory, and the number of processes that have it open
};

class FakePeers final : public Peers {
 public:
  FakePeers(FakeMachine& machine, FakeCluster& cluster, int rank) : machine_(machine), cluster_(cluster), rank_(rank) {}
  /// From now on, omits the waits for flags whose numbers `which` selects.
  void omit_waits(std::function<bool(std::int64_t flag)> which) { is_omitted_ = std::move(which); }

  Shared share(Bytes bytes) override;
  void unshare(Address at) override;
  Address open(const MemoryKey& key) override;
  void close(Address at) override;
  void set(Address flags, std::size_t count, FlagValue value) override;
  void signal(StreamId stream, Address flag, FlagValue value) override;
  void await(StreamId stream, Address flag, FlagValue value) override;
  void copy(StreamId stream, const Panel& from, const Panel& to) override;

 private:
  [[nodiscard]] FakeDriver& driver() { return cluster_.device(rank_); }

  FakeMachine& machine_;
  FakeCluster& cluster_;
  int rank_;
  std::vector<Address> shared_;
  std::function<bool(std::int64_t)> is_omitted_;
};

}  // namespace commfuse::validate::test
