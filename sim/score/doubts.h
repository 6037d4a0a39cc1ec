// SPDX-License-Identifier: Apache-2.0
// Uncertainty of the price of single ops, computed as `run --uncertainty` computes it for a whole schedule
// (sim/point/predict_uncertainty.cpp): each parameter in turn is raised by its error, and the time of every shape by
// the residual of the fit for its kind.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/analysis/uncertainty.h"
#include "model/cost/attention.h"
#include "model/cost/expert_layer.h"
#include "model/cost/gemm.h"
#include "model/cost/latent_decode.h"
#include "model/cost/quantization.h"
#include "model/hardware/raised.h"
#include "model/math/functions.h"

namespace commfuse::score {

/// Longer ops are skipped: with a raised parameter, their prices would exceed the range of the arithmetic.
inline constexpr double longest_checked_us = 1e9;

/// Ops of one shape that run one after another.
struct TimedShape {
  PricedShape shape;
  double us = 0.0;        ///< Predicted time of all these ops together.
  double residual = 0.0;  ///< Residual of the shape, as residual_of() returns it.
};

PricedShape shape_of(const GemmSize& size);
PricedShape shape_of(const AttentionSize& size);
/// Returns the shape of attention in decoding; `size` is as in decode_attention_time().
PricedShape shape_of_decoding(const AttentionSize& size);
PricedShape shape_of(const LatentDecodeSize& size);
PricedShape shape_of(const ExpertLayerSize& size);
PricedShape shape_of(const QuantizationSize& size);
PricedShape shape_of(PricedKind kind, Bytes bytes, std::int64_t ranks = 0);

/// Returns the key in the machine's file of the residual that fit_of() uses; empty for memory-bound ops, which have no
/// fit.
std::string residual_key(const PricedShape& shape, const Machine& machine, int ranks);

/// Finds the doubts about the prices of ops. Caches results by machine, so use one object for all tables. Machines are
/// identified by address and must outlive this object.
class Doubts {
 public:
  /// Returns the doubts about ops that run one after another: first those about parameters, then one per shape, in the
  /// order of `shapes`. `total_us(machine)` returns the total time of the ops on another machine. Requires at least one
  /// shape; the first shape selects the parameters, so all shapes must depend on the same parameters.
  template <class TotalUs>
  Uncertainty of(const Machine& machine, std::span<const TimedShape> shapes, const TotalUs& total_us) {
    double nominal = 0.0;
    for (const TimedShape& timed : shapes) {
      nominal += timed.us;
    }
    Uncertainty total;
    for (const RaisedMachine* raised : affecting(machine, shapes)) {
      const double raised_us = total_us(*raised->machine);
      if (raised_us != nominal && raised_us > 0.0) {
        total.doubts.push_back({raised->parameter, math::log(raised_us / nominal)});
      }
    }
    for (const TimedShape& timed : shapes) {
      total.doubts.push_back({timed.shape, math::log(1.0 + timed.us * timed.residual / nominal)});
    }
    return total;
  }

  /// Returns copies of the machine, each with one parameter raised by its error, for Point::raised.
  std::shared_ptr<const std::vector<RaisedMachine>> raised(const Machine& machine);

  /// Returns whether a fit of this machine read the table `table`, a file name without extension.
  bool is_fitted(const Machine& machine, std::string_view table);

 private:
  enum class Side : std::uint8_t { gemms, attention, decoding, experts, quantization, memory, links };
  struct Known {
    std::shared_ptr<const std::vector<RaisedMachine>> raised;
    std::vector<std::string> names;  ///< Names of the raised parameters, in the order of `raised`.
    std::map<std::pair<Side, DType>, std::vector<const RaisedMachine*>> affecting{};
  };
  Known& known_of(const Machine& machine);
  static Side side_of(PricedKind kind);
  static bool is_affected(Side side, DType dtype, const RaisedMachine& raised, std::string_view name);
  const std::vector<const RaisedMachine*>& affecting(const Machine& machine, std::span<const TimedShape> shapes);

  std::map<const Machine*, Known> known_;
  std::map<std::pair<const Machine*, std::string>, bool, std::less<>> fitted_;
};

}  // namespace commfuse::score
