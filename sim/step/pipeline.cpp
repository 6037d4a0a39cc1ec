// SPDX-License-Identifier: Apache-2.0
#include "sim/step/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

/// A pass over one piece of a stage.
struct Pass {
  std::int64_t piece = 0;
  std::int64_t micro_batch = 0;
  bool is_forward = true;
};

/// Pass number k of one direction on a stage: pieces take turns after as many micro-batches as there are stages.
Pass numbered(const Pipeline& pipeline, std::int64_t stage, std::int64_t k, bool is_forward) {
  const std::int64_t round = pipeline.stages * pipeline.interleave;
  if (pipeline.interleave == 1) {
    return {stage, k, is_forward};
  }
  const std::int64_t turn = k % round / pipeline.stages;
  const std::int64_t slot = is_forward ? turn : pipeline.interleave - 1 - turn;
  return {slot * pipeline.stages + stage, k / round * pipeline.stages + k % pipeline.stages, is_forward};
}

/// Forward passes of a stage before its first backward pass.
std::int64_t warm_up(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t all = pipeline.micro_batches * pipeline.interleave;
  const std::int64_t behind = pipeline.stages - stage - 1;
  const std::int64_t wanted =
      pipeline.interleave == 1 ? behind : 2 * behind + (pipeline.interleave - 1) * pipeline.stages;
  return std::min(all, wanted);
}

/// A stage's passes in its order, by place: warm-up forwards, then one forward and one backward in turn, then the rest.
Pass pass_at(const Pipeline& pipeline, std::int64_t stage, std::int64_t place) {
  const std::int64_t all = pipeline.micro_batches * pipeline.interleave;
  const std::int64_t ahead = warm_up(pipeline, stage);
  if (place < ahead) {
    return numbered(pipeline, stage, place, true);
  }
  const std::int64_t pairs = place - ahead;
  if (pairs < 2 * (all - ahead)) {
    return pairs % 2 == 0 ? numbered(pipeline, stage, ahead + pairs / 2, true)
                          : numbered(pipeline, stage, pairs / 2, false);
  }
  return numbered(pipeline, stage, place - all, false);
}

class Player {
 public:
  explicit Player(const Pipeline& pipeline)
      : pipeline_(pipeline),
        forward_(pipeline.pieces.size() * static_cast<std::size_t>(pipeline.micro_batches), not_yet),
        backward_(forward_.size(), not_yet),
        stages_(static_cast<std::size_t>(pipeline.stages)),
        states_(stages_.size()),
        places_(stages_.size(), 0) {}

  std::vector<StageTimes> run() {
    const std::int64_t passes = 2 * pipeline_.micro_batches * pipeline_.interleave;
    for (std::int64_t left = passes * pipeline_.stages; left > 0;) {
      const std::int64_t before = left;
      for (std::int64_t stage = 0; stage < pipeline_.stages; ++stage) {
        while (places_[at(stage)] < passes && advance(stage, pass_at(pipeline_, stage, places_[at(stage)]))) {
          ++places_[at(stage)];
          --left;
        }
      }
      check(left < before, "a pipeline schedule never waits for itself");
    }
    return std::move(stages_);
  }

 private:
  static constexpr Duration not_yet{-1};
  static std::size_t at(std::int64_t place) { return static_cast<std::size_t>(place); }

  [[nodiscard]] std::size_t cell(std::int64_t piece, std::int64_t micro_batch) const {
    return at(piece * pipeline_.micro_batches + micro_batch);
  }

  /// When the input of a pass is there; not_yet where it has not been sent.
  [[nodiscard]] Duration input_of(const Pass& pass) const {
    const bool starts = pass.is_forward ? pass.piece == 0 : pass.piece + 1 == std::ssize(pipeline_.pieces);
    if (starts) {
      return pass.is_forward ? Duration::zero() : forward_[cell(pass.piece, pass.micro_batch)];
    }
    const std::size_t from = cell(pass.piece + (pass.is_forward ? -1 : 1), pass.micro_batch);
    const Duration sent = pass.is_forward ? forward_[from] : backward_[from];
    return sent == not_yet || pipeline_.stages == 1 ? sent : sent + pipeline_.send;
  }

  bool advance(std::int64_t stage, const Pass& pass) {
    const Duration input = input_of(pass);
    if (input == not_yet) {
      return false;
    }
    const Piece& piece = pipeline_.pieces[at(pass.piece)];
    const Stream& stream = pass.is_forward ? piece.forward : piece.backward;
    StreamState& state = states_[at(stage)];
    const Duration start = std::max(state.device, input);
    state = stream.after(state, input);
    (pass.is_forward ? forward_ : backward_)[cell(pass.piece, pass.micro_batch)] = state.device;
    StageTimes& times = stages_[at(stage)];
    times.end = state.device;
    times.busy += stream.device;
    if (!pass.is_forward && pass.micro_batch + 1 == pipeline_.micro_batches) {
      times.last_backward.push_back({pass.piece, start, state.device});
    }
    return true;
  }

  const Pipeline& pipeline_;
  std::vector<Duration> forward_;   // end, by piece and micro-batch
  std::vector<Duration> backward_;  // end
  std::vector<StageTimes> stages_;
  std::vector<StreamState> states_;
  std::vector<std::int64_t> places_;  // of the next pass, by stage
};

}  // namespace

std::vector<StageTimes> play(const Pipeline& pipeline) {
  check(std::ssize(pipeline.pieces) == pipeline.stages * pipeline.interleave, "every stage has its pieces");
  check(pipeline.interleave == 1 || pipeline.micro_batches % pipeline.stages == 0,
        "interleaved micro-batches come in groups of the stages");
  return Player(pipeline).run();
}

}  // namespace commfuse
