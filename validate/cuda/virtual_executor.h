// SPDX-License-Identifier: Apache-2.0
// Virtual ranks on one GPU: lanes are its streams, links are copies inside its memory, as fast as they come or at a
// stated pace. Order, hazards and numbers are those of as many GPUs; times are not, unless one rank has it for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validate/cuda/calls.h"
#include "validate/cuda/device.h"
#include "validate/cuda/device_timeline.h"
#include "validate/cuda/issue_plan.h"
#include "validate/cuda/launch_mode.h"
#include "validate/executor.h"

namespace commfuse::validate {

struct VirtualOptions {
  DeviceLink link;
  /// One rank has the whole GPU; each of its peers does what it does itself at each moment. Nothing: all ranks share
  /// the GPU.
  std::optional<Rank> middle{};
  LaunchMode mode = LaunchMode::stream;
  /// All on one stream in the order of issue: nothing runs beside anything. What every other run must give (T1).
  bool one_stream = false;
  int multiprocessors = 0;  ///< Of products; 0: all.
  AttentionKernel attention = AttentionKernel::any;
  /// All but messages and collectives runs on at least so many multiprocessors set apart, so that those find the others
  /// free; 0: everything runs everywhere.
  int partition = 0;
  /// Buffers are filled with random values at the start, and prepare() is not needed: for times at full size.
  bool random_data = false;
  Duration patience = std::chrono::seconds(60);
};

class VirtualExecutor final : public Executor {
 public:
  /// The device outlives it. Throws std::runtime_error for what it does not store, fp8, and when memory runs out.
  VirtualExecutor(Lowered lowered, Sizes sizes, Device& device, VirtualOptions options);

  [[nodiscard]] std::string_view name() const override { return "cuda-virtual"; }
  [[nodiscard]] const Program& program() const override { return *lowered_.program; }
  [[nodiscard]] const Sizes& sizes() const override { return sizes_; }
  [[nodiscard]] bool holds(Rank rank) const override { return memory_.holds(rank); }
  [[nodiscard]] bool holds_own_data() const override { return options_.random_data; }
  void prepare(std::span<const Matrix<float>> tensors) override { memory_.fill(tensors); }
  /// Throws Stuck when the device does not come to its end, std::runtime_error when more commands than its queues take
  /// would wait behind a gate.
  Execution run(const RunOptions& options) override;
  [[nodiscard]] Matrix<float> fetch(Rank rank, const Rectangle& area) const override {
    return memory_.read(rank, area);
  }

 private:
  /// A plan whose calls are worked out.
  struct Ready {
    RunOptions made_for;
    IssuePlan plan;
    std::vector<std::vector<Call>> calls;  // by step
    std::optional<ScratchRoom> scratch;
    std::optional<GraphId> graph;
  };

  const Ready& ready_for(const RunOptions& options);
  void warm_up(const Ready& ready);
  void finish() const;
  void work_out(Ready& ready, std::span<const Address> bases, std::vector<Bytes>& most) const;
  [[nodiscard]] std::vector<Call> calls_of(const IssueStep& step, const Calls& calls, Scratch& scratch) const;
  [[nodiscard]] At at(Spot spot) const;
  [[nodiscard]] StreamId stream(std::int32_t number);
  [[nodiscard]] std::size_t lane_of(std::int32_t stream) const;
  [[nodiscard]] int multiprocessors() const;
  void issue_all(const Ready& ready, const RunOptions& options);
  void issue_once(const Ready& ready);
  void issue_step(const Ready& ready, std::size_t step);
  void fork(const Ready& ready);
  void join(const Ready& ready);
  void require_room(const Ready& ready, int iterations) const;
  [[nodiscard]] std::vector<At> members_of(const IssueStep& step) const;
  [[nodiscard]] std::vector<std::vector<OpHere>> ops_of(const IssuePlan& plan) const;

  Lowered lowered_;
  Sizes sizes_;
  Device& device_;
  VirtualOptions options_;
  std::vector<std::vector<Command>> commands_;  // by place
  std::vector<Rank> ranks_;                     // by place
  DeviceMemory memory_;
  std::optional<Ready> ready_;
};

}  // namespace commfuse::validate
