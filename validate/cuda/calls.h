// SPDX-License-Identifier: Apache-2.0
// What the commands of a program are on a device: calls of its driver, worked out once, before anything is issued.
#pragma once

#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "validate/cuda/driver.h"
#include "validate/cuda/panels.h"
#include "validate/executor.h"

namespace commfuse::validate {

using Call = std::variant<ProductCall, FunctionCall, AttentionCall, MoveCall>;

/// What calls depend on beside their commands.
struct CallOptions {
  Functions functions = Functions::real;
  Products products = Products::ascending;
  int multiprocessors = 0;
  DeviceLink link;
  AttentionKernel attention = AttentionKernel::any;
};

/// A command of the rank whose buffers stand at `place` of the layout.
struct At {
  std::size_t place = 0;
  const Command* command = nullptr;
};

/// Memory of one lane beside the program's buffers, for operands that have to lie together.
class Scratch {
 public:
  explicit Scratch(Address base) : base_(base) {}
  /// A contiguous panel like this one, from a start that is aligned.
  Panel like(std::int64_t rows, std::int64_t columns, DType dtype);
  /// Everything may be used anew: the calls of one command follow each other on one stream.
  void reset() { used_ = 0; }
  /// The most that was in use at once.
  [[nodiscard]] Bytes most() const { return {most_}; }

 private:
  Address base_;
  std::int64_t used_ = 0;
  std::int64_t most_ = 0;
};

/// Makes the calls of one program at one size. `layout` outlives it.
class Calls {
 public:
  Calls(const Program& program, const Sizes& sizes, const Layout& layout, CallOptions options)
      : program_(program), sizes_(sizes), layout_(layout), options_(options) {}

  /// Of a product, function or attention. None: it is left out with these functions.
  [[nodiscard]] std::vector<Call> compute(const At& at, Scratch& scratch) const;
  /// From the send half of one command into the receive half of another; either may be absent: then its side is
  /// scratch. A credit moves nothing.
  [[nodiscard]] std::vector<Call> transfer(const At& from, const At& to, Scratch& scratch) const;
  /// A collective of members by coordinate, for those of them that `outputs` names.
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
  [[nodiscard]] Stack input(const At& at, std::size_t which) const;
  [[nodiscard]] Stack output(const At& at) const;
  /// The operand as one panel: where it lies, or packed into scratch, for which `calls` get a move.
  [[nodiscard]] Panel together(const Stack& stack, Scratch& scratch, std::vector<Call>& calls) const;
  [[nodiscard]] DeviceLink collective_link(const CollectiveShape& shape, std::size_t members) const;

  const Program& program_;
  const Sizes& sizes_;
  const Layout& layout_;
  CallOptions options_;
};

/// Whether a wire of this dtype rounds nothing of what is stored in the other one.
bool passes_unchanged(DType stored, DType wire);

/// Hands a call to the driver.
void issue(Driver& driver, StreamId stream, const Call& call);

}  // namespace commfuse::validate
