// SPDX-License-Identifier: Apache-2.0
#include "model/cost/priced_ops.h"

#include "model/cost/expert_gemm.h"
#include "model/cost/shape_sizes.h"
#include "model/hardware/described.h"

namespace commfuse {

Flops heating_work(const Program& program, const Sizes& sizes, const PriceOptions& options) {
  Flops sum{};
  for (const Shape& shape : program.unfused) {
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      sum += flops_of(grouped(options.experts, gemm_size(*gemm, sizes)));
    }
  }
  return sum;
}

GemmSize priced_gemm(const GemmShape& gemm, const Sizes& sizes, const PriceOptions& options, Flops heating) {
  GemmSize size = with_factors(gemm_size(gemm, sizes), options.gemm_dtype);
  size.run = heating;
  size.weight_bits = options.weight_bits;
  return size;
}

Bytes priced_traffic(const ElementwiseShape& elementwise, const Sizes& sizes, const PriceOptions& /*options*/) {
  return traffic_of(elementwise, sizes);
}

namespace {

/// `converts`: activations are converted, if the parameters of the dtype include a conversion.
void mark_parameters(const Accelerator& accelerator, DType dtype, bool converts, Provenances& marked) {
  const auto mark = [&](const auto&... parameters) {
    ((marked[static_cast<std::size_t>(parameters.provenance)] = true), ...);
  };
  const auto& unit = accelerator.matrix_unit(dtype);
  const GemmParameters& parameters = unit.gemm;  // no structured binding, because clang 14 cannot use it in a lambda
  mark(unit.dense_peak, accelerator.hbm_bandwidth, accelerator.sm_bandwidth, accelerator.kernel_floor);
  const Parameter<double>& conversion = parameters.conversion_passes;
  each_parameter(parameters, NoNames{}, [&](NoNames, const auto& parameter) {
    const void* const address = &parameter;
    const bool is_of_benchmarks = address == &parameters.resident_share || address == &parameters.cached_weight_cost;
    const bool is_of_kept_outputs =
        address == &parameters.resident_output_share || address == &parameters.cached_output_cost;
    const bool is_of_conversion = address == &conversion || address == &parameters.cached_conversion_cost;
    const bool is_unused = (is_of_conversion && (!converts || conversion.value == 0.0)) ||
                           (is_of_kept_outputs && parameters.resident_output_share.value == 0.0) ||
                           (address == &parameters.operand_feed && parameters.operand_feed.value == 0.0);
    if (!is_of_benchmarks && !is_unused) {
      mark(parameter);
    }
  });
  if (dtype == DType::fp8 && !converts && accelerator.supports(DType::bf16)) {
    mark(accelerator.matrix_unit(DType::bf16).gemm.ramp);
  }
}

}  // namespace

void mark_gemm(const Accelerator& accelerator, DType dtype, const PriceOptions& options, Provenances& marked) {
  mark_parameters(accelerator, options.gemm_dtype.value_or(dtype), options.gemm_dtype.has_value(), marked);
}

void mark_gemms_of_scores(const Accelerator& accelerator, DType dtype, Provenances& marked) {
  mark_parameters(accelerator, dtype, true, marked);
}

}  // namespace commfuse
