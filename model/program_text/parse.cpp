// SPDX-License-Identifier: Apache-2.0
// parse_program: reads the declarations of a schedule, then its ops. ProgramBuilder aborts on mistakes, so everything
// is checked here first.
#include <fmt/format.h>

#include <array>
#include <optional>
#include <set>
#include <utility>

#include "model/check.h"
#include "model/program/builder.h"
#include "model/program/names.h"
#include "model/program/words.h"
#include "model/program_text/fields.h"
#include "model/program_text/index_text.h"
#include "model/program_text/parse_ops.h"
#include "model/program_text/text.h"
#include "model/program_text/yaml_tree.h"
#include "model/proof/effort.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"

namespace commfuse::text {

namespace {

constexpr std::size_t max_dimensions = 1000;
constexpr std::int64_t max_cells = std::int64_t{1} << 24;  // total blocks of all buffers of a rank
constexpr std::size_t longest_title = 200;
constexpr std::string_view earlier = "tensors above";

constexpr std::array<std::string_view, 10> top_keys{"schema",  "name",    "mesh",  "dimensions", "tensors",
                                                    "buffers", "initial", "final", "unfused",    "ops"};

void require_all_keys(const Fields& top, Mistakes& mistakes) {
  constexpr std::array<std::string_view, 10> examples{words::schema, "\"my ring\"", "{tp: 4}", "{tokens: 4}", "{}",
                                                      "{}",          "[]",          "[]",      "[]",          "[]"};
  for (std::size_t i = 0; i < top_keys.size(); ++i) {
    mistakes.attempt([&] { static_cast<void>(top.at(top_keys[i], examples[i])); });
  }
  mistakes.report();
}

void require_schema(const Node& node) {
  if (scalar_of(node) != words::schema) {
    throw Wrong{node.place,
                fmt::format("this version cannot read schema {}; write {}", in_quotes(node.scalar), words::schema)};
  }
}

std::string title_of(const Node& node) {
  const std::string& title = scalar_of(node);
  if (has_control_character(title)) {
    throw Wrong{node.place, "a name is one line of plain text; remove control characters"};
  }
  if (!is_utf8(title)) {
    throw Wrong{node.place, "a name is not UTF-8; save the file as UTF-8"};
  }
  if (title.empty() || title.size() > longest_title) {
    throw Wrong{node.place, fmt::format("a name has 1 to {} bytes, not {}; write a {} one", longest_title, title.size(),
                                        title.empty() ? "longer" : "shorter")};
  }
  return title;
}

Mesh mesh_of(const Node& node, Mistakes& mistakes) {
  require_map(node);
  if (node.keys.empty() || node.keys.size() > max_axes) {
    throw Wrong{node.place, fmt::format("a mesh has 1 to {} axes, not {}; write them as in {{node: 2, tp: 8}}",
                                        max_axes, node.keys.size())};
  }
  Mesh mesh;
  std::int64_t ranks = 1;
  for (std::size_t i = 0; i < node.keys.size(); ++i) {
    mistakes.attempt([&] {
      mesh.axes.push_back({name_of(node.keys[i]), integer_of(node.items[i], 1, max_ranks)});
      ranks *= mesh.axes.back().extent;
    });
  }
  if (ranks > max_ranks) {
    throw Wrong{node.place, fmt::format("the mesh has {} ranks; choose at most {}", ranks, max_ranks)};
  }
  return mesh;
}

/// Returns bf16 if the key is absent.
DType dtype_or_default(const Fields& fields) {
  const Node* node = fields.find("dtype");
  return node == nullptr ? DType::bf16 : dtype_of(*node);
}

/// Returns the function of that name, if it can define tensors.
std::optional<Function> defining_function(std::string_view word) {
  const std::optional<Function> function = words::kind(words::functions, word);
  return function == Function::zero ? std::nullopt : function;
}

/// Reads everything between the mesh and the ops.
class DeclarationReader {
 public:
  DeclarationReader(const Mesh& mesh, ProgramBuilder& builder, Mistakes& mistakes)
      : mesh_(mesh), builder_(builder), mistakes_(mistakes) {}

  [[nodiscard]] Surroundings around() const { return {mesh_, buffers_, declared_buffers_}; }
  [[nodiscard]] std::span<const Dimension> dimensions() const { return declared_dimensions_; }

  void read_dimensions(const Node& node) {
    require_map(node);
    if (node.keys.size() > max_dimensions) {
      throw Wrong{node.place,
                  fmt::format("{} dimensions are too many; declare at most {}", node.keys.size(), max_dimensions)};
    }
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      mistakes_.attempt([&] {
        const Dimension read{name_of(node.keys[i]), integer_of(node.items[i], 1, max_blocks)};
        dimensions_.emplace(read.name, static_cast<std::int32_t>(position(builder_.dimension(read.name, read.blocks))));
        declared_dimensions_.push_back(read);
      });
    }
  }

  void read_tensors(const Node& node) {
    require_map(node);
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const Node& key = node.keys[i];
      if (!mistakes_.attempt([&] { read_tensor(name_of(key), node.items[i]); })) {
        broken_.insert(key.scalar);
      }
    }
  }

  void read_buffers(const Node& node) {
    require_map(node);
    std::int64_t cells = 0;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      mistakes_.attempt([&] {
        const Buffer buffer = buffer_of(name_of(node.keys[i]), node.items[i]);
        cells += std::int64_t{buffer.rows.blocks} * buffer.columns.blocks;
        if (cells > max_cells) {
          throw Wrong{node.keys[i].place,
                      fmt::format("this buffer brings a rank to {} blocks; the limit is {}", cells, max_cells)};
        }
        const BufferId id = builder_.buffer(buffer.name, buffer.role, buffer.rows, buffer.columns, buffer.dtype);
        buffers_.emplace(buffer.name, static_cast<std::int32_t>(position(id)));
        declared_buffers_.push_back(buffer);
      });
    }
  }

  void read_contents(const Node& node, bool initial) {
    require_list(node);
    for (const Node& item : node.items) {
      mistakes_.attempt([&] {
        const Content content = content_of(item);
        initial ? builder_.initially(content.here, content.tensor, content.row, content.column)
                : builder_.finally(content.here, content.tensor, content.row, content.column);
      });
    }
  }

  void read_unfused(const Node& node) {
    require_list(node);
    for (const Node& item : node.items) {
      mistakes_.attempt([&] { builder_.unfused(unfused_of(item)); });
    }
  }

 private:
  Extent extent(const Node& node) const {
    return text_of(node, [&](std::string_view text) { return parse_extent(text, dimensions_); });
  }

  TensorId tensor(const Node& node, std::string_view what = "tensors") const {
    if (node.kind == Node::Kind::scalar && broken_.contains(node.scalar)) {
      throw Wrong{};
    }
    return TensorId{named(node, tensors_, what)};
  }

  void read_tensor(const std::string& name, const Node& node) {
    constexpr std::array<std::string_view, 14> keys{"rows",      "columns", "dtype",       "product",    "add",
                                                    "copy",      "swiglu",  "gelu",        "norm",       "residual",
                                                    "attention", "causal",  "transpose_a", "transpose_b"};
    const Fields fields(node, keys, mistakes_);
    const Node* definition = nullptr;
    std::optional<Function> function;
    for (std::size_t i = 0; i < node.keys.size(); ++i) {
      const std::optional<Function> defining = defining_function(node.keys[i].scalar);
      if (!defining && node.keys[i].scalar != "product" && node.keys[i].scalar != "attention") {
        continue;
      }
      if (definition != nullptr) {
        throw Wrong{
            node.keys[i].place,
            "a tensor needs exactly one definition; keep one of product, attention, add, copy, swiglu, gelu, norm, "
            "residual"};
      }
      definition = &node.items[i];
      function = defining;
    }
    require_use_of_flags(fields, definition);
    TensorId id = no_tensor;
    if (definition == nullptr) {
      const Extent rows = extent(fields.at("rows", "tokens*4"));
      const Extent columns = extent(fields.at("columns", "hidden*1"));
      id = builder_.input_tensor(name, rows, columns, dtype_or_default(fields));
    } else if (definition == fields.find("attention")) {
      id = attention_of(name, fields);
      require_agreement(fields, builder_.tensor(id));
    } else {
      id = function ? function_of(name, *function, *definition) : product_of(name, *definition, fields);
      require_agreement(fields, builder_.tensor(id));
    }
    tensors_.emplace(name, static_cast<std::int32_t>(id));
  }

  /// Refuses flags of products and attentions in other definitions.
  static void require_use_of_flags(const Fields& fields, const Node* definition) {
    const auto is_defined_by = [&](std::string_view key) {
      return definition != nullptr && definition == fields.find(key);
    };
    for (const std::string_view key : {"transpose_a", "transpose_b"}) {
      if (fields.find(key) != nullptr && !is_defined_by("product")) {
        throw Wrong{fields.find(key)->place, fmt::format("only a product can transpose its factors; remove {}", key)};
      }
    }
    const Node* causal = fields.find("causal");
    if (causal != nullptr && !is_defined_by("attention")) {
      throw Wrong{causal->place, "only attention can be causal; remove causal"};
    }
  }

  TensorId product_of(const std::string& name, const Node& node, const Fields& fields) {
    require_list(node);
    if (node.items.size() != 2) {
      throw Wrong{node.place,
                  fmt::format("a product has two factors, not {}; write product: [x, w]", node.items.size())};
    }
    const TensorId a = tensor(node.items[0], earlier);
    const TensorId b = tensor(node.items[1], earlier);
    ProductSpec spec{.transpose_a = flag_of(fields, "transpose_a"), .transpose_b = flag_of(fields, "transpose_b")};
    const Tensor& left = builder_.tensor(a);
    const Tensor& right = builder_.tensor(b);
    const Extent contracted = spec.transpose_a ? left.rows : left.columns;
    const Extent matched = spec.transpose_b ? right.columns : right.rows;
    if (contracted != matched) {
      throw Wrong{node.items[1].place,
                  fmt::format("'{}' has {} {}, but '{}' has {} {}; make them equal", right.name,
                              spec.transpose_b ? "columns" : "rows", in_words(matched, dimensions()), left.name,
                              spec.transpose_a ? "rows" : "columns", in_words(contracted, dimensions()))};
    }
    // GEMMs accumulate in fp32, so any product may stay in fp32. A product of fp8 factors may have any dtype.
    const bool is_narrow = left.dtype == DType::fp8 || right.dtype == DType::fp8;
    const Node* dtype = fields.find("dtype");
    if (dtype != nullptr && (is_narrow || dtype_of(*dtype) == DType::fp32)) {
      spec.dtype = dtype_of(*dtype);
    }
    return builder_.product_tensor(name, a, b, spec);
  }

  TensorId attention_of(const std::string& name, const Fields& fields) {
    const Node& node = *fields.find("attention");
    const TensorId operand = tensor(node, earlier);
    const Node& written = fields.at("columns", "attention*4");
    const Extent columns = extent(written);
    if (columns.blocks != builder_.tensor(operand).columns.blocks) {
      throw Wrong{written.place, fmt::format("the columns of attention are {}, but the columns of its input '{}' are "
                                             "{}; make the numbers of blocks equal",
                                             in_words(columns, dimensions()), builder_.tensor(operand).name,
                                             in_words(builder_.tensor(operand).columns, dimensions()))};
    }
    return builder_.attention_tensor(name, operand, columns, boolean_of(fields.at("causal", "true")));
  }

  TensorId residual_of(const std::string& name, const Node& node) {
    require_list(node);
    if (node.items.size() != 2) {
      throw Wrong{node.place,
                  fmt::format("a residual adds two tensors, not {}; write residual: [x, y]", node.items.size())};
    }
    const TensorId a = tensor(node.items[0], earlier);
    const TensorId b = tensor(node.items[1], earlier);
    if (builder_.tensor(a).rows != builder_.tensor(b).rows ||
        builder_.tensor(a).columns != builder_.tensor(b).columns) {
      throw Wrong{node.items[1].place, fmt::format("'{}' and '{}' have different extents; make them equal",
                                                   builder_.tensor(a).name, builder_.tensor(b).name)};
    }
    return builder_.function_tensor(name, Function::residual, a, b);
  }

  TensorId function_of(const std::string& name, Function function, const Node& node) {
    if (function == Function::residual) {
      return residual_of(name, node);
    }
    const TensorId of = tensor(node, earlier);
    if (function == Function::norm && builder_.tensor(of).columns.blocks != 1) {
      throw Wrong{node.place,
                  fmt::format("a norm takes whole rows, but '{}' has columns {}; cut them into one block",
                              builder_.tensor(of).name, in_words(builder_.tensor(of).columns, dimensions()))};
    }
    if (function == Function::swiglu && builder_.tensor(of).columns.blocks % 2 != 0) {
      throw Wrong{node.place,
                  fmt::format("swiglu pairs column blocks, but '{}' has {}; give it an even number",
                              builder_.tensor(of).name, in_words(builder_.tensor(of).columns, dimensions()))};
    }
    return builder_.function_tensor(name, function, of);
  }

  /// The size and dtype of a product or function may be omitted; stated ones must agree with the definition.
  void require_agreement(const Fields& fields, const Tensor& defined) const {
    const auto agree = [&](std::string_view key, bool same, const std::string& must) {
      if (!same) {
        throw Wrong{fields.find(key)->place,
                    fmt::format("the tensor's definition gives {0} {1}; write {0}: {1} or remove {0}", key, must)};
      }
    };
    const Node* rows = fields.find("rows");
    const Node* columns = fields.find("columns");
    const Node* dtype = fields.find("dtype");
    agree("rows", rows == nullptr || extent(*rows) == defined.rows, in_words(defined.rows, dimensions()));
    agree("columns", columns == nullptr || extent(*columns) == defined.columns,
          in_words(defined.columns, dimensions()));
    agree("dtype", dtype == nullptr || dtype_of(*dtype) == defined.dtype,
          std::string{commfuse::name_of(defined.dtype)});
  }

  Buffer buffer_of(const std::string& name, const Node& node) const {
    constexpr std::array<std::string_view, 4> keys{"role", "rows", "columns", "dtype"};
    const Fields fields(node, keys, mistakes_);
    const Node* role = fields.find("role");
    return {name, role == nullptr ? BufferRole::scratch : word_of(*role, words::roles, "roles"),
            extent(fields.at("rows", "tokens*4")), extent(fields.at("columns", "hidden*1")), dtype_or_default(fields)};
  }

  Content content_of(const Node& node) const {
    constexpr std::array<std::string_view, 4> keys{"here", "tensor", "row", "column"};
    const Fields fields(node, keys, mistakes_);
    const Node& region_node = fields.at("here", "\"x\"");
    const Region region = text_of(region_node, [&](std::string_view text) { return parse_region(text, around()); });
    const TensorId id = tensor(fields.at("tensor", "x"));
    const Tensor& of = builder_.tensor(id);
    const Buffer& buffer = declared_buffers_[position(region.buffer)];
    if (buffer.rows.dimension != of.rows.dimension || buffer.columns.dimension != of.columns.dimension) {
      throw Wrong{
          region_node.place,
          fmt::format("'{}' and tensor '{}' are cut from different dimensions; use the same dimensions for both",
                      buffer.name, of.name)};
    }
    return {region, id, inside(fields, "row", of.rows.blocks, region.rows, of.name),
            inside(fields, "column", of.columns.blocks, region.columns, of.name)};
  }

  /// Reads an index; 0 if it is omitted. Checks that `count` is at most `blocks` and, for an index that is equal on all
  /// ranks, that `count` blocks from it are inside the tensor.
  Index inside(const Fields& fields, std::string_view key, std::int32_t blocks, std::int32_t count,
               const std::string& name) const {
    const Node* node = fields.find(key);
    const Index index =
        node == nullptr ? Index{} : text_of(*node, [&](std::string_view text) { return parse_index(text, mesh_); });
    const bool constant = index.terms == Index{}.terms;
    if (count > blocks || (constant && (index.constant < 0 || index.constant + count > blocks))) {
      throw Wrong{
          node == nullptr ? fields.node().place : node->place,
          fmt::format(
              "tensor '{}' has block {}s 0 to {}, but this content begins at {} and takes {}; stay inside the tensor",
              name, key, blocks - 1, commfuse::text_of(mesh_, index), count)};
    }
    return index;
  }

  Shape unfused_of(const Node& node) const {
    constexpr std::array<std::string_view, 8> kinds{"gemm",   "attention", "add",  "copy",
                                                    "swiglu", "gelu",      "norm", "residual"};
    require_map(node);
    if (node.keys.size() != 1) {
      throw Wrong{
          node.place,
          fmt::format("an item of unfused work has exactly one kind, not {}; write gemm: {{...}} or swiglu: {{...}}",
                      node.keys.size())};
    }
    const Node& key = node.keys.front();
    const std::optional<Function> function = defining_function(key.scalar);
    if (key.scalar == "attention") {
      return unfused_attention(node.items.front());
    }
    if (!function && key.scalar != "gemm") {
      throw unknown_word(key, kinds, "kinds of unfused work");
    }
    return function ? Shape{unfused_function(*function, node.items.front())} : Shape{unfused_gemm(node.items.front())};
  }

  AttentionShape unfused_attention(const Node& node) const {
    constexpr std::array<std::string_view, 8> keys{"queries", "keys", "columns", "qkv",
                                                   "batch",   "head", "causal",  "dtype"};
    const Fields fields(node, keys, mistakes_);
    const auto dimension = [&](std::string_view key) {
      return one_block_of(fields.at(key, key), dimensions_, dimensions());
    };
    return {.queries = extent(fields.at("queries", "tokens*4")),
            .keys = extent(fields.at("keys", "tokens*4")),
            .columns = extent(fields.at("columns", "attention*1")),
            .qkv = extent(fields.at("qkv", "qkv*1")),
            .batch = dimension("batch"),
            .head = dimension("head"),
            .causal = boolean_of(fields.at("causal", "true")),
            .dtype = dtype_or_default(fields)};
  }

  GemmShape unfused_gemm(const Node& node) const {
    constexpr std::array<std::string_view, 9> keys{"m",          "n",           "k",           "dtype",      "out",
                                                   "accumulate", "accumulator", "transpose_a", "transpose_b"};
    const Fields fields(node, keys, mistakes_);
    GemmShape shape{.m = extent(fields.at("m", "tokens*4")),
                    .n = extent(fields.at("n", "ffn*1")),
                    .k = extent(fields.at("k", "hidden*1")),
                    .accumulate = flag_of(fields, "accumulate"),
                    .dtype = dtype_or_default(fields),
                    .transpose_a = flag_of(fields, "transpose_a"),
                    .transpose_b = flag_of(fields, "transpose_b")};
    const Node* out = fields.find("out");
    if (out != nullptr && dtype_of(*out) != shape.dtype) {
      shape.out = dtype_of(*out);
    }
    if (const Node* accumulator = fields.find("accumulator")) {
      shape.accumulator = dtype_of(*accumulator);
    }
    return shape;
  }

  ElementwiseShape unfused_function(Function function, const Node& node) const {
    constexpr std::array<std::string_view, 4> keys{"rows", "columns", "dtype", "inputs"};
    const Fields fields(node, keys, mistakes_);
    const Node* inputs = fields.find("inputs");
    const auto least = static_cast<std::int32_t>(inputs_of(function));
    return {
        .function = function,
        .inputs = inputs == nullptr ? least : integer_of(*inputs, least, function == Function::add ? max_ranks : least),
        .rows = extent(fields.at("rows", "tokens*4")),
        .columns = extent(fields.at("columns", "ffn*1")),
        .dtype = dtype_or_default(fields)};
  }

  const Mesh& mesh_;
  ProgramBuilder& builder_;
  Mistakes& mistakes_;
  Names dimensions_, tensors_, buffers_;
  std::vector<Dimension> declared_dimensions_;
  std::vector<Buffer> declared_buffers_;
  std::set<std::string> broken_;  // tensors whose mistakes were already reported
};

Program read_program(const Node& root, Mistakes& mistakes) {
  const Fields top(root, top_keys, mistakes);
  const auto section = [&](std::string_view key) -> const Node& { return top.at(key, "{}"); };
  require_all_keys(top, mistakes);
  std::string title;
  Mesh mesh;
  mistakes.attempt([&] { require_schema(section("schema")); });
  mistakes.attempt([&] { title = title_of(section("name")); });
  mistakes.attempt([&] { mesh = mesh_of(section("mesh"), mistakes); });
  mistakes.report();

  ProgramBuilder builder(std::move(title), mesh);
  DeclarationReader declarations(mesh, builder, mistakes);
  mistakes.attempt([&] { declarations.read_dimensions(section("dimensions")); });
  mistakes.report();
  mistakes.attempt([&] { declarations.read_tensors(section("tensors")); });
  mistakes.attempt([&] { declarations.read_buffers(section("buffers")); });
  mistakes.report();
  mistakes.attempt([&] { declarations.read_contents(section("initial"), true); });
  mistakes.attempt([&] { declarations.read_contents(section("final"), false); });
  mistakes.attempt([&] { declarations.read_unfused(section("unfused")); });
  mistakes.attempt(
      [&] { read_ops(section("ops"), declarations.around(), declarations.dimensions(), builder, mistakes); });
  mistakes.report();
  Program program = std::move(builder).build();
  if (effort_of(program, Ranks::first) > max_effort) {
    throw Wrong{
        section("ops").place,
        fmt::format(
            "the ops of a rank access more than {} blocks; cut the dimensions into fewer blocks, or use fewer ops",
            max_effort)};
  }
  return program;
}

}  // namespace

}  // namespace commfuse::text

namespace commfuse {

Program parse_program(const std::string& text, const std::string& path) {
  const text::Node root = text::read_yaml(text, path);
  text::Mistakes mistakes(path);
  std::optional<Program> program;
  mistakes.attempt([&] { program = text::read_program(root, mistakes); });
  mistakes.report();
  check(program.has_value(), "a string without mistakes gives a program");
  return *std::move(program);
}

}  // namespace commfuse
