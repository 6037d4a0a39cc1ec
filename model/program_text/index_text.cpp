// SPDX-License-Identifier: Apache-2.0
#include "model/program_text/index_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <tuple>

#include "model/program/names.h"
#include "model/program/words.h"
#include "model/program_text/text_cursor.h"
#include "model/text/suggest.h"

namespace commfuse::text {

namespace {

constexpr std::size_t longest_name = 100;

std::size_t expect_axis(Cursor& cursor, const Mesh& mesh) {
  const std::size_t begin = cursor.at();
  const std::optional<std::string_view> name = cursor.name();
  if (!name) {
    cursor.fail_here("an axis or a number", "write an index as in (tp+1)%4 or 2*tp");
  }
  Names axes;
  for (std::size_t axis = 0; axis < mesh.axes.size(); ++axis) {
    if (mesh.axes[axis].name == *name) {
      return axis;
    }
    axes.emplace(mesh.axes[axis].name, static_cast<std::int32_t>(axis));
  }
  throw TextError{begin, fmt::format("unknown axis {}; {}", in_quotes(*name), remedy_for_name(*name, axes, "axes"))};
}

/// index  = [sign] item {sign item}
/// item   = number | [number '*'] term
/// term   = axis ['%' extent] | '(' sum ')' ['%' extent] | '(' term ')'      the parentheses at most twice
/// sum    = axis '%' extent | [sign] (axis | number) {sign (axis | number)}  with one axis
class IndexReader {
 public:
  IndexReader(Cursor& cursor, const Mesh& mesh) : cursor_(cursor), mesh_(mesh) {}

  Index read() {
    const std::size_t begin = cursor_.at();
    int sign = take_sign().value_or(1);
    std::int64_t constant = 0;
    std::optional<int> next;
    do {
      constant += item(next.value_or(sign));
      if (std::abs(constant) > max_distance) {
        throw TextError{begin, fmt::format("index too large; the limit is {}", max_distance)};
      }
      next = take_sign();
    } while (next);
    index_.constant = static_cast<std::int32_t>(constant);
    return index_;
  }

 private:
  struct Term {
    std::size_t axis = 0;
    std::int64_t offset = 0;
    int sign = 1;
    bool wrapped = false;  // by a '%'
  };

  /// Returns the sign of the next item; "+:" is not a sign.
  std::optional<int> take_sign() {
    if (!cursor_.next_is("+:") && cursor_.take("+")) {
      return 1;
    }
    return cursor_.take("-") ? std::optional<int>{-1} : std::nullopt;
  }

  /// Reads one item and returns what it adds to the constant.
  std::int64_t item(int sign) {
    const std::size_t begin = cursor_.at();
    std::int64_t scale = 1;
    if (const std::optional<std::int64_t> number = cursor_.number()) {
      if (!cursor_.take("*")) {
        return sign * *number;
      }
      scale = *number;
    }
    const Term read = term(1);
    const std::int32_t extent = mesh_.axes[read.axis].extent;
    IndexTerm& kept = index_.terms[read.axis];
    if (kept.scale != 0) {
      throw TextError{
          begin, fmt::format("axis '{0}' appears twice; an index has one term with '{0}'", mesh_.axes[read.axis].name)};
    }
    if (scale == 0 || scale * (extent - 1) > max_distance) {
      throw TextError{begin, fmt::format("a factor of {} is not allowed here; write a factor from 1 to {}", scale,
                                         max_distance / std::max(extent - 1, 1))};
    }
    kept = {sign * static_cast<std::int32_t>(scale),
            static_cast<std::int32_t>((read.offset % extent + extent) % extent), read.sign};
    return 0;
  }

  Term term(int level) {
    Term read;
    const bool inside = cursor_.take("(");
    if (inside) {
      read = level < 2 && cursor_.next_is("(") ? term(level + 1) : sum();
      cursor_.expect(")", "close the parenthesis");
    } else {
      read.axis = expect_axis(cursor_, mesh_);
    }
    if (!read.wrapped) {
      wrap(read);
    }
    return read;
  }

  Term sum() {
    Term read;
    bool has_axis = false;
    std::optional<int> sign = take_sign();
    const bool plain = !sign;
    do {
      if (const std::optional<std::int64_t> number = cursor_.number()) {
        read.offset += sign.value_or(1) * *number;
      } else if (has_axis) {
        cursor_.fail_here("a number", "write one axis between parentheses, as in (tp+1)%4");
      } else {
        read.axis = expect_axis(cursor_, mesh_);
        read.sign = sign.value_or(1);
        has_axis = true;
        if (plain && read.offset == 0 && cursor_.next_is("%")) {
          wrap(read);
          return read;
        }
      }
      sign = take_sign();
    } while (sign);
    if (!has_axis) {
      cursor_.fail_here("an axis", "write a plain number without parentheses");
    }
    return read;
  }

  /// Reads '%' and the extent, which may be omitted only after a plain coordinate.
  void wrap(Term& term) {
    const Axis& axis = mesh_.axes[term.axis];
    if (!cursor_.take("%")) {
      if (term.offset != 0 || term.sign < 0) {
        cursor_.fail_here("'%'", fmt::format("wrap the coordinate, as in ({}+1)%{}", axis.name, axis.extent));
      }
      return;
    }
    const std::size_t begin = cursor_.at();
    if (cursor_.number() != axis.extent) {
      throw TextError{begin,
                      fmt::format("axis '{}' has {} coordinates; write %{}", axis.name, axis.extent, axis.extent)};
    }
    term.wrapped = true;
  }

  Cursor& cursor_;
  const Mesh& mesh_;
  Index index_;
};

/// Returns "block rows 3 to 4", or "block row 3" if there is only one.
std::string blocks_in_words(std::string_view direction, std::int64_t first, std::int64_t count) {
  return count == 1 ? fmt::format("block {} {}", direction.substr(0, direction.size() - 1), first)
                    : fmt::format("block {} {} to {}", direction, first, first + count - 1);
}

/// Reads a run of block rows or block columns of a buffer: "2*tp +: 2". `direction` is "rows" or "columns".
std::pair<Index, std::int32_t> read_span(Cursor& cursor, const Surroundings& around, const Buffer& buffer,
                                         std::string_view direction) {
  const std::size_t begin = cursor.at();
  const std::int32_t blocks = direction == "rows" ? buffer.rows.blocks : buffer.columns.blocks;
  const Index first = IndexReader(cursor, around.mesh).read();
  std::int64_t count = 1;
  if (cursor.take("+:")) {
    const std::size_t at = cursor.at();
    const std::optional<std::int64_t> number = cursor.number();
    if (!number) {
      cursor.fail_here(fmt::format("a number of {}", direction), "write the number of blocks, as in +: 2");
    }
    if (*number < 1 || *number > blocks) {
      const std::string remedy = blocks == 1 ? "1" : fmt::format("a number from 1 to {}", blocks);
      throw TextError{at, fmt::format("'{}' has {} block {}, not {}; write {}", buffer.name, blocks,
                                      direction.substr(0, direction.size() - (blocks == 1 ? 1 : 0)), *number, remedy)};
    }
    count = *number;
  }
  const bool constant = first.terms == Index{}.terms;
  if (constant && (first.constant < 0 || first.constant + count > blocks)) {
    throw TextError{begin, fmt::format("'{}' has {}{}, but this region is at {}; stay inside the buffer", buffer.name,
                                       blocks == 1 ? "only " : "", blocks_in_words(direction, 0, blocks),
                                       blocks_in_words(direction, first.constant, count))};
  }
  return {first, static_cast<std::int32_t>(count)};
}

Region read_region(Cursor& cursor, const Surroundings& around) {
  const std::size_t begin = cursor.at();
  const std::optional<std::string_view> name = cursor.name();
  if (!name) {
    cursor.fail_here("a buffer", "write a region as in x, x[tp] or x[0 +: 2, 1]");
  }
  const auto known_buffer = around.names.find(*name);
  if (known_buffer == around.names.end()) {
    throw TextError{
        begin, fmt::format("unknown buffer {}; {}", in_quotes(*name), remedy_for_name(*name, around.names, "buffers"))};
  }
  const Buffer& buffer = around.buffers[static_cast<std::size_t>(known_buffer->second)];
  Region region{BufferId{known_buffer->second}, 0, 0, buffer.rows.blocks, buffer.columns.blocks};
  if (cursor.take("[")) {
    std::tie(region.row, region.rows) = read_span(cursor, around, buffer, "rows");
    if (cursor.take(",")) {
      std::tie(region.column, region.columns) = read_span(cursor, around, buffer, "columns");
    }
    cursor.expect("]", "write a region as in x[tp] or x[0 +: 2, 1]");
  }
  return region;
}

/// Throws unless `region` can be stacked under `first`.
void require_stackable(const Region& first, const Region& region, std::size_t at, const Surroundings& around) {
  const Buffer& above = around.buffers[position(first.buffer)];
  const Buffer& below = around.buffers[position(region.buffer)];
  if (below.rows.dimension != above.rows.dimension || below.columns.dimension != above.columns.dimension) {
    throw TextError{
        at, fmt::format("'{}' and '{}' are cut from different dimensions; stack only regions of the same dimensions",
                        above.name, below.name)};
  }
  if (region.columns != first.columns) {
    throw TextError{at,
                    fmt::format("this region is {} block {} wide, but the region before it is {} wide; make them equal",
                                region.columns, region.columns == 1 ? "column" : "columns", first.columns)};
  }
}

}  // namespace

std::string remedy_for_name(std::string_view wrong, const Names& names, std::string_view what) {
  constexpr std::size_t max_listed = 12;
  std::vector<std::string_view> known;
  for (const auto& [name, id] : names) {
    known.push_back(name);
  }
  const std::string_view word = wrong.substr(0, longest_name);
  if (known.empty()) {
    return fmt::format("declare it under '{}'", what);
  }
  if (known.size() <= max_listed) {
    return remedy_for(word, known, what);
  }
  const std::optional<std::string> meant = nearest(word, known);
  return meant ? fmt::format("did you mean '{}'?", *meant)
               : fmt::format("use one of the {} names under '{}'", known.size(), what);
}

bool is_name(std::string_view text) {
  return !text.empty() && text.size() <= longest_name && begins_name(text.front()) &&
         std::all_of(text.begin(), text.end(), continues_name);
}

Extent parse_extent(std::string_view text, const Names& dimensions) {
  Cursor cursor(text);
  const std::size_t begin = cursor.at();
  const std::optional<std::string_view> name = cursor.name();
  if (!name) {
    cursor.fail_here("a dimension", "write an extent as in tokens*4");
  }
  const auto dimension = dimensions.find(*name);
  if (dimension == dimensions.end()) {
    throw TextError{begin, fmt::format("unknown dimension {}; {}", in_quotes(*name),
                                       remedy_for_name(*name, dimensions, "dimensions"))};
  }
  cursor.expect("*", fmt::format("write the number of blocks, as in {}*4", *name));
  const std::size_t at = cursor.at();
  const std::optional<std::int64_t> blocks = cursor.number();
  if (!blocks || *blocks < 1 || *blocks > max_blocks) {
    throw TextError{at, fmt::format("this is not a number of blocks; write a number from 1 to {}", max_blocks)};
  }
  cursor.expect_end(fmt::format("write an extent as in {}*4", *name));
  return {DimensionId{dimension->second}, static_cast<std::int32_t>(*blocks)};
}

Index parse_index(std::string_view text, const Mesh& mesh) {
  Cursor cursor(text);
  const Index index = IndexReader(cursor, mesh).read();
  cursor.expect_end("write an index as in (tp+1)%4 or 2*tp");
  return index;
}

Predicate parse_predicate(std::string_view text, const Mesh& mesh) {
  Cursor cursor(text);
  const std::size_t axis = expect_axis(cursor, mesh);
  const std::size_t begin = cursor.at();
  const auto relation = std::find_if(words::relations.begin(), words::relations.end(),
                                     [&](const auto& pair) { return cursor.take(pair.second); });
  if (relation == words::relations.end()) {
    cursor.fail_here("a relation", "write =, !=, < or >=");
  }
  const std::size_t at = cursor.at();
  if (cursor.next_is("=") || cursor.next_is("<") || cursor.next_is(">")) {
    throw TextError{
        begin, fmt::format("unknown relation {}; write =, !=, < or >=", in_quotes(text.substr(begin, at + 1 - begin)))};
  }
  const std::optional<std::int64_t> value = cursor.number();
  const bool compares_ends = relation->first == Relation::less || relation->first == Relation::at_least;
  const std::int32_t limit = mesh.axes[axis].extent - (compares_ends ? 0 : 1);
  if (!value || *value > limit) {
    throw TextError{at, fmt::format("axis '{}' cannot be compared with this; write a number from 0 to {}",
                                    mesh.axes[axis].name, limit)};
  }
  cursor.expect_end("write one comparison, as in tp < 3");
  return {relation->first, static_cast<std::int8_t>(axis), static_cast<std::int32_t>(*value)};
}

Lane parse_lane(std::string_view text) {
  const std::size_t digits = std::min(text.find_first_of("0123456789"), text.size());
  const std::optional<LaneKind> kind = words::kind(words::lanes, text.substr(0, digits));
  if (!kind) {
    Names known;
    for (const auto& [value, name] : words::lanes) {
      known.emplace(name, 0);
    }
    throw TextError{0, fmt::format("unknown lane {}; {}", in_quotes(text),
                                   remedy_for_name(text.substr(0, digits), known, "lanes"))};
  }
  Lane lane{*kind, 0};
  if (digits < text.size()) {
    Cursor cursor(text.substr(digits));
    const std::optional<std::int64_t> number = cursor.number();
    if (!cursor.ended() || text[digits] == '0' || *number > max_lane_number) {
      throw TextError{digits,
                      fmt::format("{} is not a lane number; write {} or {}1 to {}{}", in_quotes(text.substr(digits)),
                                  name_of(*kind), name_of(*kind), name_of(*kind), max_lane_number)};
    }
    lane.number = static_cast<std::uint16_t>(*number);
  }
  return lane;
}

Region parse_region(std::string_view text, const Surroundings& around) {
  Cursor cursor(text);
  const Region region = read_region(cursor, around);
  cursor.expect_end("write one region, as in x, x[tp] or x[0 +: 2, 1]");
  return region;
}

Operand parse_operand(std::string_view text, const Surroundings& around) {
  Cursor cursor(text);
  Operand operand;
  std::int64_t rows = 0;
  do {
    const std::size_t begin = cursor.at();
    operand.push_back(read_region(cursor, around));
    require_stackable(operand.front(), operand.back(), begin, around);
    rows += operand.back().rows;
    if (rows > max_blocks) {
      throw TextError{begin, fmt::format("the stack has more than {} block rows; use fewer rows", max_blocks)};
    }
  } while (cursor.take(";"));
  cursor.expect_end("separate stacked regions by ';'");
  return operand;
}

}  // namespace commfuse::text
