// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/panels.h"

#include <algorithm>
#include <array>

#include "model/check.h"

namespace commfuse::validate {

namespace {

Address row_address(const Panel& panel, std::int64_t row) {
  return panel.at + static_cast<Address>(row * panel.stride * bytes_of(panel.dtype));
}

Panel rows_of_panel(const Panel& panel, std::int64_t first, std::int64_t count) {
  Panel part = panel;
  part.at = row_address(panel, first);
  part.rows = count;
  return part;
}

Address end_of(const Panel& panel) {
  return row_address(panel, panel.rows - 1) + static_cast<Address>(panel.columns * bytes_of(panel.dtype));
}

bool continues(const Panel& above, const Panel& below) {
  return above.columns == below.columns && above.stride == below.stride && above.dtype == below.dtype &&
         row_address(above, above.rows) == below.at;
}

}  // namespace

std::int64_t rows_of(const Stack& stack) {
  std::int64_t rows = 0;
  for (const Panel& panel : stack) {
    rows += panel.rows;
  }
  return rows;
}

Stack slice_of(const Stack& stack, std::int64_t first, std::int64_t count) {
  Stack slice;
  for (const Panel& panel : stack) {
    const std::int64_t from = std::max<std::int64_t>(first, 0);
    const std::int64_t to = std::min(first + count, panel.rows);
    if (from < to) {
      slice.push_back(rows_of_panel(panel, from, to - from));
    }
    first -= panel.rows;
  }
  check(rows_of(slice) == count, "a slice lies inside its stack");
  return slice;
}

Stack part_of(const Stack& stack, std::size_t index, std::size_t parts) {
  const std::int64_t rows = rows_of(stack);
  check(rows % static_cast<std::int64_t>(parts) == 0, "a collective cuts its rows into equal parts");
  const std::int64_t height = rows / static_cast<std::int64_t>(parts);
  return slice_of(stack, static_cast<std::int64_t>(index) * height, height);
}

Stack joined(const Stack& stack) {
  Stack result;
  for (const Panel& panel : stack) {
    if (!result.empty() && continues(result.back(), panel)) {
      result.back().rows += panel.rows;
    } else {
      result.push_back(panel);
    }
  }
  return result;
}

std::vector<std::vector<Panel>> rows_in_step(std::span<const Stack> stacks) {
  std::vector<std::vector<Panel>> pieces;
  std::vector<std::size_t> at(stacks.size(), 0);
  std::vector<std::int64_t> used(stacks.size(), 0);  // used rows of the panel at `at`
  const std::int64_t rows = rows_of(stacks.front());
  for (std::int64_t first = 0; first < rows;) {
    std::int64_t height = rows - first;
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      check(at[i] < stacks[i].size(), "the operands of an op have the same number of rows");
      height = std::min(height, stacks[i][at[i]].rows - used[i]);
    }
    pieces.emplace_back();
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      pieces.back().push_back(rows_of_panel(stacks[i][at[i]], used[i], height));
      used[i] += height;
      if (used[i] == stacks[i][at[i]].rows) {
        ++at[i];
        used[i] = 0;
      }
    }
    first += height;
  }
  return pieces;
}

bool overlap(const Panel& a, const Panel& b) { return a.at < end_of(b) && b.at < end_of(a); }

Layout::Layout(const Program& program, const Sizes& sizes, Address base)
    : program_(program), sizes_(sizes), base_(base) {
  for (const Buffer& buffer : program.buffers) {
    first_.push_back(stride_);
    const std::int64_t bytes = sizes.elements(buffer.rows) * sizes.elements(buffer.columns) * bytes_of(buffer.dtype);
    stride_ += rounded_up_to_alignment(bytes);
  }
}

Panel Layout::panel(std::size_t place, BufferId id) const {
  const Buffer& buffer = program_.buffers[position(id)];
  const std::int64_t columns = sizes_.elements(buffer.columns);
  return {.at = base_ + static_cast<Address>(static_cast<std::int64_t>(place) * stride_ + first_[position(id)]),
          .rows = sizes_.elements(buffer.rows),
          .columns = columns,
          .stride = columns,
          .dtype = buffer.dtype};
}

Panel Layout::panel(std::size_t place, const Rectangle& rectangle) const {
  const Buffer& buffer = program_.buffers[position(rectangle.buffer)];
  const std::int64_t height = sizes_.block[position(buffer.rows.dimension)];
  const std::int64_t width = sizes_.block[position(buffer.columns.dimension)];
  check(rectangle.row >= 0 && rectangle.row + rectangle.rows <= buffer.rows.blocks && rectangle.column >= 0 &&
            rectangle.column + rectangle.columns <= buffer.columns.blocks,
        "a region lies inside its buffer");
  Panel result = rows_of_panel(panel(place, rectangle.buffer), rectangle.row * height, rectangle.rows * height);
  result.at += static_cast<Address>(rectangle.column * width * bytes_of(buffer.dtype));
  result.columns = rectangle.columns * width;
  return result;
}

Stack Layout::stack(std::size_t place, std::span<const Rectangle> operand) const {
  Stack result;
  for (const Rectangle& rectangle : operand) {
    result.push_back(panel(place, rectangle));
  }
  return result;
}

}  // namespace commfuse::validate
