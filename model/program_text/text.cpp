// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/text.h"

#include <fmt/format.h>

#include <iterator>

#include "model/program/names.h"
#include "model/program/words.h"
#include "model/sha256.h"

namespace commfuse {

namespace {

using Out = std::back_insert_iterator<std::string>;

/// Returns a double-quoted YAML scalar.
std::string quoted_text(std::string_view text) {
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') {
      result += '\\';
    }
    result += letter;
  }
  return result + "\"";
}

/// Returns a name as a YAML scalar, in quotes if YAML would read it as an empty value.
std::string name_text(const std::string& name) {
  return name == "null" || name == "Null" || name == "NULL" ? quoted_text(name) : name;
}

std::string extent_text(const Program& program, Extent extent) {
  return fmt::format("{}*{}", program.dimensions[position(extent.dimension)].name, extent.blocks);
}

std::string operand_text(const Program& program, Slice operand) {
  std::string text;
  for (const Region& region : program.regions_of(operand)) {
    text += (text.empty() ? "" : "; ") + text_of(program, region);
  }
  return fmt::format("\"{}\"", text);
}

/// Returns the keys of a tensor or a gemm that state which factor is transposed.
template <class Product>
std::string transposes_text(const Product& product) {
  return fmt::format("{}{}", product.transpose_a ? ", transpose_a: true" : "",
                     product.transpose_b ? ", transpose_b: true" : "");
}

std::string tensor_text(const Program& program, const Tensor& tensor) {
  std::string text = fmt::format("{{rows: {}, columns: {}, dtype: {}", extent_text(program, tensor.rows),
                                 extent_text(program, tensor.columns), name_of(tensor.dtype));
  const auto name = [&](TensorId id) { return name_text(program.tensors[position(id)].name); };
  if (tensor.definition == Tensor::Definition::product) {
    text += fmt::format(", product: [{}, {}]{}", name(tensor.a), name(tensor.b), transposes_text(tensor));
  } else if (tensor.definition == Tensor::Definition::function) {
    text += tensor.b == no_tensor
                ? fmt::format(", {}: {}", name_of(tensor.function), name(tensor.a))
                : fmt::format(", {}: [{}, {}]", name_of(tensor.function), name(tensor.a), name(tensor.b));
  } else if (tensor.definition == Tensor::Definition::attention) {
    text += fmt::format(", attention: {}, causal: {}", name(tensor.a), tensor.causal);
  }
  return text + "}";
}

void write_head(const Program& program, Out out) {
  fmt::format_to(out, "schema: {}\nname: {}\nmesh: {{", words::schema, quoted_text(program.name));
  for (const Axis& axis : program.mesh.axes) {
    fmt::format_to(out, "{}{}: {}", &axis == program.mesh.axes.data() ? "" : ", ", name_text(axis.name), axis.extent);
  }
  fmt::format_to(out, "}}\ndimensions:{}\n", program.dimensions.empty() ? " {}" : "");
  for (const Dimension& dimension : program.dimensions) {
    fmt::format_to(out, "  {}: {}\n", name_text(dimension.name), dimension.blocks);
  }
  fmt::format_to(out, "tensors:{}\n", program.tensors.empty() ? " {}" : "");
  for (const Tensor& tensor : program.tensors) {
    fmt::format_to(out, "  {}: {}\n", name_text(tensor.name), tensor_text(program, tensor));
  }
  fmt::format_to(out, "buffers:{}\n", program.buffers.empty() ? " {}" : "");
  for (const Buffer& buffer : program.buffers) {
    fmt::format_to(out, "  {}: {{role: {}, rows: {}, columns: {}, dtype: {}}}\n", name_text(buffer.name),
                   name_of(buffer.role), extent_text(program, buffer.rows), extent_text(program, buffer.columns),
                   name_of(buffer.dtype));
  }
}

void write_contents(const Program& program, const char* key, const std::vector<Content>& contents, Out out) {
  fmt::format_to(out, "{}:{}\n", key, contents.empty() ? " []" : "");
  for (const Content& content : contents) {
    fmt::format_to(out, "  - {{here: \"{}\", tensor: {}, row: \"{}\", column: \"{}\"}}\n",
                   text_of(program, content.here), name_text(program.tensors[position(content.tensor)].name),
                   text_of(program.mesh, content.row), text_of(program.mesh, content.column));
  }
}

/// Returns the keys that a gemm has only for unusual values.
std::string gemm_text(const Program& program, const GemmShape& gemm) {
  return fmt::format(
      "{}{}{}{}{}", transposes_text(gemm), gemm.accumulate ? ", accumulate: true" : "",
      gemm.accumulator == DType::fp32 ? std::string{} : fmt::format(", accumulator: {}", name_of(gemm.accumulator)),
      gemm.kernel_m.blocks == 0 ? std::string{} : fmt::format(", kernel_m: {}", extent_text(program, gemm.kernel_m)),
      gemm.kernel_n.blocks == 0 ? std::string{} : fmt::format(", kernel_n: {}", extent_text(program, gemm.kernel_n)));
}

/// Returns the keys that only this kind of op has.
std::string shape_text(const Program& program, const Op& op) {
  struct Writer {
    const Program& program;
    const Op& op;
    std::string operator()(const GemmShape& gemm) const { return gemm_text(program, gemm); }
    std::string operator()(const AttentionShape& attention) const {
      const auto name = [&](DimensionId id) { return name_text(program.dimensions[position(id)].name); };
      return fmt::format(", batch: {}, head: {}, causal: {}", name(attention.batch), name(attention.head),
                         attention.causal) +
             positions_text();
    }
    std::string operator()(const ElementwiseShape& elementwise) const {
      return fmt::format(", function: {}", name_of(elementwise.function));
    }
    std::string operator()(const ExchangeShape& exchange) const {
      const std::string way = fmt::format(", axis: {}, shift: {}", axis_name(exchange.axis), exchange.shift);
      if (is_credit(exchange)) {
        using words::Credit;
        const Credit halves = !exchange.receives ? Credit::send : !exchange.sends ? Credit::receive : Credit::both;
        return fmt::format("{}, credit: {}", way, words::word(words::credits, halves));
      }
      const std::string protocol =
          exchange.protocol == Protocol::rendezvous
              ? std::string{}
              : fmt::format(", protocol: {}", words::word(words::protocols, exchange.protocol));
      return fmt::format("{}, wire: {}{}", way, name_of(exchange.wire), protocol);
    }
    std::string operator()(const CollectiveShape& collective) const {
      return fmt::format(", kind: {}, axis: {}, wire: {}", name_of(collective.kind), axis_name(collective.axis),
                         name_of(collective.wire));
    }
    [[nodiscard]] std::string positions_text() const {
      std::string list;
      for (const Index& position : program.positions_of(op)) {
        list += fmt::format("{}\"{}\"", list.empty() ? "" : ", ", text_of(program.mesh, position));
      }
      return list.empty() ? "" : fmt::format(", positions: [{}]", list);
    }
    [[nodiscard]] std::string axis_name(std::int8_t axis) const {
      return name_text(program.mesh.axes[static_cast<std::size_t>(axis)].name);
    }
  };
  return std::visit(Writer{program, op}, program.shapes[op.shape]);
}

/// Writes the keys of the operands, by kind: gemm a, b, out; exchange send, receive; other ops in, out.
void write_operands(const Program& program, const Op& op, Out out) {
  const std::span<const Slice> inputs = program.inputs_of(op);
  if (op.kind == OpKind::gemm) {
    fmt::format_to(out, ", a: {}, b: {}", operand_text(program, inputs[0]), operand_text(program, inputs[1]));
  } else if (inputs.size() == 1) {
    fmt::format_to(out, ", {}: {}", op.kind == OpKind::exchange ? "send" : "in", operand_text(program, inputs[0]));
  } else if (!inputs.empty()) {
    std::string list;
    for (const Slice input : inputs) {
      list += (list.empty() ? "" : ", ") + operand_text(program, input);
    }
    fmt::format_to(out, ", in: [{}]", list);
  }
  for (const Slice output : program.outputs_of(op)) {
    fmt::format_to(out, ", {}: {}", op.kind == OpKind::exchange ? "receive" : "out", operand_text(program, output));
  }
}

void write_op(const Program& program, std::size_t id, Out out) {
  const Op& op = program.ops[id];
  fmt::format_to(out, "  - {{id: {}, op: {}, lane: {}", id, name_of(op.kind), name_of(program.lanes[op.lane]));
  if (op.purpose != words::usual_purpose(op.kind)) {
    fmt::format_to(out, ", purpose: {}", name_of(op.purpose));
  }
  if (op.where.relation != Relation::always) {
    fmt::format_to(out, ", where: \"{} {} {}\"", program.mesh.axes[static_cast<std::size_t>(op.where.axis)].name,
                   words::word(words::relations, op.where.relation), op.where.value);
  }
  fmt::format_to(out, "{}", shape_text(program, op));
  write_operands(program, op, out);
  const std::span<const OpId> waits = program.waits_of(op);
  if (!waits.empty()) {
    std::string list;
    for (const OpId wait : waits) {
      list += fmt::format("{}{}", list.empty() ? "" : ", ", position(wait));
    }
    fmt::format_to(out, ", waits: [{}]", list);
  }
  fmt::format_to(out, "}}\n");
}

std::string unfused_text(const Program& program, const Shape& shape) {
  if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
    return fmt::format("{{gemm: {{m: {}, n: {}, k: {}, dtype: {}{}{}}}}}", extent_text(program, gemm->m),
                       extent_text(program, gemm->n), extent_text(program, gemm->k), name_of(gemm->dtype),
                       gemm->out ? fmt::format(", out: {}", name_of(*gemm->out)) : "", gemm_text(program, *gemm));
  }
  if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
    const auto name = [&](DimensionId id) { return name_text(program.dimensions[position(id)].name); };
    return fmt::format(
        "{{attention: {{queries: {}, keys: {}, columns: {}, qkv: {}, batch: {}, head: {}, causal: {}, dtype: {}}}}}",
        extent_text(program, attention->queries), extent_text(program, attention->keys),
        extent_text(program, attention->columns), extent_text(program, attention->qkv), name(attention->batch),
        name(attention->head), attention->causal, name_of(attention->dtype));
  }
  const auto* elementwise = std::get_if<ElementwiseShape>(&shape);
  if (elementwise == nullptr) {
    throw std::logic_error("communication is not unfused work");
  }
  return fmt::format("{{{}: {{rows: {}, columns: {}, dtype: {}{}}}}}", name_of(elementwise->function),
                     extent_text(program, elementwise->rows), extent_text(program, elementwise->columns),
                     name_of(elementwise->dtype),
                     elementwise->inputs == 1 ? "" : fmt::format(", inputs: {}", elementwise->inputs));
}

}  // namespace

std::string to_text(const Program& program) {
  std::string text;
  const Out out = std::back_inserter(text);
  write_head(program, out);
  write_contents(program, "initial", program.initial, out);
  write_contents(program, "final", program.final, out);
  fmt::format_to(out, "unfused:{}\n", program.unfused.empty() ? " []" : "");
  for (const Shape& shape : program.unfused) {
    fmt::format_to(out, "  - {}\n", unfused_text(program, shape));
  }
  fmt::format_to(out, "ops:{}\n", program.ops.empty() ? " []" : "");
  for (std::size_t id = 0; id < program.ops.size(); ++id) {
    write_op(program, id, out);
  }
  return text;
}

std::string digest_of(const Program& program) { return sha256_of(to_text(program)); }

}  // namespace commfuse
