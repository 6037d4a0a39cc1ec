// SPDX-License-Identifier: Apache-2.0
// Devices that only record what they are given, and do it later, on the host, in a random order of those that streams,
// events and messages allow: what a real device may do at worst. What CUDA or NCCL would refuse, or do wrong in
// silence, throws here.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/reference/random.h"

namespace commfuse::validate::test {

class FakeDriver;

struct FakeOp;

/// One or several devices, each used by its own thread; what they were given is done when all of them wait.
class FakeCluster {
 public:
  explicit FakeCluster(int devices = 1, std::uint64_t seed = 1);
  ~FakeCluster();
  FakeCluster(const FakeCluster&) = delete;
  FakeCluster& operator=(const FakeCluster&) = delete;

  [[nodiscard]] FakeDriver& device(int which) { return *devices_[static_cast<std::size_t>(which)]; }
  [[nodiscard]] int devices() const { return static_cast<int>(devices_.size()); }
  /// Waits for the others, then all that can be done is done.
  void meet_and_run();
  /// Who is in a rank's communicator: all that named the same colour at the same split.
  [[nodiscard]] std::vector<std::size_t> members(std::size_t communicator, std::size_t rank);
  void name_color(std::size_t split, std::size_t rank, int color);

 private:
  void run();
  bool step();
  void trade(std::size_t rank);
  [[nodiscard]] std::vector<FakeOp*> heads(std::size_t rank);
  void send(std::size_t rank, FakeOp& mine);
  void meet(std::size_t rank, FakeOp& mine);

  std::vector<std::unique_ptr<FakeDriver>> devices_;
  Random random_;
  std::mutex mutex_;
  std::condition_variable all_here_;
  int here_ = 0;
  int round_ = 0;
  std::mutex color_mutex_;
  std::map<std::pair<std::size_t, std::size_t>, int> colors_;  // by split and rank
};

/// What a stream has in its queue.
struct FakeOp {
  enum class Kind : std::uint8_t { work, record, wait, gate, exchange, collective };
  Kind kind = Kind::work;
  std::function<void()> work{};
  std::size_t event = 0;
  int version = 0;
  std::size_t communicator = 0;  // of messages and collectives
  std::vector<Message> sends{}, receives{};
  std::vector<char> sent{}, received{};
  CollectiveKind collective = CollectiveKind::all_gather;
  Panel in{}, out{};
  std::uint64_t label = 0;
  std::string name{};
};

/// What is issued between begin_capture() and end_capture().
struct FakeCapture {
  std::size_t origin = 0;
  std::set<std::size_t> joined{};
  std::vector<std::function<void()>> calls{};
};

class FakeDriver final : public Driver {
 public:
  FakeDriver(FakeCluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}

  [[nodiscard]] DeviceFacts facts() const override;
  Address allocate(Bytes bytes) override;
  void release(Address at) override;
  void upload(Address to, std::span<const std::byte> bytes) override;
  void download(std::span<std::byte> bytes, Address from) override;
  StreamId make_stream(bool urgent) override;
  /// From now on it refuses to.
  void set_nothing_apart() { sets_apart_ = false; }
  /// From now on it has a fused attention; a wrong one lets causal queries see all keys.
  void find_cudnn(bool wrong = false) {
    cudnn_ = true;
    wrong_ = wrong;
  }
  [[nodiscard]] std::string attention_by() const override { return attention_by_; }
  Partition set_apart(int multiprocessors) override;
  StreamId make_stream_on(const Partition& partition, bool urgent) override;
  EventId make_event(bool timed) override;
  void record(EventId event, StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  void fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) override;
  void randomize(StreamId stream, const Panel& panel, std::uint64_t seed) override;
  void product(StreamId stream, const ProductCall& call) override;
  void function(StreamId stream, const FunctionCall& call) override;
  void attend(StreamId stream, const AttentionCall& call) override;
  void move(StreamId stream, const MoveCall& call) override;
  void spin(StreamId stream, Duration time) override;
  void gate(StreamId stream) override;
  void close_gate() override { open_ = false; }
  void open_gate() override { open_ = true; }
  [[nodiscard]] bool gate_held() override { return true; }
  [[nodiscard]] bool finish(Duration patience) override;
  [[nodiscard]] Duration elapsed(EventId from, EventId to) override;
  void begin_capture(StreamId origin) override;
  GraphId end_capture() override;
  void launch(StreamId stream, GraphId graph) override;
  void label(std::uint64_t id) override { label_ = id; }
  void begin_trace() override { trace_.emplace(); }
  [[nodiscard]] std::vector<DeviceSpan> end_trace() override;

  /// A message or collective, as FakeNetwork issues it.
  void give(StreamId stream, FakeOp op);

  /// "product", "move", ... in the order they were issued.
  [[nodiscard]] const std::vector<std::string>& issued() const { return issued_; }
  /// Those of them that streams of a partition got.
  [[nodiscard]] const std::vector<std::string>& issued_apart() const { return issued_apart_; }
  [[nodiscard]] std::size_t allocations() const { return memory_.size(); }

 private:
  friend class FakeCluster;
  struct Event {
    bool timed = false;
    int recorded = 0;  // issued
    int reached = 0;   // done
    std::int64_t time = 0;
    bool captured = false;
  };
  void issue(StreamId stream, FakeOp op);
  void note_capture(StreamId stream, const FakeOp& op);
  void require_idle(const char* what) const;
  [[nodiscard]] bool ready(const FakeOp& op) const;
  void execute(std::size_t stream);

  FakeCluster& cluster_;
  int rank_;
  std::map<Address, std::vector<std::byte>> memory_;
  std::vector<std::deque<FakeOp>> streams_;
  std::vector<Event> events_;
  bool open_ = true;
  std::optional<FakeCapture> capture_;
  std::vector<std::vector<std::function<void()>>> graphs_;
  std::uint64_t label_ = 0;
  std::optional<std::vector<DeviceSpan>> trace_;
  std::int64_t clock_ = 0;  // ops done
  std::vector<std::string> issued_, issued_apart_;
  bool sets_apart_ = true;
  bool cudnn_ = false;
  bool wrong_ = false;
  std::string attention_by_;
  int apart_ = 0;  // multiprocessors
  int partitions_ = 0;
  std::set<std::size_t> streams_apart_;
};

/// NCCL among the devices of a cluster: messages of one communicator meet in order, and a group ends as a whole.
class FakeNetwork final : public Network {
 public:
  FakeNetwork(FakeCluster& cluster, int rank) : cluster_(cluster), rank_(rank) {}
  [[nodiscard]] std::string version() const override { return "2.28.9"; }
  [[nodiscard]] std::vector<std::string> notes() const override { return {}; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return cluster_.devices(); }
  [[nodiscard]] std::size_t split(int color) override;
  void exchange(std::size_t communicator, StreamId stream, std::span<const Message> sends,
                std::span<const Message> receives) override;
  void collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                  const Panel& out) override;
  [[nodiscard]] std::optional<std::string> failure() override { return std::nullopt; }
  void abort() override {}

 private:
  FakeCluster& cluster_;
  int rank_;
  std::size_t splits_ = 0;
};

}  // namespace commfuse::validate::test
