// SPDX-License-Identifier: Apache-2.0
// Checks that a schedule produces the result of the unfused operation: compares every element of every final content on
// every rank.
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
  std::int64_t elements = 0;  // number of elements compared
  std::int64_t wrong = 0;
  double worst = 0.0;  // largest |computed - exact| in units of its bound; infinite for NaN; 0 if equality is required

  [[nodiscard]] bool ok() const { return elements > 0 && wrong == 0; }
  Tally& operator+=(const Tally& other);
};

struct Verdict {
  Tally integers;                // T-int: integer data, bitwise equal to the unfused result
  std::optional<Tally> bitwise;  // T2: random data, bitwise equal to unfused; only for programs that cut no sum
  Tally bound;                   // T3: random data, inside the componentwise bound
  // Levels of an executor, which is compared with the interpreter or another oracle in every buffer on every rank.
  std::optional<Tally> moved{};  // T0: tagged data, bytes moved and nothing computed
  /// T1: random data, the whole program. Nothing if a library sums in an order of its own.
  std::optional<Tally> same_order{};

  [[nodiscard]] bool ok() const {
    const auto passes = [](const std::optional<Tally>& tally) { return !tally || tally->ok(); };
    return integers.ok() && passes(bitwise) && bound.ok() && passes(moved) && passes(same_order);
  }
  Verdict& operator+=(const Verdict& other);
};

class References;

struct VerifyOptions {
  std::uint64_t seed = 1;
  /// For the interpreter: number of orders in which the program runs on integers, one in sequence and the others at
  /// random, each twice over the same memory. For an executor: number of orders in T1; T0 and T-int use two.
  int orders = 4;
  /// The executor that is compared with the interpreter. If it is not set, the interpreter itself is checked.
  MakeExecutor executor{};
  /// The oracle whose bits an executor has to match in T0 and T1; by default the interpreter. For a device the oracle
  /// is the device itself, one op after another, because its functions differ from the host's in the last bits.
  MakeExecutor oracle{};
  /// First of `orders` seeds of chaos for an executor.
  std::uint64_t chaos = 1;
  /// True if a library such as NCCL carries out the collectives that sum: it chooses its own order and rounds to the
  /// wire's dtype at every hop. If such sums have more than two terms, T1 does not apply; T-int and T3 do, and the
  /// bound of T3 allows for the N - 1 roundings of N ranks (unfused.cpp).
  bool library_sums = false;
  /// Keeps the expected results from call to call. If it is null, they are calculated every time.
  References* references = nullptr;
};

/// Returns whether every sum of the integer data of this seed is exact, in any order.
bool integers_stay_exact(const Program& program, const Sizes& sizes, std::uint64_t seed);
/// Returns whether every element of a GEMM's result comes from one op that sums over the whole contraction, as in the
/// unfused operation: no add, no accumulation, no reducing collective, no attention over a part of the keys. Values are
/// also rounded as in the unfused operation: no wire or copy that is coarser than its data, no tensor that is stored in
/// a dtype other than its own.
bool cuts_no_sum(const Program& program);

/// Returns whether a collective adds the contributions of more than two ranks, so that its result depends on order and
/// rounding.
bool has_collective_sums(const Program& program);

/// Throws Stuck if the program does not finish. Requires `program` to have matching exchanges, and `sizes` for which
/// integer_data() keeps its sums exact.
Verdict verify(const std::shared_ptr<const Program>& program, const Sizes& sizes, const VerifyOptions& options);

/// Checks T2 of any program: random data, bitwise equal to the unfused result. T2 holds where no sum is cut.
Tally verify_bitwise(const std::shared_ptr<const Program>& program, const Sizes& sizes, std::uint64_t seed);

}  // namespace commfuse::validate
