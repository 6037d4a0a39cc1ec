// SPDX-License-Identifier: Apache-2.0
// Every small mistake a generator's author could make, one at a time: the test of check_program().
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/schedule/program.h"

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
};

std::string_view name_of(MutationKind kind);

struct Mutation {
  MutationKind kind = MutationKind::shift;
  std::string description;  // "op 3 (exchange): shift 2 instead of 1"
  Program program;
};

/// All single mutations of a program that passed check_program(), in the order of its ops. Each still holds together:
/// ids, extents and shapes fit; regions may leave their buffers only by a term of their index, and
/// queries their keys.
std::vector<Mutation> mutations_of(const Program& program);

/// Why two programs do the same, when it can be proved.
enum class Equivalence : std::uint8_t {
  same_accesses,  // the same ops on the same regions on every rank, and the same waits
  same_order,     // the same but for waits, and on every rank the same ops are ordered before the same
  same_values,    // both pass check_program(), and op for op take in and put out the same symbolic values in both
                  // iterations: only where they keep them differs
};

std::string_view name_of(Equivalence equivalence);

/// Nothing when it cannot be proved that they do the same. Requires programs of one mesh, tensors and buffers.
std::optional<Equivalence> equivalence_of(const Program& a, const Program& b);

inline bool equivalent(const Program& a, const Program& b) { return equivalence_of(a, b).has_value(); }

}  // namespace commfuse
