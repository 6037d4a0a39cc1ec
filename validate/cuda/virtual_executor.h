// SPDX-License-Identifier: Apache-2.0
// Virtual ranks on one GPU: lanes are its streams, links are copies inside its memory, at full speed or at a stated
// pace. Order, hazards and numbers are those of one GPU per rank. Times are not, unless one rank has the GPU to itself.
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
  /// If set, this rank has the whole GPU, and its peers are assumed to do the same at every moment; otherwise all ranks
  /// share the GPU.
  std::optional<Rank> middle{};
  LaunchMode mode = LaunchMode::stream;
  /// Runs everything on one stream in the order of issue, without concurrency. Every other run must produce identical
  /// bits (T1).
  bool one_stream = false;
  int multiprocessors = 0;  ///< Limit for GEMMs; 0: all.
  AttentionKernel attention = AttentionKernel::any;
  /// Runs everything except messages and collectives on at least this many reserved multiprocessors, which leaves the
  /// rest to messages and collectives; 0 means that everything runs everywhere.
  int partition = 0;
  /// Fills buffers with random values at the start, so that prepare() is not needed: for timing at full size.
  bool random_data = false;
  bool cold_level2 = false;  ///< See IssueOptions.
  Duration patience = std::chrono::seconds(60);
};

class VirtualExecutor final : public GpuExecutor {
 public:
  /// See GpuExecutor.
  VirtualExecutor(Lowered lowered, Sizes sizes, Device& device, VirtualOptions options);

  [[nodiscard]] std::string_view name() const override { return "cuda-virtual"; }

 private:
  /// A plan with its calls.
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

  /// Makes the calls of every step, with a scratch for each stream.
  void make_calls(std::span<Scratch> scratch);
  [[nodiscard]] std::vector<Call> calls_of(const IssueStep& step, const Calls& calls, Scratch& scratch) const;
  [[nodiscard]] At at(Spot spot) const;
  [[nodiscard]] StreamId stream(std::int32_t number);
  [[nodiscard]] std::size_t lane_of(std::int32_t stream) const;
  [[nodiscard]] int multiprocessors() const;
  void issue_step(std::size_t step_index);
  [[nodiscard]] std::vector<At> members_of(const IssueStep& step) const;

  VirtualOptions options_;
  std::vector<Rank> ranks_;                     // rank at each place
  std::vector<std::vector<Command>> commands_;  // commands at each place
  std::optional<Ready> ready_;
};

}  // namespace commfuse::validate
