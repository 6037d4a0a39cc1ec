// SPDX-License-Identifier: Apache-2.0
#include "model/cost/expert_layer.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "model/check.h"
#include "model/cost/op_time.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

constexpr double expert_tile_rows = 64.0;
constexpr double expert_tile_columns = 128.0;
constexpr double choices_timed = 1024.0;
constexpr std::size_t load_classes = 32;  // Classes of experts with equal loads, from the least to the most loaded.
// The GPU with the most tokens has the quantiles u^(1/g) of the loads, with g = ep^(1 / experts of the GPU^0.4). With
// one expert per GPU, it is the most loaded expert; with more, loads average out. The power is that of simulated draws.
constexpr double load_averaging = 0.4;
constexpr double highest_weight_bytes = 9e18;

double as_real(std::int64_t count) { return static_cast<double>(count); }

/// Loads of experts, up to a factor: a power law between the bounds that aiconfigurator's collector draws from.
class LoadLaw {
 public:
  explicit LoadLaw(const ExpertLayerSize& size) : power_(1.0 - size.exponent) {
    const bool has_many = size.tokens * size.active > size.experts;
    lowest_ = has_many ? 1.0 : 0.01;
    highest_ = has_many ? std::max(0.8 * as_real(size.tokens), 1.01) : 2.0;
    if (is_logarithmic()) {
      return;
    }
    lowest_power_ = math::pow(lowest_, power_);
    highest_power_ = math::pow(highest_, power_);
  }

  [[nodiscard]] double quantile(double share) const {
    if (is_logarithmic()) {
      return lowest_ * math::pow(highest_ / lowest_, share);
    }
    return math::pow(lowest_power_ + (highest_power_ - lowest_power_) * share, 1.0 / power_);
  }

 private:
  [[nodiscard]] bool is_logarithmic() const { return std::abs(power_) < 1e-9; }

  double power_;
  double lowest_ = 1.0;
  double highest_ = 1.0;
  double lowest_power_ = 1.0;
  double highest_power_ = 1.0;
};

double middle_of_class(std::size_t index) { return (as_real(static_cast<std::int64_t>(index)) + 0.5) / load_classes; }

/// Returns the tokens of an expert of each class, on the GPU with the most tokens. No expert has more than all tokens;
/// the excess goes to the other experts of the GPU.
std::array<double, load_classes> uneven_loads(const ExpertLayerSize& size) {
  const LoadLaw law(size);
  const double tilt = math::pow(as_real(size.ep), 1.0 / math::pow(as_real(size.experts / size.ep), load_averaging));
  double sum = 0.0;
  for (std::size_t i = 0; i < load_classes; ++i) {
    sum += law.quantile(middle_of_class(i));
  }
  const double tokens = as_real(size.tokens);
  const double scale = tokens * as_real(size.active) / as_real(size.experts) * load_classes / sum;
  std::array<double, load_classes> loads{};
  double wanted = 0.0;
  double given = 0.0;
  for (std::size_t i = 0; i < load_classes; ++i) {
    const double load = scale * law.quantile(math::pow(middle_of_class(i), 1.0 / tilt));
    loads[i] = std::min(load, tokens);
    wanted += load;
    given += loads[i];
  }
  const double room = tokens * load_classes - given;
  const double missing = std::min(wanted, tokens * load_classes) - given;
  if (missing > 0.0 && room > 0.0) {
    for (double& load : loads) {
      load += (tokens - load) * missing / room;
    }
  }
  return loads;
}

ExpertLoad balanced_load(const ExpertLayerSize& size) {
  const std::int64_t on_gpu = size.experts / size.ep;
  const std::int64_t stride = (size.experts + size.active - 1) / size.active;  // between the experts of a token
  const double hit = as_real(std::min(on_gpu, (size.tokens * on_gpu + stride - 1) / stride));
  const double rows = std::max(hit, as_real(size.tokens * size.active) / as_real(size.ep));
  return with_tiles({.rows = rows, .hit = hit});
}

/// Seconds of one of the two grouped GEMMs.
struct ProductParts {
  double memory = 0.0;
  double compute = 0.0;

  [[nodiscard]] double seconds() const { return std::sqrt(memory * memory + compute * compute); }
};

/// A grouped GEMM, and the bytes that it and the kernels around it read and write for each row.
struct GroupedProduct {
  double columns = 1.0;
  double inner = 1.0;
  double row_bytes = 1.0;
};

ProductParts product_parts(const Accelerator& accelerator, const ExpertLayer& fitted, DType dtype,
                           const ExpertLoad& load, const GroupedProduct& product) {
  const double hbm = accelerator.hbm_bandwidth.value.value;
  const double column_tiles = std::ceil(product.columns / expert_tile_columns);
  const double column_rate = fitted.sm_loads.value * accelerator.sm_bandwidth.value.value;
  const double rate = std::min(hbm * fitted.hbm_efficiency.value, load.hit * column_tiles * column_rate);
  const double weights = load.hit * product.columns * product.inner * as_real(bytes_of(dtype));
  const double tile = expert_tile_rows * expert_tile_columns;
  const double flops = 2.0 * load.tiles * column_tiles * tile * (product.inner + fitted.loop_start.value);
  const double peak = accelerator.matrix_unit(dtype).dense_peak.value.value;
  return {.memory = weights / rate + fitted.row_traffic.value * load.rows * product.row_bytes / hbm,
          .compute = flops / (peak * fitted.matrix_share.value)};
}

}  // namespace

ExpertLoad with_tiles(ExpertLoad load) {
  load.tiles = load.hit * std::ceil(load.rows / load.hit / expert_tile_rows);
  return load;
}

ExpertLoad expert_load(const ExpertLayerSize& size) {
  if (size.exponent == 0.0) {
    return balanced_load(size);
  }
  double rows = 0.0;
  double hit = 0.0;
  double tiles = 0.0;
  for (const double load : uneven_loads(size)) {
    rows += load;
    hit += std::min(load, 1.0);
    tiles += std::min(load, 1.0) * std::ceil(std::max(load, 1.0) / expert_tile_rows);
  }
  const double experts_of_class = as_real(size.experts / size.ep) / load_classes;
  return {.rows = std::max(1.0, rows * experts_of_class),
          .hit = std::max(1.0, hit * experts_of_class),
          .tiles = std::max(1.0, tiles * experts_of_class)};
}

const ExpertLayer* expert_layer_of(const Accelerator& accelerator, DType dtype) {
  const std::optional<ExpertLayer>& fitted = dtype == DType::fp8 ? accelerator.experts_fp8 : accelerator.experts;
  return fitted && accelerator.supports(dtype) ? &*fitted : nullptr;
}

Duration expert_layer_time(const Accelerator& accelerator, const ExpertLayerSize& size, const ExpertLoad& load) {
  const ExpertLayer* const fitted = expert_layer_of(accelerator, size.dtype);
  check(fitted != nullptr, "the accelerator has fitted parameters for experts of this dtype");
  const double width = as_real(bytes_of(size.dtype));
  const double wide = as_real(bytes_of(DType::bf16));  // outputs of GEMMs and of the layer
  const double hidden = as_real(size.hidden);
  const double ffn = as_real(size.ffn) / as_real(size.tp);
  const double ups = size.gated ? 2.0 : 1.0;
  ProductParts first =
      product_parts(accelerator, *fitted, size.dtype, load,
                    {.columns = ups * ffn, .inner = hidden, .row_bytes = hidden * width + ups * ffn * wide});
  ProductParts second = product_parts(accelerator, *fitted, size.dtype, load,
                                      {.columns = hidden, .inner = ffn, .row_bytes = ffn * width + hidden * wide});
  if (size.exponent != 0.0) {
    first.compute *= fitted->uneven_time.value;
    second.compute *= fitted->uneven_time.value;
  }
  const double tokens = as_real(size.tokens);
  const double around =
      to_seconds(fitted->call.value) + to_seconds(fitted->expert.value) * load.hit +
      to_seconds(fitted->choices.value) * tokens * as_real(size.active) / choices_timed +
      fitted->token_traffic.value * tokens * 2.0 * hidden * wide / accelerator.hbm_bandwidth.value.value;
  return std::max(accelerator.kernel_floor.value,
                  op_time(around + first.seconds() + second.seconds(), "an expert layer"));
}

Duration expert_layer_time(const Accelerator& accelerator, const ExpertLayerSize& size) {
  return expert_layer_time(accelerator, size, expert_load(size));
}

ExpertWork expert_work(const ExpertLayerSize& size) {
  const ExpertLoad load = expert_load(size);
  const double width = std::max(1.0, std::round(as_real(size.ffn) / as_real(size.tp)));
  const double weights =
      load.hit * (size.gated ? 3.0 : 2.0) * width * as_real(size.hidden) * as_real(bytes_of(size.dtype));
  return {.rows = std::llround(load.rows),
          .width = std::llround(width),
          .hidden = size.hidden,
          .weights = Bytes{std::llround(std::min(weights, highest_weight_bytes))},
          .dtype = size.dtype};
}

Limit expert_limit_of(const Accelerator& accelerator, const ExpertWork& work) {
  const ExpertLayer* const fitted = expert_layer_of(accelerator, work.dtype);
  check(fitted != nullptr, "the accelerator has fitted parameters for experts of this dtype");
  const double width = as_real(bytes_of(work.dtype));
  const double wide = as_real(bytes_of(DType::bf16));
  const double hidden = as_real(work.hidden);
  const double ffn = as_real(work.width);
  const double rows = as_real(work.rows);
  const double hit = std::max(1.0, as_real(work.weights.count) / (3.0 * ffn * hidden * width));
  const ExpertLoad load{.rows = rows, .hit = hit, .tiles = hit * std::ceil(rows / hit / expert_tile_rows)};
  const ProductParts first =
      product_parts(accelerator, *fitted, work.dtype, load,
                    {.columns = 2.0 * ffn, .inner = hidden, .row_bytes = hidden * width + 2.0 * ffn * wide});
  const ProductParts second =
      product_parts(accelerator, *fitted, work.dtype, load,
                    {.columns = hidden, .inner = ffn, .row_bytes = ffn * width + hidden * wide});
  const double memory = first.memory + second.memory;
  const double compute = first.compute + second.compute;
  if (std::max(memory, compute) <= to_seconds(fitted->call.value)) {
    return Limit::latency;
  }
  return memory >= compute ? Limit::bandwidth : Limit::compute;
}

}  // namespace commfuse
