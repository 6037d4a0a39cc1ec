// SPDX-License-Identifier: Apache-2.0
// Model files; model/config/load_model.cpp reads them.
#include "model/config/load_model.h"

#include "sim/schema/shape.h"

namespace commfuse::schema {

namespace {

Shape count_in(Range<std::int64_t> range) {
  return count(static_cast<double>(range.least), static_cast<double>(range.most));
}

Shape experts() {
  return map({{"count", count_in(expert_range)},
              {"active", count_in(expert_range), "Experts per token"},
              {"ffn", count_in(model_size_range), "Width of an expert"},
              optional({"shared", count_in({0, expert_range.most}), "Experts that process every token"}),
              optional({"shared_ffn", count_in({0, model_size_range.most}),
                        "Total width of shared experts; give this or shared, not both"}),
              optional({"shared_gate", boolean(), "One gate per token scales the output of shared experts"}),
              optional({"router_bias", boolean(), "One bias per expert"}),
              optional({"latent", count_in({0, model_size_range.most}), "Width of tokens sent to experts"}),
              optional({"dense_layers", count_in({0, layer_range.most}), "Number of leading layers without experts"}),
              optional({"every", count_in(layer_range), "Every n-th layer has experts"})});
}

Shape latent() {
  return map(
      {{"query_rank", count_in({0, model_size_range.most}), "Rank of the query projection; 0: a single projection"},
       {"key_value_rank", count_in(model_size_range)},
       {"position_dim", count_in(head_range)},
       {"value_dim", count_in(head_range)},
       optional({"indexer",
                 map({{"heads", count_in(head_range)},
                      {"head_dim", count_in(head_range)},
                      {"keys", count_in(model_size_range), "Keys that a query attends to"}}),
                 "Sparse attention"})});
}

Shape state_space() {
  return map({{"pattern", pattern("^[M*Ema-]+$"),
               "One letter per layer: M state space, * attention, - MLP, E experts; m and a: M or * followed by an MLP "
               "or experts"},
              {"inner", count_in(model_size_range)},
              {"head_dim", count_in(head_range)},
              {"state", count_in(head_range)},
              optional({"recurrence", word({"mamba2", "gated_delta"})}),
              optional({"groups", count_in(head_range)}),
              optional({"chunk", count_in(model_size_range)}),
              optional({"convolution", count_in(head_range)}),
              optional({"state_bits", count_in({16, 32}), "Bits per value of the state: 16 or 32"})});
}

}  // namespace

Shape model_shape() {
  return map({{"name", text()},
              {"layers", count_in(layer_range)},
              {"hidden", count_in(model_size_range), "Width of the residual stream"},
              {"ffn", count_in(model_size_range), "Width of the MLP"},
              {"heads", count_in(head_range), "Query heads"},
              {"kv_heads", count_in(head_range), "Key-value heads; must divide heads"},
              {"head_dim", count_in(head_range)},
              {"vocab", count_in(vocab_range)},
              {"gated_mlp", boolean(), "True: three matrices, as in SwiGLU; false: two"},
              optional({"norm", word({"rms", "layer"})}),
              optional({"biases", boolean()}),
              optional({"qkv_biases", boolean()}),
              optional({"tied_embeddings", boolean()}),
              optional({"positions", count_in(model_size_range), "Number of learned position embeddings"}),
              optional({"qk_norm", word({"none", "head", "whole"}), "Normalization of queries and keys"}),
              optional({"sinks", boolean(), "Each head has a learned sink score"}),
              optional({"gated_attention", boolean(), "Queries come with a gate of equal width"}),
              optional({"windows", list(count_in({0, model_size_range.most})),
                        "Keys that a query attends to, as a repeating list over layers; 0: all"}),
              optional({"chunked", boolean(), "Windows are blocks of the sequence"}),
              optional({"experts", experts(), "Mixture of experts instead of the MLP"}),
              optional({"latent", latent(), "Latent attention"}),
              optional({"state_space", state_space(), "A hybrid of state space and attention"})});
}

}  // namespace commfuse::schema
