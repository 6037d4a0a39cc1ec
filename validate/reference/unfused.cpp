// SPDX-License-Identifier: Apache-2.0
//
// The bound. Let a hat mean "as computed by a schedule", and |x^ - x| <= e for every element x of every tensor.
//
// Input      e = 0: the exact result is that of the inputs as stored. Where a wire, or a buffer on the way, is coarser
//            than the input's dtype, e = v |x| + half the smallest subnormal of the coarsest: rounding a value to the
//            same dtype again changes nothing.
//
// Product    y = sum over k of a_k b_k, with the exact a, b. The contraction of K elements is cut into at most P parts
//            (its blocks, or the shortest runs of them that an op multiplies) whose partial products different ranks
//            may hold. On its way into y^ a term a^_k b^_k undergoes
//              fp32 roundings, u = 2^-24:  its multiplication, at most K adds inside its part, at most P - 1 adds of
//                                          parts: no more than K + P;
//              storage roundings, v:       its partial product is stored, and so is each of at most P - 1 sums it is
//                                          part of: no more than P; where the wire is coarser than memory, each of at
//                                          most P - 1 hops adds one. v is the roundoff of the coarsest dtype of y and
//                                          of the buffers and wires that may hold part of it. Where a wire rounds to
//                                          fewer bits than buffers of 16 bits did, all of these count twice.
//            Each multiplies the term by (1 + d) with |d| <= u or v, in whatever order the sum is taken. With
//              gamma = (1 + u)^(K + P) (1 + v)^(P + hops) - 1,   A = |a| + e_a >= |a^|,   B = |b| + e_b >= |b^|
//            this gives |y^ - sum a^ b^| <= gamma sum A B, and by the triangle inequality
//              |sum a^ b^ - sum a b| <= sum (e_a B + |a| e_b) = sum (A B - |a||b|), hence
//              e = gamma (A B) + (A B - |a||b|) + underflow.
//            Only roundings that underflow break the model, each by at most half the smallest subnormal.
//
// Function   f(g, u) = silu(g) u: |silu(g^) u^ - silu(g) u| <= |silu(g^) - silu(g)| |u^| + |silu(g)| |u^ - u|
//              <= L e_g (|u| + e_u) + |silu(g)| e_u, where L is the largest slope of silu (mean value theorem);
//            f(x) = gelu(x): L e_x. One fp32 and two storage roundings of a value no larger than |f| + spread are
//            added to this spread; the storage roundings count twice where those of a product do.
//
//            f(x) = x / r with r = sqrt(mean x^2 + epsilon): r moves by at most s = sqrt(mean e^2), so x_i / r by at
//            most
//              e_i / (r - s) + |x_i| s / (r (r - s)) while s < r; and never by more than 2 sqrt(columns), since no
//              element of a normed row exceeds sqrt(columns);  f(a, b) = a + b: e_a + e_b.
//
// Attention  attention.cpp derives its spread.
//
// The double-precision reference itself is off by less than K 2^-52 (A B), which gamma includes.
#include "validate/reference/unfused.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <stdexcept>

#include "model/math/functions.h"
#include "validate/reference/attention.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

/// Returns (1 + u)^times - 1.
double growth(double u, std::int64_t times) { return math::expm1(static_cast<double>(times) * math::log1p(u)); }

/// Applies function(x, y) element by element.
template <class TwoFunction>
Matrix<double> combined(const Matrix<double>& x, const Matrix<double>& y, TwoFunction&& function) {
  Matrix<double> out = x;
  std::ranges::transform(x.values(), y.values(), out.values().begin(), function);
  return out;
}

Matrix<double> magnitude(const Matrix<double>& x) {
  return combined(x, x, [](double value, double) { return std::abs(value); });
}

Matrix<double> reach(const Bounded& x) {
  return combined(x.value, x.bound, [](double value, double bound) { return std::abs(value) + bound; });
}

/// Returns whether a block of these extents may belong to the tensor: ops keep the dimensions of their operands.
bool may_hold(Extent rows, Extent columns, const Tensor& tensor) {
  return rows.dimension == tensor.rows.dimension && columns.dimension == tensor.columns.dimension;
}

/// Returns the dtype in which a shape sends blocks of the tensor; nothing when it sends none.
std::optional<DType> wire_of(const Shape& shape, const Tensor& tensor) {
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return may_hold(exchange->rows, exchange->columns, tensor) ? std::optional(exchange->wire) : std::nullopt;
  }
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective != nullptr && may_hold(collective->rows, collective->columns, tensor)
             ? std::optional(collective->wire)
             : std::nullopt;
}

/// Considers the tensor's own dtype and those of all buffers and wires that may hold part of it; inputs and weights are
/// in buffers of their own.
Roundings roundings_of(const Program& program, const Tensor& tensor) {
  DType coarsest = tensor.dtype;
  DType finest = tensor.dtype;
  for (const Buffer& buffer : program.buffers) {
    const bool is_input = buffer.role == BufferRole::input || buffer.role == BufferRole::weight;
    if (!is_input && may_hold(buffer.rows, buffer.columns, tensor)) {
      coarsest = is_coarser(buffer.dtype, coarsest) ? buffer.dtype : coarsest;
      finest = is_coarser(finest, buffer.dtype) ? buffer.dtype : finest;
    }
  }
  Roundings roundings;
  for (const Shape& shape : program.shapes) {
    const DType wire = wire_of(shape, tensor).value_or(finest);
    roundings.wire_rounds = roundings.wire_rounds || is_coarser(wire, finest);
    coarsest = is_coarser(wire, coarsest) ? wire : coarsest;
  }
  // A wire that is coarser than a buffer of 16 bits rounds again what the buffer has rounded.
  roundings.times = roundings.wire_rounds && finest != DType::fp32 ? 2 : 1;
  roundings.storage = roundoff_of(coarsest);
  roundings.exact_integers = largest_exact_integer(coarsest);
  return roundings;
}

Bounded factor(const Bounded& input, bool transpose) {
  return {factor(input.value, transpose), factor(input.bound, transpose)};
}

/// Returns the largest number of partial products into which the ops cut a block of a GEMM.
std::int64_t parts_of(const Program& program, const Tensor& product) {
  const Extent whole = contraction_of(product, program.tensors[position(product.a)]);
  std::int32_t shortest = 0;
  for (const Shape& shape : program.shapes) {
    const auto* gemm = std::get_if<GemmShape>(&shape);
    if (gemm != nullptr && may_hold(gemm->m, gemm->n, product) && gemm->k.dimension == whole.dimension) {
      shortest = shortest == 0 ? gemm->k.blocks : std::min(shortest, gemm->k.blocks);
    }
  }
  return shortest == 0 ? whole.blocks : (whole.blocks + shortest - 1) / shortest;
}

/// An input is exact, except for the rounding of a coarser wire or buffer; rounding it to the same dtype again does not
/// change it.
Bounded bounded_input(const Matrix<float>& given, DType dtype, const Roundings& roundings) {
  Bounded input{widened(given), Matrix<double>(given.rows(), given.columns())};
  if (roundings.storage.relative > roundoff_of(dtype).relative) {
    input.bound = combined(input.value, input.value, [&](double x, double) {
      return roundings.storage.relative * std::abs(x) + roundings.storage.absolute;
    });
  }
  return input;
}

Bounded bounded_product(const Bounded& a, const Bounded& b, const Roundings& roundings) {
  const Roundoff sum = roundoff_of(DType::fp32);
  const std::int64_t terms = a.value.columns();
  const std::int64_t parts = roundings.parts;
  const std::int64_t hops = roundings.wire_rounds ? parts - 1 : 0;
  const double by_sums = growth(sum.relative, terms + parts);
  const double by_storage = growth(roundings.storage.relative, roundings.times * (parts + hops));
  const double gamma = by_sums + by_storage + by_sums * by_storage + static_cast<double>(terms) * 0x1p-52;
  const double underflow =
      (1.0 + gamma) * (static_cast<double>(terms + parts) * sum.absolute +
                       static_cast<double>(roundings.times * (2 * parts + hops)) * roundings.storage.absolute);
  const Matrix<double> widest = product(reach(a), reach(b));
  const Matrix<double> exact = product(magnitude(a.value), magnitude(b.value));
  return {product(a.value, b.value), combined(widest, exact, [&](double reached, double needed) {
            return gamma * reached + (reached - needed) + underflow;
          })};
}

/// Bounds one fp32 rounding of a value, and two storage roundings, which count Roundings::times times each.
class RoundedOnce {
 public:
  explicit RoundedOnce(const Roundings& roundings)
      : relative_(growth(sum_.relative, 1) + growth(roundings.storage.relative, 2 * roundings.times)),
        absolute_(2.0 * (sum_.absolute + static_cast<double>(roundings.times) * roundings.storage.absolute)) {}

  /// Returns e from the spread of f and the value that was rounded.
  [[nodiscard]] double bound(double value, double spread) const {
    return spread + relative_ * (std::abs(value) + spread) + absolute_;
  }

 private:
  Roundoff sum_ = roundoff_of(DType::fp32);
  double relative_;
  double absolute_;
};

Bounded bounded_swiglu(const Bounded& input, std::int64_t block, const Roundings& roundings) {
  const RoundedOnce rounded(roundings);
  Bounded out{apply(Function::swiglu, block, input.value), {}};
  out.bound = out.value;
  for (std::int64_t row = 0; row < out.value.rows(); ++row) {
    for (std::int64_t column = 0; column < out.value.columns(); ++column) {
      const std::int64_t gate = column / block * 2 * block + column % block;
      const double up = std::abs(input.value.at(row, gate + block));
      const double up_bound = input.bound.at(row, gate + block);
      const double spread = steepest_silu * input.bound.at(row, gate) * (up + up_bound) +
                            std::abs(silu(input.value.at(row, gate))) * up_bound;
      out.bound.at(row, column) = rounded.bound(out.value.at(row, column), spread);
    }
  }
  return out;
}

Bounded bounded_norm(const Bounded& input, const Roundings& roundings) {
  const RoundedOnce rounded(roundings);
  Bounded out{apply(Function::norm, 1, input.value), input.bound};
  for (std::int64_t row = 0; row < input.value.rows(); ++row) {
    const double r = root_mean_square(input.value.row(row));
    double squares = 0.0;
    for (const double bound : input.bound.row(row)) {
      squares += bound * bound;
    }
    const double s = std::sqrt(squares / static_cast<double>(input.bound.columns()));
    const double limit = 2.0 * std::sqrt(static_cast<double>(input.value.columns()));
    for (std::int64_t column = 0; column < input.value.columns(); ++column) {
      const double by_errors =
          input.bound.at(row, column) / (r - s) + std::abs(input.value.at(row, column)) * s / (r * (r - s));
      const double spread = s < r ? std::min(by_errors, limit) : limit;
      out.bound.at(row, column) = rounded.bound(out.value.at(row, column), spread);
    }
  }
  return out;
}

Bounded bounded_residual(const Bounded& a, const Bounded& b, const Roundings& roundings) {
  const RoundedOnce rounded(roundings);
  const Matrix<double> value = combined(a.value, b.value, [](double x, double y) { return x + y; });
  const Matrix<double> spread = combined(a.bound, b.bound, [](double x, double y) { return x + y; });
  return {value, combined(value, spread, [&](double x, double bound) { return rounded.bound(x, bound); })};
}

Bounded bounded_attention(const AttentionLayout& layout, const Bounded& qkv, const Roundings& roundings) {
  const RoundedOnce rounded(roundings);
  const Matrix<double> value = attention(layout, Functions::real, qkv.value);
  const Matrix<double> spread = attention_spread(layout, qkv.value, qkv.bound);
  return {value, combined(value, spread, [&](double x, double bound) { return rounded.bound(x, bound); })};
}

/// Returns the layout of the op that makes this tensor.
AttentionLayout layout_for(const Program& program, const Sizes& sizes, const Tensor& tensor) {
  for (const Shape& shape : program.unfused) {
    const auto* attention = std::get_if<AttentionShape>(&shape);
    if (attention != nullptr && attention->columns.dimension == tensor.columns.dimension &&
        attention->causal == tensor.causal) {
      return layout_of(sizes, *attention);
    }
  }
  throw std::runtime_error("tensor " + tensor.name + " is attention, but the program's unfused work has none");
}

Bounded bounded_function(Function function, const Bounded& input, std::int64_t block, const Roundings& roundings) {
  if (function == Function::swiglu) {
    return bounded_swiglu(input, block, roundings);
  }
  if (function == Function::norm) {
    return bounded_norm(input, roundings);
  }
  const RoundedOnce rounded(roundings);
  const double slope = function == Function::gelu ? steepest_gelu : 1.0;
  const Matrix<double> value = apply(function, block, input.value);
  return {value, combined(value, input.bound, [&](double x, double bound) { return rounded.bound(x, slope * bound); })};
}

/// Computes one tensor from those before it, not yet rounded for storage.
Matrix<float> evaluated(const Program& program, const Sizes& sizes, const Tensor& tensor,
                        const std::vector<Matrix<float>>& values, Functions functions) {
  const Matrix<float>& a = values[position(tensor.a)];
  if (tensor.definition == Tensor::Definition::product) {
    return product(factor(a, tensor.transpose_a), factor(values[position(tensor.b)], tensor.transpose_b));
  }
  if (tensor.definition == Tensor::Definition::attention) {
    return attention(layout_for(program, sizes, tensor), functions, a);
  }
  if (tensor.function == Function::residual) {
    return residual(functions, a, values[position(tensor.b)]);
  }
  return apply(tensor.function, functions, sizes.block[position(tensor.columns.dimension)], a);
}

}  // namespace

std::vector<Matrix<float>> unfused(const Program& program, const Sizes& sizes, std::vector<Matrix<float>> inputs,
                                   Functions functions) {
  std::vector<Matrix<float>> values = std::move(inputs);
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.definition == Tensor::Definition::input) {
      continue;
    }
    values[id] = evaluated(program, sizes, tensor, values, functions);
    for (float& value : values[id].values()) {
      value = stored(tensor.dtype, value);
    }
  }
  return values;
}

std::vector<Roundings> roundings_of(const Program& program) {
  std::vector<Roundings> result;
  for (const Tensor& tensor : program.tensors) {
    result.push_back(roundings_of(program, tensor));
    if (tensor.definition == Tensor::Definition::product) {
      result.back().parts = parts_of(program, tensor);
    }
  }
  return result;
}

std::vector<Bounded> bounded(const Program& program, const Sizes& sizes, std::span<const Matrix<float>> inputs) {
  const std::vector<Roundings> roundings_by_id = roundings_of(program);
  std::vector<Bounded> values;
  for (std::size_t id = 0; id < program.tensors.size(); ++id) {
    const Tensor& tensor = program.tensors[id];
    if (tensor.definition == Tensor::Definition::input) {
      values.push_back(bounded_input(inputs[id], tensor.dtype, roundings_by_id[id]));
      continue;
    }
    const Bounded& a = values[position(tensor.a)];
    const Roundings& roundings = roundings_by_id[id];
    if (tensor.definition == Tensor::Definition::product) {
      values.push_back(bounded_product(factor(a, tensor.transpose_a),
                                       factor(values[position(tensor.b)], tensor.transpose_b), roundings));
    } else if (tensor.definition == Tensor::Definition::attention) {
      values.push_back(bounded_attention(layout_for(program, sizes, tensor), a, roundings));
    } else if (tensor.function == Function::residual) {
      values.push_back(bounded_residual(a, values[position(tensor.b)], roundings));
    } else {
      const std::int64_t block = sizes.block[position(tensor.columns.dimension)];
      values.push_back(bounded_function(tensor.function, a, block, roundings));
    }
  }
  return values;
}

bool sums_are_exact(const Program& program, std::span<const Matrix<float>> unfused) {
  return std::ranges::all_of(program.tensors, [&](const Tensor& tensor) {
    if (tensor.definition != Tensor::Definition::product) {
      return true;
    }
    const double largest = roundings_of(program, tensor).exact_integers;
    const auto magnitudes = [&](TensorId id, bool transpose) {
      return factor(magnitude(widened(unfused[position(id)])), transpose);
    };
    const Matrix<double> sums =
        product(magnitudes(tensor.a, tensor.transpose_a), magnitudes(tensor.b, tensor.transpose_b));
    return std::ranges::all_of(sums.values(), [&](double sum) { return sum <= largest; });
  });
}

}  // namespace commfuse::validate
