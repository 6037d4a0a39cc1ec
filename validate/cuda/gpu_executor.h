// SPDX-License-Identifier: Apache-2.0
// What executors on a GPU have in common: a program in device memory, iterations of it given to streams that start and
// end together, behind a gate, as they come, or as a graph.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "validate/cuda/device.h"
#include "validate/cuda/device_timeline.h"
#include "validate/cuda/launch_mode.h"
#include "validate/executor.h"

namespace commfuse::validate {

struct IssueOptions {
  LaunchMode mode = LaunchMode::stream;
  /// Buffers are filled with random values at the start, and prepare() is not needed: for times at full size.
  bool random_data = false;
  /// The second-level cache is overwritten before every iteration, since in a model other layers run before an op comes
  /// to its weights again. The makespan of a single iteration does not include it.
  bool cold_level2 = false;
  Duration patience = std::chrono::seconds(60);
  /// Where its buffers lie; nothing: in memory of its own.
  std::optional<Address> memory{};
};

/// What executors with a GPU a rank are asked for.
struct RankOptions {
  LaunchMode mode = LaunchMode::stream;
  int multiprocessors = 0;  ///< Of products, so that communication finds some free; 0: all.
  AttentionKernel attention = AttentionKernel::any;
  bool random_data = false;  ///< As IssueOptions.
  bool cold_level2 = false;  ///< As IssueOptions.
  Duration patience = std::chrono::seconds(60);
  /// All ranks call it before a release, so that they start together; none: each starts when it is ready.
  std::function<void()> meet{};
  /// Makes one execution of those of all ranks; none: each rank keeps its own.
  std::function<Execution(const Execution& mine)> together{};
};

class GpuExecutor : public Executor {
 public:
  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }
  [[nodiscard]] bool holds(Rank rank) const override { return memory_.holds(rank); }
  [[nodiscard]] bool holds_own_data() const override { return issue_.random_data; }
  void prepare(std::span<const Matrix<float>> tensors) override { memory_.fill(tensors); }
  /// Throws Stuck when the device does not come to its end, std::runtime_error when more commands than its queues take
  /// would wait behind a gate.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override {
    return memory_.read(rank, area);
  }

 protected:
  /// The device outlives it. Throws std::runtime_error for what it does not store, fp8, and when memory runs out.
  GpuExecutor(Lowered&& lowered, Sizes&& sizes, Device& device, std::vector<Rank> ranks, IssueOptions issue);

  /// Works out what run() is to issue, unless it is worked out for such options.
  virtual void get_ready(const RunOptions& options) = 0;
  /// Those that have something to do, once it is ready; none: nothing has.
  [[nodiscard]] virtual std::vector<StreamId> streams() = 0;
  /// Events from this number on are free to frame iterations with.
  [[nodiscard]] virtual std::size_t first_free_event() const = 0;
  /// One iteration, between fork and join.
  virtual void issue_once() = 0;
  /// The most commands of an iteration that wait in one queue.
  [[nodiscard]] virtual std::size_t deepest_queue() const = 0;
  /// Called before all ranks are released.
  virtual void meet() {}
  /// Issues what lets the streams of all ranks go on at the same moment, on the device; nothing where one device has
  /// all ranks. Time zero of every rank comes right after it.
  virtual void align(StreamId /*origin*/) {}
  /// Waits for the device. Throws Stuck.
  virtual void finish() = 0;
  /// By step of an iteration: whose time its kernels are.
  [[nodiscard]] virtual std::vector<std::vector<OpHere>> ops_by_step() const = 0;

  /// What was worked out is of other options.
  void forget_graph() { graph_.reset(); }
  /// Runs one iteration in the open: kernels that a library loads when they first run, rooms for attention and
  /// connections cannot be made behind a gate or in a capture. Leaves the values of memory as they were.
  void warm_up();

  [[nodiscard]] const Lowered& lowered() const { return lowered_; }
  [[nodiscard]] Device& device() const { return device_; }
  [[nodiscard]] Driver& driver() const { return device_.driver(); }
  [[nodiscard]] const DeviceMemory& memory() const { return memory_; }
  [[nodiscard]] LaunchMode mode() const { return issue_.mode; }
  [[nodiscard]] Duration patience() const { return issue_.patience; }

 private:
  void fork(std::span<const StreamId> streams);
  void join(std::span<const StreamId> streams);
  void framed(std::span<const StreamId> streams, int iterations);
  void issue_all(std::span<const StreamId> streams, const RunOptions& options);
  void cool(StreamId origin);

  Lowered lowered_;
  Sizes sizes_;
  Device& device_;
  IssueOptions issue_;
  DeviceMemory memory_;
  std::optional<GraphId> graph_;
};

}  // namespace commfuse::validate
