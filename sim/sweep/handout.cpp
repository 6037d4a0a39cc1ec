// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/handout.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>
#include <span>
#include <stdexcept>
#include <string_view>
#include <thread>

#include "sim/parallel/parallel.h"
#include "sim/sweep/point_team.h"

namespace commfuse {

namespace {

enum class MessageKind : unsigned char {
  begin,      // from the leader, with the digest of its sweep
  points,     // from the leader, with points to run
  end,        // from the leader: exit
  simulated,  // to the leader, with rows; requests more points
  failed,     // to the leader, with the reason
};

/// Number of chunks that a process holds in advance, so that it never waits for the leader.
constexpr std::size_t chunks_ahead = 2;
/// Largest number of points per thread in one chunk.
constexpr std::size_t max_points_per_thread = 128;
/// Points per thread that the leader runs between two checks for messages.
constexpr std::size_t leader_chunk = 8;

/// Returns the number of points in a chunk: at least one point per thread, so that no thread is idle, unless other
/// processes would then get nothing.
std::size_t chunk_of(std::size_t points, std::size_t processes, std::size_t threads) {
  const std::size_t least = std::clamp<std::size_t>(points / (processes * chunks_ahead), 1, threads);
  return std::clamp<std::size_t>(points / (processes * 16), least, max_points_per_thread * threads);
}

Payload payload_of(MessageKind kind, std::string_view text = {}) {
  Payload bytes(1 + text.size());
  bytes.front() = static_cast<std::byte>(kind);
  std::transform(text.begin(), text.end(), bytes.begin() + 1, [](char c) { return static_cast<std::byte>(c); });
  return bytes;
}

MessageKind kind_of(const Payload& bytes) { return static_cast<MessageKind>(bytes.at(0)); }

std::string text_of(const Payload& bytes) {
  std::string text(bytes.size() - 1, '\0');
  std::transform(bytes.begin() + 1, bytes.end(), text.begin(), [](std::byte b) { return static_cast<char>(b); });
  return text;
}

void put(std::uint64_t number, std::string& out) {
  for (int i = 0; i < 8; ++i) {
    out += static_cast<char>(number >> (8 * i) & 0xff);
  }
}

std::uint64_t take_number(std::string_view& bytes) {
  if (bytes.size() < 8) {
    throw std::runtime_error("a message between processes is truncated; run the same program everywhere");
  }
  std::uint64_t number = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    number |= std::uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  bytes.remove_prefix(8);
  return number;
}

std::string packed_points(const std::vector<StoredPoint>& points) {
  std::string bytes;
  for (const StoredPoint& point : points) {
    const std::string rows = packed(point.rows);
    put(point.point, bytes);
    put(rows.size(), bytes);
    bytes += rows;
  }
  return bytes;
}

std::vector<StoredPoint> unpacked_points(std::string_view bytes) {
  std::vector<StoredPoint> points;
  while (!bytes.empty()) {
    StoredPoint& point = points.emplace_back();
    point.point = take_number(bytes);
    const std::uint64_t size = take_number(bytes);
    point.rows = unpacked(bytes.substr(0, size));
    bytes.remove_prefix(std::min<std::size_t>(size, bytes.size()));
  }
  return points;
}

void pause() { std::this_thread::sleep_for(std::chrono::microseconds(100)); }

/// Runs one process's points on its threads.
class SimulatingTeam : public PointTeam {
 public:
  explicit SimulatingTeam(const SharedSweep& sweep)
      : PointTeam(
            *sweep.list, [factory = sweep.factory] { return factory->make(); }, sweep.threads) {}
};

class Leader {
 public:
  Leader(World& world, const SharedSweep& sweep, std::span<const std::size_t> points, const TakePoint& take,
         const std::atomic<bool>* stop)
      : world_(world),
        sweep_(sweep),
        remaining_(points),
        take_(take),
        stop_(stop),
        chunk_(chunk_of(points.size(), static_cast<std::size_t>(world.processes()),
                        static_cast<std::size_t>(sweep.threads))) {}

  void run() {
    for (int other = 1; other < world_.processes(); ++other) {
      world_.send(other, payload_of(MessageKind::begin, sweep_.digest));
      for (std::size_t i = 0; i < chunks_ahead; ++i) {
        hand_out(other);
      }
    }
    SimulatingTeam team(sweep_);
    while (chunks_out_ > 0 || !remaining_.empty()) {
      if (is_stopped(stop_)) {
        remaining_ = {};
      }
      if (!take_messages()) {
        remaining_.empty() ? pause() : simulate(team);
      }
    }
  }

 private:
  void hand_out(int to) {
    if (remaining_.empty()) {
      return;
    }
    std::string numbers;
    for (const std::size_t point : next(chunk_)) {
      put(point, numbers);
    }
    world_.send(to, payload_of(MessageKind::points, numbers));
    ++chunks_out_;
  }

  void simulate(SimulatingTeam& team) {
    for (const StoredPoint& point :
         team.simulate(next(leader_chunk * static_cast<std::size_t>(sweep_.threads)), stop_)) {
      take_(point);
    }
  }

  bool take_messages() {
    bool has_received = false;
    while (const std::optional<Parcel> parcel = world_.receive()) {
      has_received = true;
      if (kind_of(parcel->bytes) == MessageKind::failed) {
        throw std::runtime_error("process " + std::to_string(parcel->from) + ": " + text_of(parcel->bytes));
      }
      --chunks_out_;
      hand_out(parcel->from);
      for (const StoredPoint& point : unpacked_points(text_of(parcel->bytes))) {
        take_(point);
      }
    }
    return has_received;
  }

  std::span<const std::size_t> next(std::size_t count) {
    const std::span<const std::size_t> taken = remaining_.first(std::min(count, remaining_.size()));
    remaining_ = remaining_.subspan(taken.size());
    return taken;
  }

  World& world_;
  const SharedSweep& sweep_;
  std::span<const std::size_t> remaining_;
  const TakePoint& take_;
  const std::atomic<bool>* stop_;
  std::size_t chunk_;
  std::size_t chunks_out_ = 0;  // number of chunks that other processes hold
};

/// Waits for the next message of the leader.
Parcel wait_for(World& world) {
  for (;;) {
    if (std::optional<Parcel> parcel = world.receive()) {
      return *std::move(parcel);
    }
    pause();
  }
}

std::vector<std::size_t> numbers_in(const std::string& text) {
  std::vector<std::size_t> numbers;
  for (std::string_view rest = text; !rest.empty();) {
    numbers.push_back(take_number(rest));
  }
  return numbers;
}

SharedSweep prepared_as(const std::string& digest, const std::function<SharedSweep()>& prepare) {
  SharedSweep sweep = prepare();
  if (sweep.digest != digest) {
    throw std::runtime_error(
        "the sweep or a file that it names differs from process 0; give all machines the same files");
  }
  return sweep;
}

}  // namespace

void dismiss(World& world) {
  for (int other = 1; other < world.processes(); ++other) {
    world.send(other, payload_of(MessageKind::end));
  }
}

void lead(World& world, const SharedSweep& sweep, const std::vector<std::size_t>& points, const TakePoint& take,
          const std::atomic<bool>* stop) {
  try {
    Leader(world, sweep, points, take, stop).run();
  } catch (...) {
    dismiss(world);
    throw;
  }
  dismiss(world);
}

void follow(World& world, const std::function<SharedSweep()>& prepare, const std::atomic<bool>* stop) {
  std::optional<SimulatingTeam> team;
  for (;;) {
    const Parcel parcel = wait_for(world);
    if (kind_of(parcel.bytes) == MessageKind::end) {
      return;
    }
    try {
      if (kind_of(parcel.bytes) == MessageKind::begin) {
        team.emplace(prepared_as(text_of(parcel.bytes), prepare));
      } else if (team) {
        world.send(0, payload_of(MessageKind::simulated,
                                 packed_points(team->simulate(numbers_in(text_of(parcel.bytes)), stop))));
      }
    } catch (const std::exception& error) {
      team.reset();
      world.send(0, payload_of(MessageKind::failed, error.what()));
    }
  }
}

}  // namespace commfuse
