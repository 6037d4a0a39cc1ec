// SPDX-License-Identifier: Apache-2.0
// One GPU per process, all on one machine, without NCCL: rank r is process r. Ranks copy to and from each other's
// memory by cudaMemcpy and synchronize by flags in that memory; neither occupies a multiprocessor if the driver uses
// copy engines. Collectives are copies by all members; sums and changes of dtype are kernels.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "validate/cuda/calls.h"
#include "validate/cuda/gpu_executor.h"
#include "validate/cuda/peer_plan.h"
#include "validate/cuda/peer_windows.h"

namespace commfuse::validate {

/// Offsets of a program's buffers, and of their contents rounded to a wire's dtype, in the data of a window. They are
/// identical on all ranks.
class PeerRoom {
 public:
  PeerRoom(const Program& program, const Sizes& sizes);
  [[nodiscard]] PeerSize size() const { return {flags_.count(), {bytes_}}; }
  [[nodiscard]] const PeerFlags& flags() const { return flags_; }
  /// The next three functions return offsets from the start of the data: of the data that an op sends or contributes,
  /// of received data, and of the sums of an all-reduce.
  [[nodiscard]] Address packed(OpId op) const { return packed_.at(op); }
  [[nodiscard]] Address arrived(OpId op) const { return arrived_.at(op); }
  [[nodiscard]] Address sums(OpId op) const { return sums_.at(op); }

 private:
  Address take(Extent rows, Extent columns, DType dtype, const Sizes& sizes);

  PeerFlags flags_;
  std::int64_t bytes_ = 0;
  std::map<OpId, Address> packed_, arrived_, sums_;
};

class PeerExecutor final : public GpuExecutor {
 public:
  /// `device` and `windows` must outlive the executor. Does not support LaunchMode::graph: flags count iterations, and
  /// the values of a graph are fixed. All ranks must make the same executors and call the same members in the same
  /// order. Throws std::runtime_error for fp8, which cannot be stored, and with a sentence of peer_findings(), if there
  /// is one.
  PeerExecutor(Lowered lowered, Sizes sizes, Device& device, PeerWindows& windows, RankOptions options);

  [[nodiscard]] std::string_view name() const override { return "cuda-peer"; }
  /// Throws Stuck if the device does not finish, after releasing all waits of this rank, and std::runtime_error once a
  /// run in these windows has failed. Makespan and timeline are those of this rank, or those that RankOptions::together
  /// combines.
  Execution run(const RunOptions& options) override;

 private:
  struct Copy {
    Panel from, to;
  };
  using Part = std::variant<Call, Copy>;
  using Parts = std::vector<Part>;
  /// The steps of a collective, without flags.
  struct Meeting {
    Parts take, add, place;
  };
  struct Built {
    Lowered lowered;
    Sizes sizes;
    std::unique_ptr<PeerRoom> room;
    std::unique_ptr<PeerLease> lease;
  };

  PeerExecutor(Built built, Device& device, RankOptions options);
  static Built built(Lowered lowered, Sizes sizes, PeerWindows& windows);

  /// Makes the work of all steps, with a scratch for each lane.
  void make_work(const RunOptions& options, std::span<Scratch> scratch);
  [[nodiscard]] Parts parts_of(const PeerStep& step, const Calls& calls, Scratch& scratch) const;
  [[nodiscard]] Meeting meeting(const Command& command, const RunOptions& options, Scratch& scratch) const;
  [[nodiscard]] Meeting gathering(const Command& command, Scratch& scratch) const;
  [[nodiscard]] Meeting summing(const Command& command, const RunOptions& options, Scratch& scratch) const;
  /// Copies from another rank's memory; through scratch if the wire's dtype differs from the target's.
  void take(const Stack& from, const Stack& to, DType wire, Scratch& scratch, Parts& parts) const;
  [[nodiscard]] const Command& command_of(Rank rank, OpId op) const;
  [[nodiscard]] Stack input(Rank rank, const Command& command) const;
  [[nodiscard]] Stack output(Rank rank, const Command& command) const;
  /// Returns the data that a rank sends or contributes, in the dtype of the wire.
  [[nodiscard]] Stack contribution(Rank rank, const Command& command) const;
  /// Returns the memory where received data arrives, in the dtype of the wire.
  [[nodiscard]] Stack landing(Rank rank, const Command& command) const;
  [[nodiscard]] Panel in_room(Rank rank, Address at, std::int64_t rows, std::int64_t columns, DType dtype) const;
  [[nodiscard]] const Op& op_of(const Command& command) const { return program().ops[position(command.op)]; }
  [[nodiscard]] StreamId stream(std::int32_t lane);
  void issue_step(std::size_t step_index, FlagValue iteration);
  void issue_part(StreamId on, const Part& part);
  void meet_on_device(StreamId origin);

  void get_ready(const RunOptions& options) override;
  /// Returns at least one stream, because a rank without an op still takes part in every barrier.
  [[nodiscard]] std::vector<StreamId> streams() override;
  [[nodiscard]] std::size_t first_free_event() const override { return static_cast<std::size_t>(plan_.events); }
  void issue_once() override;
  [[nodiscard]] std::size_t deepest_queue() const override;
  void meet() override;
  /// Issues a barrier of all ranks by flags, and a kernel whose end marks it in a trace.
  void align(StreamId origin) override;
  /// Waits until all ranks are done, because another rank may still fetch data from this one.
  void finish() override;
  [[nodiscard]] std::vector<std::vector<OpHere>> ops_by_step() const override;

  std::unique_ptr<PeerRoom> room_;
  std::unique_ptr<PeerLease> lease_;
  RankOptions options_;
  Rank rank_;
  std::vector<Layout> layouts_;                      // by rank
  std::vector<std::vector<Command>> commands_;       // by rank
  std::vector<std::map<OpId, std::size_t>> places_;  // by rank: the index of each op's command
  PeerPlan plan_;
  std::optional<RunOptions> made_for_;
  std::vector<Parts> work_;  // by step
  std::optional<ScratchRoom> scratch_;
};

}  // namespace commfuse::validate
