// SPDX-License-Identifier: Apache-2.0
// Calls of a driver for the commands of a program, computed once, before anything is issued.
#pragma once

#include <algorithm>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/cuda/panels.h"
#include "validate/executor.h"

namespace commfuse::validate {

using Call = std::variant<ProductCall, FunctionCall, AttentionCall, MoveCall>;

/// Parameters that all calls share; all others come from the commands.
struct CallOptions {
  Functions functions = Functions::real;
  SumOrder sum_order = SumOrder::ascending;
  int multiprocessors = 0;
  DeviceLink link;
  AttentionKernel attention = AttentionKernel::any;
};

/// A command of the rank whose buffers are at `place` of the layout.
struct At {
  std::size_t place = 0;
  const Command* command = nullptr;
};

/// Memory of one lane in addition to the program's buffers, for operands that must be contiguous.
class Scratch {
 public:
  explicit Scratch(Address base) : base_(base) {}
  /// Returns a contiguous panel of this shape, at an aligned address.
  Panel like(std::int64_t rows, std::int64_t columns, DType dtype);
  /// Makes all memory available again. This is safe because the calls of one command follow each other on one stream.
  void reset() { used_ = 0; }
  /// Raises highest() to at least `bytes`.
  void grow_to(Bytes bytes) { highest_ = std::max(highest_, bytes.count); }
  /// Returns the largest number of bytes that were in use at the same time or passed to grow_to().
  [[nodiscard]] Bytes highest() const { return {highest_}; }
  [[nodiscard]] Address base() const { return base_; }

 private:
  Address base_;
  std::int64_t used_ = 0;
  std::int64_t highest_ = 0;
};

/// Makes the calls of one program at one size. `program`, `sizes` and `layout` must outlive this object.
class Calls {
 public:
  Calls(const Program& program, const Sizes& sizes, const Layout& layout, CallOptions options)
      : program_(program), sizes_(sizes), layout_(layout), options_(options) {}

  /// Returns the calls of a GEMM, function or attention; none if options().functions omits the work.
  [[nodiscard]] std::vector<Call> compute(const At& at, Scratch& scratch) const;
  /// Returns the move from the send half of one command to the receive half of another. If one of the halves is absent,
  /// scratch memory takes its place. A credit moves nothing.
  [[nodiscard]] std::vector<Call> transfer(const At& from, const At& to, Scratch& scratch) const;
  /// Returns the calls of a collective that write the outputs of some members: those with the indices in `outputs`.
  /// `members` must be in order of coordinate.
  [[nodiscard]] std::vector<Call> meet(std::span<const At> members, std::span<const std::size_t> outputs,
                                       Scratch& scratch) const;

  [[nodiscard]] const CallOptions& options() const { return options_; }

 private:
  [[nodiscard]] std::vector<Call> product(const At& at, Scratch& scratch) const;
  [[nodiscard]] std::vector<Call> function(const At& at) const;
  [[nodiscard]] std::vector<Call> attention(const At& at, Scratch& scratch) const;
  [[nodiscard]] std::vector<Call> gathered(std::span<const At> members, std::span<const std::size_t> outputs) const;
  [[nodiscard]] std::vector<Call> summed(std::span<const At> members, std::span<const std::size_t> outputs,
                                         Scratch& scratch) const;
  [[nodiscard]] Stack input(const At& at, std::size_t index) const;
  [[nodiscard]] Stack output(const At& at) const;
  /// Returns the operand as one panel: in its place, or packed into scratch by a move that is added to `calls`.
  [[nodiscard]] Panel as_one_panel(const Stack& stack, Scratch& scratch, std::vector<Call>& calls) const;
  [[nodiscard]] DeviceLink collective_link(const CollectiveShape& shape, std::size_t members) const;

  const Program& program_;
  const Sizes& sizes_;
  const Layout& layout_;
  CallOptions options_;
};

/// Returns a move inside a rank's memory that uses no link and also converts the dtype. It has no parts if every row is
/// in its place and the wire changes no value.
MoveCall local_move(const Stack& from, const Stack& to, DType wire);

/// Hands a call to the driver.
void issue(Driver& driver, StreamId stream, const Call& call);

}  // namespace commfuse::validate
