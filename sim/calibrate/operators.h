// SPDX-License-Identifier: Apache-2.0
// Finds the work of a PyTorch operator from its name and the shapes of its inputs.
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

/// One call of an operator. Position i of `dims`, `types` and `concrete` belongs to input i.
struct OperatorCall {
  std::string name;                             ///< "aten::mm"
  std::vector<std::vector<std::int64_t>> dims;  ///< Shapes of tensors; empty for every other input.
  std::vector<std::string> types;               ///< "c10::BFloat16"; empty: not in the profile.
  std::vector<std::string> concrete;            ///< Values of scalars, "True"; empty: not in the profile.
  bool has_dims = false;
};

/// Valid work that no fit uses; `why` is a plural noun, "GEMMs in batches, ...".
struct Unfitted {
  std::string why;
};

struct KernelCall {
  std::string op;  ///< "norm": part of the key that selects held-out rows
  FrameworkKernelSize size;
};

/// The work of a call; monostate: an operator that no fit supports.
using Work = std::variant<std::monostate, Unfitted, GemmSize, AttentionSize, KernelCall>;

/// Returns whether work_of() supports the operator. Other operators need no shapes.
bool is_known_operator(std::string_view name);

/// Returns whether the operator is a GEMM whose calls always launch kernels themselves.
bool runs_kernels(std::string_view name);

/// Returns the work of a call. Where the call has no types, `assumed` is the type of its tensors; without either, the
/// work is Unfitted.
Work work_of(const OperatorCall& call, std::optional<DType> assumed = std::nullopt);

/// Parses a PyTorch name such as "c10::BFloat16", "BFloat16" or "float".
std::optional<DType> tensor_type(std::string_view name);

/// Returns the bytes of one element of a type that a collective may have; 0 for an unknown type.
int element_bytes(std::string_view name);

/// Returns the input type in the name of a GEMM kernel: names of cuBLAS and CUTLASS contain the type, names of Triton
/// do not.
std::optional<DType> type_in_kernel_name(std::string_view name);

/// Returns nccl-tests' name of a PyTorch collective; empty if it has none.
std::string_view collective_named(std::string_view name);

/// Returns whether a kernel belongs to NCCL or RCCL.
bool is_collective_kernel(std::string_view name);

/// Parses "[[4096, 8192], [], [1024]]", with at most 64 lists of at most 16 numbers; nothing for any other string.
std::optional<std::vector<std::vector<std::int64_t>>> dims_in_text(std::string_view text);

}  // namespace commfuse::calibrate
