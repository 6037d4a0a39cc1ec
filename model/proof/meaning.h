// SPDX-License-Identifier: Apache-2.0
// Results of ops on symbolic values: the computed block of a tensor of the operation, or the mistake in the inputs.
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

/// GEMMs require complete factors of a GEMM of the operation; nonlinear functions require complete sums; adds require
/// disjoint contributions, which they unite. A violation is reported and results in a wrong value, whose consequences
/// are not reported.
class Meaning {
 public:
  struct Where {
    Rank rank = 0;
    OpId op{};
  };

  /// Keeps references to all arguments, which must outlive this object. `symmetry` may be null; with it, rank 0
  /// represents all ranks.
  Meaning(const Program& program, const Symmetry* symmetry, Sums& sums, Findings& findings);

  /// Assigns all later findings to `iteration`.
  void begin(std::size_t iteration) { iteration_ = iteration; }
  [[nodiscard]] std::string_view when() const { return iteration_ == 0 ? "" : "in a second iteration, "; }

  /// Returns the sum of all contributions to a block of a tensor.
  [[nodiscard]] SumId complete(TensorId tensor) const { return complete_[position(tensor)]; }
  [[nodiscard]] std::string words(const CellValue& value) const { return in_words(program_, sums_, value); }
  /// Returns true if the rows of the tensor on rank 0 differ from those on other ranks.
  [[nodiscard]] bool rows_move(TensorId tensor) const {
    return symmetry_ != nullptr && static_cast<std::int32_t>(tensor) >= 0 &&
           !symmetry_->of(tensor).rows.rotation.still();
  }

  /// Computes op(a) op(b) into `out`, added to `old` unless `old` is empty. Factors are passed as they are stored,
  /// transposed or not, and are left in the order that the GEMM needs.
  void multiply(Where where, const GemmShape& shape, CellValues& a, CellValues& b, const CellValues& old,
                CellValues& out);
  /// Multiplies single blocks.
  CellValue multiply(Where where, const GemmShape& shape, const CellValue& a, const CellValue& b);
  CellValues map(Where where, const ElementwiseShape& shape, const std::vector<CellValues>& inputs);
  /// Computes attention; `rows` are the positions of the query rows in their sequence.
  CellValues attend(Where where, const AttentionShape& shape, std::span<const std::int32_t> rows,
                    const CellValues& queries, const CellValues& keys);
  /// Returns the sums over ranks, block by block.
  CellValues reduced(Where where, const std::vector<CellValues>& member_values);

 private:
  [[nodiscard]] bool complete(const CellValue& value) const {
    return position(value.tensor) < complete_.size() && value.sum == complete(value.tensor);
  }

  template <class Sentence>
  CellValue wrong(Where where, const Sentence& sentence) {
    findings_.add(FindingKind::contents, static_cast<std::int32_t>(where.op), [&] {
      return fmt::format("{}{} on rank {} {}", when(), op_in_words(program_, where.op), where.rank, sentence());
    });
    return wrong_value;
  }

  /// Multiplies a row of op(a) by a column of op(b).
  CellValue contract(Where where, const GemmShape& shape, std::span<const CellValue> a, std::span<const CellValue> b);
  /// Returns, for example, "x[0] by w[:,1]" or "x[0]^T by dy[0,1]".
  [[nodiscard]] std::string times(const GemmShape& shape, const CellValue& a, const CellValue& b,
                                  const char* between) const;
  [[nodiscard]] TensorId product_of(const GemmShape& shape, TensorId a, TensorId b) const;
  /// Returns `value` with the union of `parts_` as its contributions.
  CellValue united(Where where, CellValue value);
  CellValue sum(Where where, std::span<const CellValue> values);
  CellValue apply(Where where, Function function, std::span<const CellValue> inputs);
  /// Returns the sum of two different tensors, in either order.
  CellValue add_residual(Where where, const CellValue& a, const CellValue& b);
  /// Computes one block of queries, at `row` of its sequence, against key rows 0, 1, 2 and so on of the same heads: all
  /// rows of the tensor, or with a causal mask the rows up to `row`. Masked keys are ignored, unless the tensor's rows
  /// move (rows_move).
  CellValue attended(Where where, const CellValue& query, std::int32_t row, std::vector<CellValue>& keys, bool causal);

  const Program& program_;
  const Symmetry* symmetry_;
  Sums& sums_;
  Findings& findings_;
  std::vector<SumId> complete_;  // by tensor
  std::size_t iteration_ = 0;
  std::vector<SumId> parts_;       // scratch space
  std::vector<CellValue> column_;  // scratch space for a GEMM
};

}  // namespace commfuse
