// SPDX-License-Identifier: Apache-2.0
// What an operator of PyTorch computes, by its name and the shapes of its inputs.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "model/cost/attention.h"
#include "model/cost/framework_kernel.h"
#include "model/cost/gemm.h"
#include "model/dtype.h"

namespace commfuse::calibrate {

/// One call. Position i of `types` and `concrete` belongs to input i, like position i of `dims`.
struct OperatorCall {
  std::string name;                             ///< "aten::mm"
  std::vector<std::vector<std::int64_t>> dims;  ///< Of tensors; empty for every other input.
  std::vector<std::string> types;               ///< "c10::BFloat16"; empty: the profile does not say.
  std::vector<std::string> concrete;            ///< Values of scalars, "True"; empty: the profile does not say.
  bool has_dims = false;
};

/// Right, but nothing that a fit takes; `why` is a plural, "GEMMs in batches, ...".
struct Unfitted {
  std::string why;
};

struct KernelCall {
  std::string op;  ///< "norm": part of the key that chooses the held-back rows
  FrameworkKernelSize size;
};

/// monostate: an operator that no fit knows.
using Work = std::variant<std::monostate, Unfitted, GemmSize, AttentionSize, KernelCall>;

/// Whether work_of() knows the operator. Everything else needs no shapes.
bool is_known_operator(std::string_view name);

/// Whether a call of it always launches kernels of its own, and is a product.
bool runs_kernels(std::string_view name);

/// Where the call has no types, `assumed` is that of its tensors; without either, the work is Unfitted.
Work work_of(const OperatorCall& call, std::optional<DType> assumed = std::nullopt);

/// Of a PyTorch name, as "c10::BFloat16", "BFloat16" or "float".
std::optional<DType> tensor_type(std::string_view name);

/// Bytes of one element of a type that a collective may have; 0: unknown.
int element_bytes(std::string_view name);

/// What the name of a GEMM's kernel says of its inputs: cuBLAS and CUTLASS write it, Triton does not.
std::optional<DType> type_in_kernel_name(std::string_view name);

/// nccl-tests' word for a collective of PyTorch; empty where there is none.
std::string_view collective_named(std::string_view name);

/// Whether a kernel is one of NCCL or RCCL.
bool is_collective_kernel(std::string_view name);

/// "[[4096, 8192], [], [1024]]"; nothing where the text is another one. At most 64 lists of 16 numbers.
std::optional<std::vector<std::vector<std::int64_t>>> dims_in_text(std::string_view text);

}  // namespace commfuse::calibrate
