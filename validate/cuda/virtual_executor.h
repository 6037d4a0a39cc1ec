// SPDX-License-Identifier: Apache-2.0
// Virtual ranks on one GPU: lanes are its streams, links are copies inside its memory, as fast as they come or at a
// stated pace. Order, hazards and numbers are those of as many GPUs; times are not, unless one rank has it for itself.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "validate/cuda/calls.h"
#include "validate/cuda/gpu_executor.h"
#include "validate/cuda/issue_plan.h"

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
  bool cold_level2 = false;  ///< As IssueOptions.
  Duration patience = std::chrono::seconds(60);
};

class VirtualExecutor final : public GpuExecutor {
 public:
  /// As GpuExecutor.
  VirtualExecutor(Lowered lowered, Sizes sizes, Device& device, VirtualOptions options);

  [[nodiscard]] std::string_view name() const override { return "cuda-virtual"; }

 private:
  /// A plan whose calls are worked out.
  struct Ready {
    RunOptions made_for;
    IssuePlan plan;
    std::vector<std::vector<Call>> calls;  // by step
    std::optional<ScratchRoom> scratch;
  };

  void get_ready(const RunOptions& options) override;
  [[nodiscard]] std::vector<StreamId> streams() override;
  [[nodiscard]] std::size_t first_free_event() const override { return static_cast<std::size_t>(ready_->plan.events); }
  void issue_once() override;
  [[nodiscard]] std::size_t deepest_queue() const override;
  void finish() override;
  [[nodiscard]] std::vector<std::vector<OpHere>> ops_by_step() const override;

  void work_out(std::span<const Address> bases, std::vector<Bytes>& most);
  [[nodiscard]] std::vector<Call> calls_of(const IssueStep& step, const Calls& calls, Scratch& scratch) const;
  [[nodiscard]] At at(Spot spot) const;
  [[nodiscard]] StreamId stream(std::int32_t number);
  [[nodiscard]] std::size_t lane_of(std::int32_t stream) const;
  [[nodiscard]] int multiprocessors() const;
  void issue_step(std::size_t step);
  [[nodiscard]] std::vector<At> members_of(const IssueStep& step) const;

  VirtualOptions options_;
  std::vector<Rank> ranks_;                     // by place
  std::vector<std::vector<Command>> commands_;  // by place
  std::optional<Ready> ready_;
};

}  // namespace commfuse::validate
