// SPDX-License-Identifier: Apache-2.0
// Compares a measured time with the interval that a run would state.
#pragma once

#include <string_view>

#include "sim/score/kinds.h"

namespace commfuse::score {

/// A measured op, with the values that determine the error of its price.
struct CheckedOp {
  PricedShape shape;
  std::string_view kind;  ///< Name under which intervals are counted: "GEMM bf16".
  ShapeKey key{};         ///< Sizes; rows with equal sizes have the same error.
  bool held_out = false;  ///< The op's group is held back from every fit.
  int ranks = 1;          ///< Number of GPUs that take part; it determines which fit applies.
};

constexpr std::string_view gemm_kind(DType dtype) {
  switch (dtype) {
    case DType::bf16: return "GEMM bf16";
    case DType::fp16: return "GEMM fp16";
    case DType::fp8: return "GEMM fp8";
    default: return "GEMM of other dtypes";
  }
}

/// Returns whether no fit of the machine has seen the row.
inline bool is_unseen(const Machine& machine, bool held_out, Context& context) {
  return held_out || !context.doubts.is_fitted(machine, context.file_name);
}

/// Checks the interval of a row that no fit has seen. With `context.residuals`, also collects a row of a fitted table
/// for the residual of the fit. Skips times above longest_checked_us. `price_us(machine)` returns the price of the op
/// on another machine.
template <class PriceUs>
void check_interval(const Machine& machine, const CheckedOp& op, const Compared& time, Context& context, Tally& tally,
                    const PriceUs& price_us) {
  const bool fitted = context.doubts.is_fitted(machine, context.file_name);
  const bool unseen = op.held_out || !fitted;
  if ((!unseen && !context.residuals) || time.predicted_us > longest_checked_us) {
    return;
  }
  const double distance = math::log(time.measured_us / time.predicted_us);
  const TimedShape timed{op.shape, time.predicted_us, residual_of(op.shape, machine, op.ranks)};
  const Uncertainty uncertainty = context.doubts.of(machine, std::span(&timed, 1), price_us);
  if (unseen) {
    tally.check_interval(machine, op.kind, fitted,
                         {.distance = distance, .error = error_of(uncertainty), .shape = op.key});
  }
  if (const std::string key = residual_key(op.shape, machine, op.ranks); context.residuals && fitted && !key.empty()) {
    Uncertainty parameters = uncertainty;
    parameters.doubts.pop_back();  // the residual of the fit for the shape
    tally.calibrate(machine, key, fit_of(op.shape, machine, op.ranks),
                    {.distance = distance,
                     .parameters = error_of(parameters),
                     .shape = op.key,
                     .held_out = op.held_out,
                     .limit = limit_of(op.shape, machine, op.ranks)});
  }
}

}  // namespace commfuse::score
