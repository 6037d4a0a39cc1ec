// SPDX-License-Identifier: Apache-2.0
// From a layer of a model under a training plan to rows of kernels: what its forward and backward passes take on one
// rank. Also what stands before and behind the layers: embedding, logits, loss, optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <vector>

#include "model/config/choices.h"
#include "model/config/framework.h"
#include "model/cost/attention.h"
#include "model/hardware/machine.h"
#include "model/units.h"
#include "model/workload/layers.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"
#include "sim/step/group_link.h"
#include "sim/step/layer_sites.h"
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
  /// Framework::overlaps_backward says. In fp8 the products are, and what goes over the wires has 16 bits.
  std::vector<const Strategy*> strategies;
  /// Keys that every sequence has in its cache. With some, a pass is one token a sequence (decoding) and `plan.seq` is
  /// 1; 0: a pass takes whole sequences.
  std::int64_t cached = 0;
  StepOptions options;
  /// Serving: weights are as the checkpoint keeps them (Transformer::weights).
  bool serves = false;
  /// Every kernel takes so many times as long: all wait for the slowest GPU. Wires and hosts are no slower.
  double slowdown = 1.0;
  /// Lognormal sigma of the speeds of GPUs (Jitter::rank); 0: all are alike.
  double rank_sigma = 0.0;
  /// Lognormal sigma of a member's time in a collective (Jitter::communication), drawn anew in each: a collective takes
  /// the largest of its members' times, so in the mean over the many of a step slowest_of(members) times its price.
  double communication_sigma = 0.0;
};

/// The attention of one rank in a decoding step, in a layer of a kind: of the keys that the new token sees.
AttentionSize decode_attention_size(const StepPoint& point, const LayerKind& kind);

/// What one rank keeps of all sequences for one layer of a kind: keys and values, or narrow ones; the state of a state
/// space and what its convolution looks back on, in 16 bits.
Bytes decode_cache(const StepPoint& point, const LayerKind& kind);

class LayerCost {
 public:
  /// Requires a possible plan that fits the machine. `held`: SMs that an exchange of replicas holds all the time.
  LayerCost(const StepPoint& point, SiteTimes& sites, int held = 0);

  /// One layer.
  [[nodiscard]] Stream forward(const LayerKind& kind);
  /// With what the plan computes again before it.
  [[nodiscard]] Stream backward(const LayerKind& kind);

  /// The gradients of the weights apart from all else of a backward pass.
  struct SplitPasses {
    Stream inputs;
    Stream weights;
  };
  /// As backward, its products one by one: collectives that ran beside the gradients of weights have nothing to run
  /// beside. With strategies the gradient of a column's input is a product and its reduce-scatter, that of a row's an
  /// all-gather and its product. The second gather of a column's input belongs to the weights.
  [[nodiscard]] SplitPasses backward_split(const LayerKind& kind);
  [[nodiscard]] SplitPasses logits_backward_split();

  [[nodiscard]] Stream embedding_forward() const;
  [[nodiscard]] Stream embedding_backward() const;
  /// Last norm, logits and loss.
  [[nodiscard]] Stream logits_forward() const;
  [[nodiscard]] Stream logits_backward() const;

  /// One optimizer step over so many parameters: Adam reads and writes the weights and both moments in fp32, reads the
  /// gradient and writes the weight in 16 bits.
  [[nodiscard]] Duration optimizer(std::int64_t parameters) const;

  /// So many GPUs, `stride` apart.
  [[nodiscard]] Group group_at(std::int64_t stride, std::int64_t ranks) const;

 private:
  /// Bytes of an activation and of what goes over the wires: fp8 products convert on the fly.
  static constexpr std::int64_t width = 2;
  enum class Direction : std::uint8_t { forward, backward };
  void attention_forward(Stream& stream);
  void attention_backward(Stream& stream);
  void state_space_forward(Stream& stream);
  void state_space_backward(Stream& stream);
  [[nodiscard]] Duration scan() const;
  void state_space_step(Stream& stream) const;
  /// Products from now on have weights of a part of which this share is kept narrow.
  void read_weights(double WeightFormat::*share);
  /// What is of a kind alone is of this one from now on.
  void turn_to(const LayerKind& kind);
  void latent_forward(Stream& stream) const;
  void latent_backward(Stream& stream) const;
  [[nodiscard]] std::int64_t score_dim() const;
  [[nodiscard]] AttentionWindow walked() const;
  [[nodiscard]] DType wide() const;
  void attention_core(Stream& stream, Direction direction) const;
  void decode_core(Stream& stream) const;
  void latent_decode(Stream& stream) const;
  void indexer(Stream& stream, Direction direction) const;
  void unfused_core(Stream& stream, const AttentionSize& size, Direction direction) const;
  void mlp_forward(Stream& stream, MlpKind kind);
  void mlp_backward(Stream& stream, MlpKind kind);
  void experts(Stream& stream, Direction direction);
  void routed_experts(Stream& stream, Direction direction);
  void router(Stream& stream);
  void latent_product(Stream& stream, std::int64_t n, std::int64_t k, Direction direction) const;
  void shared_experts(Stream& stream, Direction direction);
  void grouped(Stream& stream, std::int64_t n, std::int64_t k, Direction direction) const;
  /// A GEMM or memory-bound kernel, for which the device waits (Accelerator::stream_gap).
  void kernel(Stream& stream, Duration time) const;
  /// Attention's fitted overhead contains the wait.
  void attention(Stream& stream, Duration time) const;
  /// What the framework's fused attention takes where the machine's file says `time`.
  [[nodiscard]] Duration fused(Duration time) const;
  /// What it takes on the slowest GPU.
  [[nodiscard]] Duration slowed(Duration time) const;
  /// A call whose time already contains the wait before it; no GPU is slower at it.
  void collective(Stream& stream, Duration time) const;
  /// A kernel and a collective beside it.
  void beside(Stream& stream, Duration time, Duration communication) const;
  /// Of the gradients of weights: where backward passes are split, in a row of its own.
  void weight_kernel(Stream& stream, Duration time) const;
  void moved(Stream& stream, std::int64_t elements) const;
  void moved_bytes(Stream& stream, double bytes) const;
  /// One product of m x k activations and a k x n weight; backward the two products of its gradients.
  void product(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const;
  void product_backward(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Of gradients of 16 bits to 32-bit sums, where no product does it.
  void accumulation(Stream& stream, std::int64_t parameters) const;
  /// Beside a collective that holds so many SMs.
  [[nodiscard]] Duration product_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient,
                                      int ctas = 0) const;
  /// A product of the layer with its collective.
  void site(Stream& stream, const Projection& projection, Direction direction);
  [[nodiscard]] bool plays_schedules() const { return shares_tokens() && !point_.strategies.empty(); }
  [[nodiscard]] bool shares_tokens() const { return plan_.sequence_parallel && plan_.tensor > 1; }
  void play(Stream& stream, const SitePoint& site);
  void play(Stream& stream, const SitePoint& site, const SiteTime& time);
  [[nodiscard]] SitePoint point_of(const Transformer& shape, Scope scope) const;
  void site_forward(Stream& stream, const Projection& projection);
  [[nodiscard]] Stream exposed_forward(const Projection& projection) const;
  [[nodiscard]] std::optional<Stream> implemented_forward(const Projection& projection);
  void site_backward_split(Stream& stream, const Projection& projection);
  struct Product {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
  };
  void site_backward(Stream& stream, const Product& forward, bool column) const;
  void reduce(Stream& stream) const;
  [[nodiscard]] Group tensor_group() const { return group_at(1, plan_.tensor); }
  void context_exchange(Stream& stream, Direction direction) const;
  /// So many columns of the tensor ranks' tokens and heads, from tokens to heads or back, among the ranks that share a
  /// sequence.
  void ulysses_exchange(Stream& stream, std::int64_t columns) const;
  /// The same among Ulysses and context ranks together: a state space has one way for both.
  void sequence_exchange(Stream& stream, std::int64_t columns) const;
  void exchange(Stream& stream, std::int64_t ranks, std::int64_t columns) const;
  [[nodiscard]] bool plays_ulysses() const;
  void ulysses_block(Stream& stream);
  [[nodiscard]] std::int64_t norm_elements() const;
  [[nodiscard]] std::int64_t residual_elements() const;
  [[nodiscard]] std::int64_t qkv_columns() const;
  [[nodiscard]] std::int64_t attended_columns() const;
  [[nodiscard]] std::int64_t routed_width() const;

  const StepPoint& point_;
  std::optional<Transformer> copied_;  ///< The model, where tensor ranks have copies of its kv heads.
  const Transformer& model_;           ///< As tensor ranks hold it.
  LayerKind kind_;                     ///< Of the layer that is priced.
  const Transformer* shape_;           ///< The model with the widths of that kind.
  std::map<LayerKind, Transformer> shapes_;
  double weight_bits_ = 0.0;  ///< GemmSize::weight_bits of the products that come.
  const Machine& machine_;
  const TrainingPlan& plan_;
  SiteTimes& sites_;
  int sms_;                              ///< That are left.
  DType products_;                       ///< Of the products that come.
  Stream* weights_ = nullptr;            ///< While a backward pass is split: where the gradients of weights go.
  std::int64_t tokens_;                  ///< Of a pass on this rank, where tensor ranks do not share them.
  std::int64_t own_tokens_;              ///< Of norms and residuals.
  std::optional<Transformer> mamba_in_;  ///< Models whose MLP has the shape of a state space's projections.
  std::optional<Transformer> mamba_out_;
  std::optional<Transformer> shared_experts_;  ///< Whose MLP is the shared experts side by side.
};

}  // namespace commfuse
