// SPDX-License-Identifier: Apache-2.0
// Makes every small mistake that the author of a generator could make, one at a time, to test check_program().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/matching.h"
#include "model/program/order.h"
#include "model/program/program.h"
#include "model/proof/contents.h"
#include "model/proof/sums.h"

namespace commfuse {

enum class MutationKind : std::uint8_t {
  shift,       // an exchange with another peer
  offset,      // an index that is off by one on the ring
  position,    // a region shifted by a row or column, or an attention's queries shifted by a row
  buffer,      // another buffer of the same extents
  wait,        // a dropped wait
  accumulate,  // adding instead of overwriting, or the reverse
  add_input,   // an input of an add dropped or used twice
  removal,     // an op removed; ops that waited for it wait for its waits instead
  lane,        // an op on another lane of the program
  order,       // two neighbouring ops swapped, unless the second waits for the first
};

inline constexpr std::array all_mutation_kinds{MutationKind::shift,     MutationKind::offset,  MutationKind::position,
                                               MutationKind::buffer,    MutationKind::wait,    MutationKind::accumulate,
                                               MutationKind::add_input, MutationKind::removal, MutationKind::lane,
                                               MutationKind::order};

std::string_view name_of(MutationKind kind);

struct Mutation {
  MutationKind kind = MutationKind::shift;
  OpId op{};                // in the original
  std::string description;  // "op 3 (exchange): shift 2 instead of 1"
  Program program;
  std::vector<OpId> now{};  // by op of the original: its id in `program`; empty when ids are unchanged
};

/// Calls visit(mutation) for each mutation of a program that passed check_program(), in the order of its ops.
/// Each mutant is still well-formed: ids, extents and shapes fit; regions may leave their buffers only through a term
/// of their index. Only one mutant exists at a time: it is valid until visit returns.
void for_each_mutation(const Program& program, const std::function<void(const Mutation&)>& visit);

/// Returns all mutations together.
std::vector<Mutation> mutations_of(const Program& program);

/// Reasons why two programs are provably equivalent.
enum class Equivalence : std::uint8_t {
  same_accesses,  // identical ops in the same order, on the same lanes and regions on every rank, with the same waits
  same_order,     // identical ops on the same regions with the same partners, in the same order on every rank,
                  // whatever the waits and lanes
  same_values,    // both pass check_program(), and op for op have equal symbolic inputs and outputs in both iterations:
                  // only the places of these values differ
  same_sums,      // same_values, except that sums that grow in place add their parts in a different order
  same_outputs,  // both pass check_program(), and op for op have equal symbolic outputs in both iterations; an exchange
                 // may have a different shift, and an add a different number of inputs, for example extra zeros
};

std::string_view name_of(Equivalence equivalence);

/// Returns why `a` and `b` are equivalent; nullopt when no proof of equivalence is found. Requires `a` and `b` to have
/// the same mesh, tensors and buffers. `now` has an entry for each op of `a`: its id in `b`. If `now` is empty, ids are
/// unchanged.
std::optional<Equivalence> equivalence_of(const Program& a, const Program& b, std::span<const OpId> now = {});

/// Compares one program with many others.
class Equivalences {
 public:
  /// Keeps references to all arguments, which must outlive this object. `trace` has the values of `a`, made with
  /// `sums`. Requires `a` to have passed check_program().
  Equivalences(const Program& a, const Trace& trace, Sums& sums);

  /// Returns the result of equivalence_of(). Requires `b` to have passed check_program().
  [[nodiscard]] std::optional<Equivalence> with(const Program& b, std::span<const OpId> now) const;

 private:
  const Program& a_;
  const Trace& trace_;
  Sums& sums_;
  Matching matching_;
  std::vector<Order> orders_;  // one for all ranks, or by rank
};

inline bool equivalent(const Program& a, const Program& b) { return equivalence_of(a, b).has_value(); }

}  // namespace commfuse
