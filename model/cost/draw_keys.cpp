// SPDX-License-Identifier: Apache-2.0
#include "model/cost/draw_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

namespace commfuse {

namespace {

/// Properties that the ops of one unfused op (a work) share at all sizes.
class Signature {
 public:
  explicit Signature(const Program& program) : program_(program) {}

  [[nodiscard]] std::string of(const Shape& shape) const {
    return std::visit([&](const auto& kind) { return of(kind); }, shape);
  }

 private:
  [[nodiscard]] const std::string& name(Extent extent) const {
    return program_.dimensions[position(extent.dimension)].name;
  }
  [[nodiscard]] std::string of(const GemmShape& gemm) const {
    return fmt::format("gemm {} {} {} {} {}", name(gemm.m), name(gemm.n), name(gemm.k), gemm.transpose_a,
                       gemm.transpose_b);
  }
  [[nodiscard]] std::string of(const AttentionShape& attention) const {
    return fmt::format("attention {} {}", name(attention.queries), name(attention.columns));
  }
  [[nodiscard]] std::string of(const ElementwiseShape& elementwise) const {
    return fmt::format("elementwise {} {} {}", static_cast<int>(elementwise.function), name(elementwise.rows),
                       name(elementwise.columns));
  }
  [[nodiscard]] std::string of(const ExchangeShape&) const { return "exchange"; }
  [[nodiscard]] std::string of(const CollectiveShape&) const { return "collective"; }

  const Program& program_;
};

/// Works of equal signature, and the buffers that distinguish them, each in order of first use.
struct EqualWorks {
  std::vector<std::uint32_t> works;
  std::vector<BufferId> marks;
};

class Keys {
 public:
  explicit Keys(const Program& program)
      : program_(program),
        works_(static_cast<std::uint32_t>(program.unfused.size())),
        blocks_(program.shapes.size(), 0) {
    const Signature signature(program);
    std::map<std::string, std::size_t> known;
    const auto index_of = [&](const Shape& shape) -> std::size_t {
      const auto [entry, added] = known.try_emplace(signature.of(shape), equal_works_.size());
      if (added) {
        equal_works_.emplace_back();
      }
      return entry->second;
    };
    for (std::uint32_t work = 0; work < works_; ++work) {
      equal_works_[index_of(program.unfused[work])].works.push_back(work);
    }
    for (const Shape& shape : program.shapes) {
      of_shape_.push_back(index_of(shape));
    }
  }

  DrawKey of(const Op& op) {
    const std::uint32_t work = op.purpose == Purpose::essential ? work_of(op) : 0;
    const std::uint32_t purpose = 4 * work + static_cast<std::uint32_t>(draw_of(op.purpose));
    std::uint32_t& steps = steps_[purpose];
    if (continues_kernel(op)) {
      return {.step = steps - 1, .purpose = purpose, .can_stall = false};
    }
    return {.step = steps++, .purpose = purpose};
  }

 private:
  static Draw draw_of(Purpose purpose) {
    switch (purpose) {
      case Purpose::essential: return Draw::essential;
      case Purpose::local: return Draw::local;
      case Purpose::communication: return Draw::communication;
    }
    return Draw::essential;
  }

  std::uint32_t work_of(const Op& op) {
    EqualWorks& equal = equal_works_[of_shape_[op.shape]];
    if (equal.works.empty()) {  // a schedule file may omit its unfused work
      equal.works.push_back(works_++);
    }
    const BufferId mark = mark_of(op);
    const auto known_mark = std::find(equal.marks.begin(), equal.marks.end(), mark);
    const auto mark_index = static_cast<std::size_t>(known_mark - equal.marks.begin());
    if (known_mark == equal.marks.end()) {
      equal.marks.push_back(mark);
    }
    return equal.works[std::min(mark_index, equal.works.size() - 1)];
  }

  [[nodiscard]] BufferId mark_of(const Op& op) const {
    const auto first_buffer = [&](Slice operand) { return program_.regions_of(operand).front().buffer; };
    for (const Slice input : program_.inputs_of(op)) {
      if (program_.buffers[position(first_buffer(input))].role == BufferRole::weight) {
        return first_buffer(input);
      }
    }
    return first_buffer(program_.outputs_of(op).front());
  }

  /// Returns true if the op is a later part of a kernel; parts follow one another.
  bool continues_kernel(const Op& op) {
    const auto* gemm = std::get_if<GemmShape>(&program_.shapes[op.shape]);
    if (gemm == nullptr || !is_part_of_kernel(*gemm)) {
      return false;
    }
    const KernelCut cut = kernel_cut_of(*gemm);
    std::int32_t& blocks = blocks_[op.shape];
    const bool continues = blocks > 0;
    blocks = (blocks + cut.part) % cut.whole;
    return continues;
  }

  const Program& program_;
  std::uint32_t works_;                           // number of works so far
  std::vector<EqualWorks> equal_works_;           // one entry per signature
  std::vector<std::size_t> of_shape_;             // by shape: index into equal_works_
  std::map<std::uint32_t, std::uint32_t> steps_;  // by purpose
  std::vector<std::int32_t> blocks_;              // by shape: blocks of its kernel in the parts so far
};

}  // namespace

std::vector<DrawKey> draw_keys(const Program& program) {
  Keys keys(program);
  std::vector<DrawKey> result;
  result.reserve(program.ops.size());
  for (const Op& op : program.ops) {
    result.push_back(keys.of(op));
  }
  return result;
}

}  // namespace commfuse
