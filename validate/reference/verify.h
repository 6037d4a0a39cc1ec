// SPDX-License-Identifier: Apache-2.0
// Does a schedule give what the unfused operation gives? Compares every element of every final content on every rank.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "model/program/program.h"
#include "model/program/sizes.h"
#include "validate/executor.h"

namespace commfuse::validate {

/// The result of one level.
struct Tally {
  std::int64_t elements = 0;  // compared
  std::int64_t wrong = 0;
  double worst = 0.0;  // largest |computed - exact| in units of its bound; infinite for NaN; 0 where equality is asked

  [[nodiscard]] bool ok() const { return elements > 0 && wrong == 0; }
  Tally& operator+=(const Tally& other);
};

struct Verdict {
  Tally integers;                // T-int: integer data, bitwise the unfused result
  std::optional<Tally> bitwise;  // T2: random data, bitwise the unfused result; asked of programs that cut no sum
  Tally bound;                   // T3: random data, inside the componentwise bound
  // Of an executor, against the interpreter or another oracle, whose every buffer on every rank is compared.
  std::optional<Tally> moved{};  // T0: tagged data, bytes moved and nothing computed
  /// T1: random data, all that the program does. Not asked where a library sums in an order of its own.
  std::optional<Tally> same_order{};

  [[nodiscard]] bool ok() const {
    const auto fine = [](const std::optional<Tally>& tally) { return !tally || tally->ok(); };
    return integers.ok() && fine(bitwise) && bound.ok() && fine(moved) && fine(same_order);
  }
  Verdict& operator+=(const Verdict& other);
};

class References;

struct VerifyOptions {
  std::uint64_t seed = 1;
  /// In how many orders of its ops the program runs on integers: one after the other, and so many more at random, each
  /// twice over the same memory.
  int orders = 4;
  /// Who is verified, against the interpreter; none: the interpreter itself.
  MakeExecutor executor{};
  /// Whose bits are the right ones of an executor's T0 and T1; none: the interpreter. Of a device it is the device
  /// itself, one op after another: its functions are not the host's to the last bit.
  MakeExecutor oracle{};
  /// Of an executor: the first of `orders` seeds of chaos.
  std::uint64_t chaos = 1;
  /// Whether a library carries out collectives that sum, as NCCL does: it has an order of its own and rounds to the
  /// wire's dtype at every hop. Where such sums have more than two terms, T1 is not asked; T-int and T3 are, and the
  /// bound of T3 allows the N - 1 roundings of N ranks (unfused.cpp).
  bool library_sums = false;
  /// Where what schedules are compared with is kept from call to call; null: it is worked out anew.
  References* references = nullptr;
};

/// Whether every sum of the integer data of this seed is exact, whatever its order.
bool integers_stay_exact(const Program& program, const Sizes& sizes, std::uint64_t seed);
/// Whether every element of a product comes out of one op that takes its whole contraction, as in the unfused
/// operation: no add, no accumulation, no reducing collective, no attention over a part of the keys.
bool cuts_no_sum(const Program& program);

/// Whether a collective adds the contributions of more than two ranks, so that its result depends on order and
/// rounding.
bool has_collective_sums(const Program& program);

/// Throws Stuck when the program does not come to its end. Requires a program whose exchanges match, and sizes for
/// which integer_data() keeps its sums exact.
Verdict verify(const std::shared_ptr<const Program>& program, const Sizes& sizes, const VerifyOptions& options);

/// T2 of any program: random data, bitwise the unfused result. Holds where no sum is cut.
Tally verify_bitwise(const std::shared_ptr<const Program>& program, const Sizes& sizes, std::uint64_t seed);

}  // namespace commfuse::validate
