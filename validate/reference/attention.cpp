// SPDX-License-Identifier: Apache-2.0
//
// This is why attention_spread() returns an upper bound. A hat marks an element of the disturbed matrix, and e is the
// bound on how far that element has moved. A score moves by at most
//   d = max over visible j of sum (|q| e_k + e_q |k| + e_q e_k) / sqrt(head),
// so every weight p_j of the softmax stays within p_j [exp(-2d), exp(2d)], and with |v^_j| <= |v_j| + e_vj
//   |sum p^_j v^_j - sum p_j v_j| <= exp(2d) sum p_j e_vj + (exp(2d) - 1) sum p_j |v_j|,
// and by no more than max |v_j| + max (|v_j| + e_vj), because both are means of visible v.
#include "validate/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/check.h"
#include "model/math/functions.h"
#include "validate/values/weighted_rows.h"

namespace commfuse::validate {

namespace {

/// Returns the row numbers 0 to count - 1, for queries that are all rows of the matrix.
std::vector<std::int64_t> all_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Columns of every `step`-th row of a matrix. Each column is contiguous, so loops over keys read consecutive values.
class Columns {
 public:
  Columns(const Matrix<double>& matrix, std::int64_t row, std::int64_t step, std::int64_t column, std::int64_t count)
      : rows_(row < matrix.rows() ? static_cast<std::size_t>((matrix.rows() - row + step - 1) / step) : 0) {
    values_.reserve(rows_ * static_cast<std::size_t>(count));
    for (std::int64_t c = column; c < column + count; ++c) {
      for (std::int64_t r = row; r < matrix.rows(); r += step) {
        values_.push_back(matrix.at(r, c));
      }
    }
  }

  [[nodiscard]] std::size_t rows() const { return rows_; }
  [[nodiscard]] const double* operator[](std::int64_t column) const {
    return values_.data() + static_cast<std::size_t>(column) * rows_;
  }
  /// Returns the columns as rows of a matrix, one row per column.
  [[nodiscard]] Rows<const double> transposed() const {
    const auto length = static_cast<std::int64_t>(rows_);
    return {values_.data(), rows_ == 0 ? 0 : std::ssize(values_) / length, length, length};
  }

 private:
  std::size_t rows_;
  std::vector<double> values_;
};

/// Returns columns [column, column + count) of every `step`-th row of a matrix, starting at `row`.
Rows<const double> part_of(const Matrix<double>& matrix, std::int64_t row, std::int64_t step, std::int64_t column,
                           std::int64_t count) {
  if (row >= matrix.rows()) {
    return {};
  }
  return {matrix.row(row).data() + column, (matrix.rows() - row + step - 1) / step, count, step * matrix.columns()};
}

/// The keys of one kv head in one sequence, by column, and its values, by row.
struct Head {
  Head(const AttentionLayout& layout, const Matrix<double>& matrix, std::int64_t sequence, std::int64_t column,
       std::int64_t heads)
      : k(matrix, sequence, layout.batch, column, layout.head),
        v(part_of(matrix, sequence, layout.batch, column + heads * layout.head, layout.head)) {}

  Columns k;
  Rows<const double> v;
};

/// One query row of one head, and the rows of keys that it sees: the first `seen` rows of its kv head.
struct Query {
  std::int64_t row = 0;  // row of the queries
  std::int64_t q = 0;    // first column
  std::int64_t out = 0;  // first column of its output
  std::size_t seen = 0;
  const Head& keys;    // keys and values
  const Head& bounds;  // bounds of the keys and values; empty if none are given
};

/// Calls visit(query) for every query row and every head. `at` has, for each query row, its row in the whole matrix.
/// `bounds` has the bounds of `keys`, or is empty.
template <class Visit>
void for_each_query(const AttentionLayout& layout, std::span<const std::int64_t> at, const Matrix<double>& keys,
                    const Matrix<double>& bounds, const Visit& visit) {
  const std::int64_t heads = (layout.qkv - layout.out) / 2 / layout.head;  // kv heads per block
  const std::int64_t readers = layout.out / layout.head / heads;           // query heads per kv head
  struct KeyHead {
    std::int64_t block = 0;
    std::int64_t head = 0;
    std::int64_t sequence = 0;
  };
  const auto visit_readers = [&](const KeyHead& kv) {
    const std::int64_t block = kv.block;
    const std::int64_t head = kv.head;
    const std::int64_t sequence = kv.sequence;
    const std::int64_t column = block * layout.qkv + layout.out + head * layout.head;
    const Head kv_values(layout, keys, sequence, column, heads);
    const Head kv_bounds(layout, bounds, sequence, column, heads);
    for (std::size_t row = 0; row < at.size(); ++row) {
      if (at[row] % layout.batch != sequence) {
        continue;
      }
      const std::size_t until = static_cast<std::size_t>(at[row] / layout.batch) + 1;
      for (std::int64_t reader = head * readers; reader < (head + 1) * readers; ++reader) {
        visit(Query{.row = static_cast<std::int64_t>(row),
                    .q = block * layout.qkv + reader * layout.head,
                    .out = block * layout.out + reader * layout.head,
                    .seen = layout.causal ? std::min(until, kv_values.k.rows()) : kv_values.k.rows(),
                    .keys = kv_values,
                    .bounds = kv_bounds});
      }
    }
  };
  for (std::int64_t block = 0; block < keys.columns() / layout.qkv; ++block) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t sequence = 0; sequence < layout.batch; ++sequence) {
        visit_readers({.block = block, .head = head, .sequence = sequence});
      }
    }
  }
}

/// Puts the products q k of the visible rows into `scores`. Each product is summed in the order of the head's elements.
void score(const AttentionLayout& layout, const Query& query, const Matrix<double>& queries,
           std::vector<double>& scores) {
  scores.resize(query.seen);
  const auto first = static_cast<std::size_t>(query.q);
  weighted_sum(queries.row(query.row).subspan(first, static_cast<std::size_t>(layout.head)), query.keys.k.transposed(),
               scores);
}

/// Puts the softmax of the scores of the visible rows into `weights`.
void weigh(const AttentionLayout& layout, const Query& query, const Matrix<double>& queries,
           std::vector<double>& weights) {
  score(layout, query, queries, weights);
  const double root = std::sqrt(static_cast<double>(layout.head));
  for (double& weight : weights) {
    weight /= root;
  }
  const double largest = *std::max_element(weights.begin(), weights.end());
  double total = 0.0;
  for (double& weight : weights) {
    weight = math::exp(weight - largest);
    total += weight;
  }
  for (double& weight : weights) {
    weight /= total;
  }
}

/// Returns std::remainder(x, 5): for an integer x, the integer from -2 to 2 that is congruent to x modulo 5, with the
/// sign of x if it is 0. NaN stays NaN. Sums of integers, the most frequent case, use integer arithmetic, ten times as
/// fast as the library.
double wrapped(double x) {
  constexpr double largest_integer = 0x1p53;  // beyond it a double may not hold the intended integer
  if (!(std::abs(x) < largest_integer)) {
    return std::remainder(x, 5.0);
  }
  const auto as_integer = static_cast<std::int64_t>(x);
  if (static_cast<double>(as_integer) != x) {
    return std::remainder(x, 5.0);
  }
  const std::int64_t rest = as_integer % 5;
  const std::int64_t nearest = rest > 2 ? rest - 5 : rest < -2 ? rest + 5 : rest;
  return nearest == 0 ? std::copysign(0.0, x) : static_cast<double>(nearest);
}

Matrix<double> empty_result(const AttentionLayout& layout, const Matrix<double>& qkv) {
  return {qkv.rows(), qkv.columns() / layout.qkv * layout.out};
}

/// Returns the largest change of a score.
double score_spread(const AttentionLayout& layout, const Query& query, const Matrix<double>& qkv,
                    const Matrix<double>& bound) {
  std::vector<double> moves(query.seen, 0.0);
  for (std::int64_t i = 0; i < layout.head; ++i) {
    const double q = std::abs(qkv.at(query.row, query.q + i));
    const double q_bound = bound.at(query.row, query.q + i);
    const double* k = query.keys.k[i];
    const double* k_bound = query.bounds.k[i];
    for (std::size_t j = 0; j < query.seen; ++j) {
      moves[j] += q * k_bound[j] + q_bound * std::abs(k[j]) + q_bound * k_bound[j];
    }
  }
  const double root = std::sqrt(static_cast<double>(layout.head));
  double largest = 0.0;
  for (const double move : moves) {
    largest = std::max(largest, move / root);
  }
  return largest;
}

Matrix<double> attention_of(const AttentionLayout& layout, Functions functions, const Matrix<double>& queries,
                            std::span<const std::int64_t> at, const Matrix<double>& keys) {
  Matrix<double> out = empty_result(layout, queries);
  const bool real = functions == Functions::real;
  std::vector<double> weights;
  for_each_query(layout, at, keys, {}, [&](const Query& query) {
    real ? weigh(layout, query, queries, weights) : score(layout, query, queries, weights);
    const std::span<double> result =
        out.row(query.row).subspan(static_cast<std::size_t>(query.out), static_cast<std::size_t>(layout.head));
    weighted_sum(weights, query.keys.v, result);
    if (!real) {
      std::ranges::transform(result, result.begin(), wrapped);
    }
  });
  return out;
}

}  // namespace

bool holds_whole_heads(const Sizes& sizes, const AttentionShape& shape) {
  const std::int64_t qkv = sizes.block[position(shape.qkv.dimension)];
  const std::int64_t out = sizes.block[position(shape.columns.dimension)];
  const std::int64_t head = sizes.block[position(shape.head)];
  const std::int64_t kv_columns = (qkv - out) / 2;
  return out % head == 0 && kv_columns >= head && kv_columns % head == 0 && out % kv_columns == 0 &&
         qkv == out + 2 * kv_columns && sizes.elements(shape.keys) % sizes.block[position(shape.batch)] == 0;
}

AttentionLayout layout_of(const Sizes& sizes, const AttentionShape& shape) {
  check(holds_whole_heads(sizes, shape), "a block of q, k and v holds whole heads, the tokens whole sequences");
  return {.qkv = sizes.block[position(shape.qkv.dimension)],
          .out = sizes.block[position(shape.columns.dimension)],
          .head = sizes.block[position(shape.head)],
          .batch = sizes.block[position(shape.batch)],
          .causal = shape.causal};
}

Matrix<double> attention(const AttentionLayout& layout, Functions functions, const Matrix<double>& qkv) {
  return attention_of(layout, functions, qkv, all_rows(qkv.rows()), qkv);
}

Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& qkv) {
  return attention(layout, functions, qkv, all_rows(qkv.rows()), qkv);
}

Matrix<float> attention(const AttentionLayout& layout, Functions functions, const Matrix<float>& queries,
                        std::span<const std::int64_t> at, const Matrix<float>& keys) {
  const Matrix<double> result = attention_of(layout, functions, widened(queries), at, widened(keys));
  Matrix<float> out(result.rows(), result.columns());
  std::transform(result.values().begin(), result.values().end(), out.values().begin(),
                 [](double value) { return static_cast<float>(value); });
  return out;
}

Matrix<double> attention_spread(const AttentionLayout& layout, const Matrix<double>& qkv, const Matrix<double>& bound) {
  Matrix<double> out = empty_result(layout, qkv);
  std::vector<double> weights;
  for_each_query(layout, all_rows(qkv.rows()), qkv, bound, [&](const Query& query) {
    weigh(layout, query, qkv, weights);
    const double growth = math::exp(2.0 * score_spread(layout, query, qkv, bound));
    for (std::int64_t i = 0; i < layout.head; ++i) {
      const double* values = query.keys.v.first + i;
      const double* bounds = query.bounds.v.first + i;
      double spread = 0.0;
      double largest = 0.0;
      double largest_reach = 0.0;
      for (std::size_t j = 0; j < query.seen; ++j) {
        const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(j) * query.keys.v.stride;
        const double v = std::abs(values[row]);
        const double v_bound = bounds[row];
        spread += weights[j] * (growth * v_bound + (growth - 1.0) * v);
        largest = std::max(largest, v);
        largest_reach = std::max(largest_reach, v + v_bound);
      }
      // If `growth` is infinite, `spread` may be NaN. With its arguments in this order, std::min then returns the other
      // bound.
      out.at(query.row, query.out + i) = std::min(largest + largest_reach, spread);
    }
  });
  return out;
}

}  // namespace commfuse::validate
