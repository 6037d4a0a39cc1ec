// SPDX-License-Identifier: Apache-2.0
//
// The spread. Let a hat mean the disturbed matrix, e its bound. A score moves by at most
//   d = max over visible j of sum (|q| e_k + e_q |k| + e_q e_k) / sqrt(head),
// so every weight p_j of the softmax stays within p_j [exp(-2d), exp(2d)], and with |v^_j| <= |v_j| + e_vj
//   |sum p^_j v^_j - sum p_j v_j| <= exp(2d) sum p_j e_vj + (exp(2d) - 1) sum p_j |v_j|,
// and, both being means of visible v, by no more than max |v_j| + max (|v_j| + e_vj).
#include "validate/reference/attention.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse::validate {

namespace {

/// One query row of one head, and the rows that it sees.
struct Query {
  std::int64_t row = 0;              // among the queries
  std::int64_t q = 0, k = 0, v = 0;  // first columns
  std::int64_t out = 0;              // first column of its output
  std::vector<std::int64_t> keys;    // rows
};

/// Returns the rows 0 to count - 1.
std::vector<std::int64_t> all_rows(std::int64_t count) {
  std::vector<std::int64_t> rows(static_cast<std::size_t>(count));
  std::iota(rows.begin(), rows.end(), 0);
  return rows;
}

/// Calls visit(query) for every query row, which is row `at` of the whole, and every head.
template <class Visit>
void for_each_query(const AttentionLayout& layout, std::span<const std::int64_t> at, std::int64_t keys,
                    std::int64_t columns, const Visit& visit) {
  const std::int64_t heads = layout.out / layout.head;
  const std::int64_t kv_heads = (layout.qkv - layout.out) / 2 / layout.head;
  Query query;
  for (const std::int64_t row : at) {
    query.keys.clear();
    for (std::int64_t key = row % layout.batch; key < keys; key += layout.batch) {
      if (!layout.causal || key <= row) {
        query.keys.push_back(key);
      }
    }
    for (std::int64_t block = 0; block < columns / layout.qkv; ++block) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const std::int64_t kv_head = head / (heads / kv_heads);
        query.q = block * layout.qkv + head * layout.head;
        query.k = block * layout.qkv + layout.out + kv_head * layout.head;
        query.v = query.k + kv_heads * layout.head;
        query.out = block * layout.out + head * layout.head;
        visit(query);
      }
    }
    ++query.row;
  }
}

/// Returns q k for the visible rows.
std::vector<double> scores_of(const AttentionLayout& layout, const Query& query, const Matrix<double>& queries,
                              const Matrix<double>& keys) {
  std::vector<double> scores;
  for (const std::int64_t key : query.keys) {
    double score = 0.0;
    for (std::int64_t i = 0; i < layout.head; ++i) {
      score += queries.at(query.row, query.q + i) * keys.at(key, query.k + i);
    }
    scores.push_back(score);
  }
  return scores;
}

/// Returns the softmax of the scores of the visible rows.
std::vector<double> weights_of(const AttentionLayout& layout, const Query& query, const Matrix<double>& queries,
                               const Matrix<double>& keys) {
  std::vector<double> weights = scores_of(layout, query, queries, keys);
  for (double& weight : weights) {
    weight /= std::sqrt(static_cast<double>(layout.head));
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
  return weights;
}

/// Returns a small integer that is congruent modulo 5; NaN stays NaN.
double wrapped(double x) { return std::remainder(x, 5.0); }

Matrix<double> empty_result(const AttentionLayout& layout, const Matrix<double>& qkv) {
  return {qkv.rows(), qkv.columns() / layout.qkv * layout.out};
}

/// Returns the largest change of a score.
double score_spread(const AttentionLayout& layout, const Query& query, const Matrix<double>& qkv,
                    const Matrix<double>& bound) {
  double largest = 0.0;
  for (const std::int64_t key : query.keys) {
    double move = 0.0;
    for (std::int64_t i = 0; i < layout.head; ++i) {
      const double q_bound = bound.at(query.row, query.q + i);
      const double k_bound = bound.at(key, query.k + i);
      move += std::abs(qkv.at(query.row, query.q + i)) * k_bound + q_bound * std::abs(qkv.at(key, query.k + i)) +
              q_bound * k_bound;
    }
    largest = std::max(largest, move / std::sqrt(static_cast<double>(layout.head)));
  }
  return largest;
}

Matrix<double> attention_of(const AttentionLayout& layout, Functions functions, const Matrix<double>& queries,
                            std::span<const std::int64_t> at, const Matrix<double>& keys) {
  Matrix<double> out = empty_result(layout, queries);
  for_each_query(layout, at, keys.rows(), queries.columns(), [&](const Query& query) {
    const bool real = functions == Functions::real;
    const std::vector<double> weights =
        real ? weights_of(layout, query, queries, keys) : scores_of(layout, query, queries, keys);
    for (std::int64_t i = 0; i < layout.head; ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        sum += weights[j] * keys.at(query.keys[j], query.v + i);
      }
      out.at(query.row, query.out + i) = real ? sum : wrapped(sum);
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
  for_each_query(layout, all_rows(qkv.rows()), qkv.rows(), qkv.columns(), [&](const Query& query) {
    const std::vector<double> weights = weights_of(layout, query, qkv, qkv);
    const double grown = math::exp(2.0 * score_spread(layout, query, qkv, bound));
    for (std::int64_t i = 0; i < layout.head; ++i) {
      double spread = 0.0;
      double largest = 0.0;
      double largest_reach = 0.0;
      for (std::size_t j = 0; j < weights.size(); ++j) {
        const double v = std::abs(qkv.at(query.keys[j], query.v + i));
        const double v_bound = bound.at(query.keys[j], query.v + i);
        spread += weights[j] * (grown * v_bound + (grown - 1.0) * v);
        largest = std::max(largest, v);
        largest_reach = std::max(largest_reach, v + v_bound);
      }
      out.at(query.row, query.out + i) = std::min(spread, largest + largest_reach);
    }
  });
  return out;
}

}  // namespace commfuse::validate
