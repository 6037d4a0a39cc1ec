// SPDX-License-Identifier: Apache-2.0
// Sums, elementwise functions and attention; GEMMs are in meaning_products.cpp.
#include "model/proof/meaning.h"

#include <fmt/format.h>

#include <algorithm>

namespace commfuse {

Meaning::Meaning(const Program& program, const Symmetry* symmetry, Sums& sums, Findings& findings)
    : program_(program), symmetry_(symmetry), sums_(sums), findings_(findings) {
  for (const Tensor& tensor : program.tensors) {
    complete_.push_back(sums.range(0, contributions(program, tensor)));
  }
}

CellValue Meaning::united(Where where, CellValue value) {
  const Sums::Union joined = sums_.unite(parts_);
  if (joined.twice) {
    return wrong(where, [&] {
      const Tensor& tensor = program_.tensors[position(value.tensor)];
      const std::string block = words({value.tensor, value.row, value.column, complete_[position(value.tensor)]});
      return tensor.definition == Tensor::Definition::product
                 ? fmt::format("counts contribution {} to {} twice", *joined.twice, block)
                 : fmt::format("counts {} twice", block);
    });
  }
  value.sum = joined.sum;
  return value;
}

CellValue Meaning::sum(Where where, std::span<const CellValue> values) {
  parts_.clear();
  const auto first =
      std::find_if(values.begin(), values.end(), [](const CellValue& value) { return value != zero_value; });
  for (auto value = first; value != values.end(); ++value) {
    if (is_wrong(*value)) {
      return wrong_value;
    }
    if (*value == zero_value) {
      continue;
    }
    if (value->tensor == no_tensor || value->tensor != first->tensor || value->row != first->row ||
        value->column != first->column) {
      return wrong(where, [&] { return fmt::format("adds {} to {}", words(*value), words(*first)); });
    }
    parts_.push_back(value->sum);
  }
  return first == values.end() ? zero_value : united(where, *first);
}

CellValues Meaning::reduced(Where where, const std::vector<CellValues>& member_values) {
  CellValues total;
  std::vector<CellValue> column(member_values.size());
  for (std::size_t i = 0; i < member_values[0].size(); ++i) {
    for (std::size_t member = 0; member < member_values.size(); ++member) {
      column[member] = member_values[member][i];
    }
    total.push_back(sum(where, column));
  }
  return total;
}

CellValues Meaning::map(Where where, const ElementwiseShape& shape, const std::vector<CellValues>& inputs) {
  const std::size_t width = shape.function == Function::swiglu ? 2 : 1;
  const auto count = static_cast<std::size_t>(shape.rows.blocks) * static_cast<std::size_t>(shape.columns.blocks);
  CellValues out;
  std::vector<CellValue> column;
  out.reserve(count);
  column.reserve(inputs.size());
  for (std::size_t i = 0; i < count; ++i) {
    switch (shape.function) {
      case Function::copy: out.push_back(inputs[0][i]); break;
      case Function::add:
        column.clear();
        for (const CellValues& input : inputs) {
          column.push_back(input[i]);
        }
        out.push_back(sum(where, column));
        break;
      case Function::swiglu:  // a row of the input is twice as wide: block i of the output needs blocks 2i and 2i + 1
      case Function::gelu:
      case Function::norm:
        out.push_back(apply(where, shape.function, std::span(inputs[0]).subspan(width * i, width)));
        break;
      case Function::residual: out.push_back(add_residual(where, inputs[0][i], inputs[1][i])); break;
      case Function::zero: out.push_back(zero_value); break;
    }
  }
  return out;
}

CellValue Meaning::apply(Where where, Function function, std::span<const CellValue> inputs) {
  for (const CellValue& value : inputs) {
    if (is_wrong(value)) {
      return wrong_value;
    }
    if (!complete(value)) {
      return wrong(where, [&] {
        return fmt::format("applies a nonlinear function to {}, which is not complete", words(value));
      });
    }
  }
  const auto width = static_cast<std::int32_t>(inputs.size());
  const bool pair = width == 1 || (inputs[1].tensor == inputs[0].tensor && inputs[1].row == inputs[0].row &&
                                   inputs[1].column == inputs[0].column + 1 && inputs[0].column % 2 == 0);
  if (!pair) {
    return wrong(where,
                 [&] { return fmt::format("pairs {} with {} as gate and up", words(inputs[0]), words(inputs[1])); });
  }
  for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
    const Tensor& tensor = program_.tensors[i];
    if (tensor.definition == Tensor::Definition::function && tensor.a == inputs[0].tensor &&
        tensor.function == function) {
      return {TensorId{static_cast<std::int32_t>(i)}, inputs[0].row, inputs[0].column / width, complete_[i]};
    }
  }
  return wrong(where, [&] {
    return fmt::format("applies to {} a function that the operation does not apply", words(inputs[0]));
  });
}

CellValue Meaning::add_residual(Where where, const CellValue& a, const CellValue& b) {
  if (is_wrong(a) || is_wrong(b)) {
    return wrong_value;
  }
  for (const CellValue& value : {a, b}) {
    if (!complete(value)) {
      return wrong(where, [&] { return fmt::format("adds {}, which is not complete", words(value)); });
    }
  }
  for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
    const Tensor& tensor = program_.tensors[i];
    const bool adds_both =
        (tensor.a == a.tensor && tensor.b == b.tensor) || (tensor.a == b.tensor && tensor.b == a.tensor);
    if (tensor.definition == Tensor::Definition::function && tensor.function == Function::residual && adds_both &&
        a.row == b.row && a.column == b.column) {
      return {TensorId{static_cast<std::int32_t>(i)}, a.row, a.column, complete_[i]};
    }
  }
  return wrong(
      where, [&] { return fmt::format("adds {} to {}, which the unfused operation does not do", words(b), words(a)); });
}

CellValues Meaning::attend(Where where, const AttentionShape& shape, std::span<const std::int32_t> rows,
                           const CellValues& queries, const CellValues& keys) {
  const auto width = static_cast<std::size_t>(shape.qkv.blocks);
  CellValues out;
  out.reserve(queries.size());
  for (const std::int32_t row : rows) {
    for (std::size_t column = 0; column < width; ++column) {
      std::vector<CellValue> seen;
      for (std::size_t key = column; key < keys.size(); key += width) {
        seen.push_back(keys[key]);
      }
      out.push_back(attended(where, queries[out.size()], row, seen, shape.causal));
    }
  }
  return out;
}

CellValue Meaning::attended(Where where, const CellValue& query, std::int32_t row, std::vector<CellValue>& keys,
                            bool causal) {
  const bool sees_every_key = !causal || rows_move(query.tensor);  // if rows move, other ranks' queries see other keys
  if (!sees_every_key) {
    keys.resize(static_cast<std::size_t>(row) + 1);
  }
  if (is_wrong(query) || std::any_of(keys.begin(), keys.end(), is_wrong)) {
    return wrong_value;
  }
  if (!complete(query)) {
    return wrong(where, [&] { return fmt::format("attends with {}, which is not complete", words(query)); });
  }
  if (query.row != row) {
    return wrong(where, [&] { return fmt::format("attends with {} as row {}", words(query), row); });
  }
  const auto rows = static_cast<std::size_t>(program_.tensors[position(query.tensor)].rows.blocks);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const CellValue wanted{query.tensor, static_cast<std::int32_t>(i), query.column, query.sum};
    if (i >= rows || keys[i] != wanted) {
      return wrong(where,
                   [&] { return fmt::format("attends with {} to {} as key row {}", words(query), words(keys[i]), i); });
    }
  }
  if (sees_every_key && keys.size() < rows) {
    return wrong(where, [&] { return fmt::format("attends with {} without key rows {}", words(query), keys.size()); });
  }
  for (std::size_t i = 0; i < program_.tensors.size(); ++i) {
    const Tensor& tensor = program_.tensors[i];
    if (tensor.definition == Tensor::Definition::attention && tensor.a == query.tensor && tensor.causal == causal) {
      return {TensorId{static_cast<std::int32_t>(i)}, query.row, query.column, complete_[i]};
    }
  }
  return wrong(where,
               [&] { return fmt::format("attends with {}, which the unfused operation does not do", words(query)); });
}

}  // namespace commfuse
