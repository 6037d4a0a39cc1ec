// SPDX-License-Identifier: Apache-2.0
#include "sim/step/pipeline.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

enum class Kind : std::uint8_t { forward, backward, weights };

/// A pass over one chunk of a stage.
struct Pass {
  std::int64_t chunk = 0;
  std::int64_t micro_batch = 0;
  Kind kind = Kind::forward;
};

/// Iterates over the passes of one direction on a stage. Counters avoid divisions. The stage changes to its next chunk
/// after every `stages` micro-batches.
class Cursor {
 public:
  Cursor(const Pipeline& pipeline, Kind kind) : pipeline_(pipeline), kind_(kind) {}

  [[nodiscard]] Pass pass(std::int64_t stage) const {
    const std::int64_t slot = kind_ == Kind::forward ? turn_ : pipeline_.interleave - 1 - turn_;
    return {slot * pipeline_.stages + stage, micro_batch_, kind_};
  }

  void advance() {
    ++micro_batch_;
    if (++in_turn_ < pipeline_.stages) {
      return;
    }
    in_turn_ = 0;
    if (++turn_ < pipeline_.interleave) {
      micro_batch_ -= pipeline_.stages;
    } else {
      turn_ = 0;
    }
  }

 private:
  const Pipeline& pipeline_;
  Kind kind_;
  std::int64_t turn_ = 0;     // number of chunks of the stage that have finished these micro-batches
  std::int64_t in_turn_ = 0;  // number of micro-batches of this turn that are done
  std::int64_t micro_batch_ = 0;
};

/// Returns the number of forward passes of a stage before its first backward pass.
std::int64_t warm_up(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t passes = pipeline.micro_batches * pipeline.interleave;
  const std::int64_t later_stages = pipeline.stages - stage - 1;
  const std::int64_t wanted =
      pipeline.interleave == 1 ? later_stages : 2 * later_stages + (pipeline.interleave - 1) * pipeline.stages;
  return std::min(passes, wanted);
}

/// The order of a stage: warm-up forward passes, then alternating forward and backward passes, then the remaining
/// backward passes.
class WholeOrder {
 public:
  WholeOrder(const Pipeline& pipeline, std::int64_t stage)
      : stage_(stage),
        forward_(pipeline, Kind::forward),
        backward_(pipeline, Kind::backward),
        ahead_(warm_up(pipeline, stage)),
        forwards_(pipeline.micro_batches * pipeline.interleave) {}

  [[nodiscard]] bool done() const { return position_ == 2 * forwards_; }
  [[nodiscard]] Pass next() const { return is_forward() ? forward_.pass(stage_) : backward_.pass(stage_); }
  void advance() {
    (is_forward() ? forward_ : backward_).advance();
    ++position_;
  }

 private:
  [[nodiscard]] bool is_forward() const {
    const std::int64_t after_warm_up = position_ - ahead_;
    return after_warm_up < 0 || (after_warm_up < 2 * (forwards_ - ahead_) && after_warm_up % 2 == 0);
  }

  std::int64_t stage_;
  Cursor forward_;
  Cursor backward_;
  std::int64_t ahead_;
  std::int64_t forwards_;
  std::int64_t position_ = 0;
};

/// Returns the passes of a stage in the order of ZB-H1. Warm-up forward passes come first, then rounds of one forward
/// pass (while any is left), one backward pass and one weight-gradient pass. Weight-gradient passes begin when the
/// backward passes are `stage` micro-batches ahead, and the remaining ones come last.
std::vector<Pass> split_passes(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t micro_batches = pipeline.micro_batches;
  const std::int64_t ahead = warm_up(pipeline, stage);
  std::vector<Pass> passes;
  for (std::int64_t k = 0; k < ahead; ++k) {
    passes.push_back({stage, k, Kind::forward});
  }
  for (std::int64_t k = 0; k < micro_batches; ++k) {
    if (ahead + k < micro_batches) {
      passes.push_back({stage, ahead + k, Kind::forward});
    }
    passes.push_back({stage, k, Kind::backward});
    if (k >= stage) {
      passes.push_back({stage, k - stage, Kind::weights});
    }
  }
  for (std::int64_t k = std::max<std::int64_t>(0, micro_batches - stage); k < micro_batches; ++k) {
    passes.push_back({stage, k, Kind::weights});
  }
  return passes;
}

class SplitOrder {
 public:
  SplitOrder(const Pipeline& pipeline, std::int64_t stage) : passes_(split_passes(pipeline, stage)) {}

  [[nodiscard]] bool done() const { return position_ == passes_.size(); }
  [[nodiscard]] const Pass& next() const { return passes_[position_]; }
  void advance() { ++position_; }

 private:
  std::vector<Pass> passes_;
  std::size_t position_ = 0;
};

constexpr Duration not_yet{-1};
constexpr std::int64_t no_micro_batch = -1;

/// Input, stream and output of one kind of pass over a chunk.
struct Work {
  const Duration* input = nullptr;  ///< By micro-batch, end of the previous pass; null if the input is available at 0.
  Duration sent{};                  ///< Time for the result of the previous pass to arrive.
  Duration* output = nullptr;       ///< By micro-batch, the end of this pass; null if nothing waits for it.
  Stream stream;
  Stream longer;                            ///< The stream of micro-batch `longer_at`.
  std::int64_t longer_at = no_micro_batch;  ///< Micro-batch whose pass an exchange lengthens.
  bool ends_gradients = false;              ///< The chunk's gradients become final at `longer_at`.
};

template <class Order>
class PipelineRun {
 public:
  explicit PipelineRun(const Pipeline& pipeline)
      : pipeline_(pipeline),
        forward_(pipeline.chunks.size() * static_cast<std::size_t>(pipeline.micro_batches), not_yet),
        backward_(forward_.size(), not_yet) {
    for (std::int64_t chunk = 0; chunk < std::ssize(pipeline.chunks); ++chunk) {
      works_.push_back({forward_work(chunk), backward_work(chunk), weights_work(chunk)});
    }
    for (std::int64_t stage = 0; stage < pipeline.stages; ++stage) {
      stages_.push_back({Order(pipeline, stage)});
    }
  }

  std::vector<StageTimes> run() {
    for (bool is_done = false; !is_done;) {
      is_done = true;
      bool advanced = false;
      for (Stage& stage : stages_) {
        advanced = advance(stage) || advanced;
        is_done = is_done && stage.order.done();
      }
      check(advanced, "a pipeline schedule never waits for itself");
    }
    std::vector<StageTimes> times;
    for (Stage& stage : stages_) {
      times.push_back(std::move(stage.times));
    }
    return times;
  }

 private:
  struct Stage {
    Order order;
    StreamState state{};
    StageTimes times{};
  };
  using Works = std::array<Work, 3>;  // by kind

  static std::size_t at(std::int64_t index) { return static_cast<std::size_t>(index); }

  /// Returns a chunk's ends by micro-batch.
  Duration* row(std::vector<Duration>& ends, std::int64_t chunk) const {
    return ends.data() + at(chunk * pipeline_.micro_batches);
  }

  /// Returns the time of a send between a chunk and the next.
  [[nodiscard]] Duration send_after(std::int64_t chunk) const {
    return pipeline_.stages == 1 ? Duration::zero() : pipeline_.sends[at(chunk % pipeline_.stages)];
  }

  [[nodiscard]] Work forward_work(std::int64_t number) {
    const PipelineChunk& chunk = pipeline_.chunks[at(number)];
    Work work{.output = row(forward_, number),
              .stream = chunk.forward,
              .longer = chunk.forward.longer(chunk.first_longer),
              .longer_at = 0};
    if (number > 0) {
      work.input = row(forward_, number - 1);
      work.sent = send_after(number - 1);
    }
    return work;
  }

  [[nodiscard]] Work backward_work(std::int64_t number) {
    const PipelineChunk& chunk = pipeline_.chunks[at(number)];
    const bool is_last = number + 1 == std::ssize(pipeline_.chunks);
    Work work{.input = is_last ? row(forward_, number) : row(backward_, number + 1),
              .sent = is_last ? Duration::zero() : send_after(number),
              .output = row(backward_, number),
              .stream = chunk.backward};
    if (!pipeline_.splits_backward) {
      end_gradients(work, chunk);
    }
    return work;
  }

  [[nodiscard]] Work weights_work(std::int64_t number) {
    const PipelineChunk& chunk = pipeline_.chunks[at(number)];
    Work work{.input = row(backward_, number), .stream = chunk.weights};
    if (pipeline_.splits_backward) {
      end_gradients(work, chunk);
    }
    return work;
  }

  void end_gradients(Work& work, const PipelineChunk& chunk) const {
    work.longer = work.stream.longer(chunk.last_longer);
    work.longer_at = pipeline_.micro_batches - 1;
    work.ends_gradients = true;
  }

  /// Runs the passes of a stage whose inputs are known, in order. Returns whether any pass ran.
  bool advance(Stage& stage) {
    bool advanced = false;
    for (; !stage.order.done(); stage.order.advance()) {
      const Pass pass = stage.order.next();
      const Work& work = works_[at(pass.chunk)][static_cast<std::size_t>(pass.kind)];
      Duration input{};
      if (work.input != nullptr) {
        input = work.input[pass.micro_batch];
        if (input == not_yet) {
          break;
        }
        input += work.sent;
      }
      run_pass(stage, pass, work, input);
      advanced = true;
    }
    return advanced;
  }

  static void run_pass(Stage& stage, const Pass& pass, const Work& work, Duration input) {
    const bool is_longer = pass.micro_batch == work.longer_at;
    const Stream& stream = is_longer ? work.longer : work.stream;
    const Duration start = std::max(stage.state.device, input);
    stage.state = stream.after(stage.state, input);
    if (work.output != nullptr) {
      work.output[pass.micro_batch] = stage.state.device;
    }
    stage.times.end = stage.state.device;
    stage.times.busy += stream.device;
    if (is_longer && work.ends_gradients) {
      stage.times.last_backward.push_back({pass.chunk, start, stage.state.device});
    }
  }

  const Pipeline& pipeline_;
  std::vector<Duration> forward_;   // ends of passes, by chunk and micro-batch
  std::vector<Duration> backward_;  // ends of passes, by chunk and micro-batch
  std::vector<Works> works_;        // by chunk
  std::vector<Stage> stages_;
};

}  // namespace

std::vector<StageTimes> simulate(const Pipeline& pipeline) {
  check(std::ssize(pipeline.chunks) == pipeline.stages * pipeline.interleave, "every stage has its chunks");
  check(pipeline.interleave == 1 || pipeline.micro_batches % pipeline.stages == 0,
        "the number of interleaved micro-batches is a multiple of the stages");
  check(pipeline.stages == 1 || std::ssize(pipeline.sends) == pipeline.stages, "every stage has a send time");
  check(pipeline.interleave == 1 || !pipeline.splits_backward, "ZB-H1 has one chunk per stage");
  return pipeline.splits_backward ? PipelineRun<SplitOrder>(pipeline).run() : PipelineRun<WholeOrder>(pipeline).run();
}

}  // namespace commfuse
