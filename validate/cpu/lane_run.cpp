// SPDX-License-Identifier: Apache-2.0
#include "validate/cpu/lane_run.h"

#include <algorithm>
#include <thread>

namespace commfuse::validate {

namespace {

/// A sleeping thread checks at least this often whether the run was given up.
constexpr std::chrono::nanoseconds longest_sleep = std::chrono::milliseconds(50);

Bytes wire_bytes(const Sizes& sizes, Extent rows, Extent columns, DType wire) {
  return {sizes.elements(rows) * sizes.elements(columns) * bytes_of(wire)};
}

}  // namespace

void LaneRun::run() {
  for (int iteration = 0; iteration < shared_.run.iterations; ++iteration) {
    for (const std::int32_t command : commands_) {
      run_command({rank_, command}, iteration);
    }
  }
}

void LaneRun::run_command(Station at, int iteration) {
  chaos_.disturb();
  shared_.board.await_turn(at, iteration);
  if (!shared_.issued.empty() && iteration == 0) {
    const Duration issued = shared_.issued[static_cast<std::size_t>(at.rank)][static_cast<std::size_t>(at.command)];
    sleep_until(shared_.release + stretched(issued, shared_.options.dilation));
  }
  const WallTime posted = std::max(WallClock::now(), shared_.release);
  const bool last = shared_.board.post(at, iteration, posted);
  chaos_.disturb();
  switch (shared_.board.command(at).kind) {
    case OpKind::gemm:
    case OpKind::elementwise:
    case OpKind::attention: compute(at, posted); return;
    case OpKind::exchange: exchange(at, iteration, posted); return;
    case OpKind::collective:
      if (last) {
        meet(at);
      } else {
        shared_.board.await_end(at, iteration);
      }
      return;
  }
}

void LaneRun::compute(Station at, WallTime posted) {
  if (shared_.memory == nullptr) {
    sleep_until(priced_end(at, posted));
  } else {
    switch (shared_.board.command(at).kind) {
      case OpKind::gemm: run_gemm(shared_.program, *shared_.memory, place(at), shared_.run); break;
      case OpKind::elementwise:
        run_elementwise(shared_.program, shared_.sizes, *shared_.memory, place(at), shared_.run);
        break;
      default: run_attention(shared_.program, shared_.sizes, *shared_.memory, place(at), shared_.run); break;
    }
    chaos_.disturb();
  }
  shared_.board.end(at, posted, WallClock::now());
}

void LaneRun::exchange(Station at, int iteration, WallTime posted) {
  const Command& command = shared_.board.command(at);
  if (command.target >= 0) {
    send(at, iteration, posted);
  }
  if (command.source >= 0) {
    receive(at, iteration);
  }
  shared_.board.end(at, std::nullopt, WallClock::now());
}

/// In a rendezvous, the sender moves the data once both ends are ready; in a push, the sender moves the data
/// immediately; in a pull, the receiver moves the data.
void LaneRun::send(Station at, int iteration, WallTime posted) {
  const Command& command = shared_.board.command(at);
  const Station to = shared_.board.partner(command.target, command.target_op);
  switch (std::get<ExchangeShape>(shared_.program.shapes[command.shape]).protocol) {
    case Protocol::rendezvous: move(at, at, to, shared_.board.await_posted(at, to, iteration)); return;
    case Protocol::push: move(at, at, to, posted); return;
    case Protocol::pull: shared_.board.show(at); return;
  }
}

void LaneRun::receive(Station at, int iteration) {
  const Command& command = shared_.board.command(at);
  if (std::get<ExchangeShape>(shared_.program.shapes[command.shape]).protocol == Protocol::pull) {
    const Station from = shared_.board.partner(command.source, command.source_op);
    shared_.board.await_shown(at, from, iteration);
    move(at, from, at, shared_.board.await_posted(at, from, iteration));
  }
  shared_.board.await_delivered(at, iteration);
}

void LaneRun::move(Station mover, Station from, Station to, WallTime begun) {
  if (shared_.memory == nullptr) {
    sleep_until(priced_end(from, begun));
  } else if (!shared_.board.command(from).inputs.empty()) {  // a credit carries no data
    run_transfer(shared_.program, *shared_.memory, place(from), place(to));
    if (const std::optional<Pace>& pace = shared_.options.pace) {
      const auto& shape = std::get<ExchangeShape>(shared_.program.shapes[shared_.board.command(from).shape]);
      Bucket& bucket = shared_.buckets[static_cast<std::size_t>(from.rank)];
      WallTime departure = begun;
      for (Bytes remaining = wire_bytes(shared_.sizes, shape.rows, shape.columns, shape.wire); remaining.count > 0;
           remaining.count -= Bucket::chunk) {
        departure = bucket.take({std::min(remaining.count, Bucket::chunk)}, begun, pace->bandwidth);
        sleep_until(departure);
      }
      sleep_until(departure + stretched(pace->latency, 1.0));
    }
    chaos_.disturb();
  }
  shared_.board.deliver(mover, to, begun);
}

void LaneRun::meet(Station at) {
  const Command& command = shared_.board.command(at);
  std::vector<Station> members;
  std::vector<Place> places;
  for (const Rank member : command.group) {
    members.push_back(shared_.board.partner(member, command.op));
    places.push_back(place(members.back()));
  }
  const WallTime begun = shared_.board.last_posted(members);
  if (shared_.memory == nullptr) {
    WallTime end = begun;
    for (const Station member : members) {
      end = std::max(end, priced_end(member, begun));
    }
    sleep_until(end);
  } else {
    run_collective(shared_.program, *shared_.memory, places, shared_.run);
    if (shared_.options.pace) {
      const auto& shape = std::get<CollectiveShape>(shared_.program.shapes[command.shape]);
      const Bytes total = wire_bytes(shared_.sizes, shape.rows, shape.columns, shape.wire);
      sleep_until(begun + stretched(ring_time(*shared_.options.pace, total, static_cast<int>(members.size()),
                                              shape.kind == CollectiveKind::all_reduce),
                                    1.0));
    }
    chaos_.disturb();
  }
  shared_.board.end_all(members, begun, WallClock::now());
}

WallTime LaneRun::priced_end(Station at, WallTime begun) const {
  const Duration price = shared_.options.costs->of(at.rank, position(shared_.board.command(at).op));
  return begun + stretched(price, shared_.options.dilation);
}

void LaneRun::sleep_until(WallTime when) const {
  for (WallTime now = WallClock::now(); now < when; now = WallClock::now()) {
    if (shared_.board.given_up()) {
      throw GivenUp{};
    }
    if (when - now > shared_.options.watch) {
      std::this_thread::sleep_until(std::min(when - shared_.options.watch, now + longest_sleep));
    } else {
      std::this_thread::yield();
    }
  }
}

}  // namespace commfuse::validate
