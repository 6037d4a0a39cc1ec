// SPDX-License-Identifier: Apache-2.0
#include "sim/step/pipeline.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

enum class Kind : std::uint8_t { forward, backward, weights };

/// A pass over one piece of a stage.
struct Pass {
  std::int64_t piece = 0;
  std::int64_t micro_batch = 0;
  Kind kind = Kind::forward;
};

Kind kind_of(bool is_forward) { return is_forward ? Kind::forward : Kind::backward; }

/// Returns pass number k of one direction on a stage. The stage changes to its next piece after every `stages`
/// micro-batches.
Pass numbered(const Pipeline& pipeline, std::int64_t stage, std::int64_t k, bool is_forward) {
  const std::int64_t round = pipeline.stages * pipeline.interleave;
  if (pipeline.interleave == 1) {
    return {stage, k, kind_of(is_forward)};
  }
  const std::int64_t turn = k % round / pipeline.stages;
  const std::int64_t slot = is_forward ? turn : pipeline.interleave - 1 - turn;
  return {slot * pipeline.stages + stage, k / round * pipeline.stages + k % pipeline.stages, kind_of(is_forward)};
}

/// Returns the forward passes of a stage before its first backward pass.
std::int64_t warm_up(const Pipeline& pipeline, std::int64_t stage) {
  const std::int64_t passes = pipeline.micro_batches * pipeline.interleave;
  const std::int64_t behind = pipeline.stages - stage - 1;
  const std::int64_t wanted =
      pipeline.interleave == 1 ? behind : 2 * behind + (pipeline.interleave - 1) * pipeline.stages;
  return std::min(passes, wanted);
}

/// Returns the pass at index `place` in a stage's order: warm-up forward passes, then forward and backward passes in
/// turn, then the remaining backward passes.
Pass pass_at(const Pipeline& pipeline, std::int64_t stage, std::int64_t place) {
  const std::int64_t passes = pipeline.micro_batches * pipeline.interleave;
  const std::int64_t ahead = warm_up(pipeline, stage);
  if (place < ahead) {
    return numbered(pipeline, stage, place, true);
  }
  const std::int64_t pairs = place - ahead;
  if (pairs < 2 * (passes - ahead)) {
    return pairs % 2 == 0 ? numbered(pipeline, stage, ahead + pairs / 2, true)
                          : numbered(pipeline, stage, pairs / 2, false);
  }
  return numbered(pipeline, stage, place - passes, false);
}

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

class Player {
 public:
  explicit Player(const Pipeline& pipeline)
      : pipeline_(pipeline),
        forward_(pipeline.pieces.size() * static_cast<std::size_t>(pipeline.micro_batches), not_yet),
        backward_(forward_.size(), not_yet),
        stages_(static_cast<std::size_t>(pipeline.stages)),
        states_(stages_.size()),
        places_(stages_.size(), 0) {
    for (std::int64_t stage = 0; pipeline.splits_backward && stage < pipeline.stages; ++stage) {
      split_.push_back(split_passes(pipeline, stage));
    }
  }

  std::vector<StageTimes> run() {
    const std::int64_t passes = (pipeline_.splits_backward ? 3 : 2) * pipeline_.micro_batches * pipeline_.interleave;
    for (std::int64_t left = passes * pipeline_.stages; left > 0;) {
      const std::int64_t before = left;
      for (std::int64_t stage = 0; stage < pipeline_.stages; ++stage) {
        while (places_[at(stage)] < passes && advance(stage, next(stage))) {
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

  [[nodiscard]] Pass next(std::int64_t stage) const {
    const std::int64_t place = places_[at(stage)];
    return split_.empty() ? pass_at(pipeline_, stage, place) : split_[at(stage)][at(place)];
  }

  /// Returns when the input of a pass arrives; not_yet if it has not been sent.
  [[nodiscard]] Duration input_of(const Pass& pass) const {
    const bool is_forward = pass.kind == Kind::forward;
    if (pass.kind == Kind::weights) {
      return backward_[cell(pass.piece, pass.micro_batch)];
    }
    const bool starts = is_forward ? pass.piece == 0 : pass.piece + 1 == std::ssize(pipeline_.pieces);
    if (starts) {
      return is_forward ? Duration::zero() : forward_[cell(pass.piece, pass.micro_batch)];
    }
    const std::int64_t lower = is_forward ? pass.piece - 1 : pass.piece;
    const std::size_t from = cell(is_forward ? lower : lower + 1, pass.micro_batch);
    const Duration sent = is_forward ? forward_[from] : backward_[from];
    return sent == not_yet || pipeline_.stages == 1 ? sent : sent + pipeline_.sends[at(lower % pipeline_.stages)];
  }

  bool advance(std::int64_t stage, const Pass& pass) {
    const Duration input = input_of(pass);
    if (input == not_yet) {
      return false;
    }
    const PipelinePiece& piece = pipeline_.pieces[at(pass.piece)];
    const Kind last = pipeline_.splits_backward ? Kind::weights : Kind::backward;
    const bool is_final = pass.kind == last && pass.micro_batch + 1 == pipeline_.micro_batches;
    const Stream& alone = pass.kind == Kind::forward    ? piece.forward
                          : pass.kind == Kind::backward ? piece.backward
                                                        : piece.weights;
    const bool is_first = pass.kind == Kind::forward && pass.micro_batch == 0;
    const Stream stream = is_first   ? alone.longer(piece.first_longer)
                          : is_final ? alone.longer(piece.last_longer)
                                     : alone;
    StreamState& state = states_[at(stage)];
    const Duration start = std::max(state.device, input);
    state = stream.after(state, input);
    if (pass.kind != Kind::weights) {
      (pass.kind == Kind::forward ? forward_ : backward_)[cell(pass.piece, pass.micro_batch)] = state.device;
    }
    StageTimes& times = stages_[at(stage)];
    times.end = state.device;
    times.busy += stream.device;
    if (is_final) {
      times.last_backward.push_back({pass.piece, start, state.device});
    }
    return true;
  }

  const Pipeline& pipeline_;
  std::vector<Duration> forward_;   // end, by piece and micro-batch
  std::vector<Duration> backward_;  // end
  std::vector<StageTimes> stages_;
  std::vector<StreamState> states_;
  std::vector<std::int64_t> places_;      // index of the next pass, by stage
  std::vector<std::vector<Pass>> split_;  // passes of ZB-H1, by stage; empty for other schedules
};

}  // namespace

std::vector<StageTimes> play(const Pipeline& pipeline) {
  check(std::ssize(pipeline.pieces) == pipeline.stages * pipeline.interleave, "every stage has its pieces");
  check(pipeline.interleave == 1 || pipeline.micro_batches % pipeline.stages == 0,
        "the number of interleaved micro-batches is a multiple of the stages");
  check(pipeline.stages == 1 || std::ssize(pipeline.sends) == pipeline.stages, "every stage has a send time");
  check(pipeline.interleave == 1 || !pipeline.splits_backward, "ZB-H1 has one piece per stage");
  return Player(pipeline).run();
}

}  // namespace commfuse
