// SPDX-License-Identifier: Apache-2.0
#include "model/expect/evidence.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numbers>
#include <set>
#include <tuple>

#include "model/analysis/median.h"
#include "model/check.h"
#include "model/math/functions.h"

namespace commfuse {

namespace {

/// Returns the median of `number` over the rows of a half.
template <class Number>
double median_of(const ClassHalf& half, const Number& number) {
  std::vector<double> values;
  for (const std::size_t row : half.rows) {
    values.push_back(number(row));
  }
  return median(std::move(values));
}

void judge(ClassHalf& half, std::span<const MeasuredMessage> measured, std::span<const Expected> expected,
           double spread) {
  half.median = median_of(
      half, [&](std::size_t i) { return math::log(measured[i].time_us / to_microseconds(expected[i].time)); });
  const double parameters = median_of(half, [&](std::size_t i) { return expected[i].shared_error; });
  const double residual = median_of(half, [&](std::size_t i) { return expected[i].own_error; });
  const ErrorShares shares = half.limit == Limit::latency ? latency_shares : bandwidth_shares;
  const double repeat = repeat_error * repeat_error;
  const double square = residual * residual;
  half.shared_error = std::sqrt(parameters * parameters + shares.node * square + spread * spread);
  half.own_error = std::sqrt((shares.of_class + shares.row / static_cast<double>(half.rows.size())) * square + repeat);
}

/// A half under a pattern: the part of its median that the pattern does not explain, and its errors.
struct Unexplained {
  double off = 0.0;
  double shared = 0.0;
  double own_error = 0.0;
};

std::vector<Unexplained> unexplained_of(std::span<const ClassHalf> halves, const FaultPattern& pattern, bool latency) {
  std::vector<Unexplained> unexplained;
  for (std::size_t i = 0; i < halves.size(); ++i) {
    if ((halves[i].limit == Limit::latency) == latency) {
      const double by_degree = pattern_error * pattern[i];
      unexplained.push_back({halves[i].median - pattern[i], halves[i].shared_error,
                             std::sqrt(halves[i].own_error * halves[i].own_error + by_degree * by_degree)});
    }
  }
  return unexplained;
}

/// Returns ln(likelihood) of normal errors, one of which all halves share. Errors are assumed to be normal because none
/// of 133 medians of bandwidth-limited rows on healthy machines is off by 1.7 standard errors (docs/accuracy.md). The
/// covariance matrix is diagonal plus a term of rank one, so the formula of Sherman and Morrison applies.
double bandwidth_likelihood(const std::vector<Unexplained>& unexplained) {
  double squares = 0.0;
  double along = 0.0;
  double shared = 1.0;
  double logs = 0.0;
  for (const Unexplained& half : unexplained) {
    const double precision = 1.0 / (half.own_error * half.own_error);
    squares += half.off * half.off * precision;
    along += half.off * half.shared * precision;
    shared += half.shared * half.shared * precision;
    logs += math::log(2.0 * std::numbers::pi * half.own_error * half.own_error);
  }
  return -0.5 * (squares - along * along / shared + logs + math::log(shared));
}

/// Returns ln(likelihood) of errors with the tails of error_tail.h, Student's t with four degrees of freedom,
/// integrated by the trapezoid rule over the error that the whole node shares.
double latency_likelihood(const std::vector<Unexplained>& unexplained) {
  constexpr double one_standard_error = 1.1416266290909542;  // see error_tail.cpp
  constexpr int steps = 32;
  constexpr double reach = 8.0;
  double logs = 0.0;
  for (const Unexplained& half : unexplained) {
    logs += math::log(0.375 * one_standard_error / half.own_error);
  }
  std::array<double, 2 * steps + 1> terms{};
  for (int step = -steps; step <= steps; ++step) {
    const double node = reach * step / steps;
    double product = 1.0;
    double log_of_factors = 0.0;  // log of what was factored out of the product to keep it in the range of doubles
    for (const Unexplained& half : unexplained) {
      const double t = one_standard_error * (half.off - node * half.shared) / half.own_error;
      product *= 1.0 + 0.25 * t * t;
      if (product > 1e200) {
        log_of_factors += math::log(product);
        product = 1.0;
      }
    }
    terms[static_cast<std::size_t>(step + steps)] = -0.5 * node * node - 2.5 * (log_of_factors + math::log(product));
  }
  const double largest = *std::max_element(terms.begin(), terms.end());
  double sum = 0.0;
  for (const double term : terms) {
    sum += math::exp(term - largest);
  }
  return logs + largest + math::log(sum * reach / steps / std::sqrt(2.0 * std::numbers::pi));
}

}  // namespace

double error_of(const ClassHalf& half) {
  return std::sqrt(half.shared_error * half.shared_error + half.own_error * half.own_error);
}

std::tuple<LinkOp, std::int64_t, std::int64_t, std::int64_t> key_of(const Message& message) {
  return {message.op, message.gpus, message.nodes, message.bytes.count};
}

std::vector<ClassHalf> class_halves(std::span<const MeasuredMessage> measured, std::span<const Expected> expected,
                                    double spread) {
  check(measured.size() == expected.size(), "each row has its expectation");
  std::map<std::tuple<LinkOp, std::int64_t, std::int64_t, bool>, ClassHalf> by_class;
  for (std::size_t i = 0; i < measured.size(); ++i) {
    const Message& message = measured[i].message;
    const bool latency = expected[i].limit == Limit::latency;
    ClassHalf& half = by_class[{message.op, message.gpus, message.nodes, latency}];
    half.op = message.op;
    half.gpus = message.gpus;
    half.nodes = message.nodes;
    half.limit = latency ? Limit::latency : Limit::bandwidth;
    half.rows.push_back(i);
  }
  std::vector<ClassHalf> halves;
  for (auto& [key, half] : by_class) {
    if (half.rows.size() >= 2) {  // a single row is ignored
      judge(half, measured, expected, spread);
      halves.push_back(std::move(half));
    }
  }
  return halves;
}

double log_likelihood(std::span<const ClassHalf> halves, const FaultPattern& pattern) {
  check(halves.size() == pattern.size(), "a pattern has a number for each half");
  return bandwidth_likelihood(unexplained_of(halves, pattern, false)) +
         latency_likelihood(unexplained_of(halves, pattern, true));
}

namespace {

struct BandwidthRows {
  std::size_t rows = 0;
  std::set<LinkOp> ops;
};

BandwidthRows bandwidth_rows(std::span<const ClassHalf> halves) {
  BandwidthRows counted;
  for (const ClassHalf& half : halves) {
    if (half.limit == Limit::bandwidth) {
      counted.rows += half.rows.size();
      counted.ops.insert(half.op);
    }
  }
  return counted;
}

constexpr std::size_t least_rows = 8;

}  // namespace

bool is_enough(std::span<const ClassHalf> halves) {
  const BandwidthRows counted = bandwidth_rows(halves);
  return counted.rows >= least_rows && counted.ops.size() >= 2;
}

bool may_condemn(std::span<const ClassHalf> halves) {
  std::size_t rows = 0;
  for (const ClassHalf& half : halves) {
    rows += half.rows.size();
  }
  return rows >= least_rows;
}

}  // namespace commfuse
