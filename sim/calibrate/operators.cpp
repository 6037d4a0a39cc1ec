// SPDX-License-Identifier: Apache-2.0
// Signatures: pytorch/pytorch, aten/src/ATen/native/native_functions.yaml; Dao-AILab/flash-attention,
// flash_attn/flash_attn_interface.py; vllm-project/vllm, csrc/torch_bindings.cpp. Collectives: pytorch/pytorch,
// torch/csrc/distributed/c10d (ProcessGroupNCCL.cpp, RECORD_PARAM_COMMS).
#include "sim/calibrate/operators.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "sim/score/row.h"

namespace commfuse::calibrate {

namespace {

using Dims = std::vector<std::int64_t>;

enum class Kind : std::uint8_t {
  gemm,       ///< [m, k] x [k, n]
  linear,     ///< [..., k] x [n, k]
  batched,    ///< [b, m, k] x [b, k, n]
  grouped,    ///< GEMMs of experts
  scaled,     ///< like gemm, in fp8
  attention,  ///< forward
  varlen,     ///< attention over packed sequences, whose lengths no shape contains
  backward,   ///< the backward pass of attention
  sum,
  norm,
  fused_norm,  ///< norm that first adds a residual and also writes the sum
  activation,
  rotation,
};

struct KnownOperator {
  std::string_view name;
  Kind kind;
  std::size_t first = 0;      ///< input with the first matrix, the query, or the rows of a memory-bound op
  std::size_t heads_at = 1;   ///< dimension of the heads in a query: 1 for [b, h, s, d], 2 for [b, s, h, d]
  std::size_t causal_at = 0;  ///< the input that states whether attention is causal
  std::size_t window_at = 0;  ///< the input with the left side of a window; 0: no such input
};

constexpr std::string_view efficient_forward = "aten::_efficient_attention_forward";

constexpr std::array operators{
    KnownOperator{"aten::mm", Kind::gemm, 0},
    KnownOperator{"aten::addmm", Kind::gemm, 1},
    KnownOperator{"aten::addmm_", Kind::gemm, 1},
    KnownOperator{"aten::_addmm_activation", Kind::gemm, 1},
    KnownOperator{"aten::linear", Kind::linear, 0},
    KnownOperator{"aten::bmm", Kind::batched, 0},
    KnownOperator{"aten::baddbmm", Kind::batched, 1},
    KnownOperator{"aten::baddbmm_", Kind::batched, 1},
    KnownOperator{"aten::_grouped_mm", Kind::grouped, 0},
    KnownOperator{"aten::_scaled_grouped_mm", Kind::grouped, 0},
    KnownOperator{"aten::_scaled_mm", Kind::scaled, 0},
    KnownOperator{"aten::_scaled_dot_product_flash_attention", Kind::attention, 0, 1, 4},
    KnownOperator{"aten::_flash_attention_forward", Kind::attention, 0, 2, 8, 11},
    KnownOperator{"aten::_scaled_dot_product_efficient_attention", Kind::attention, 0, 1, 6},
    KnownOperator{efficient_forward, Kind::attention, 0, 2, 9},
    KnownOperator{"aten::_scaled_dot_product_cudnn_attention", Kind::attention, 0, 1, 6},
    KnownOperator{"aten::_cudnn_attention_forward", Kind::attention, 0, 1, 10},
    KnownOperator{"flash_attn::_flash_attn_forward", Kind::attention, 0, 2, 5, 6},
    KnownOperator{"flash_attn::_flash_attn_varlen_forward", Kind::varlen},
    KnownOperator{"aten::_scaled_dot_product_flash_attention_backward", Kind::backward},
    KnownOperator{"aten::_flash_attention_backward", Kind::backward},
    KnownOperator{"aten::_scaled_dot_product_efficient_attention_backward", Kind::backward},
    KnownOperator{"aten::_efficient_attention_backward", Kind::backward},
    KnownOperator{"aten::_scaled_dot_product_cudnn_attention_backward", Kind::backward},
    KnownOperator{"aten::_cudnn_attention_backward", Kind::backward},
    KnownOperator{"flash_attn::_flash_attn_backward", Kind::backward},
    KnownOperator{"flash_attn::_flash_attn_varlen_backward", Kind::backward},
    KnownOperator{"aten::add", Kind::sum, 0},
    KnownOperator{"aten::add_", Kind::sum, 0},
    KnownOperator{"aten::native_layer_norm", Kind::norm, 0},
    KnownOperator{"aten::_fused_rms_norm", Kind::norm, 0},
    KnownOperator{"_C::rms_norm", Kind::norm, 1},  // the output comes first
    KnownOperator{"_C::fused_add_rms_norm", Kind::fused_norm, 0},
    KnownOperator{"_C::silu_and_mul", Kind::activation, 0},
    KnownOperator{"_C::gelu_and_mul", Kind::activation, 0},
    KnownOperator{"_C::gelu_tanh_and_mul", Kind::activation, 0},
    KnownOperator{"_C::rotary_embedding", Kind::rotation, 1},
};

const KnownOperator* find_operator(std::string_view name) {
  const auto* const match =
      std::find_if(operators.begin(), operators.end(), [&](const KnownOperator& known) { return known.name == name; });
  return match == operators.end() ? nullptr : match;
}

bool is_extent(std::int64_t size) { return size >= 1 && size <= score::max_extent; }

/// Returns the product of all dimensions except the last `kept`; 0 if a dimension is missing or out of range.
std::int64_t rows_of(const Dims& dims, std::size_t kept = 1) {
  std::int64_t rows = dims.size() < kept ? 0 : 1;
  for (std::size_t i = 0; i + kept < dims.size(); ++i) {
    rows = is_extent(dims[i]) ? rows * dims[i] : 0;
    if (!is_extent(rows)) {
      return 0;
    }
  }
  return rows;
}

/// Returns the plural noun that begins a sentence about the operator.
std::string_view plural_of(Kind kind) {
  switch (kind) {
    case Kind::gemm:
    case Kind::linear:
    case Kind::batched:
    case Kind::grouped:
    case Kind::scaled: return "GEMMs";
    case Kind::attention:
    case Kind::varlen:
    case Kind::backward: return "attention calls";
    default: return "memory-bound kernels";
  }
}

class OperatorReader {
 public:
  OperatorReader(const KnownOperator& known, const OperatorCall& call, std::optional<DType> assumed)
      : known_(known), call_(call), assumed_(assumed) {}

  Work work() const {
    if (!call_.has_dims) {
      return unfitted("without sizes: profile with record_shapes=True");
    }
    switch (known_.kind) {
      case Kind::gemm:
      case Kind::scaled: return gemm(shape(known_.first), shape(known_.first + 1));
      case Kind::linear: return linear();
      case Kind::batched: return batched();
      case Kind::grouped: return unfitted("of groups of experts, which no fit uses");
      case Kind::attention: return attention();
      case Kind::varlen: return unfitted("of packed sequences (varlen), whose lengths the shapes do not show");
      case Kind::backward: return unfitted("of a backward pass, which no fit uses");
      default: return kernel();
    }
  }

 private:
  [[nodiscard]] Work unfitted(std::string_view why) const {
    return Unfitted{fmt::format("{} {}", plural_of(known_.kind), why)};
  }

  [[nodiscard]] Dims shape(std::size_t input) const { return input < call_.dims.size() ? call_.dims[input] : Dims{}; }

  [[nodiscard]] std::optional<DType> type(std::size_t input) const {
    return call_.types.empty() ? assumed_
                               : tensor_type(input < call_.types.size() ? call_.types[input] : std::string{});
  }

  [[nodiscard]] Work untyped() const {
    return call_.types.empty() ? unfitted("whose type is neither recorded nor in the name of their kernel")
                               : unfitted("in a type that the model does not support");
  }

  [[nodiscard]] Work gemm(const Dims& a, const Dims& b) const {
    if (a.size() != 2 || b.size() != 2 || a[1] != b[0] || !is_extent(a[0]) || !is_extent(a[1]) || !is_extent(b[1])) {
      return unfitted("whose sizes are not two matrices");
    }
    const std::optional<DType> dtype = type(known_.first);
    if (!dtype) {
      return untyped();
    }
    if (!call_.types.empty() && type(known_.first + 1) != dtype) {
      return unfitted("with inputs of two types");
    }
    GemmSize size{.m = a[0], .n = b[1], .k = a[1], .dtype = *dtype};
    if (*dtype == DType::fp8) {
      size.out = DType::bf16;
    }
    return size;
  }

  [[nodiscard]] Work linear() const {
    const Dims input = shape(0);
    const Dims weight = shape(1);
    if (input.empty() || weight.size() != 2) {
      return unfitted("whose sizes are not two matrices");
    }
    return gemm({rows_of(input), input.back()}, {weight[1], weight[0]});
  }

  [[nodiscard]] Work batched() const {
    const Dims a = shape(known_.first);
    const Dims b = shape(known_.first + 1);
    if (a.size() != 3 || b.size() != 3 || a[0] != 1 || b[0] != 1) {
      return unfitted("in batches (bmm), which no fit uses");
    }
    return gemm({a[1], a[2]}, {b[1], b[2]});
  }

  [[nodiscard]] std::string_view value(std::size_t input) const {
    return input < call_.concrete.size() ? std::string_view(call_.concrete[input]) : std::string_view{};
  }

  [[nodiscard]] std::optional<bool> causal() const {
    if (known_.name == efficient_forward) {
      const std::optional<bool> current = causal_mask(value(known_.causal_at));
      return current ? current
                     : causal_mask(value(known_.causal_at - 1));  // PyTorch 2.1 has one input fewer before the mask
    }
    const std::string_view text = value(known_.causal_at);
    return text == "True" || text == "False" ? std::optional(text == "True") : std::nullopt;
  }

  /// Reads the kind of mask: 0 none, 1 and 2 causal. Returns nothing for other values, such as "0.0" or "True", which
  /// belong to another input.
  static std::optional<bool> causal_mask(std::string_view text) {
    return text == "0" || text == "1" || text == "2" ? std::optional(text != "0") : std::nullopt;
  }

  /// Returns whether any input after query, key and value is a tensor: a bias, slopes, or lengths of packed sequences.
  [[nodiscard]] bool has_other_tensors() const {
    return std::any_of(call_.dims.begin() + 3, call_.dims.end(), [](const Dims& dims) { return !dims.empty(); });
  }

  [[nodiscard]] bool has_window() const {
    const std::string_view window = known_.window_at == 0 ? std::string_view{} : value(known_.window_at);
    return !window.empty() && window != "-1";
  }

  [[nodiscard]] Work attention() const {
    const Dims query = shape(known_.first);
    const Dims key = shape(known_.first + 1);
    const Dims value = shape(known_.first + 2);
    for (const Dims* dims : {&query, &key, &value}) {
      if (dims->size() != 4 || !std::all_of(dims->begin(), dims->end(), is_extent)) {
        return unfitted("whose queries, keys and values do not have four dimensions");
      }
    }
    const std::size_t heads = known_.heads_at;
    const std::size_t seq = 3 - heads;
    if (call_.dims.size() > 3 && has_other_tensors()) {
      return unfitted("with a bias, or of packed sequences (varlen)");
    }
    if (query[seq] != key[seq]) {
      return unfitted(query[seq] < key[seq] ? "with fewer queries than keys (decoding), which no fit uses"
                                            : "with more queries than keys, which no fit uses");
    }
    if (query[0] != key[0] || query[3] != key[3] || query[heads] % key[heads] != 0) {
      return unfitted("whose heads do not share keys evenly");
    }
    if (value[3] != key[3]) {
      return unfitted("whose values have another width than queries and keys (MLA), which no fit uses");
    }
    if (value != key) {
      return unfitted("with different numbers of keys and values");
    }
    const std::optional<bool> is_causal = causal();
    if (!is_causal) {
      return unfitted(
          "that do not state whether they are causal: PyTorch records it ('Concrete Inputs') from version 2.1 on");
    }
    const std::optional<DType> dtype = type(known_.first);
    if (!dtype || (*dtype != DType::bf16 && *dtype != DType::fp16)) {
      return untyped();
    }
    if (has_window()) {
      return unfitted("with a sliding window, which no fit uses");
    }
    return AttentionSize{.batch = query[0],
                         .seq = query[seq],
                         .heads = query[heads],
                         .kv_heads = key[heads],
                         .head_dim = query[3],
                         .causal = *is_causal,
                         .dtype = *dtype};
  }

  [[nodiscard]] Work kernel() const {
    const Dims input = shape(known_.first);
    const std::int64_t rows = rows_of(input);
    if (input.empty() || !is_extent(rows) || !is_extent(input.back())) {
      return unfitted("whose sizes are not rows of one width");
    }
    const std::optional<DType> dtype = type(known_.first);
    if (!dtype) {
      return untyped();
    }
    const auto call = [&](const char* op, FrameworkKernel kernel, std::int64_t width, std::int64_t touches) -> Work {
      return KernelCall{
          op, {.kernel = kernel, .rows = rows, .width = width, .traffic = {touches * rows * width * bytes_of(*dtype)}}};
    };
    const std::int64_t width = input.back();
    switch (known_.kind) {
      case Kind::sum:
        return shape(1) == input && (call_.types.empty() || type(1) == dtype)
                   ? call("add", FrameworkKernel::sum, width, 3)
                   : unfitted("that add tensors of two shapes or types");
      case Kind::norm: return call("norm", FrameworkKernel::norm, width, 2);
      case Kind::fused_norm: return call("fused_add_norm", FrameworkKernel::norm, width, 4);
      case Kind::activation: return call("activation", FrameworkKernel::activation, width, 3);
      default: return rotation(rows, width, *dtype);
    }
  }

  /// Returns the work of rotating queries and keys in place.
  [[nodiscard]] Work rotation(std::int64_t rows, std::int64_t width, DType dtype) const {
    const Dims key = shape(known_.first + 1);
    if (key.empty() || rows_of(key) != rows || !is_extent(key.back())) {
      return unfitted("whose sizes are not rows of one width");
    }
    const std::int64_t total_width = width + key.back();
    return KernelCall{"rotation",
                      {.kernel = FrameworkKernel::rotation,
                       .rows = rows,
                       .width = total_width,
                       .traffic = {2 * rows * total_width * bytes_of(dtype)}}};
  }

  const KnownOperator& known_;
  const OperatorCall& call_;
  std::optional<DType> assumed_;
};

}  // namespace

bool is_known_operator(std::string_view name) { return find_operator(name) != nullptr; }

bool runs_kernels(std::string_view name) {
  const KnownOperator* const known = find_operator(name);
  return known != nullptr && (known->kind == Kind::gemm || known->kind == Kind::batched || known->kind == Kind::scaled);
}

Work work_of(const OperatorCall& call, std::optional<DType> assumed) {
  const KnownOperator* const known = find_operator(call.name);
  return known == nullptr ? Work{} : OperatorReader(*known, call, assumed).work();
}

std::optional<DType> tensor_type(std::string_view name) {
  constexpr std::string_view prefix = "c10::";
  name.remove_prefix(name.starts_with(prefix) ? prefix.size() : 0);
  if (name == "BFloat16") {
    return DType::bf16;
  }
  if (name == "Half") {
    return DType::fp16;
  }
  if (name == "float" || name == "Float") {
    return DType::fp32;
  }
  return name.starts_with("Float8_e4m3") || name.starts_with("Float8_e5m2") ? std::optional(DType::fp8) : std::nullopt;
}

int element_bytes(std::string_view name) {
  if (const std::optional<DType> dtype = tensor_type(name)) {
    return static_cast<int>(bytes_of(*dtype));
  }
  constexpr std::array<std::pair<std::string_view, int>, 8> other_types{
      {{"Byte", 1}, {"Char", 1}, {"Bool", 1}, {"Short", 2}, {"Int", 4}, {"Long", 8}, {"Double", 8}, {"double", 8}}};
  const auto* const match =
      std::find_if(other_types.begin(), other_types.end(), [&](const auto& entry) { return entry.first == name; });
  return match == other_types.end() ? 0 : match->second;
}

std::optional<DType> type_in_kernel_name(std::string_view name) {
  // The letters of nvjet are the types of A and B, of the accumulator and of the output: t is bf16, h fp16, q fp8.
  constexpr std::array<std::pair<std::string_view, DType>, 17> words{{{"e4m3", DType::fp8},
                                                                      {"e5m2", DType::fp8},
                                                                      {"nvjet_qq", DType::fp8},
                                                                      {"bf16", DType::bf16},
                                                                      {"BF16", DType::bf16},
                                                                      {"BFloat16", DType::bf16},
                                                                      {"bfloat16", DType::bf16},
                                                                      {"BBS_", DType::bf16},
                                                                      {"_tst_", DType::bf16},
                                                                      {"_hsh_", DType::fp16},
                                                                      {"fp16", DType::fp16},
                                                                      {"f16f16", DType::fp16},
                                                                      {"Half", DType::fp16},
                                                                      {"__half", DType::fp16},
                                                                      {"tf32", DType::fp32},
                                                                      {"hgemm", DType::fp16},
                                                                      {"sgemm", DType::fp32}}};
  const auto* const match = std::find_if(
      words.begin(), words.end(), [&](const auto& word) { return name.find(word.first) != std::string_view::npos; });
  return match == words.end() ? std::nullopt : std::optional(match->second);
}

std::string_view collective_named(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 16> words{
      {{"_allgather_base", "all_gather"},
       {"allgather", "all_gather"},
       {"all_gather", "all_gather"},
       {"_all_gather_base", "all_gather"},
       {"allgather_into_tensor_coalesced", "all_gather"},
       {"all_gather_into_tensor_coalesced", "all_gather"},
       {"_reduce_scatter_base", "reduce_scatter"},
       {"reduce_scatter", "reduce_scatter"},
       {"reduce_scatter_tensor_coalesced", "reduce_scatter"},
       {"allreduce", "all_reduce"},
       {"all_reduce", "all_reduce"},
       {"allreduce_coalesced", "all_reduce"},
       {"all_to_all", "alltoall"},
       {"all_to_allv", "alltoall"},
       {"alltoall", "alltoall"},
       {"alltoall_base", "alltoall"}}};
  const auto* const match =
      std::find_if(words.begin(), words.end(), [&](const auto& entry) { return entry.first == name; });
  return match == words.end() ? std::string_view{} : match->second;
}

bool is_collective_kernel(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("mscclKernel") ||
         name.starts_with("void ncclKernel");
}

namespace {

/// Reads numbers and commas up to the "]" that ends the list, and moves `at` past it.
std::optional<Dims> list_at(std::string_view text, std::size_t& at) {
  constexpr std::size_t limit = 16;
  Dims list;
  while (at < text.size() && list.size() <= limit) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
    } else if (text[at] == ']') {
      ++at;
      return list;
    } else {
      std::int64_t number = 0;
      const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), number);
      if (error != std::errc{}) {
        return std::nullopt;
      }
      list.push_back(number);
      at = static_cast<std::size_t>(end - text.data());
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<std::vector<std::int64_t>>> dims_in_text(std::string_view text) {
  constexpr std::size_t limit = 64;
  std::vector<Dims> dims;
  if (!text.starts_with('[')) {
    return std::nullopt;
  }
  for (std::size_t at = 1; at < text.size() && dims.size() <= limit;) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
    } else if (text[at] == ']') {
      return dims;
    } else if (text[at] != '[') {
      return std::nullopt;
    } else if (std::optional<Dims> list = list_at(text, ++at)) {
      dims.push_back(std::move(*list));
    } else {
      return std::nullopt;
    }
  }
  return std::nullopt;
}

}  // namespace commfuse::calibrate
