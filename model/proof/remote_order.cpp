// SPDX-License-Identifier: Apache-2.0
#include "model/proof/remote_order.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

constexpr std::size_t iterations = 2;
constexpr std::size_t max_entries = std::size_t{1} << 26;

std::size_t entries(const Program& program, Ranks which) {
  const auto ranks = static_cast<std::size_t>(program.mesh.ranks());
  return iterations * program.ops.size() * (which == Ranks::first ? 1 : ranks) * ranks * program.lanes.size();
}

}  // namespace

bool RemoteOrder::fits(const Program& program, Ranks which) { return entries(program, which) <= max_entries; }

RemoteOrder::RemoteOrder(const Program& program, const Matching& matching, std::span<const Post> posts, Ranks which)
    : program_(program),
      matching_(matching),
      together_(which == Ranks::first),
      lanes_(program.lanes.size()),
      width_(static_cast<std::size_t>(program.mesh.ranks()) * lanes_),
      ended_(program.ops.size() * (together_ ? 1 : static_cast<std::size_t>(program.mesh.ranks())), 0),
      length_(width_, 0),
      last_(width_, OpId{-1}),
      clocks_(entries(program, which), 0) {
  check(fits(program, which), "the clocks of a program fit into memory");
  for (const Post& post : posts) {
    const std::size_t lane = program.ops[position(post.op)].lane;
    ended_[node(post.rank, post.op)] = ++length_[static_cast<std::size_t>(stored(post.rank)) * lanes_ + lane];
  }
  for (std::int32_t iteration = 0; iteration < static_cast<std::int32_t>(iterations); ++iteration) {
    for (const Post& posted : posts) {
      post({posted.rank, posted.op, iteration});
    }
  }
}

/// Between iterations a rank waits for all its lanes: the first op of a lane waits for the last op of every lane.
void RemoteOrder::post(const Occurrence& occurrence) {
  const Op& op = program_.ops[position(occurrence.op)];
  const Clock clock = clock_of(occurrence);
  const std::size_t first_lane = static_cast<std::size_t>(stored(occurrence.rank)) * lanes_;
  OpId& before = last_[first_lane + op.lane];
  if (ended_[node(occurrence.rank, occurrence.op)] > 1) {
    learn_end({occurrence.rank, before, occurrence.iteration}, clock);
  } else if (occurrence.iteration > 0) {
    for (std::size_t op_before = 0; op_before < program_.ops.size(); ++op_before) {
      const OpId id{static_cast<std::int32_t>(op_before)};
      const std::int32_t place = ended_[node(occurrence.rank, id)];
      if (place > 0 && place == length_[first_lane + program_.ops[op_before].lane]) {
        learn_end({occurrence.rank, id, occurrence.iteration - 1}, clock);
      }
    }
  }
  for (const OpId wait : program_.waits_of(op)) {
    if (ended_[node(occurrence.rank, wait)] > 0) {
      learn_end({occurrence.rank, wait, occurrence.iteration}, clock);
    }
  }
  before = occurrence.op;
}

void RemoteOrder::learn_end(const Occurrence& ended, Clock clock) {
  learn(clock, clock_of(ended), 0, 0);
  learn_from_partners(ended, clock);
  std::int32_t& lane_count = clock[program_.ops[position(ended.op)].lane];
  lane_count = std::max(lane_count, count_of(ended));
}

void RemoteOrder::learn_from_partners(const Occurrence& ended, Clock clock) {
  const Shape& shape = program_.shapes[program_.ops[position(ended.op)].shape];
  if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
    if (exchange->receives) {
      const Occurrence sender{source_of(program_, *exchange, ended.rank),
                              OpId{matching_.sender(stored(ended.rank), ended.op)}, ended.iteration};
      learn(clock, clock_of(sender), exchange->axis, -exchange->shift);
    }
    if (exchange->sends && exchange->protocol == Protocol::rendezvous) {
      const Occurrence receiver{target_of(program_, *exchange, ended.rank),
                                OpId{matching_.receiver(stored(ended.rank), ended.op)}, ended.iteration};
      learn(clock, clock_of(receiver), exchange->axis, exchange->shift);
    }
  } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
    const std::int32_t extent = program_.mesh.axes[static_cast<std::size_t>(collective->axis)].extent;
    for (std::int32_t further = 1; further < extent; ++further) {
      const Rank member = program_.mesh.shifted(ended.rank, collective->axis, further);
      learn(clock, clock_of({member, ended.op, ended.iteration}), collective->axis, further);
    }
  }
}

/// Merges the clock of the rank `shift` ahead on `axis`, translated to displacements from this rank.
void RemoteOrder::learn(Clock clock, const std::int32_t* other, int axis, std::int32_t shift) {
  if (shift == 0) {
    std::transform(clock, clock + width_, other, clock, [](std::int32_t a, std::int32_t b) { return std::max(a, b); });
    return;
  }
  std::vector<Rank>& moved = shifted_[{axis, shift}];
  for (Rank rank = static_cast<Rank>(moved.size()); rank < program_.mesh.ranks(); ++rank) {
    moved.push_back(program_.mesh.shifted(rank, axis, shift));
  }
  for (const Rank seen : moved) {
    std::int32_t* const to = clock + static_cast<std::size_t>(seen) * lanes_;
    for (std::size_t lane = 0; lane < lanes_; ++lane, ++other) {
      to[lane] = std::max(to[lane], *other);
    }
  }
}

std::int32_t RemoteOrder::count_of(const Occurrence& occurrence) const {
  const std::size_t lane = program_.ops[position(occurrence.op)].lane;
  return ended_[node(occurrence.rank, occurrence.op)] +
         occurrence.iteration * length_[static_cast<std::size_t>(stored(occurrence.rank)) * lanes_ + lane];
}

/// Returns `to` relative to `from`: the rank at the differences of their coordinates.
Rank RemoteOrder::displacement(Rank from, Rank to) const {
  const Coordinates from_coordinates = program_.mesh.coordinates(from);
  for (std::size_t axis = 0; axis < program_.mesh.axes.size(); ++axis) {
    to = program_.mesh.shifted(to, static_cast<int>(axis), -from_coordinates[axis]);
  }
  return to;
}

bool RemoteOrder::before(const Occurrence& first, const Occurrence& second) const {
  const auto seen = static_cast<std::size_t>(displacement(second.rank, first.rank));
  return clocks_[place_of(second) + seen * lanes_ + program_.ops[position(first.op)].lane] >= count_of(first);
}

}  // namespace commfuse
