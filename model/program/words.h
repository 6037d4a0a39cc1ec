// SPDX-License-Identifier: Apache-2.0
// Words of the schedule text: one table per kind, used for reading and writing.
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <utility>

#include "model/program/program.h"

namespace commfuse::words {

inline constexpr std::string_view schema = "commfuse.schedule/1";

template <class Kind, std::size_t count>
using Table = std::array<std::pair<Kind, std::string_view>, count>;

inline constexpr Table<Function, 7> functions{{{Function::add, "add"},
                                               {Function::copy, "copy"},
                                               {Function::swiglu, "swiglu"},
                                               {Function::gelu, "gelu"},
                                               {Function::norm, "norm"},
                                               {Function::residual, "residual"},
                                               {Function::zero, "zero"}}};
inline constexpr Table<BufferRole, 4> roles{{{BufferRole::input, "input"},
                                             {BufferRole::weight, "weight"},
                                             {BufferRole::output, "output"},
                                             {BufferRole::scratch, "scratch"}}};
inline constexpr Table<LaneKind, 5> lanes{{{LaneKind::compute, "compute"},
                                           {LaneKind::aux, "aux"},
                                           {LaneKind::comm, "comm"},
                                           {LaneKind::copy, "copy"},
                                           {LaneKind::kernel, "kernel"}}};
inline constexpr Table<Purpose, 3> purposes{
    {{Purpose::essential, "essential"}, {Purpose::local, "local"}, {Purpose::communication, "communication"}}};
inline constexpr Table<OpKind, 5> ops{{{OpKind::gemm, "gemm"},
                                       {OpKind::attention, "attention"},
                                       {OpKind::elementwise, "elementwise"},
                                       {OpKind::exchange, "exchange"},
                                       {OpKind::collective, "collective"}}};
inline constexpr Table<CollectiveKind, 4> collectives{{{CollectiveKind::all_gather, "all_gather"},
                                                       {CollectiveKind::reduce_scatter, "reduce_scatter"},
                                                       {CollectiveKind::all_reduce, "all_reduce"},
                                                       {CollectiveKind::all_to_all, "all_to_all"}}};
inline constexpr Table<Protocol, 3> protocols{
    {{Protocol::rendezvous, "rendezvous"}, {Protocol::push, "push"}, {Protocol::pull, "pull"}}};
/// Halves of a credit that an op has.
enum class Credit : std::uint8_t { send, receive, both };
inline constexpr Table<Credit, 3> credits{
    {{Credit::send, "send"}, {Credit::receive, "receive"}, {Credit::both, "both"}}};
inline constexpr Table<Relation, 4> relations{
    {{Relation::equal, "="}, {Relation::not_equal, "!="}, {Relation::less, "<"}, {Relation::at_least, ">="}}};

/// Returns the purpose of ops of a kind if the text states none.
constexpr Purpose usual_purpose(OpKind kind) {
  switch (kind) {
    case OpKind::gemm:
    case OpKind::attention: return Purpose::essential;
    case OpKind::elementwise: return Purpose::local;
    case OpKind::exchange:
    case OpKind::collective: return Purpose::communication;
  }
  return Purpose::essential;
}

template <class Kind, std::size_t count>
constexpr std::string_view word(const Table<Kind, count>& table, Kind kind) {
  for (const auto& [value, name] : table) {
    if (value == kind) {
      return name;
    }
  }
  return "?";
}

template <class Kind, std::size_t count>
constexpr std::optional<Kind> kind(const Table<Kind, count>& table, std::string_view word) {
  for (const auto& [value, name] : table) {
    if (name == word) {
      return value;
    }
  }
  return std::nullopt;
}

}  // namespace commfuse::words
