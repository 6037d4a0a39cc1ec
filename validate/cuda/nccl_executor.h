// SPDX-License-Identifier: Apache-2.0
// One GPU per process: rank r is process r. Exchanges are groups of NCCL's sends and receives, or its puts and signals
// if the network has them; collectives are NCCL's.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "validate/cuda/calls.h"
#include "validate/cuda/gpu_executor.h"
#include "validate/cuda/nccl_plan.h"

namespace commfuse::validate {

/// Communicators of a network, kept for all programs, because a split takes time and needs all ranks.
class Communicators {
 public:
  /// `network` must outlive the communicators.
  explicit Communicators(Network& network) : network_(network) {}
  [[nodiscard]] Network& network() { return network_; }
  /// Returns the communicator of these members. All ranks must request the same communicators in the same order.
  std::size_t of(const Program& program, const NcclMembers& members);
  /// Returns a communicator of all ranks that no lane uses, for barriers.
  std::size_t for_barriers();
  /// Makes every rank of a communicator raise a signal and wait for one, because with some versions of NCCL the first
  /// signal of a communicator needs all of its ranks. Does nothing and returns false if the communicator was greeted
  /// before.
  bool greet(std::size_t communicator, StreamId stream);

 private:
  std::size_t get_or_make(std::int32_t lane, const std::vector<int>& colors);
  Network& network_;
  std::map<std::pair<std::int32_t, std::vector<int>>, std::size_t> by_lane_and_colors_;
  std::set<std::size_t> greeted_;
};

class NcclExecutor final : public GpuExecutor {
 public:
  /// `device` and `communicators` must outlive the executor. All ranks must make the same executors and call the same
  /// members in the same order. Throws std::runtime_error for fp8, which cannot be stored, and, with a sentence of
  /// nccl_findings(), for a program that sums in fp8 or would get stuck in NCCL's two-sided messages.
  NcclExecutor(Lowered lowered, Sizes sizes, Device& device, Communicators& communicators, RankOptions options);

  [[nodiscard]] std::string_view name() const override { return "nccl"; }
  /// Throws Stuck if the device does not finish, after aborting everything that has begun, and std::runtime_error if
  /// NCCL reports an error. Makespan and timeline are those of this rank, or those that RankOptions::together combines.
  Execution run(const RunOptions& options) override;

 private:
  /// Work of a step on its stream: calls before its message, the message, and calls after it.
  struct Work {
    std::vector<Call> before;  ///< packing, or all calls of a compute step
    std::vector<MessageEnd> sends, receives;
    Panel in, out;  // operands of a collective
    bool communicates = false;
    PutSignals signals;
    Address put_to = 0;       ///< for a put with data: landing()
    std::vector<Call> after;  ///< unpacking
  };

  /// Makes the work of all steps, with a scratch for each lane.
  void make_work(const RunOptions& options, std::span<Scratch> scratch);
  [[nodiscard]] Work work_of(const NcclStep& step, const Command& command, const Calls& calls, Scratch& scratch) const;
  /// Raises the sizes of `scratch` to the largest that any rank needs, so that all ranks have equal scratch. Does
  /// nothing if the network has no windows.
  void grow_to_all(const Calls& calls, std::span<Scratch> scratch) const;
  /// Returns the address that a put of this command's data takes. Data arrives on the target rank at some offset of its
  /// buffers or of its scratch; the address is at that offset on this rank, whose scratch starts at `base`.
  [[nodiscard]] Address landing(const Command& command, Address base) const;
  [[nodiscard]] Work exchange(const Command& command, Scratch& scratch) const;
  [[nodiscard]] Work collective(const Command& command, Functions functions, Scratch& scratch) const;
  [[nodiscard]] Panel staged(const Stack& stack, DType wire, Scratch& scratch) const;
  [[nodiscard]] StreamId stream(std::int32_t lane);
  void issue_step(std::size_t step_index);
  void issue_puts(std::size_t communicator, StreamId on, const Command& command, const Work& work);

  void get_ready(const RunOptions& options) override;
  /// Returns at least one stream, because a rank without an op still takes part in every barrier (align()) and reports
  /// its execution.
  [[nodiscard]] std::vector<StreamId> streams() override;
  [[nodiscard]] std::size_t first_free_event() const override { return static_cast<std::size_t>(plan_.events); }
  void issue_once() override;
  /// A put is up to four commands: a signal, two waits, and the put itself.
  [[nodiscard]] std::size_t deepest_queue() const override { return plan_.steps.size() * (signals_.empty() ? 1 : 4); }
  void meet() override;
  /// Issues an all-reduce of one number among all ranks: no rank's stream continues before all ranks have reached it.
  void align(StreamId origin) override;
  void finish() override;
  [[nodiscard]] std::vector<std::vector<OpHere>> ops_by_step() const override;

  Communicators& communicators_;
  std::size_t barrier_communicator_ = 0;  // communicator of all ranks, for align()
  Allocation barrier_;                    // input and output of the all-reduce in align()
  RankOptions options_;
  Rank rank_;
  std::vector<Command> commands_;
  NcclPlan plan_;
  std::vector<std::size_t> communicator_of_plan_;   // number in communicators_, by communicator of the plan
  std::vector<std::vector<Command>> all_commands_;  // by rank, if the network has windows
  std::vector<PutSignals> signals_;                 // by command, if the network has puts
  std::optional<RunOptions> work_options_;          // options of work_
  std::vector<Work> work_;                          // by step
  std::optional<ScratchRoom> scratch_;
};

}  // namespace commfuse::validate
