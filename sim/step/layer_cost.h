// SPDX-License-Identifier: Apache-2.0
// From a layer of a model under a training plan to rows of kernels: what its forward and backward passes take on one
// rank. Also what stands before and behind the layers: embedding, logits, loss, optimizer.
#pragma once

#include <cstdint>
#include <vector>

#include "model/cost/attention.h"
#include "model/hardware/machine.h"
#include "model/units.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"
#include "sim/step/framework.h"
#include "sim/step/site_times.h"
#include "sim/step/stream.h"

namespace commfuse {

/// What the costs of a step hang on. All that is pointed to outlives it.
struct StepPoint {
  const Transformer* model = nullptr;
  const Machine* machine = nullptr;  ///< With as many nodes as the plan needs.
  TrainingPlan plan;
  Framework framework;
  /// Of the products that meet a collective under sequence parallelism: at every site the fastest of these. None: as
  /// Megatron-LM without tp-comm-overlap, priced and not played: forward one after the other, backward as
  /// Framework::overlaps_backward says. So are products in fp8, whose schedules would mix two widths.
  std::vector<const Strategy*> strategies;
  /// Keys that every sequence has in its cache. With some, a pass is one token a sequence (decoding) and `plan.seq` is
  /// 1; 0: a pass takes whole sequences.
  std::int64_t cached = 0;
  /// Lognormal sigma of the speeds of GPUs (Jitter::rank); 0: all are alike.
  double rank_sigma = 0.0;
};

/// The attention of one rank in a decoding step.
AttentionSize decode_attention_size(const StepPoint& point);

class LayerCost {
 public:
  /// Requires a possible plan that fits the machine.
  LayerCost(const StepPoint& point, SiteTimes& sites);

  /// One layer, whose MLP is dense or a mixture of experts.
  [[nodiscard]] Stream forward(bool mixture);
  /// With what the plan computes again before it.
  [[nodiscard]] Stream backward(bool mixture);

  /// The gradients of the weights apart from all else of a backward pass.
  struct SplitPasses {
    Stream inputs;
    Stream weights;
  };
  /// As backward, its products one by one: collectives that ran beside the gradients of weights have nothing to run
  /// beside, and sites with a strategy's schedule have none for half a backward pass. The second gather of a column's
  /// input belongs to the weights.
  [[nodiscard]] SplitPasses backward_split(bool mixture);
  [[nodiscard]] SplitPasses logits_backward_split();

  [[nodiscard]] Stream embedding_forward() const;
  [[nodiscard]] Stream embedding_backward() const;
  /// Last norm, logits and loss.
  [[nodiscard]] Stream logits_forward() const;
  [[nodiscard]] Stream logits_backward() const;

  /// One optimizer step over so many parameters: Adam reads and writes the weights and both moments in fp32, reads the
  /// gradient and writes the weight in 16 bits.
  [[nodiscard]] Duration optimizer(std::int64_t parameters) const;

 private:
  enum class Direction : std::uint8_t { forward, backward };
  void attention_forward(Stream& stream);
  void latent_forward(Stream& stream) const;
  void latent_backward(Stream& stream) const;
  [[nodiscard]] std::int64_t score_dim() const;
  void attention_core(Stream& stream, Direction direction) const;
  void decode_core(Stream& stream) const;
  void unfused_core(Stream& stream, const AttentionSize& size, Direction direction) const;
  void mlp_forward(Stream& stream, bool mixture);
  void experts(Stream& stream, Direction direction) const;
  void kernel(Stream& stream, Duration time) const;
  /// Of the gradients of weights: where backward passes are split, in a row of its own.
  void weight_kernel(Stream& stream, Duration time) const;
  void moved(Stream& stream, std::int64_t elements) const;
  void moved_bytes(Stream& stream, double bytes) const;
  /// One product of m x k activations and a k x n weight; backward the two products of its gradients.
  void product(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const;
  void product_backward(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Beside a collective that holds so many SMs.
  [[nodiscard]] Duration product_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient,
                                      int ctas = 0) const;
  /// A product of the layer with its collective.
  void site(Stream& stream, SiteName name, Direction direction);
  struct Product {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
  };
  void site_backward(Stream& stream, const Product& forward, bool column) const;
  void reduce(Stream& stream) const;
  void context_exchange(Stream& stream, Direction direction) const;
  [[nodiscard]] std::int64_t norm_elements() const;

  const StepPoint& point_;
  const Transformer& model_;
  const Machine& machine_;
  const TrainingPlan& plan_;
  SiteTimes& sites_;
  Stream* weights_ = nullptr;  ///< While a backward pass is split: where the gradients of weights go.
  std::int64_t tokens_;        ///< Of a pass on this rank, where tensor ranks do not share them.
  std::int64_t own_tokens_;    ///< Of norms and residuals.
};

}  // namespace commfuse
