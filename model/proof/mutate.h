// SPDX-License-Identifier: Apache-2.0
// Every small mistake a generator's author could make, one at a time: the test of check_program().
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/program/program.h"

namespace commfuse {

enum class MutationKind : std::uint8_t {
  shift,       // an exchange with another peer
  offset,      // an index that is off by one on the ring
  position,    // a region one row or column further, or an attention's queries one row
  buffer,      // another buffer of the same extents
  wait,        // a wait dropped
  accumulate,  // adding instead of overwriting, or the reverse
  add_input,   // an input of an add dropped or taken twice
  removal,     // an op left out; what waited for it waits for what it waited for
  lane,        // an op on another lane of the program
  order,       // two neighbours swapped, unless the second waits for the first
};

inline constexpr std::array all_mutation_kinds{MutationKind::shift,     MutationKind::offset,  MutationKind::position,
                                               MutationKind::buffer,    MutationKind::wait,    MutationKind::accumulate,
                                               MutationKind::add_input, MutationKind::removal, MutationKind::lane,
                                               MutationKind::order};

std::string_view name_of(MutationKind kind);

struct Mutation {
  MutationKind kind = MutationKind::shift;
  std::string description;  // "op 3 (exchange): shift 2 instead of 1"
  Program program;
  std::vector<OpId> now{};  // by op of the original: its id in `program`; empty: as before (a removal tells no more)
};

/// visit(mutation) for all single mutations of a program that passed check_program(), in the order of its ops. Each
/// still holds together: ids, extents and shapes fit; regions may leave their buffers only by a term of their index.
/// There is one mutant at a time: it is gone when visit returns.
void for_each_mutation(const Program& program, const std::function<void(const Mutation&)>& visit);

/// All of them together.
std::vector<Mutation> mutations_of(const Program& program);

/// Why two programs do the same, when it can be proved.
enum class Equivalence : std::uint8_t {
  same_accesses,  // the same ops in the same order on the same lanes and regions on every rank, and the same waits
  same_order,     // the same ops on the same regions with the same partners, and on every rank the same ops are ordered
                  // before the same, by whatever waits and lanes
  same_values,    // both pass check_program(), and op for op take in and put out the same symbolic values in both
                  // iterations: only where they keep them differs
  same_sums,      // as same_values, but sums that grow in place take in the same parts in another order
  same_outputs,   // both pass check_program(), and op for op put out the same symbolic values in both iterations; an
                  // exchange may go by another shift and an add take another number of inputs, as zeros may
};

std::string_view name_of(Equivalence equivalence);

/// Nothing when it cannot be proved that they do the same. Requires programs of one mesh, tensors and buffers. `now` is
/// by op of `a` its id in `b`; empty: ids are the same.
std::optional<Equivalence> equivalence_of(const Program& a, const Program& b, std::span<const OpId> now = {});

inline bool equivalent(const Program& a, const Program& b) { return equivalence_of(a, b).has_value(); }

}  // namespace commfuse
