// SPDX-License-Identifier: Apache-2.0
// Prices a layer with a state space, kernel by kernel: in-projection, convolution, scan, gated norm, out-projection
// (state-spaces/mamba, modules/mamba2.py). Its heads and groups are divided among tensor ranks, as in Megatron-LM's
// mamba_mixer.py. Ranks that share a sequence exchange tokens for heads before the convolution and back after the scan
// (mamba_context_parallel.py of Megatron-LM).
#include "model/cost/state_space.h"
#include "sim/step/layer_cost.h"

namespace commfuse {

namespace {

/// A scan's backward pass recomputes the states and has two GEMMs where the forward pass has one.
constexpr double scan_backward = 2.5;

}  // namespace

Duration LayerCost::scan() const {
  const StateSpace& space = *model_.state_space;
  const std::int64_t sharers = plan_.tensor * plan_.sequence_ranks();
  return scan_time(machine_.accelerator, {.tokens = tokens_ * plan_.sequence_ranks(),
                                          .heads = space.heads() / sharers,
                                          .groups = space.groups / sharers,
                                          .head_dim = space.head_dim,
                                          .state = space.state,
                                          .chunk = space.chunk,
                                          .recurrence = space.recurrence,
                                          .dtype = plan_.dtype == DType::fp8 ? DType::bf16 : plan_.dtype});
}

/// Adds the step of one token per sequence, which reads and writes the state.
void LayerCost::state_space_step(Stream& stream) const {
  const StateSpace& space = *model_.state_space;
  moved(stream, 2 * tokens_ * space.convolution * space.convolved() / plan_.tensor);
  const std::int64_t state = space.inner * space.state * space.state_bits / 16;  // counted in values of 16 bits
  moved(stream, tokens_ * 2 * (state + space.projected()) / plan_.tensor);
}

void LayerCost::state_space_forward(Stream& stream) {
  const StateSpace& space = *model_.state_space;
  const std::int64_t inner = space.inner / plan_.tensor;
  site(stream, {&*mamba_in_, SiteName::gate_up}, Direction::forward);
  if (point_.cached > 0) {
    state_space_step(stream);
  } else {
    sequence_exchange(stream, space.projected() / plan_.tensor);
    moved(stream, 2 * tokens_ * space.convolved() / plan_.tensor);
    kernel(stream, scan());
    stream.add_host((scan_kernels(space.recurrence) - 1) * point_.framework.issue.value);
    sequence_exchange(stream, inner);
  }
  moved(stream, 3 * tokens_ * inner);
  site(stream, {&*mamba_out_, SiteName::down}, Direction::forward);
}

void LayerCost::state_space_backward(Stream& stream) {
  const StateSpace& space = *model_.state_space;
  const std::int64_t inner = space.inner / plan_.tensor;
  moved(stream, residual_elements());
  site(stream, {&*mamba_out_, SiteName::down}, Direction::backward);
  moved(stream, 5 * tokens_ * inner);
  sequence_exchange(stream, inner);
  kernel(stream, stream_time(scan_backward * to_seconds(scan())));
  stream.add_host((scan_kernels(space.recurrence) - 1) * point_.framework.issue.value);
  moved(stream, 4 * tokens_ * space.convolved() / plan_.tensor);
  sequence_exchange(stream, space.projected() / plan_.tensor);
  site(stream, {&*mamba_in_, SiteName::gate_up}, Direction::backward);
  moved(stream, 4 * norm_elements());
}

}  // namespace commfuse
