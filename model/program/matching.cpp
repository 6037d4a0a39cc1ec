// SPDX-License-Identifier: Apache-2.0
#include "model/program/matching.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

namespace commfuse {

namespace {

/// One half of an exchange. On a channel the k-th send meets the k-th receive.
struct Half {
  std::array<std::int32_t, 3> channel{};  // lane, axis, shift if all ranks run all ops; otherwise lane, source, target
  std::size_t entry = 0;                  // index in the tables of Matching
  friend bool operator<(const Half& a, const Half& b) {
    return a.channel != b.channel ? a.channel < b.channel : a.entry < b.entry;
  }
};
using Halves = std::vector<Half>;

bool same_load(const ExchangeShape& a, const ExchangeShape& b) {
  return a.rows == b.rows && a.columns == b.columns && a.wire == b.wire;
}

/// Sorts the halves, which are often in order already.
void put_in_order(Halves& halves) {
  if (!std::is_sorted(halves.begin(), halves.end())) {
    std::sort(halves.begin(), halves.end());
  }
}

/// `where` names the channel in messages.
template <class Where>
void pair_up(const Program& program, Halves& sends, Halves& receives, const Where& where, Matching& matching) {
  put_in_order(sends);
  put_in_order(receives);
  const auto op_at = [&](std::size_t entry) {
    return OpId{static_cast<std::int32_t>(matching.uniform ? entry : entry % matching.ops)};
  };
  const auto words = [&](const Half& half) { return op_in_words(program, op_at(half.entry)); };
  auto send = sends.begin();
  auto receive = receives.begin();
  while (send != sends.end() || receive != receives.end()) {
    const bool sending = receive == receives.end() || (send != sends.end() && send->channel <= receive->channel);
    const auto channel = sending ? send->channel : receive->channel;
    const auto sends_more = [&] { return send != sends.end() && send->channel == channel; };
    const auto receives_more = [&] { return receive != receives.end() && receive->channel == channel; };
    for (; sends_more() && receives_more(); ++send, ++receive) {
      const ExchangeShape& sent = *exchange_of(program, program.ops[position(op_at(send->entry))]);
      const ExchangeShape& received = *exchange_of(program, program.ops[position(op_at(receive->entry))]);
      if (!same_load(sent, received) || sent.protocol != received.protocol) {
        matching.problems.push_back(
            fmt::format("{} and {} meet {} but do not {}", words(*send), words(*receive), where(channel),
                        same_load(sent, received) ? "follow the same protocol" : "carry the same extents"));
      }
      matching.receive_of_send[send->entry] = static_cast<std::int32_t>(position(op_at(receive->entry)));
      matching.send_of_receive[receive->entry] = static_cast<std::int32_t>(position(op_at(send->entry)));
    }
    for (; sends_more(); ++send) {
      matching.problems.push_back(
          fmt::format("the send of {} {} has no matching receive", words(*send), where(channel)));
    }
    for (; receives_more(); ++receive) {
      matching.problems.push_back(
          fmt::format("the receive of {} {} has no matching send", words(*receive), where(channel)));
    }
  }
}

std::string lane_in_words(const Program& program, std::int32_t lane) {
  constexpr std::array<const char*, 5> names{"compute", "aux", "comm", "copy", "kernel"};
  const Lane& named = program.lanes[static_cast<std::size_t>(lane)];
  return fmt::format("{}{}", names[static_cast<std::size_t>(named.kind)],
                     named.number == 0 ? "" : std::to_string(named.number));
}

bool has_one_half(const Shape& shape) {
  const auto* exchange = std::get_if<ExchangeShape>(&shape);
  return exchange != nullptr && exchange->sends != exchange->receives;
}

/// All ranks run all ops, so lane, axis and shift identify a channel.
void match_uniform(const Program& program, Matching& matching) {
  if (std::none_of(program.shapes.begin(), program.shapes.end(), has_one_half)) {
    // On every channel, the k-th send and the k-th receive are halves of one op.
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const ExchangeShape* exchange = exchange_of(program, program.ops[op]);
      if (exchange != nullptr && exchange->sends) {
        matching.receive_of_send[op] = matching.send_of_receive[op] = static_cast<std::int32_t>(op);
      }
    }
    return;
  }
  Halves sends;
  Halves receives;
  sends.reserve(program.ops.size());
  receives.reserve(program.ops.size());
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    if (const ExchangeShape* exchange = exchange_of(program, program.ops[op])) {
      const std::int32_t axis = exchange->shift == 0 ? -1 : exchange->axis;
      const Half half{{program.ops[op].lane, axis, exchange->shift}, op};
      if (exchange->sends) {
        sends.push_back(half);
      }
      if (exchange->receives) {
        receives.push_back(half);
      }
    }
  }
  const auto where = [&](const auto& channel) {
    const Rank to = channel[1] < 0 ? Rank{0} : program.mesh.shifted(Rank{0}, channel[1], channel[2]);
    return fmt::format("on lane {} by shift {} (rank 0 to rank {}, and likewise on every rank)",
                       lane_in_words(program, channel[0]), channel[2], to);
  };
  pair_up(program, sends, receives, where, matching);
}

void match_by_rank(const Program& program, Matching& matching) {
  Halves sends;
  Halves receives;
  for (Rank rank = 0; rank < program.mesh.ranks(); ++rank) {
    const Coordinates coordinates = program.mesh.coordinates(rank);
    for (std::size_t op = 0; op < program.ops.size(); ++op) {
      const ExchangeShape* exchange = exchange_of(program, program.ops[op]);
      if (exchange == nullptr || !program.ops[op].where.holds(coordinates)) {
        continue;
      }
      const std::size_t entry = static_cast<std::size_t>(rank) * matching.ops + op;
      if (exchange->sends) {
        sends.push_back({{program.ops[op].lane, rank, target_of(program, *exchange, rank)}, entry});
      }
      if (exchange->receives) {
        receives.push_back({{program.ops[op].lane, source_of(program, *exchange, rank), rank}, entry});
      }
    }
  }
  const auto where = [&](const auto& channel) {
    return fmt::format("on lane {} from rank {} to rank {}", lane_in_words(program, channel[0]), channel[1],
                       channel[2]);
  };
  pair_up(program, sends, receives, where, matching);
}

/// Returns "rank 0 does, rank 1 does not" for the first group that is split.
std::string who_joins(const Program& program, const Op& op, const CollectiveShape& collective) {
  std::optional<Rank> joins;
  std::optional<Rank> stays;
  const std::int32_t extent = program.mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  for (std::int32_t i = extent; i-- > 0;) {
    const Rank rank = program.mesh.member(Rank{0}, collective.axis, i);
    (op.where.holds(program.mesh.coordinates(rank)) ? joins : stays) = rank;
  }
  return fmt::format("rank {} does, rank {} does not", *joins, *stays);
}

/// Checks that either all ranks of a collective's group take part in it or none does.
void match_collectives(const Program& program, Matching& matching) {
  if (matching.uniform) {
    return;
  }
  for (std::size_t op = 0; op < program.ops.size(); ++op) {
    const auto* collective = std::get_if<CollectiveShape>(&program.shapes[program.ops[op].shape]);
    if (collective != nullptr && splits_groups(program, program.ops[op], *collective)) {
      matching.problems.push_back(fmt::format(
          "only some ranks of its group join {}: {}; a collective needs all ranks along its axis",
          op_in_words(program, OpId{static_cast<std::int32_t>(op)}), who_joins(program, program.ops[op], *collective)));
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

bool splits_groups(const Program& program, const Op& op, const CollectiveShape& collective) {
  if (op.where.relation == Relation::always || op.where.axis != collective.axis) {
    return false;
  }
  const std::int32_t extent = program.mesh.axes[static_cast<std::size_t>(collective.axis)].extent;
  std::int32_t joining = 0;
  for (std::int32_t i = 0; i < extent; ++i) {
    const Rank rank = program.mesh.member(Rank{0}, collective.axis, i);
    joining += op.where.holds(program.mesh.coordinates(rank)) ? 1 : 0;
  }
  return joining > 0 && joining < extent;
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
