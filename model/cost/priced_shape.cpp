// SPDX-License-Identifier: Apache-2.0
#include "model/cost/priced_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "model/cost/communication.h"
#include "model/cost/decode_attention.h"
#include "model/cost/expert_gemm.h"
#include "model/cost/expert_layer.h"
#include "model/cost/latent_decode.h"
#include "model/cost/quantization.h"
#include "model/cost/shape_sizes.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

std::int64_t& put(PricedShape& shape, FitSize size) { return shape.size[static_cast<std::size_t>(size)]; }
std::int64_t get(const PricedShape& shape, FitSize size) { return shape.size[static_cast<std::size_t>(size)]; }

PricedKind kind_of(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_gather: return PricedKind::all_gather;
    case CollectiveKind::reduce_scatter: return PricedKind::reduce_scatter;
    case CollectiveKind::all_reduce: return PricedKind::all_reduce;
    case CollectiveKind::all_to_all: return PricedKind::all_to_all;
  }
  return PricedKind::all_gather;
}

/// Assumes cold weights and all SMs, whatever the op uses, so that ops and rows of tables are classified by the same
/// rule.
Limit limit_of_product(const PricedShape& shape, const Accelerator& accelerator) {
  GemmSize size{
      .m = get(shape, FitSize::m), .n = get(shape, FitSize::n), .k = get(shape, FitSize::k), .dtype = shape.dtype};
  if (std::min({size.m, size.n, size.k}) < 1) {
    return Limit::compute;
  }
  size.out = size.dtype == DType::fp8 ? std::optional(DType::bf16) : std::nullopt;
  return limit_of(accelerator, estimate_gemm(accelerator, size, accelerator.sms), size.dtype);
}

/// Assumes whole masked sequences, as many as the query rows fill, even when the op computes only a part of them.
Limit limit_of_attention(const PricedShape& shape, const Accelerator& accelerator) {
  AttentionSize size{.batch = 1,
                     .seq = get(shape, FitSize::seq),
                     .heads = get(shape, FitSize::n),
                     .kv_heads = 1,
                     .head_dim = get(shape, FitSize::k),
                     .dtype = shape.dtype};
  if (std::min({size.seq, size.heads, size.head_dim}) < 1) {
    return Limit::compute;
  }
  size.batch = std::max<std::int64_t>(1, get(shape, FitSize::m) / size.seq);
  size.kv_heads = std::clamp<std::int64_t>(get(shape, FitSize::bytes) / cache_of(size).count, 1, size.heads);
  return limit_of(accelerator, size);
}

/// Without fitted parameters, only traffic determines the price.
Limit limit_of_decoding(const PricedShape& shape, const Accelerator& accelerator) {
  AttentionSize size{.batch = get(shape, FitSize::m),
                     .seq = get(shape, FitSize::seq),
                     .heads = get(shape, FitSize::n),
                     .kv_heads = 1,
                     .head_dim = get(shape, FitSize::k),
                     .dtype = shape.dtype};
  if (decode_attention_of(accelerator, shape.dtype) == nullptr ||
      std::min({size.batch, size.seq, size.heads, size.head_dim}) < 1) {
    return Limit::bandwidth;
  }
  size.kv_heads = std::clamp<std::int64_t>(get(shape, FitSize::bytes) / cache_of(size).count, 1, size.heads);
  return decode_limit_of(accelerator, size);
}

/// Assumes values as wide as DeepSeek's. Without fitted parameters, only traffic is assumed to determine the price.
Limit limit_of_latent_decoding(const PricedShape& shape, const Accelerator& accelerator) {
  LatentDecodeSize size{.batch = get(shape, FitSize::m),
                        .seq = get(shape, FitSize::seq),
                        .heads = get(shape, FitSize::n),
                        .key_width = get(shape, FitSize::k),
                        .dtype = shape.dtype};
  if (latent_decode_of(accelerator, shape.dtype) == nullptr ||
      std::min({size.batch, size.seq, size.heads, size.key_width}) < 1) {
    return Limit::bandwidth;
  }
  size.value_width = std::min(size.value_width, size.key_width);
  return latent_limit_of(accelerator, size);
}

/// Without fitted parameters, nothing prices the layer.
Limit limit_of_experts(const PricedShape& shape, const Accelerator& accelerator) {
  const ExpertWork work{.rows = get(shape, FitSize::m),
                        .width = get(shape, FitSize::n),
                        .hidden = get(shape, FitSize::k),
                        .weights = Bytes{get(shape, FitSize::bytes)},
                        .dtype = shape.dtype};
  if (expert_layer_of(accelerator, shape.dtype) == nullptr || std::min({work.rows, work.width, work.hidden}) < 1) {
    return Limit::bandwidth;
  }
  return expert_limit_of(accelerator, work);
}

int nodes_of(const PricedShape& shape, const Machine& machine, int ranks) {
  return shape.nodes > 0 ? shape.nodes : (ranks + machine.gpus_per_node - 1) / machine.gpus_per_node;
}

/// Returns the limit of a message. Every collective is timed as an all-gather of its bytes (ring_gather_time).
Limit limit_of_message(const PricedShape& shape, const Machine& machine, int ranks) {
  const auto time = [&](Bytes bytes) {
    if (shape.kind == PricedKind::exchange) {
      return p2p_time(crosses_nodes(shape, machine, ranks) ? machine.network->peer : machine.link.peer, bytes);
    }
    const int nodes = nodes_of(shape, machine, ranks);
    const bool is_group_of_nodes = shape.nodes > 1 && crosses_nodes(shape, machine, ranks);
    return ring_gather_time(
        is_group_of_nodes ? collective_across(machine, ranks / nodes) : collective_over(machine, 0, ranks), ranks,
        bytes, nodes);
  };
  return time({get(shape, FitSize::bytes)}) < 2 * time({1}) ? Limit::latency : Limit::bandwidth;
}

FitScope fit_of_collective(const PricedShape& shape, const CollectiveParameters& collective) {
  const bool has_own = shape.kind == PricedKind::all_to_all && collective.all_to_all != nullptr;
  FitScope fit = has_own ? collective.all_to_all->fit.value_or(collective.fit) : collective.fit;
  fit.seen = collective.fit.seen;
  return fit;
}

/// Returns the plural name of measured ops of this kind.
std::string_view rows_of(PricedKind kind) {
  switch (kind) {
    case PricedKind::product: return "GEMMs";
    case PricedKind::attention:
    case PricedKind::decode_attention:
    case PricedKind::latent_decode: return "attention";
    case PricedKind::expert_layer: return "expert layers";
    case PricedKind::quantization: return "quantization";
    case PricedKind::memory_bound:
    case PricedKind::framework_kernel: return "memory-bound kernels";
    case PricedKind::exchange: return "exchanges";
    default: return "collectives";
  }
}

std::string in_words(FitSize size, std::int64_t value) {
  return size == FitSize::bytes ? format_size(Bytes{value}) : format_count(value);
}

/// Collects the shapes of a program outside the measured sizes: at most one sentence per kind, size and direction, for
/// the most distant value.
class SizesOutsideFit {
 public:
  void note(PricedKind kind, FitSize size, std::int64_t value, const SeenRange& seen) {
    const bool exact = size == FitSize::ranks;
    const bool below = value < (exact ? seen.least : seen.least / 2 + seen.least % 2);
    const bool above = exact ? value > seen.most : value / 2 > seen.most || (value / 2 == seen.most && value % 2 == 1);
    if (!below && !above) {
      return;
    }
    auto [entry, is_new] = farthest_.try_emplace({rows_of(kind), size, above}, value, seen);
    if (!is_new && (above ? value > entry->second.first : value < entry->second.first)) {
      entry->second = {value, seen};
    }
  }

  [[nodiscard]] std::vector<std::string> sentences() const {
    std::vector<std::string> sentences;
    for (const auto& [key, farthest] : farthest_) {
      const auto& [rows, size, above] = key;
      sentences.push_back(fmt::format("{} {}: {} were measured {} {}", name_of(size), in_words(size, farthest.first),
                                      rows, above ? "up to" : "from",
                                      in_words(size, above ? farthest.second.most : farthest.second.least)));
      if (rows == "attention") {
        const auto were = sentences.back().find(" were ");
        sentences.back().replace(were, 6, " was ");
      }
    }
    return sentences;
  }

 private:
  using Key = std::tuple<std::string_view, FitSize, bool>;
  std::map<Key, std::pair<std::int64_t, SeenRange>> farthest_;
};

}  // namespace

std::string_view name_of(PricedKind kind) {
  switch (kind) {
    case PricedKind::product: return "GEMM";
    case PricedKind::attention: return "attention";
    case PricedKind::decode_attention: return "decode attention";
    case PricedKind::latent_decode: return "latent decode attention";
    case PricedKind::expert_layer: return "expert layer";
    case PricedKind::quantization: return "quantization";
    case PricedKind::memory_bound: return "memory-bound";
    case PricedKind::framework_kernel: return "memory-bound kernel of a framework";
    case PricedKind::exchange: return "exchange";
    case PricedKind::all_gather: return "all-gather";
    case PricedKind::reduce_scatter: return "reduce-scatter";
    case PricedKind::all_reduce: return "all-reduce";
    case PricedKind::all_to_all: return "all-to-all";
  }
  return "";
}

PricedShape priced_shape(const Program& program, const Shape& shape, const Sizes& sizes, const ExpertSplit& experts) {
  PricedShape priced;
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
    const GemmSize size = grouped(experts, gemm_size(*gemm, sizes));
    priced.dtype = gemm->dtype;
    put(priced, FitSize::m) = size.m * size.groups;
    put(priced, FitSize::n) = size.n;
    put(priced, FitSize::k) = size.k;
  } else if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    priced.kind = PricedKind::attention;
    priced.dtype = attention->dtype;
    const AttentionSize size = attention_size(*attention, sizes);
    put(priced, FitSize::seq) = size.seq;
    put(priced, FitSize::n) = size.heads;
    put(priced, FitSize::k) = size.head_dim;
    put(priced, FitSize::bytes) = cache_of(size).count;
    put(priced, FitSize::m) = sizes.elements(attention->queries);
  } else if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
    priced.kind = PricedKind::memory_bound;
    put(priced, FitSize::bytes) = traffic_of(*elementwise, sizes).count;
  } else if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    priced.kind = PricedKind::exchange;
    put(priced, FitSize::bytes) = load_of(*exchange, sizes).count;
  } else {
    const auto& collective = std::get<CollectiveShape>(shape);
    priced.kind = kind_of(collective.kind);
    put(priced, FitSize::bytes) = load_of(collective, sizes).count;
    put(priced, FitSize::ranks) = program.mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  }
  return priced;
}

std::string in_words(const PricedShape& shape) {
  switch (shape.kind) {
    case PricedKind::product:
      return fmt::format("GEMM {} x {} x {}", format_count(get(shape, FitSize::m)),
                         format_count(get(shape, FitSize::n)), format_count(get(shape, FitSize::k)));
    case PricedKind::attention: return fmt::format("attention of {} query rows", format_count(get(shape, FitSize::m)));
    default: return fmt::format("{} of {}", name_of(shape.kind), format_size(Bytes{get(shape, FitSize::bytes)}));
  }
}

bool crosses_nodes(const PricedShape& shape, const Machine& machine, int ranks) {
  return machine.network && nodes_of(shape, machine, ranks) > 1;
}

FitScope fit_of(const PricedShape& shape, const Machine& machine, int ranks) {
  switch (shape.kind) {
    case PricedKind::product: return machine.accelerator.matrix_unit(shape.dtype).fit;
    case PricedKind::attention: return machine.accelerator.attention_fit;
    case PricedKind::decode_attention: {
      const DecodeAttention* const fitted = decode_attention_of(machine.accelerator, shape.dtype);
      return fitted != nullptr ? fitted->fit : FitScope{};
    }
    case PricedKind::latent_decode: {
      const LatentDecodeKernel* const fitted = latent_decode_of(machine.accelerator, shape.dtype);
      return fitted != nullptr ? fitted->fit : FitScope{};
    }
    case PricedKind::expert_layer: {
      const ExpertLayer* const fitted = expert_layer_of(machine.accelerator, shape.dtype);
      return fitted != nullptr ? fitted->fit : FitScope{};
    }
    case PricedKind::quantization: {
      const Quantization* const fitted = quantization_of(machine.accelerator, DType::fp8);
      return fitted != nullptr ? fitted->fit : FitScope{};
    }
    case PricedKind::memory_bound: return {};
    case PricedKind::framework_kernel: return machine.accelerator.framework_kernel_fit;
    case PricedKind::exchange:
      return crosses_nodes(shape, machine, ranks) ? machine.network->peer.fit : machine.link.peer.fit;
    default:
      return fit_of_collective(shape, crosses_nodes(shape, machine, ranks) ? machine.network->collective
                                                                           : collective_over(machine, 0, ranks));
  }
}

Limit limit_of(const PricedShape& shape, const Machine& machine, int ranks) {
  switch (shape.kind) {
    case PricedKind::product: return limit_of_product(shape, machine.accelerator);
    case PricedKind::attention: return limit_of_attention(shape, machine.accelerator);
    case PricedKind::decode_attention: return limit_of_decoding(shape, machine.accelerator);
    case PricedKind::latent_decode: return limit_of_latent_decoding(shape, machine.accelerator);
    case PricedKind::expert_layer: return limit_of_experts(shape, machine.accelerator);
    case PricedKind::quantization:
    case PricedKind::memory_bound:
    case PricedKind::framework_kernel: return Limit::bandwidth;
    default: return limit_of_message(shape, machine, ranks);
  }
}

double residual_of(const PricedShape& shape, const Machine& machine, int ranks) {
  return fit_of(shape, machine, ranks).residual_at(limit_of(shape, machine, ranks));
}

std::vector<std::string> outside_fit(const Program& program, const Sizes& sizes, const Machine& machine,
                                     const ExpertSplit& experts) {
  SizesOutsideFit outside;
  const int ranks = program.mesh.ranks();
  for (const Shape& shape : program.shapes) {
    const PricedShape priced = priced_shape(program, shape, sizes, experts);
    const FitScope fit = fit_of(priced, machine, ranks);
    for (const FitSize size : all_fit_sizes) {
      const bool is_checked = priced.kind != PricedKind::attention || size == FitSize::seq;
      if (is_checked && fit.range(size) && get(priced, size) > 0) {
        outside.note(priced.kind, size, get(priced, size), *fit.range(size));
      }
    }
  }
  return outside.sentences();
}

}  // namespace commfuse
