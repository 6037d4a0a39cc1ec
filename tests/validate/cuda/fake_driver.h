// SPDX-License-Identifier: Apache-2.0
// Devices that only record their work and do it later, on the host, in a random order that streams, events and messages
// allow: the worst that a real device may do. Whatever CUDA or NCCL would refuse, or compute wrongly without an error,
// throws here: memory requests under a closed gate, and anything loaded or connected on first use, such as kernels of
// cuBLASLt and NCCL's channels, behind a gate or in a capture. NCCL's sums are rounded to the dtype of the wire at
// every hop, and each rank's part of a reduce-scatter is added in a different order. Multiprocessors come in groups of
// eight, by default 132 in total.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/values/random.h"

namespace commfuse::validate::test {

/// Throws std::runtime_error with the sentence unless `holds`.
inline void require(bool holds, const std::string& sentence) {
  if (!holds) {
    throw std::runtime_error(sentence);
  }
}

/// Returns the memory of a fake device, which is memory of the host.
inline std::byte* bytes_at(Address at) {
  return reinterpret_cast<std::byte*>(at);
}  // NOLINT(*-int-to-ptr): Address holds it

class FakeDriver;

struct FakeOp;

struct FakeOptions {
  int devices = 1;
  std::uint64_t seed = 1;
  /// Calls of more FLOPs or bytes than this leave memory unchanged: no test looks at the values, and a processor would
  /// take too long.
  double max_work = 1e18;
  /// Calls take the times that stated_costs.h states; otherwise every call takes a microsecond.
  bool stated_times = false;
  std::string name = "a fake device";
  int multiprocessors = 132;
};

/// One or several devices, each used by its own thread. Any waiting thread does the work of all devices.
class FakeCluster {
 public:
  explicit FakeCluster(int devices = 1, std::uint64_t seed = 1) : FakeCluster(FakeOptions{devices, seed}) {}
  explicit FakeCluster(FakeOptions options);
  ~FakeCluster();
  FakeCluster(const FakeCluster&) = delete;
  FakeCluster& operator=(const FakeCluster&) = delete;

  [[nodiscard]] FakeDriver& device(int which) { return *devices_[static_cast<std::size_t>(which)]; }
  [[nodiscard]] int devices() const { return static_cast<int>(devices_.size()); }
  [[nodiscard]] const FakeOptions& options() const { return options_; }
  /// Does work until the device has none left. Returns false if all devices wait with work left and none can
  /// continue, or if nothing happens for `patience`.
  [[nodiscard]] bool finish(const FakeDriver& device, Duration patience);
  /// Returns the members of a rank's communicator: all ranks that named the same colour at the same split.
  [[nodiscard]] std::vector<std::size_t> members(std::size_t communicator, std::size_t rank);
  /// Names a rank's colour at a split; returns once `ranks` ranks have named a colour at this split.
  void name_color(std::size_t split, std::size_t rank, int color, int ranks);

 private:
  void run();
  bool step();
  /// True if every device waits and has work left.
  [[nodiscard]] bool all_wait() const;
  void match_first_ops(std::size_t rank);
  [[nodiscard]] std::vector<FakeOp*> heads(std::size_t rank);
  void send(std::size_t rank, FakeOp& mine);
  void run_collective(std::size_t rank, FakeOp& mine);

  friend class FakeDriver;
  friend class FakePeers;

  FakeOptions options_;
  std::vector<std::unique_ptr<FakeDriver>> devices_;
  Random random_;
  /// One mutex for all devices, because the thread that waits does the work of all of them.
  std::recursive_mutex mutex_;
  std::condition_variable_any something_happened_;
  std::set<const FakeDriver*> waiting_;  // devices in finish()
  std::uint64_t happened_ = 0;           // number of changes that may let a waiting device continue
  std::mutex color_mutex_;
  std::condition_variable all_named_;
  std::map<std::pair<std::size_t, std::size_t>, int> colors_;  // by split and rank

  friend class FakeNetwork;
  /// A communicator, a rank that raises signals on it and the rank that receives them.
  struct Way {
    std::size_t communicator = 0;
    int from = 0, to = 0;
    friend auto operator<=>(const Way&, const Way&) = default;
  };
  std::map<Way, int> raised_;  // signals
};

/// An op in a stream's queue.
struct FakeOp {
  enum class Kind : std::uint8_t { work, record, wait, gate, exchange, collective, await };
  Kind kind = Kind::work;
  std::function<void()> work{};
  std::function<bool()> reached{};  // condition of an await
  std::size_t event = 0;
  int version = 0;
  std::size_t communicator = 0;  // communicator of messages and collectives
  std::vector<MessageEnd> sends{}, receives{};
  std::vector<char> sent{}, received{};
  CollectiveKind collective = CollectiveKind::all_gather;
  Panel in{}, out{};
  std::uint64_t label = 0;
  std::string name{};
  Duration time = std::chrono::microseconds(1);
};

/// Ops that are issued between begin_capture() and end_capture().
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
  /// Makes the device refuse to reserve multiprocessors from now on.
  void refuse_partitions() { sets_apart_ = false; }
  /// Gives the device a fused attention from now on; a wrong one lets causal queries see all keys.
  void add_cudnn(bool wrong = false) {
    cudnn_ = true;
    wrong_ = wrong;
  }
  [[nodiscard]] std::string attention_by() const override { return attention_by_; }
  Partition make_partition(int multiprocessors) override;
  void end_partition(const Partition& partition) override;
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
  void close_gate() override { set_gate(false); }
  void open_gate() override { set_gate(true); }
  [[nodiscard]] bool gate_held() override { return true; }
  [[nodiscard]] bool finish(Duration patience) override;
  [[nodiscard]] Duration elapsed(EventId from, EventId to) override;
  void begin_capture(StreamId origin) override;
  GraphId end_capture() override;
  void launch(StreamId stream, GraphId graph) override;
  void label(std::uint64_t id) override { label_ = id; }
  void begin_trace() override;
  void drop_trace() override;
  /// Makes begin_trace() fail from now on, as on a machine without CUPTI.
  void refuse_traces() { traces_ = false; }
  [[nodiscard]] bool is_tracing() const { return trace_.has_value(); }
  [[nodiscard]] std::vector<DeviceSpan> end_trace() override;

  /// Restores the state that a new context has: no gate is closed, nothing is captured or traced, and no stream has
  /// work left.
  void recover();

  /// Issues a message or collective of FakeNetwork.
  void issue_labelled(StreamId stream, FakeOp op);
  /// Issues a message or collective from a thread that has no label.
  void issue_unlabelled(StreamId stream, FakeOp op);
  /// Records a first use that loads or connects something, which must not be behind a gate or in a capture.
  void use(const std::string& what);

  /// Returns "product", "move", ... in the order of issue.
  [[nodiscard]] const std::vector<std::string>& issued() const { return issued_; }
  /// Returns the ops that streams of a partition received.
  [[nodiscard]] const std::vector<std::string>& issued_apart() const { return issued_apart_; }
  [[nodiscard]] std::size_t allocations() const { return memory_.size(); }

 private:
  friend class FakeCluster;
  struct Event {
    bool timed = false;
    int recorded = 0;  // number of records issued
    int reached = 0;   // number of records done
    Duration time{};
    bool captured = false;
  };
  using Lock = std::lock_guard<std::recursive_mutex>;

  void set_gate(bool open);
  /// Returns the stated time of the call, or a microsecond.
  template <class Call>
  [[nodiscard]] Duration time_of(const Call& call) const;
  [[nodiscard]] bool is_idle() const;
  void issue(StreamId stream, FakeOp op);
  void note_capture(StreamId stream, const FakeOp& op);
  void require_idle(const char* what) const;
  [[nodiscard]] bool ready(const FakeOp& op) const;
  void execute(std::size_t stream);

  FakeCluster& cluster_;
  int rank_;
  struct Free {
    void operator()(std::byte* block) const { std::free(block); }  // NOLINT(*-no-malloc)
  };
  friend class FakeNetwork;
  /// A byte of a window. It has the same place on all ranks if all ranks allocate in the same order.
  struct Place {
    std::size_t block = 0;  // counted from the first allocation on
    Address offset = 0;
  };
  [[nodiscard]] Place place_of(Address at) const;
  [[nodiscard]] Address at(const Place& place) const;

  std::map<Address, std::unique_ptr<std::byte, Free>> memory_;
  std::vector<Address> allocated_;  // all that ever existed; 0: released
  std::vector<std::deque<FakeOp>> streams_;
  std::vector<Event> events_;
  bool open_ = true;
  std::optional<FakeCapture> capture_;
  std::vector<std::vector<std::function<void()>>> graphs_;
  std::uint64_t label_ = 0;
  std::optional<std::vector<DeviceSpan>> trace_;
  Duration clock_{};  // time of the ops so far, one after another, on any stream
  std::vector<std::string> issued_, issued_apart_;
  bool sets_apart_ = true;
  bool traces_ = true;
  bool cudnn_ = false;
  bool wrong_ = false;
  std::string attention_by_;
  std::map<std::int32_t, int> apart_;  // multiprocessors by partition
  std::int32_t partitions_ = 0;
  std::set<std::size_t> streams_apart_;
  std::set<std::string> used_;
};

/// NCCL among the devices of a cluster: messages of one communicator are matched in order, and a group ends as a whole.
class FakeNetwork final : public Network {
 public:
  FakeNetwork(FakeCluster& cluster, int rank) : FakeNetwork(cluster, rank, cluster.devices()) {}
  /// Serves the first `ranks` devices. Networks of one cluster count their communicators from different numbers.
  FakeNetwork(FakeCluster& cluster, int rank, int ranks, const NetworkOptions& options = {}, std::size_t first = 0)
      : cluster_(cluster), rank_(rank), ranks_(ranks), options_(options), first_(first), next_(first) {}
  [[nodiscard]] std::string version() const override { return "2.28.9"; }
  [[nodiscard]] std::vector<std::string> notes() const override { return {}; }
  [[nodiscard]] int rank() const override { return rank_; }
  [[nodiscard]] int ranks() const override { return ranks_; }
  [[nodiscard]] std::size_t split(int color) override;
  void exchange(std::size_t communicator, StreamId stream, std::span<const MessageEnd> sends,
                std::span<const MessageEnd> receives) override;
  void collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                  const Panel& out) override;
  [[nodiscard]] bool has_windows() const override { return options_.puts; }
  [[nodiscard]] bool has_puts() const override { return options_.puts; }
  void put(std::size_t communicator, StreamId stream, const MessageEnd& data, Address to) override;
  void signal(std::size_t communicator, StreamId stream, int peer) override;
  void await_signals(std::size_t communicator, StreamId stream, const AwaitedSignals& signals) override;
  /// Makes the network wait for no signal from now on; the results show which waits are needed.
  void omit_waits() { waits_ = false; }
  /// Returns the number of signals for this rank, on all communicators, that were raised but not waited for.
  [[nodiscard]] int left_over() const;
  /// Makes the network report this failure from now on.
  void fail(std::string failure) { failure_ = std::move(failure); }
  [[nodiscard]] std::optional<std::string> failure() override { return failure_; }
  void abort() override {}

 private:
  /// Issues an op. Unless the communicators block, NCCL issues the op from another thread, so the op has no label.
  void issue_labelled(StreamId stream, FakeOp op);

  FakeCluster& cluster_;
  int rank_;
  int ranks_;
  NetworkOptions options_;
  std::size_t first_ = 0;
  std::size_t next_ = 0;
  bool waits_ = true;
  std::optional<std::string> failure_;
  std::map<FakeCluster::Way, int> awaited_;
};

}  // namespace commfuse::validate::test
