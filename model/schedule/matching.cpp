// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/matching.h"

#include <fmt/format.h>

#include <array>
#include <map>
#include <tuple>

namespace commfuse {

namespace {

/// The halves of one channel in program order: sends at one end, receives at the other.
struct Channel {
  std::vector<std::size_t> sends, receives;  // places in the matching's tables
};

const ExchangeShape* exchange_of(const Program& program, const Op& op) {
  return std::get_if<ExchangeShape>(&program.shapes[op.shape]);
}

bool same_load(const ExchangeShape& a, const ExchangeShape& b) {
  return a.rows == b.rows && a.columns == b.columns && a.wire == b.wire;
}

/// Pairs up one channel; `where` says which channel, for messages.
void pair_up(const Program& program, const Channel& channel, const std::string& where, Matching& matching) {
  const auto op_at = [&](std::size_t place) { return OpId{static_cast<std::int32_t>(place % matching.ops)}; };
  const std::size_t pairs = std::min(channel.sends.size(), channel.receives.size());
  for (std::size_t k = 0; k < pairs; ++k) {
    const OpId send = op_at(channel.sends[k]);
    const OpId receive = op_at(channel.receives[k]);
    if (!same_load(*exchange_of(program, program.ops[position(send)]),
                   *exchange_of(program, program.ops[position(receive)]))) {
      matching.problems.push_back(fmt::format("{} and {} meet {} but do not carry the same extents",
                                              op_in_words(program, send), op_in_words(program, receive), where));
    }
    matching.receive_of_send[channel.sends[k]] = static_cast<std::int32_t>(position(receive));
    matching.send_of_receive[channel.receives[k]] = static_cast<std::int32_t>(position(send));
  }
  for (std::size_t k = pairs; k < channel.sends.size(); ++k) {
    matching.problems.push_back(
        fmt::format("the send of {} {} meets no receive", op_in_words(program, op_at(channel.sends[k])), where));
  }
  for (std::size_t k = pairs; k < channel.receives.size(); ++k) {
    matching.problems.push_back(
        fmt::format("the receive of {} {} meets no send", op_in_words(program, op_at(channel.receives[k])), where));
  }
}

std::string lane_in_words(const Program& program, std::uint16_t lane) {
  constexpr std::array<const char*, 5> names{"compute", "aux", "comm", "copy", "kernel"};
  const Lane& named = program.lanes[lane];
  return fmt::format("{}{}", names[static_cast<std::size_t>(named.kind)],
                     named.number == 0 ? "" : std::to_string(named.number));
}

/// All ranks run all ops: channels are told apart by lane, axis and shift.
void match_uniform(const Program& program, Matching& matching) {
  std::map<std::tuple<std::uint16_t, int, std::int32_t>, Channel> channels;
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (const ExchangeShape* exchange = exchange_of(program, program.ops[op])) {
      Channel& channel = channels[{program.ops[op].lane, exchange->shift == 0 ? -1 : exchange->axis, exchange->shift}];
      if (exchange->sends) {
        channel.sends.push_back(op);
      }
      if (exchange->receives) {
        channel.receives.push_back(op);
      }
    }
  }
  for (const auto& [key, channel] : channels) {
    pair_up(program, channel,
            fmt::format("on lane {} by shift {}", lane_in_words(program, std::get<0>(key)), std::get<2>(key)),
            matching);
  }
}

void match_by_rank(const Program& program, Matching& matching) {
  std::map<std::tuple<std::uint16_t, Rank, Rank>, Channel> channels;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    const Coordinates here = program.mesh.coordinates(rank);
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const ExchangeShape* exchange = exchange_of(program, program.ops[op]);
      if (exchange == nullptr || !program.ops[op].where.holds(here)) {
        continue;
      }
      const std::size_t place = static_cast<std::size_t>(rank) * matching.ops + op;
      if (exchange->sends) {
        channels[{program.ops[op].lane, rank, target_of(program, *exchange, rank)}].sends.push_back(place);
      }
      if (exchange->receives) {
        channels[{program.ops[op].lane, source_of(program, *exchange, rank), rank}].receives.push_back(place);
      }
    }
  }
  for (const auto& [key, channel] : channels) {
    pair_up(program, channel,
            fmt::format("on lane {} from rank {} to rank {}", lane_in_words(program, std::get<0>(key)),
                        std::get<1>(key), std::get<2>(key)),
            matching);
  }
}

/// A collective's group joins as a whole or not at all.
void match_collectives(const Program& program, Matching& matching) {
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const auto* collective = std::get_if<CollectiveShape>(&program.shapes[program.ops[op].shape]);
    if (collective != nullptr && program.ops[op].where.relation != Relation::always &&
        program.ops[op].where.axis == collective->axis) {
      matching.problems.push_back(
          fmt::format("only some ranks of its group join {}; a collective needs all ranks along its axis",
                      op_in_words(program, OpId{static_cast<std::int32_t>(op)})));
    }
  }
}

}  // namespace

Matching match(const Program& program) {
  Matching matching;
  matching.ops = program.ops.size();
  for (const Op& op : program.ops) {
    matching.uniform = matching.uniform && op.where.relation == Relation::always;
  }
  const std::size_t entries =
      matching.uniform ? matching.ops : matching.ops * static_cast<std::size_t>(program.mesh.ranks());
  matching.receive_of_send.assign(entries, -1);
  matching.send_of_receive.assign(entries, -1);
  matching.uniform ? match_uniform(program, matching) : match_by_rank(program, matching);
  match_collectives(program, matching);
  return matching;
}

Rank target_of(const Program& program, const ExchangeShape& exchange, Rank rank) {
  return program.mesh.shifted(rank, exchange.axis, exchange.shift);
}

Rank source_of(const Program& program, const ExchangeShape& exchange, Rank rank) {
  return program.mesh.shifted(rank, exchange.axis, -exchange.shift);
}

std::string op_in_words(const Program& program, OpId op) {
  constexpr std::array<const char*, 5> names{"gemm", "attention", "elementwise", "exchange", "collective"};
  return fmt::format("op {} ({})", position(op), names[static_cast<std::size_t>(program.ops[position(op)].kind)]);
}

}  // namespace commfuse
