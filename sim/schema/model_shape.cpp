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
              {"active", count_in(expert_range), "To how many a token goes"},
              {"ffn", count_in(model_size_range), "Width of one"},
              optional({"shared", count_in({0, expert_range.most}), "Experts that all tokens pass"}),
              optional({"shared_ffn", count_in({0, model_size_range.most}), "In place of it: their width together"}),
              optional({"shared_gate", boolean(), "A weight by token for these"}),
              optional({"router_bias", boolean(), "One an expert"}),
              optional({"latent", count_in({0, model_size_range.most}), "Width of tokens on their way to experts"}),
              optional({"dense_layers", count_in({0, layer_range.most}), "First layers without experts"}),
              optional({"every", count_in(layer_range), "Of so many layers the last one has experts"})});
}

Shape latent() {
  return map({{"query_rank", count_in({0, model_size_range.most}), "0: queries are made at once"},
              {"key_value_rank", count_in(model_size_range)},
              {"position_dim", count_in(head_range)},
              {"value_dim", count_in(head_range)},
              optional({"indexer",
                        map({{"heads", count_in(head_range)},
                             {"head_dim", count_in(head_range)},
                             {"keys", count_in(model_size_range), "A query attends to so many"}}),
                        "Sparse attention"})});
}

Shape state_space() {
  return map({{"pattern", pattern("^[M*Ema-]+$"),
               "A letter a layer: M state space, * attention, - MLP, E experts; m or a, and an MLP or experts"},
              {"inner", count_in(model_size_range)},
              {"head_dim", count_in(head_range)},
              {"state", count_in(head_range)},
              optional({"recurrence", word({"mamba2", "gated_delta"})}),
              optional({"groups", count_in(head_range)}),
              optional({"chunk", count_in(model_size_range)}),
              optional({"convolution", count_in(head_range)}),
              optional({"state_bits", count_in({16, 32}), "Of a value of the state: 16 or 32"})});
}

}  // namespace

Shape model_shape() {
  return map({{"name", text()},
              {"layers", count_in(layer_range)},
              {"hidden", count_in(model_size_range), "Width of the residual stream"},
              {"ffn", count_in(model_size_range), "Width of the MLP"},
              {"heads", count_in(head_range), "Of queries"},
              {"kv_heads", count_in(head_range), "Of keys and values; they divide heads"},
              {"head_dim", count_in(head_range)},
              {"vocab", count_in(vocab_range)},
              {"gated_mlp", boolean(), "Three matrices, as in SwiGLU; else two"},
              optional({"norm", word({"rms", "layer"})}),
              optional({"biases", boolean()}),
              optional({"qkv_biases", boolean()}),
              optional({"tied_embeddings", boolean()}),
              optional({"positions", count_in(model_size_range), "Learned ones"}),
              optional({"qk_norm", word({"none", "head", "whole"}), "Scales of queries and keys"}),
              optional({"sinks", boolean(), "A learned score a head"}),
              optional({"gated_attention", boolean(), "Queries come with a gate as wide"}),
              optional({"windows", list(count_in({0, model_size_range.most})),
                        "Keys that a query sees, layer by layer in turn; 0: all"}),
              optional({"chunked", boolean(), "Windows are blocks of the sequence"}),
              optional({"experts", experts(), "Mixture of experts in place of the MLP"}),
              optional({"latent", latent(), "Latent attention"}),
              optional({"state_space", state_space(), "A hybrid of state space and attention"})});
}

}  // namespace commfuse::schema
