// SPDX-License-Identifier: Apache-2.0
// Common parts of executors on a GPU: a program in device memory, and iterations of it on streams that start and end
// together. Iterations are issued behind a gate, without a gate, or as a graph.
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
  /// Fills buffers with random values at the start, so that prepare() is not needed: for timing at full size.
  bool random_data = false;
  /// Overwrites the second-level cache before every iteration, because in a model other layers run before an op uses
  /// its weights again. The makespan of a run of one iteration excludes the overwrite; longer runs include the
  /// overwrites between their iterations.
  bool cold_level2 = false;
  Duration patience = std::chrono::seconds(60);
  /// Address of the executor's buffers. If it is not set, the executor allocates its own memory.
  std::optional<Address> memory{};
};

/// Options of executors with one GPU for each rank.
struct RankOptions {
  LaunchMode mode = LaunchMode::stream;
  int multiprocessors = 0;  ///< Limit for GEMMs, which leaves the rest to communication; 0: all.
  AttentionKernel attention = AttentionKernel::any;
  bool random_data = false;  ///< See IssueOptions.
  bool cold_level2 = false;  ///< See IssueOptions.
  Duration patience = std::chrono::seconds(60);
  /// Called on every rank before a release; returns once all ranks have called it, so that they start together. If it
  /// is not set, each rank starts when it is ready.
  std::function<void()> meet{};
  /// Combines the executions of all ranks into one. If it is not set, each rank keeps its own.
  std::function<Execution(const Execution& mine)> together{};
};

class GpuExecutor : public Executor {
 public:
  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }
  [[nodiscard]] bool holds(Rank rank) const override { return memory_.holds(rank); }
  [[nodiscard]] bool holds_own_data() const override { return issue_.random_data; }
  void prepare(std::span<const Matrix<float>> tensors) override { memory_.fill(tensors); }
  /// Throws Stuck if the device does not finish, and std::runtime_error if more commands would wait behind a gate than
  /// a stream accepts, or if the gate opened before all of them were issued.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override {
    return memory_.read(rank, area);
  }

 protected:
  /// `device` must outlive the executor. Throws std::runtime_error for dtypes that the executor does not store (fp8),
  /// and when memory runs out.
  GpuExecutor(Lowered&& lowered, Sizes&& sizes, Device& device, std::vector<Rank> ranks, IssueOptions issue);

  /// Plans the work of run(), unless it is already planned for these options.
  virtual void get_ready(const RunOptions& options) = 0;
  /// Returns the streams that have work, once the plan is ready; an empty list if there is no work.
  [[nodiscard]] virtual std::vector<StreamId> streams() = 0;
  /// Returns the first event that the plan leaves free for fork() and join(); all later events are free too.
  [[nodiscard]] virtual std::size_t first_free_event() const = 0;
  /// Issues one iteration, between fork and join.
  virtual void issue_once() = 0;
  /// Returns the largest number of commands of an iteration that wait in one queue.
  [[nodiscard]] virtual std::size_t deepest_queue() const = 0;
  /// Called before all ranks are released.
  virtual void meet() {}
  /// Issues work after which the streams of all ranks start at the same moment; does nothing if one device has all
  /// ranks. Time zero of every rank follows this work.
  virtual void align(StreamId /*origin*/) {}
  /// Waits for the device. Throws Stuck.
  virtual void finish() = 0;
  /// Returns, for each step of the issue plan, the ops to which the step's kernels belong.
  [[nodiscard]] virtual std::vector<std::vector<OpHere>> ops_by_step() const = 0;

  /// Discards the captured graph; call it when the plan changes.
  void forget_graph() { graph_.reset(); }
  /// Unless work is issued as a stream, runs one iteration without a gate, because libraries cannot load kernels,
  /// allocate memory for attention, or make connections behind a gate or in a capture. Afterwards restores the values
  /// in memory, except random data.
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
