// SPDX-License-Identifier: Apache-2.0
#include "model/cost/priced_gemm.h"

#include "model/cost/expert_gemm.h"
#include "model/cost/shape_sizes.h"

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

}  // namespace commfuse
