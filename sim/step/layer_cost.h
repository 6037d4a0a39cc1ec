// SPDX-License-Identifier: Apache-2.0
// Prices a layer of a model under a training plan as streams of kernels: the forward and backward passes on one rank.
// Also covers the parts around the layers: embedding, logits, loss, optimizer.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/choices.h"
#include "model/config/framework.h"
#include "model/cost/attention.h"
#include "model/cost/gemm.h"
#include "model/hardware/machine.h"
#include "model/units.h"
#include "model/workload/layers.h"
#include "model/workload/recomputation.h"
#include "model/workload/training_plan.h"
#include "model/workload/transformer.h"
#include "sim/step/group_link.h"
#include "sim/step/implemented_forward.h"
#include "sim/step/layer_sites.h"
#include "sim/step/site_times.h"
#include "sim/step/stream.h"
#include "sim/step/used_schedule.h"

namespace commfuse {

/// The inputs of a step's costs. Everything it points to must outlive it.
struct StepPoint {
  const Transformer* model = nullptr;
  const Machine* machine = nullptr;  ///< With the number of nodes that the plan needs.
  TrainingPlan plan;
  Framework framework;
  /// Candidates for the GEMMs that meet a collective under sequence parallelism: every site uses the fastest. If empty,
  /// GEMMs and collectives are priced and not simulated, as in Megatron-LM without tp-comm-overlap: one after the other
  /// in the forward pass, and in the backward pass as Framework::overlaps_backward states; only those that the
  /// framework's implementation runs are simulated. In fp8, only the GEMMs of layers and the gathers for GEMMs that are
  /// not simulated use 8 bits; everything else on the wires uses 16 bits.
  std::vector<const Strategy*> strategies;
  /// An implementation that runs some of these GEMMs, or the sums over tensor ranks, in forward passes, whatever the
  /// strategies and the framework; LayerCost::saved_by() finds the GEMMs.
  ImplementedForward implemented{};
  /// Number of cached keys per sequence. If positive, a pass processes one token per sequence (decoding) and `plan.seq`
  /// is 1; if 0, a pass processes whole sequences.
  std::int64_t cached = 0;
  /// Number of tokens of each sequence whose keys an earlier pass has left in the cache. `plan.seq` counts the tokens
  /// after them, which a prefill processes.
  std::int64_t earlier = 0;
  /// True: sums over tensor ranks that do not share the tokens take no time, which bounds what overlap can save.
  bool free_sums = false;
  StepOptions options;
  /// Serving: weights have the checkpoint's formats (Transformer::weights).
  bool serves = false;
  /// Factor on the time of every kernel, because all GPUs wait for the slowest. Wires and hosts are not slower.
  double slowdown = 1.0;
  /// Lognormal sigma of the speeds of GPUs (Jitter::rank); 0 if all GPUs are equal.
  double rank_sigma = 0.0;
  /// Lognormal sigma of a member's time in a collective (Jitter::communication), drawn for each collective. A
  /// collective takes the largest of its members' times, so its mean time is slowest_of(members) times its price.
  double communication_sigma = 0.0;
  /// Receives the schedule of every site where strategies or implementations compete, each site once. May be null.
  std::vector<UsedSchedule>* used = nullptr;
};

/// Returns the attention of one rank in a decoding step, in a layer of this kind, over the keys that the new token
/// sees.
AttentionSize decode_attention_size(const StepPoint& point, const LayerKind& kind);

/// Returns the bytes that one rank caches for all sequences in one layer of this kind: keys and values; for latent
/// attention, narrow keys or wide keys and values (StepOptions::latent_decode), and the keys of its indexer; for a
/// state space, its state and, in 16 bits, the earlier inputs that its convolution reads.
Bytes decode_cache(const StepPoint& point, const LayerKind& kind);

/// The precision of the GEMMs of a part of a layer.
struct GemmPrecision {
  DType dtype = DType::bf16;
  double weight_bits = 0.0;  ///< GemmSize::weight_bits.
};

/// Returns the precision of the part whose share of narrow weights is `share`. Training has the dtype of the plan.
GemmPrecision precision_of(const StepPoint& point, double WeightFormat::*share);

/// Returns whether the point's strategies run the attention block of ranks that share a sequence's heads, where the
/// model has attention. Without tensor ranks every rank has all weights, and the block from QKV to out-proj is
/// simulated as one schedule.
bool simulates_ulysses(const StepPoint& point);

/// A fused backward pass has five GEMMs where the forward pass has two, at about four fifths of their speed: Dao,
/// "FlashAttention-2", 2023, figures 4 and 6; Shah et al., "FlashAttention-3", 2024, figures 5 and 6.
inline constexpr double fused_backward = 2.5 / 0.8;

/// A forward pass of one layer, and the device times of its blocks without norms and residuals.
struct ForwardBlocks {
  Stream pass;
  Duration mixing{};  ///< Attention or state space, from the first projection to the last, with its collectives.
  Duration mlp{};     ///< MLP or experts, with their collectives.
};

class LayerCost {
 public:
  /// Requires `point` to have a possible plan that fits its machine. `point` and `sites` must outlive this object.
  /// `held_sms`: number of SMs that an exchange of replicas holds all the time.
  LayerCost(const StepPoint& point, SiteTimes& sites, int held_sms = 0);

  /// Returns the model as tensor ranks hold it, with copied kv heads where tensor ranks need copies. The kinds of
  /// layers to price must be those of this model.
  [[nodiscard]] const Transformer& model() const { return model_; }

  /// Returns the forward pass of one layer.
  [[nodiscard]] Stream forward(const LayerKind& kind) { return forward_blocks(kind).pass; }
  [[nodiscard]] ForwardBlocks forward_blocks(const LayerKind& kind);
  /// Returns the kernels of a forward pass before each sum over the tensor ranks, without the sums and without norms
  /// and residuals, which the sums contain. Requires tensor ranks that do not share the tokens, and layers of attention
  /// and an MLP or experts.
  [[nodiscard]] std::vector<Stream> forward_between_sums(const LayerKind& kind);
  /// Returns the backward pass, with the plan's recomputation before it; a recomputed attention core is inside it.
  [[nodiscard]] Stream backward(const LayerKind& kind);

  /// A backward pass with the gradients of the weights in a separate stream.
  struct SplitPasses {
    Stream inputs;
    Stream weights;
  };
  /// Returns the same work as backward(), with its GEMMs one by one: collectives that backward() overlaps with the
  /// gradients of weights are exposed. With strategies, the input gradient of a column-parallel GEMM is a GEMM and its
  /// reduce-scatter; the input gradient of a row-parallel GEMM is an all-gather and its GEMM. The second gather of a
  /// column-parallel GEMM's input belongs to the weights.
  [[nodiscard]] SplitPasses backward_split(const LayerKind& kind);
  [[nodiscard]] SplitPasses logits_backward_split();

  [[nodiscard]] Stream embedding_forward() const;
  [[nodiscard]] Stream embedding_backward() const;
  /// Returns the last norm, logits and loss.
  [[nodiscard]] Stream logits_forward() const;
  [[nodiscard]] Stream logits_backward() const;
  /// Returns the norm after the layers of a prefill or a decoding step, with the residual before it.
  [[nodiscard]] Stream last_norm() const;
  /// Returns the logits of each sequence's last token, and their gather from the tensor ranks. Ranks that share the
  /// tokens gather these first. A checkpoint with narrow weights keeps the weights of the logits wide.
  [[nodiscard]] Stream last_logits() const;

  /// Returns the GEMMs of forward passes whose device time is shorter with the implementation than without it, except
  /// GEMMs that take longer because the host issues more kernels. Requires `kernels` to run on the machine
  /// (refusal_of), and tensor ranks to share the tokens.
  [[nodiscard]] std::vector<ImplementedGemm> saved_by(const Implementation& kernels);

  /// Returns the time of one optimizer step over the parameters: it reads and writes the weights and the moments (Adam:
  /// two, SGD: one) in fp32, reads the gradients in the plan's gradient_dtype, and writes the weights in 16 bits.
  [[nodiscard]] Duration optimizer(std::int64_t parameters) const;

  /// Returns the group among all GPUs of the plan; `layout.gpus` is not read.
  [[nodiscard]] Group group_at(GroupLayout layout) const;

  /// Converts the time of a kernel to its time on the slowest GPU.
  [[nodiscard]] Duration slowed(Duration time) const;

 private:
  /// Bytes of an activation, in memory and on the wires; gathers for fp8 GEMMs move fewer (gathered_state).
  static constexpr std::int64_t width = 2;
  enum class Direction : std::uint8_t { forward, backward };
  /// Adds a block of a forward pass, with its norm and residual. Returns the device time of the block without these.
  Duration block_forward(Stream& stream, void (LayerCost::*block)(Stream&));
  void attention_forward(Stream& stream);
  void attention_backward(Stream& stream);
  void state_space_forward(Stream& stream);
  void state_space_backward(Stream& stream);
  [[nodiscard]] Duration scan() const;
  void state_space_step(Stream& stream) const;
  /// Sets the dtype and the weight bits of later GEMMs from the share of weights that the checkpoint stores in a narrow
  /// format.
  void read_weights(double WeightFormat::*share);
  /// Makes later calls price this kind of layer.
  void turn_to(const LayerKind& kind);
  void latent_forward(Stream& stream) const;
  void latent_backward(Stream& stream) const;
  [[nodiscard]] std::int64_t score_dim() const;
  [[nodiscard]] AttentionWindow walked() const;
  [[nodiscard]] DType wide() const;
  [[nodiscard]] AttentionSize core_size() const;
  /// Returns the time of a fused forward pass over these heads, which fused() converts to that of the framework.
  [[nodiscard]] Duration core_time(const AttentionSize& size) const;
  void attention_core(Stream& stream, Direction direction) const;
  void core_again(Stream& stream) const;
  /// Adds everything but the attention core that selective recomputation runs again. Requires a plan with selective
  /// recomputation.
  void selected_again(Stream& stream);
  void norm_and_gemms_again(Stream& stream, LayerPart part) const;
  void attention_again(Stream& stream) const;
  void latent_again(Stream& stream) const;
  void experts_again(Stream& stream);
  void decode_core(Stream& stream) const;
  void latent_decode(Stream& stream) const;
  void indexer(Stream& stream, Direction direction) const;
  void unfused_core(Stream& stream, const AttentionSize& size, Direction direction) const;
  /// Adds the softmax of scores in memory: one fused kernel of Megatron or, where that cannot run, several of PyTorch.
  void softmax(Stream& stream, const AttentionSize& size, Direction direction) const;
  void mlp_forward(Stream& stream);
  void mlp_backward(Stream& stream, MlpKind kind);
  void experts(Stream& stream, Direction direction);
  void routed_experts(Stream& stream, Direction direction);
  void router(Stream& stream, Direction direction);
  void own_tokens_gemm(Stream& stream, std::int64_t n, std::int64_t k, Direction direction) const;
  void shared_experts(Stream& stream, Direction direction);
  void grouped(Stream& stream, std::int64_t n, std::int64_t k, Direction direction) const;
  [[nodiscard]] double bits_of_weights() const;
  /// Returns the time of the routed experts of a decoding step as one fitted call; nothing for other passes, or without
  /// a fit.
  [[nodiscard]] std::optional<Duration> served_experts() const;
  /// Adds a GEMM or memory-bound kernel, with the device's gap before it (Accelerator::stream_gap).
  void kernel(Stream& stream, Duration time) const;
  /// Adds a call whose fitted overhead contains the gap: attention, or all routed experts.
  void attention(Stream& stream, Duration time) const;
  /// Converts the time of fused attention that the machine's file predicts to the time of the framework's kernel.
  [[nodiscard]] Duration fused(Duration time) const;
  /// Adds a collective, whose time already contains the gap before it and is not affected by slow GPUs.
  void collective(Stream& stream, Duration time) const;
  struct Overlap {
    Duration kernel{};
    Duration communication{};
  };
  /// Adds a kernel and a collective that run simultaneously.
  void add_overlap(Stream& stream, const Overlap& times) const;
  /// Adds a kernel for the gradients of weights, to a separate stream where backward passes are split.
  void weight_kernel(Stream& stream, Duration time) const;
  void moved(Stream& stream, std::int64_t elements) const;
  void moved_bytes(Stream& stream, double bytes) const;
  /// Adds one GEMM of m x k activations and a k x n weight; gemm_backward() adds the two GEMMs of its gradients.
  void gemm(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const;
  void gemm_backward(Stream& stream, std::int64_t m, std::int64_t n, std::int64_t k) const;
  /// Returns whether GEMMs add the gradients of weights to 32-bit sums.
  [[nodiscard]] bool adds_to_sums() const {
    return plan_.gradient_dtype == DType::fp32 && point_.framework.fuses_accumulation;
  }
  /// Adds gradients of 16 bits to 32-bit sums, where GEMMs do not add to these sums.
  void accumulation(Stream& stream, std::int64_t parameters) const;
  /// Returns the time of a GEMM that runs while a collective holds `ctas` SMs.
  [[nodiscard]] Duration gemm_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient,
                                   int ctas = 0) const;
  /// Returns the time of a GEMM of the logits, which stays wide in fp8 recipes (TransformerEngine, torchao).
  [[nodiscard]] Duration logits_time(std::int64_t m, std::int64_t n, std::int64_t k, bool into_gradient) const;
  [[nodiscard]] Duration gemm_time(GemmSize size, bool into_gradient, int ctas) const;
  /// Returns the bytes of the gathered input of a GEMM, or of the gathered gradient of its output. TransformerEngine
  /// and torchao quantize both before the gather if the GEMM is in fp8.
  [[nodiscard]] Bytes gathered_state() const;
  /// Adds a GEMM of the layer with its collective.
  void site(Stream& stream, const Projection& projection, Direction direction);
  [[nodiscard]] bool simulates_schedules() const { return shares_tokens() && !point_.strategies.empty(); }
  [[nodiscard]] bool shares_tokens() const { return plan_.sequence_parallel && plan_.tensor > 1; }
  /// `slower` is a factor on the time.
  void add_site(Stream& stream, const SitePoint& site, const SiteTime& time, double slower = 1.0);
  /// The name of a site in two parts: the name of its projection, if it has one, and the ending.
  struct SiteLabel {
    const Projection* projection = nullptr;
    std::string_view ending;
  };
  [[nodiscard]] std::string name_of_site(const SiteLabel& label) const;
  /// Adds the fastest schedule of the strategies.
  void add_fastest(Stream& stream, const SitePoint& site, const SiteLabel& label);
  /// Adds the schedule of a site to StepPoint::used, if that is requested and lacks the site.
  void record(const SitePoint& site, const SiteTime& time, const SiteLabel& label) const;
  [[nodiscard]] SitePoint point_of(const Transformer& shape, Scope scope) const;
  [[nodiscard]] SitePoint point_of(const Projection& projection, const Implementation& kernels) const;
  void site_forward(Stream& stream, const Projection& projection);
  /// Adds a GEMM of a forward pass without StepPoint::implemented: with the framework's implementation, if it has one.
  void baseline_forward(Stream& stream, const Projection& projection);
  /// Adds a GEMM of a forward pass as strategies or exposed collectives run it.
  void usual_forward(Stream& stream, const Projection& projection);
  [[nodiscard]] Stream exposed_forward(const Projection& projection) const;
  /// A GEMM with its collective as the framework's implementation runs it.
  struct Implemented {
    SitePoint site;
    SiteTime time;
    Stream stream;
  };
  /// Returns nothing if the framework has no implementation, or one that does not run this site on this machine. The
  /// shape must outlive the result.
  [[nodiscard]] std::optional<Implemented> as_implemented(const Transformer& shape, Scope scope);
  /// Returns whether the framework names the GEMM among those that its implementation runs.
  [[nodiscard]] bool is_implementation_site(Scope scope) const;
  void framework_forward(Stream& stream, const Projection& projection);
  [[nodiscard]] bool implemented_backward(Stream& stream, const Projection& projection);
  void site_backward_split(Stream& stream, const Projection& projection);
  struct GemmExtents {
    std::int64_t m = 0;
    std::int64_t n = 0;
    std::int64_t k = 0;
  };
  void site_backward(Stream& stream, const GemmExtents& forward, bool column) const;
  [[nodiscard]] Duration sum_time() const;
  void reduce(Stream& stream) const;
  /// Adds the norm before a block of a forward pass, unless sums contain it; when serving, with the residual before it.
  void norm_before(Stream& stream) const;
  /// Adds the residual after a block of a forward pass, unless the next norm or the sum contains it.
  void residual_after(Stream& stream) const;
  [[nodiscard]] Group tensor_group() const { return group_at({.stride = 1, .ranks = plan_.tensor}); }
  void context_exchange(Stream& stream, Direction direction) const;
  [[nodiscard]] bool passes_blocks() const;
  [[nodiscard]] Bytes context_block() const;
  [[nodiscard]] Duration ring_transfer(Bytes bytes) const;
  void ring_core(Stream& stream, const AttentionSize& whole, Direction direction) const;
  void merge_statistics(Stream& stream, std::int64_t step) const;
  void merge_outputs(Stream& stream) const;
  void sum_gradients(Stream& stream, std::int64_t step) const;
  /// Redistributes this many columns per token among the ranks that share a sequence: from shards of tokens to shards
  /// of heads, or back.
  void ulysses_exchange(Stream& stream, std::int64_t columns) const;
  /// Redistributes columns among Ulysses and context ranks together: a state space does not distinguish them.
  void sequence_exchange(Stream& stream, std::int64_t columns) const;
  void exchange(Stream& stream, const GroupLayout& layout, std::int64_t columns) const;
  void ulysses_block(Stream& stream);
  [[nodiscard]] std::int64_t norm_elements() const;
  [[nodiscard]] std::int64_t residual_elements() const;
  [[nodiscard]] std::int64_t qkv_columns() const;
  [[nodiscard]] std::int64_t attended_columns() const;
  [[nodiscard]] std::int64_t routed_width() const;

  const StepPoint& point_;
  std::optional<Transformer> copied_;  ///< The model with copied kv heads, where tensor ranks need copies.
  const Transformer& model_;           ///< The model as tensor ranks hold it.
  LayerKind kind_;                     ///< The kind of layer that is priced.
  const Transformer* shape_;           ///< The model with the widths of `kind_`.
  std::map<LayerKind, Transformer> shapes_;
  double weight_bits_ = 0.0;  ///< GemmSize::weight_bits of the next GEMMs.
  const Machine& machine_;
  const TrainingPlan& plan_;
  SiteTimes& sites_;
  int sms_;                    ///< Number of SMs that no exchange holds.
  DType gemm_dtype_;           ///< Dtype of the next GEMMs.
  Stream* weights_ = nullptr;  ///< Stream for gradients of weights while a backward pass is split, else null.
  std::vector<Stream>* parts_ = nullptr;  ///< Kernels before each sum while sums contain norms, else null.
  std::int64_t tokens_;                   ///< Number of tokens of a pass that the tensor ranks process together.
  std::int64_t own_tokens_;               ///< Number of tokens of this rank's norms and residuals.
  std::optional<Transformer> mamba_in_;   ///< Models whose MLP has the shape of a state space's projections.
  std::optional<Transformer> mamba_out_;
  std::optional<Transformer> shared_experts_;  ///< A model whose MLP is the shared experts side by side.
};

}  // namespace commfuse
