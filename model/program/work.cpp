// SPDX-License-Identifier: Apache-2.0
#include "model/program/work.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <vector>

#include "model/program/names.h"

namespace commfuse {

namespace {

/// Numbers the tensors that the final contents need, inputs first, and describes each by the tensors before it.
class Work {
 public:
  explicit Work(const Program& program)
      : program_(program), number_(program.tensors.size(), -1), depth_(program.tensors.size(), 0) {
    for (std::size_t id = 0; id < program.tensors.size(); ++id) {
      for (const TensorId of : operands(program.tensors[id])) {
        depth_[id] = std::max(depth_[id], depth_[position(of)] + 1);
      }
    }
    for (const Content& content : program.final) {
      visit(content.tensor);
    }
  }

  std::string text() && { return text_ + shares("begin", program_.initial) + shares("end", program_.final); }

 private:
  /// Returns the tensors of a definition; in a sum the deeper one comes first, so that x + f(x) equals f(x) + x.
  [[nodiscard]] std::vector<TensorId> operands(const Tensor& tensor) const {
    std::vector<TensorId> operands_of_tensor;
    for (const TensorId of : {tensor.a, tensor.b}) {
      if (of != no_tensor) {
        operands_of_tensor.push_back(of);
      }
    }
    const bool sum = tensor.definition == Tensor::Definition::function;
    if (sum && operands_of_tensor.size() == 2 &&
        depth_[position(operands_of_tensor[0])] < depth_[position(operands_of_tensor[1])]) {
      std::swap(operands_of_tensor[0], operands_of_tensor[1]);
    }
    return operands_of_tensor;
  }

  /// Uses an explicit stack, because a file may define a tensor a hundred thousand steps deep.
  void visit(TensorId last) {
    std::vector<TensorId> open{last};
    while (!open.empty()) {
      const TensorId id = open.back();
      const std::vector<TensorId> operand_ids = operands(program_.tensors[position(id)]);
      const auto next = std::find_if(operand_ids.begin(), operand_ids.end(),
                                     [&](TensorId tensor) { return number_[position(tensor)] < 0; });
      if (number_[position(id)] < 0 && next != operand_ids.end()) {
        open.push_back(*next);
        continue;
      }
      if (number_[position(id)] < 0) {
        describe(id, operand_ids);
      }
      open.pop_back();
    }
  }

  void describe(TensorId id, const std::vector<TensorId>& operand_ids) {
    const Tensor& tensor = program_.tensors[position(id)];
    std::string description = definition(tensor);
    for (const TensorId operand : operand_ids) {
      description += fmt::format(" {}", number_[position(operand)]);
    }
    const auto [known, added] = numbers_.try_emplace(description, count_);
    const bool input =
        tensor.definition == Tensor::Definition::input;  // two inputs stay separate even if their definitions are equal
    number_[position(id)] = input || added ? count_ : known->second;
    if (number_[position(id)] == count_) {
      text_ += fmt::format("{}: {}\n", count_++, description);
    }
  }

  [[nodiscard]] std::string definition(const Tensor& tensor) const {
    switch (tensor.definition) {
      case Tensor::Definition::input: return fmt::format("{} x {}", whole(tensor.rows), whole(tensor.columns));
      case Tensor::Definition::product: return "product";
      case Tensor::Definition::function: return std::string{name_of(tensor.function)};
      case Tensor::Definition::attention:
        return fmt::format("{} attention {}", tensor.causal ? "causal" : "full", whole(tensor.columns));
    }
    return {};
  }

  static std::string fraction(std::int64_t part, std::int64_t whole) {
    const std::int64_t common = std::gcd(part, whole);
    return fmt::format("{}/{}", part / common, whole / common);
  }
  [[nodiscard]] std::string whole(Extent extent) const {
    const Dimension& dimension = program_.dimensions[position(extent.dimension)];
    return fmt::format("{}*{}", dimension.name, fraction(extent.blocks, dimension.blocks));
  }

  /// Returns how much of every numbered tensor a rank holds. A content has the same size on all ranks.
  [[nodiscard]] std::string shares(const char* when, const std::vector<Content>& contents) const {
    std::map<int, std::int64_t> blocks_held;  // by number, in blocks
    std::map<int, const Tensor*> tensors;
    for (const Content& content : contents) {
      const int number = number_[position(content.tensor)];
      if (number >= 0) {
        blocks_held[number] += std::int64_t{content.here.rows} * content.here.columns;
        tensors.emplace(number, &program_.tensors[position(content.tensor)]);
      }
    }
    std::string text;
    for (const auto& [number, blocks] : blocks_held) {
      const Tensor& tensor = *tensors.at(number);
      text += fmt::format("{} with {} of {}\n", when,
                          fraction(blocks, std::int64_t{tensor.rows.blocks} * tensor.columns.blocks), number);
    }
    return text;
  }

  const Program& program_;
  std::vector<int> number_;  // by tensor; -1: not needed, or not yet numbered
  std::vector<int> depth_;   // by tensor; 0 for inputs
  std::map<std::string, int> numbers_;
  int count_ = 0;
  std::string text_;
};

}  // namespace

std::string work_of(const Program& program) { return Work(program).text(); }

std::vector<DType> product_dtypes(const Program& program) {
  std::vector<DType> dtypes;
  for (const DType dtype : all_dtypes) {
    const auto multiplies = [&](const Shape& shape) {
      const auto* gemm = std::get_if<GemmShape>(&shape);
      const auto* attention = std::get_if<AttentionShape>(&shape);
      return (gemm != nullptr && gemm->dtype == dtype) || (attention != nullptr && attention->dtype == dtype);
    };
    if (std::any_of(program.shapes.begin(), program.shapes.end(), multiplies) ||
        std::any_of(program.unfused.begin(), program.unfused.end(), multiplies)) {
      dtypes.push_back(dtype);
    }
  }
  return dtypes;
}

bool reduces_all(const Program& program) {
  if (program.final.empty()) {
    return false;
  }
  const auto is_whole = [&](const Extent& extent) {
    return extent.blocks == program.dimensions[position(extent.dimension)].blocks;
  };
  const bool has_partial_sums = std::ranges::any_of(program.shapes, [&](const Shape& shape) {
    const auto* gemm = std::get_if<GemmShape>(&shape);
    return gemm != nullptr && !gemm->transpose_a && !is_whole(gemm->k);
  });
  const Buffer& result = program.buffers[position(program.final.front().here.buffer)];
  return has_partial_sums && is_whole(result.rows) && is_whole(result.columns);
}

}  // namespace commfuse
