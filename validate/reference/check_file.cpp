// SPDX-License-Identifier: Apache-2.0
#include "validate/reference/check_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>

#include "model/config_error.h"
#include "model/program/matching.h"
#include "validate/reference/attention.h"
#include "validate/reference/check_point.h"
#include "validate/reference/rounding.h"
#include "validate/reference/verify.h"

namespace commfuse::validate {

namespace {

constexpr double max_elements = 0x1p24;    // in all tensors, and in the buffers of all ranks
constexpr double max_multiplied = 0x1p32;  // by all ranks together

[[noreturn]] void refuse(const ScheduleFile& file, const std::string& sentence) {
  throw ConfigError(fmt::format("{}: {}", file.name(), sentence));
}

std::optional<DType> wire_of(const Shape& shape) {
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    return exchange->wire;
  }
  const auto* collective = std::get_if<CollectiveShape>(&shape);
  return collective == nullptr ? std::nullopt : std::optional(collective->wire);
}

/// Refuses dtypes that the error bound does not cover. The bound covers roundings to fp32, to fp8 on wires, and to one
/// other dtype, and assumes inputs as stored in the tensors.
void require_dtypes(const ScheduleFile& file) {
  std::set<DType> used;
  for (const Tensor& tensor : file.program.tensors) {
    used.insert(tensor.dtype);
  }
  for (const Buffer& buffer : file.program.buffers) {
    used.insert(buffer.dtype);
  }
  for (const DType dtype : used) {
    if (!can_store(dtype)) {
      refuse(file, fmt::format("the reference does not store {}; choose bf16, fp16 or fp32", name_of(dtype)));
    }
  }
  for (const Shape& shape : file.program.shapes) {
    const std::optional<DType> wire = wire_of(shape);
    if (wire && *wire != DType::fp8) {  // the bound covers fp8 wires in addition to another dtype
      used.insert(*wire);
    }
  }
  used.erase(DType::fp32);
  if (used.size() > 1) {
    refuse(file, fmt::format(
                     "it rounds to {} and {}, but no error bound covers both; use only one of them in addition to fp32",
                     name_of(*used.begin()), name_of(*used.rbegin())));
  }
  for (const Content& content : file.program.initial) {
    const Tensor& tensor = file.program.tensors[position(content.tensor)];
    const Buffer& buffer = file.program.buffers[position(content.here.buffer)];
    if (roundoff_of(buffer.dtype).relative > roundoff_of(tensor.dtype).relative) {
      refuse(file, fmt::format("tensor {} is {}, but buffer {} holds it in {}; give both the same dtype", tensor.name,
                               name_of(tensor.dtype), buffer.name, name_of(buffer.dtype)));
    }
  }
}

void require_whole_attention(const ScheduleFile& file) {
  const Program& program = file.program;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const auto inputs = program.inputs_of(program.ops[op]);
    if (program.ops[op].kind == OpKind::attention &&
        !std::ranges::equal(program.regions_of(inputs[0]), program.regions_of(inputs[1]))) {
      refuse(file, fmt::format("{} has only some rows as queries, but the reference supports only all rows; give it "
                               "the same rows as queries and keys",
                               op_in_words(program, OpId{static_cast<std::int32_t>(op)})));
    }
  }
  for (const Tensor& tensor : program.tensors) {
    const auto makes_it = [&](const Shape& shape) {
      const auto* attention = std::get_if<AttentionShape>(&shape);
      return attention != nullptr && attention->columns.dimension == tensor.columns.dimension &&
             attention->causal == tensor.causal;
    };
    if (tensor.definition == Tensor::Definition::attention && std::ranges::none_of(program.unfused, makes_it)) {
      refuse(file, fmt::format("tensor {} is attention, but 'unfused' does not list it; add it there", tensor.name));
    }
  }
}

double elements_of(const Sizes& sizes, Extent rows, Extent columns) {
  return static_cast<double>(sizes.elements(rows)) * static_cast<double>(sizes.elements(columns));
}

void require_small(const ScheduleFile& file, const Sizes& sizes) {
  const Program& program = file.program;
  double tensors = 0.0;
  double multiplied = 0.0;
  for (const Tensor& tensor : program.tensors) {
    tensors += elements_of(sizes, tensor.rows, tensor.columns);
    if (tensor.definition == Tensor::Definition::product) {
      multiplied += elements_of(sizes, tensor.rows, tensor.columns) *
                    static_cast<double>(sizes.elements(contraction_of(tensor, program.tensors[position(tensor.a)])));
    }
  }
  double buffers = 0.0;
  for (const Buffer& buffer : program.buffers) {
    buffers += program.mesh.ranks() * elements_of(sizes, buffer.rows, buffer.columns);
  }
  for (const Op& op : program.ops) {
    if (const auto* gemm = std::get_if<GemmShape>(&program.shapes[op.shape])) {
      multiplied +=
          program.mesh.ranks() * elements_of(sizes, gemm->m, gemm->n) * static_cast<double>(sizes.elements(gemm->k));
    }
  }
  if (tensors > max_elements || buffers > max_elements || multiplied > max_multiplied) {
    refuse(file, "its matrices are too large to be run element by element; cut its dimensions into fewer blocks");
  }
}

/// Returns the dimensions that GEMMs sum over, except those that hold heads or sequences.
std::set<DimensionId> contracted(const Program& program) {
  std::set<DimensionId> dimensions;
  for (const Tensor& tensor : program.tensors) {
    if (tensor.definition == Tensor::Definition::product) {
      dimensions.insert(contraction_of(tensor, program.tensors[position(tensor.a)]).dimension);
    }
  }
  for (const Shape& shape : program.shapes) {
    if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
      dimensions.erase(attention->columns.dimension);
      dimensions.erase(attention->qkv.dimension);
      dimensions.erase(attention->queries.dimension);
      dimensions.erase(attention->keys.dimension);
    }
  }
  return dimensions;
}

/// Halves the longest of the contracted blocks. Returns false when there is nothing to halve.
bool shorten(const Program& program, Sizes& sizes) {
  std::int64_t* longest = nullptr;
  for (const DimensionId id : contracted(program)) {
    std::int64_t& block = sizes.block[position(id)];
    longest = longest == nullptr || block > *longest ? &block : longest;
  }
  if (longest == nullptr || *longest == 1) {
    return false;
  }
  *longest /= 2;
  return true;
}

}  // namespace

void require_runnable(const ScheduleFile& file) {
  if (file.program.mesh.ranks() > max_ranks) {
    refuse(file, fmt::format("it has {} ranks, but the reference supports at most {}; make the mesh smaller",
                             file.program.mesh.ranks(), max_ranks));
  }
  if (file.program.final.empty()) {
    refuse(file,
           "it has no final contents, so there is nothing to compare; list under 'final' what every rank holds at the "
           "end");
  }
  require_dtypes(file);
  require_whole_attention(file);
  for (const Sizes& sizes : checked_sizes(file.program)) {
    require_small(file, sizes);
  }
}

std::vector<Sizes> sizes_for(const ScheduleFile& file, std::uint64_t seed) {
  std::vector<Sizes> candidates = checked_sizes(file.program);
  for (Sizes& sizes : candidates) {
    for (const auto* shapes : {&file.program.shapes, &file.program.unfused}) {
      for (const Shape& shape : *shapes) {
        const auto* attention = std::get_if<AttentionShape>(&shape);
        if (attention != nullptr && !holds_whole_heads(sizes, *attention)) {
          refuse(file,
                 "one dimension has two sizes in its attention; use separate dimensions for q, k and v, the output, "
                 "the head and the batch");
        }
      }
    }
    while (!integers_stay_exact(file.program, sizes, seed)) {
      if (!shorten(file.program, sizes)) {
        refuse(file,
               "the sums of its GEMMs exceed the integers that its dtype represents exactly; choose fp32, or cut the "
               "contracted dimensions into fewer blocks");
      }
    }
  }
  return candidates;
}

}  // namespace commfuse::validate
