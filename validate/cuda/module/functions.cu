// SPDX-License-Identifier: Apache-2.0
// Sums, activations and norms: the functions of arithmetic.cpp on the device. With SumOrder::ascending, they use fp32
// and double in the same places as the host, round once, and sum in the order of the reference, except in norms of rows
// wider than `ascending_columns`. With SumOrder::blocked, real functions may use fp32 instead of double.
#include <algorithm>

#include "validate/cuda/module/failures.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/numbers.cuh"

namespace commfuse::validate {

namespace {

constexpr int threads = 256;
/// Enough blocks to fill any GPU; each block continues until all elements are done.
constexpr std::int64_t max_blocks = 4096;

enum class Rule : std::uint8_t {
  sum,          // sums all inputs, each rounded to the wire first
  clipped_sum,  // residual of small integers
  zero,
  swiglu,
  fast_swiglu,
  integer_swiglu,
  gelu,
  fast_gelu,
  integer_gelu,
  integer_norm,
};

struct Elementwise {
  View inputs[max_terms];
  View out;
  int terms = 0;
  bool aligned = false;
  DType wire = DType::fp32;
  Tiles tiles;
  Divisor block;  // columns of a block of the output, for functions of pairs
};

// The comparisons are written so that NaN fails all of them and is returned.
__device__ double relu(double x) { return x < 0.0 ? 0.0 : x; }
__device__ double clipped(double x) { return x > 2.0 ? 2.0 : (x < -2.0 ? -2.0 : x); }
__device__ double silu(double x) { return x / (1.0 + exp(-x)); }
__device__ double gelu(double x) { return 0.5 * x * erfc(-x / 1.4142135623730951); }

template <Rule rule>
__device__ float apply(float x) {
  switch (rule) {
    case Rule::gelu: return static_cast<float>(gelu(x));
    case Rule::fast_gelu: return 0.5F * x * erfcf(-x * 0.70710678F);
    case Rule::integer_gelu: return static_cast<float>(clipped(relu(x)));
    case Rule::integer_norm: return static_cast<float>(clipped(-static_cast<double>(x)));
    case Rule::clipped_sum: return static_cast<float>(clipped(x));
    default: return x;
  }
}

template <Rule rule>
__device__ float apply_pair(float gate, float up) {
  if constexpr (rule == Rule::fast_swiglu) {
    return gate / (1.0F + __expf(-gate)) * up;
  }
  return static_cast<float>(rule == Rule::swiglu ? silu(gate) * static_cast<double>(up)
                                                 : clipped(relu(gate) * static_cast<double>(up)));
}

template <class In>
__device__ Eight pairs_at(const Elementwise& args, std::int64_t row, std::int64_t column, int count, Eight& up) {
  const View& from = args.inputs[0];
  const std::uint32_t block = args.block.by();
  // Column c of the output is column c % block of block c / block. For each block of the output, the input has a block
  // of gates and then a block of ups.
  const auto gate_at = [&](std::int64_t of_out) {
    return of_out + static_cast<std::int64_t>(args.block.quotient(static_cast<std::uint32_t>(of_out))) * block;
  };
  if (block % Eight::size == 0) {
    const std::int64_t gate = gate_at(column);
    up = load_eight<In>(from, row, gate + block, count, args.aligned);
    return load_eight<In>(from, row, gate, count, args.aligned);
  }
  Eight out{};
#pragma unroll
  for (int i = 0; i < Eight::size; ++i) {
    const std::int64_t at = gate_at(column + i);
    out.value[i] = i < count ? load<In>(from, row, at) : 0.0F;
    up.value[i] = i < count ? load<In>(from, row, at + block) : 0.0F;
  }
  return out;
}

template <class In, class Wire>
__device__ Eight sum_at(const Elementwise& args, std::int64_t row, std::int64_t column, int count) {
  Eight sums{};
  for (int term = 0; term < args.terms; ++term) {
    const Eight next = load_eight<In>(args.inputs[term], row, column, count, args.aligned);
#pragma unroll
    for (int i = 0; i < Eight::size; ++i) {
      const float value = rounded(Wire::of(args.wire), next.value[i]);
      sums.value[i] = term == 0 ? value : __fadd_rn(sums.value[i], value);
    }
  }
  return sums;
}

/// In, Out, Wire: dtype of all inputs, dtype of the output, and the dtype to which inputs are rounded first.
template <Rule rule, class In, class Out, class Wire>
__global__ void __launch_bounds__(threads) elementwise(const __grid_constant__ Elementwise args) {
  constexpr bool pairs = rule == Rule::swiglu || rule == Rule::fast_swiglu || rule == Rule::integer_swiglu;
  args.tiles.for_each(blocks_of_grid(), threads, [&](std::int64_t row, std::int64_t column, int count) {
    Eight out{};
    if constexpr (pairs) {
      Eight up{};
      out = pairs_at<In>(args, row, column, count, up);
#pragma unroll
      for (int k = 0; k < Eight::size; ++k) {
        out.value[k] = apply_pair<rule>(out.value[k], up.value[k]);
      }
    } else if constexpr (rule != Rule::zero) {
      out = sum_at<In, Wire>(args, row, column, count);
#pragma unroll
      for (int k = 0; k < Eight::size; ++k) {
        out.value[k] = apply<rule>(out.value[k]);
      }
    }
    store_eight<Out>(args.out, row, column, out, count, args.aligned);
  });
}

struct Norm {
  View in, out;
  bool aligned = false;
  std::int64_t rows = 0, columns = 0;
};

/// Up to this width, a single thread sums a row in the order of the reference, with identical bits. All threads
/// together sum a wider row in a different order. The sum then differs from the reference's by a few roundoffs of
/// double, which changes about one in ten million elements in fp32.
constexpr int ascending_columns = 1024;

/// Returns the sum of squares, in ascending order, in thread 0. Squares of fp32 are exact in double.
template <class In>
__device__ double ascending_squares(const Norm& args, std::int64_t row, float* scratch) {
  for (std::int64_t column = threadIdx.x; column < args.columns; column += threads) {
    scratch[column] = load<In>(args.in, row, column);
  }
  __syncthreads();
  double squares = 0.0;
  if (threadIdx.x == 0) {
    for (std::int64_t column = 0; column < args.columns; ++column) {
      squares += static_cast<double>(scratch[column]) * static_cast<double>(scratch[column]);
    }
  }
  return squares;
}

/// Returns the sum of squares, always in the same order, in thread 0. All threads take part.
template <class Number, class In>
__device__ Number shared_squares(const Norm& args, std::int64_t row, Number* scratch) {
  Number squares = 0;
  for (std::int64_t column = static_cast<std::int64_t>(threadIdx.x) * Eight::size; column < args.columns;
       column += threads * Eight::size) {
    const int count = static_cast<int>(min(args.columns - column, static_cast<std::int64_t>(Eight::size)));
    const Eight part = load_eight<In>(args.in, row, column, count, args.aligned);
#pragma unroll
    for (const float value : part.value) {
      squares += static_cast<Number>(value) * static_cast<Number>(value);
    }
  }
  scratch[threadIdx.x] = squares;
  for (unsigned half = threads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) {
      scratch[threadIdx.x] += scratch[threadIdx.x + half];
    }
  }
  return threadIdx.x == 0 ? scratch[0] : Number{0};
}

/// Number: type of the sum and the quotient.
template <class Number, class In, class Out>
__global__ void __launch_bounds__(threads) norm(const __grid_constant__ Norm args) {
  constexpr bool exact = sizeof(Number) == sizeof(double);
  __shared__ union {
    float narrow[ascending_columns];
    Number wide[threads];
  } scratch;
  __shared__ Number divisor;
  for (std::int64_t row = blockIdx.x; row < args.rows; row += gridDim.x) {
    const Number squares = exact && args.columns <= ascending_columns
                               ? static_cast<Number>(ascending_squares<In>(args, row, scratch.narrow))
                               : shared_squares<Number, In>(args, row, scratch.wide);
    if (threadIdx.x == 0) {
      divisor = sqrt(squares / static_cast<Number>(args.columns) + static_cast<Number>(norm_epsilon));
    }
    __syncthreads();
    for (std::int64_t column = static_cast<std::int64_t>(threadIdx.x) * Eight::size; column < args.columns;
         column += threads * Eight::size) {
      const int count = static_cast<int>(min(args.columns - column, static_cast<std::int64_t>(Eight::size)));
      Eight part = load_eight<In>(args.in, row, column, count, args.aligned);
#pragma unroll
      for (float& value : part.value) {
        value = static_cast<float>(static_cast<Number>(value) / divisor);
      }
      store_eight<Out>(args.out, row, column, part, count, args.aligned);
    }
    __syncthreads();  // before the next row reuses the memory
  }
}

/// Returns true for a real function that may use fp32 instead of double.
bool is_fast(const FunctionCall& call) {
  return call.functions == Functions::real && call.sum_order == SumOrder::blocked;
}

Rule rule_of(const FunctionCall& call) {
  const bool real = call.functions == Functions::real;
  const bool fast = is_fast(call);
  switch (call.function) {
    case Function::add:
    case Function::copy: return Rule::sum;
    case Function::swiglu: return fast ? Rule::fast_swiglu : real ? Rule::swiglu : Rule::integer_swiglu;
    case Function::gelu: return fast ? Rule::fast_gelu : real ? Rule::gelu : Rule::integer_gelu;
    case Function::norm: return Rule::integer_norm;
    case Function::residual: return real ? Rule::sum : Rule::clipped_sum;
    case Function::zero: return Rule::zero;
  }
  return Rule::sum;
}

using Kernel = void (*)(Elementwise);

/// Dtypes of a call. Inputs of different dtypes are rare; their kernels read the dtype of each view.
struct Dtypes {
  DType in = DType::fp32;
  DType out = DType::fp32;
  DType wire = DType::fp32;
  bool are_mixed = false;
};

Dtypes dtypes_of(const FunctionCall& call) {
  Dtypes dtypes{.in = call.inputs.empty() ? call.out.dtype : call.inputs.front().dtype,
                .out = call.out.dtype,
                .wire = call.wire.value_or(DType::fp32)};
  dtypes.are_mixed =
      std::any_of(call.inputs.begin(), call.inputs.end(), [&](const Panel& input) { return input.dtype != dtypes.in; });
  return dtypes;
}

using NoWire = Known<DType::fp32>;

template <Rule rule>
constexpr Kernel for_any = elementwise<rule, AnyDtype, AnyDtype, AnyDtype>;

/// Timed schedules contain sums, so each combination of the dtypes of inputs, output and wire has its own kernel. fp8
/// has none, because no strategy sums in fp8.
Kernel sum_kernel(const Dtypes& dtypes) {
  if (dtypes.are_mixed || dtypes.in == DType::fp8 || dtypes.wire == DType::fp8) {
    return for_any<Rule::sum>;
  }
  return with_known(dtypes.in, [&](auto in) {
    return with_known(dtypes.out, [&](auto out) {
      return with_known(dtypes.wire, [&](auto wire) -> Kernel {
        return elementwise<Rule::sum, decltype(in), decltype(out), decltype(wire)>;
      });
    });
  });
}

/// Timed schedules also contain functions in fp32, so each combination of the dtypes of input and output has its own
/// kernel.
template <Rule rule>
Kernel timed_kernel(const Dtypes& dtypes) {
  if (dtypes.wire != DType::fp32) {
    return for_any<rule>;
  }
  return with_known(dtypes.in, [&](auto in) {
    return with_known(dtypes.out,
                      [](auto out) -> Kernel { return elementwise<rule, decltype(in), decltype(out), NoWire>; });
  });
}

/// Functions that are only checked, not timed, have their own kernels only for equal dtypes of input and output, which
/// all programs use.
template <Rule rule>
Kernel checked_kernel(const Dtypes& dtypes) {
  if (dtypes.are_mixed || dtypes.in != dtypes.out || dtypes.wire != DType::fp32) {
    return for_any<rule>;
  }
  return with_known(dtypes.in,
                    [](auto dtype) -> Kernel { return elementwise<rule, decltype(dtype), decltype(dtype), NoWire>; });
}

Kernel kernel_of(Rule rule, const Dtypes& dtypes) {
  switch (rule) {
    case Rule::sum: return sum_kernel(dtypes);
    case Rule::clipped_sum: return checked_kernel<Rule::clipped_sum>(dtypes);
    case Rule::zero: return checked_kernel<Rule::zero>(dtypes);
    case Rule::swiglu: return checked_kernel<Rule::swiglu>(dtypes);
    case Rule::fast_swiglu: return timed_kernel<Rule::fast_swiglu>(dtypes);
    case Rule::integer_swiglu: return checked_kernel<Rule::integer_swiglu>(dtypes);
    case Rule::gelu: return checked_kernel<Rule::gelu>(dtypes);
    case Rule::fast_gelu: return timed_kernel<Rule::fast_gelu>(dtypes);
    case Rule::integer_gelu: return checked_kernel<Rule::integer_gelu>(dtypes);
    case Rule::integer_norm: return checked_kernel<Rule::integer_norm>(dtypes);
  }
  return nullptr;
}

using NormKernel = void (*)(Norm);

NormKernel norm_kernel(const FunctionCall& call) {
  const DType in_dtype = call.inputs.front().dtype;
  if (!is_fast(call) && in_dtype != call.out.dtype) {
    return norm<double, AnyDtype, AnyDtype>;
  }
  if (!is_fast(call)) {
    return with_known(in_dtype,
                      [](auto dtype) -> NormKernel { return norm<double, decltype(dtype), decltype(dtype)>; });
  }
  return with_known(in_dtype, [&](auto in) {
    return with_known(call.out.dtype, [](auto out) -> NormKernel { return norm<float, decltype(in), decltype(out)>; });
  });
}

bool all_aligned(const FunctionCall& call) {
  return is_aligned(call.out) && std::all_of(call.inputs.begin(), call.inputs.end(), is_aligned);
}

/// Returns the smallest number of inputs that the function accepts; an add accepts one or more.
std::size_t fewest_inputs(Function function) { return function == Function::add ? 1 : inputs_of(function); }

void require_inputs(const FunctionCall& call) {
  require(call.inputs.size() >= fewest_inputs(call.function), "a function lacks an input");
  require(call.inputs.size() <= max_terms, "an add has at most 64 terms");
  const std::int64_t columns = call.function == Function::swiglu ? 2 * call.out.columns : call.out.columns;
  for (const Panel& input : call.inputs) {
    require(input.rows == call.out.rows && input.columns == columns, "the inputs of a function fit its output");
  }
  require(call.function != Function::swiglu || (call.block > 0 && call.out.columns % call.block == 0),
          "swiglu pairs column blocks");
}

void launch_norm(cudaStream_t stream, const FunctionCall& call) {
  const Panel& in = call.inputs.front();
  const Norm args{view_of(in), view_of(call.out), all_aligned(call), call.out.rows, call.out.columns};
  const auto blocks = static_cast<unsigned>(std::min(args.rows, max_blocks));
  launch("norm", norm_kernel(call), {blocks, threads, stream}, args);
  require(cudaGetLastError(), "a norm kernel");
}

}  // namespace

void launch_function(cudaStream_t stream, const FunctionCall& call) {
  require_inputs(call);
  if (call.out.rows == 0 || call.out.columns == 0) {
    return;
  }
  if (call.function == Function::norm && call.functions == Functions::real) {
    launch_norm(stream, call);
    return;
  }
  constexpr std::int64_t largest = (std::int64_t{1} << 31) - 1;
  require(call.out.rows <= largest && 2 * call.out.columns <= largest,
          "a function has fewer than 2^31 rows and 2^30 columns");
  Elementwise args{.out = view_of(call.out),
                   .terms = static_cast<int>(call.inputs.size()),
                   .aligned = all_aligned(call),
                   .wire = call.wire.value_or(DType::fp32),
                   .tiles = tiles_of(call.out.rows, call.out.columns, threads),
                   .block = Divisor(std::max<std::int64_t>(call.block, 1))};
  std::transform(call.inputs.begin(), call.inputs.end(), args.inputs, view_of);
  launch("elementwise", kernel_of(rule_of(call), dtypes_of(call)),
         {grid_of(args.tiles, threads, max_blocks), threads, stream}, args);
  require(cudaGetLastError(), "a function kernel");
}

}  // namespace commfuse::validate
