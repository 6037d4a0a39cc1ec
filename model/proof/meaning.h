// SPDX-License-Identifier: Apache-2.0
// What ops make of values: which block of which tensor of the operation comes out, or what is wrong with what goes in.
#pragma once

#include <fmt/format.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/matching.h"
#include "model/proof/findings.h"
#include "model/proof/symmetry.h"
#include "model/proof/value.h"

namespace commfuse {

/// Products demand complete factors that meet in a product of the operation; nonlinear functions demand complete sums;
/// adding unites disjoint contributions. What does not hold is reported, and a wrong value comes out, of which nothing
/// more is said.
class Meaning {
 public:
  struct Where {
    Rank rank = 0;
    OpId op{};
  };

  /// Keeps references to all. With a symmetry, rank 0 stands for all ranks; it may be null.
  Meaning(const Program& program, const Symmetry* symmetry, Sums& sums, Findings& findings);

  /// Findings from here on are of this iteration.
  void begin(std::size_t iteration) { iteration_ = iteration; }
  [[nodiscard]] std::string_view when() const { return iteration_ == 0 ? "" : "in a second iteration, "; }

  /// Of a tensor: every contribution.
  [[nodiscard]] SumId complete(TensorId tensor) const { return complete_[position(tensor)]; }
  [[nodiscard]] std::string words(const Value& value) const { return in_words(program_, sums_, value); }
  /// Whether rank 0's rows are not other ranks'.
  [[nodiscard]] bool rows_move(TensorId tensor) const {
    return symmetry_ != nullptr && static_cast<std::int32_t>(tensor) >= 0 &&
           !symmetry_->of(tensor).rows.rotation.still();
  }

  /// op(a) op(b), added to `old` unless that is empty, into `out`. Factors come as they lie, transposed or not, and are
  /// left as the product sees them.
  void multiply(Where where, const GemmShape& shape, Values& a, Values& b, const Values& old, Values& out);
  /// The same of single blocks.
  Value multiply(Where where, const GemmShape& shape, const Value& a, const Value& b);
  Values map(Where where, const ElementwiseShape& shape, const std::vector<Values>& inputs);
  /// `rows` are the places of the query rows in their sequence.
  Values attend(Where where, const AttentionShape& shape, std::span<const std::int32_t> rows, const Values& queries,
                const Values& keys);
  /// The sums of what ranks gave, block by block.
  Values reduced(Where where, const std::vector<Values>& given);

 private:
  [[nodiscard]] bool complete(const Value& value) const {
    return position(value.tensor) < complete_.size() && value.sum == complete(value.tensor);
  }

  template <class Sentence>
  Value wrong(Where where, const Sentence& sentence) {
    findings_.add(FindingKind::contents, static_cast<std::int32_t>(where.op), [&] {
      return fmt::format("{}{} on rank {} {}", when(), op_in_words(program_, where.op), where.rank, sentence());
    });
    return wrong_value;
  }

  /// A row of op(a) times a column of op(b).
  Value contract(Where where, const GemmShape& shape, std::span<const Value> a, std::span<const Value> b);
  /// "x[0] by w[:,1]", "x[0]^T by dy[0,1]".
  [[nodiscard]] std::string times(const GemmShape& shape, const Value& a, const Value& b, const char* between) const;
  [[nodiscard]] TensorId product_of(const GemmShape& shape, TensorId a, TensorId b) const;
  /// `value` with the union of `parts_` as its contributions.
  Value united(Where where, Value value);
  Value sum(Where where, std::span<const Value> values);
  Value apply(Where where, Function function, std::span<const Value> of);
  /// The sum of two different tensors, either one first.
  Value add_residual(Where where, const Value& a, const Value& b);
  /// One block of queries, which stands at `row` of its sequence, against key rows 0, 1, 2 and so on of the same heads:
  /// all rows of the tensor, or with a causal mask those up to `row`. Masked keys are not looked at.
  Value attended(Where where, const Value& query, std::int32_t row, std::vector<Value>& keys, bool causal);

  const Program& program_;
  const Symmetry* symmetry_;
  Sums& sums_;
  Findings& findings_;
  std::vector<SumId> complete_;  // by tensor
  std::size_t iteration_ = 0;
  std::vector<SumId> parts_;   // room to work in
  std::vector<Value> column_;  // room to work in, of a product
};

}  // namespace commfuse
