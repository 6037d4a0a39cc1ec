// SPDX-License-Identifier: Apache-2.0
#include "sim/score/doubts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "model/cost/decode_attention.h"

namespace commfuse::score {

namespace {

std::int64_t& put(PricedShape& shape, FitSize size) { return shape.size[static_cast<std::size_t>(size)]; }

/// Returns whether the source of a parameter names the file: "a.csv, b.csv" names b.csv, but "ab.csv" does not.
bool names_file(std::string_view source, std::string_view file) {
  const auto continues_name = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.';
  };
  for (std::size_t at = source.find(file); at != std::string_view::npos; at = source.find(file, at + 1)) {
    if (at == 0 || !continues_name(source[at - 1])) {
      return true;
    }
  }
  return false;
}

}  // namespace

PricedShape shape_of(const GemmSize& size) {
  PricedShape shape{.kind = PricedKind::product, .dtype = size.dtype};
  put(shape, FitSize::m) = size.m;
  put(shape, FitSize::n) = size.n;
  put(shape, FitSize::k) = size.k;
  return shape;
}

PricedShape shape_of(const AttentionSize& size) {
  PricedShape shape{.kind = PricedKind::attention, .dtype = size.dtype};
  put(shape, FitSize::seq) = size.seq;
  put(shape, FitSize::m) = size.batch * size.seq;
  put(shape, FitSize::n) = size.heads;
  put(shape, FitSize::k) = size.head_dim;
  put(shape, FitSize::bytes) = cache_of(size).count;
  return shape;
}

PricedShape shape_of_decoding(const AttentionSize& size) {
  PricedShape shape{.kind = PricedKind::decode_attention, .dtype = size.dtype};
  put(shape, FitSize::seq) = size.seq;
  put(shape, FitSize::m) = size.batch;
  put(shape, FitSize::n) = size.heads;
  put(shape, FitSize::k) = size.head_dim;
  put(shape, FitSize::bytes) = cache_of(size).count;
  return shape;
}

PricedShape shape_of(const LatentDecodeSize& size) {
  PricedShape shape{.kind = PricedKind::latent_decode, .dtype = size.dtype};
  put(shape, FitSize::seq) = size.seq;
  put(shape, FitSize::m) = size.batch;
  put(shape, FitSize::n) = size.heads;
  put(shape, FitSize::k) = size.key_width;
  put(shape, FitSize::bytes) = latent_cache_of(size).count;
  return shape;
}

PricedShape shape_of(const ExpertLayerSize& size) {
  const ExpertWork work = expert_work(size);
  PricedShape shape{.kind = PricedKind::expert_layer, .dtype = size.dtype};
  put(shape, FitSize::m) = work.rows;
  put(shape, FitSize::n) = work.width;
  put(shape, FitSize::k) = work.hidden;
  put(shape, FitSize::bytes) = work.weights.count;
  return shape;
}

PricedShape shape_of(const QuantizationSize& size) {
  PricedShape shape{.kind = PricedKind::quantization};
  put(shape, FitSize::bytes) = quantization_traffic(size).count;
  return shape;
}

PricedShape shape_of(PricedKind kind, Bytes bytes, std::int64_t ranks) {
  PricedShape shape{.kind = kind};
  put(shape, FitSize::bytes) = bytes.count;
  put(shape, FitSize::ranks) = ranks;
  return shape;
}

std::string residual_key(const PricedShape& shape, const Machine& machine, int ranks) {
  const bool crosses = crosses_nodes(shape, machine, ranks);
  const std::string_view wires = crosses ? "network" : "link";
  switch (shape.kind) {
    case PricedKind::product: return fmt::format("accelerator.matrix_units.{}.fit.residual", name_of(shape.dtype));
    case PricedKind::attention: return "accelerator.attention.fit.residual";
    case PricedKind::decode_attention:
      return shape.dtype == DType::fp8 ? "accelerator.decode_attention_fp8.fit.residual"
                                       : "accelerator.decode_attention.fit.residual";
    case PricedKind::latent_decode:
      return shape.dtype == DType::fp8 ? "accelerator.latent_decode_fp8.fit.residual"
                                       : "accelerator.latent_decode.fit.residual";
    case PricedKind::expert_layer:
      return shape.dtype == DType::fp8 ? "accelerator.experts_fp8.fit.residual" : "accelerator.experts.fit.residual";
    case PricedKind::quantization: return "accelerator.quantization.fit.residual";
    case PricedKind::memory_bound: return "";
    case PricedKind::framework_kernel: return "accelerator.framework_kernels.fit.residual";
    case PricedKind::exchange: return fmt::format("{}.peer.fit.residual", wires);
    case PricedKind::all_to_all: {
      const CollectiveParameters& collective =
          crosses ? machine.network->collective : collective_over(machine, 0, ranks);
      const bool has_own = collective.all_to_all != nullptr && collective.all_to_all->fit;
      return fmt::format("{}.collective.{}fit.residual", wires, has_own ? "all_to_all." : "");
    }
    default: return fmt::format("{}.collective.fit.residual", wires);
  }
}

Doubts::Known& Doubts::known_of(const Machine& machine) {
  const auto known = known_.find(&machine);
  if (known != known_.end()) {
    return known->second;
  }
  Known& entry = known_[&machine];
  entry.raised = std::make_shared<const std::vector<RaisedMachine>>(raised_by_error(machine));
  const std::vector<NamedParameter> parameters = parameters_of(machine);
  for (const RaisedMachine& raised : *entry.raised) {
    entry.names.push_back(parameters[raised.parameter].name);
  }
  return entry;
}

std::shared_ptr<const std::vector<RaisedMachine>> Doubts::raised(const Machine& machine) {
  return known_of(machine).raised;
}

bool Doubts::is_fitted(const Machine& machine, std::string_view table) {
  const auto [entry, is_new] = fitted_.try_emplace({&machine, std::string(table)}, false);
  if (is_new) {
    const std::vector<NamedParameter> parameters = parameters_of(machine);
    entry->second = std::any_of(parameters.begin(), parameters.end(), [&](const NamedParameter& parameter) {
      return parameter.provenance == Provenance::fitted && names_file(parameter.source, fmt::format("{}.csv", table));
    });
  }
  return entry->second;
}

Doubts::Side Doubts::side_of(PricedKind kind) {
  switch (kind) {
    case PricedKind::product: return Side::gemms;
    case PricedKind::attention: return Side::attention;
    case PricedKind::decode_attention:
    case PricedKind::latent_decode: return Side::decoding;
    case PricedKind::expert_layer: return Side::experts;
    case PricedKind::quantization: return Side::quantization;
    case PricedKind::memory_bound:
    case PricedKind::framework_kernel: return Side::memory;
    default: return Side::links;
  }
}

bool Doubts::is_affected(Side side, DType dtype, const RaisedMachine& raised, std::string_view name) {
  if (side == Side::links) {
    return !name.starts_with("accelerator.");
  }
  if (!name.starts_with("accelerator.")) {
    return false;
  }
  switch (raised.affects) {
    case AffectedOps::gemms: return side != Side::memory && side != Side::quantization && raised.dtype == dtype;
    case AffectedOps::attention: return side == Side::attention;
    case AffectedOps::decoding: return side == Side::decoding;
    case AffectedOps::experts: return side == Side::experts;
    case AffectedOps::quantization: return side == Side::quantization;
    default: return true;
  }
}

const std::vector<const RaisedMachine*>& Doubts::affecting(const Machine& machine, std::span<const TimedShape> shapes) {
  const Side side = side_of(shapes.front().shape.kind);
  const DType dtype = shapes.front().shape.dtype;
  Known& known = known_of(machine);
  const auto [entry, is_new] = known.affecting.try_emplace({side, dtype});
  if (is_new) {
    for (std::size_t i = 0; i < known.raised->size(); ++i) {
      if (is_affected(side, dtype, (*known.raised)[i], known.names[i])) {
        entry->second.push_back(&(*known.raised)[i]);
      }
    }
  }
  return entry->second;
}

}  // namespace commfuse::score
