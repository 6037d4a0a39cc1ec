// SPDX-License-Identifier: Apache-2.0
#include "tests/simgrid/simgrid_run.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <simgrid/s4u.hpp>
#include <string>
#include <utility>

#include "model/check.h"
#include "model/cost/shape_sizes.h"

namespace commfuse::test {

namespace {

namespace s4u = simgrid::s4u;

/// Returns settings for SimGrid's network without its additions for TCP: no window, no headers, no acknowledgements in
/// the reverse direction, and no bias against slow links.
std::vector<std::string> settings() {
  return {"simgrid",
          "--cfg=network/model:CM02",
          "--cfg=network/TCP-gamma:0",
          "--cfg=network/bandwidth-factor:1",
          "--cfg=network/latency-factor:1",
          "--cfg=network/weight-S:0",
          "--cfg=network/crosstraffic:0",
          "--cfg=surf/precision:1e-12",
          "--cfg=contexts/stack-size:128",
          "--log=root.threshold:warning"};
}

s4u::Engine engine_with(std::vector<std::string> arguments) {
  std::vector<char*> pointers;
  for (std::string& argument : arguments) {
    pointers.push_back(argument.data());
  }
  auto count = static_cast<int>(pointers.size());
  pointers.push_back(nullptr);
  return s4u::Engine(&count, pointers.data());
}

class SimGridRun {
 public:
  SimGridRun(const Lowered& lowered, const Sizes& sizes, const Fluid& fluid)
      : program_(*lowered.program),
        sizes_(sizes),
        fluid_(fluid),
        wiring_(*fluid.wiring),
        engine_(engine_with(settings())) {
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      commands_.push_back(commands_of(lowered, rank));
    }
    build_platform();
    start_lanes();
  }

  std::vector<double> ends() {
    engine_.run();
    std::vector<double> times;
    for (const std::vector<Ending>& rank_endings : endings_) {
      for (const Ending& ending : rank_endings) {
        times.push_back(ending.time);
      }
    }
    return times;
  }

 private:
  /// End of an op. `open` can be acquired once the op has ended.
  struct Ending {
    s4u::SemaphorePtr open = s4u::Semaphore::create(0);
    double time = -1.0;
  };

  void build_platform() {
    s4u::NetZone* zone = s4u::create_full_zone("machine");
    for (std::size_t rank = 0; rank < commands_.size(); ++rank) {
      hosts_.push_back(zone->create_host(fmt::format("gpu{}", rank), 1.0));
    }
    for (const double capacity : wiring_.capacity) {
      s4u::Link* link = zone->create_link(fmt::format("link{}", links_.size()), std::max(capacity, 1.0));
      links_.push_back(link->set_latency(0.0)->seal());
    }
    for (std::size_t rank = 0; rank < commands_.size(); ++rank) {
      add_routes_from(static_cast<Rank>(rank), *zone);
    }
    zone->seal();
  }

  void add_routes_from(Rank rank, s4u::NetZone& zone) {
    std::vector<Rank> routed;
    for (const Command& command : commands_[static_cast<std::size_t>(rank)]) {
      if (command.target < 0 || std::find(routed.begin(), routed.end(), command.target) != routed.end()) {
        continue;
      }
      routed.push_back(command.target);
      std::vector<s4u::LinkInRoute> route;
      for (const std::int32_t link : wiring_.links_of(stage_of(rank, command))) {
        route.emplace_back(links_[static_cast<std::size_t>(link)]);
      }
      zone.add_route(host(rank)->get_netpoint(), host(command.target)->get_netpoint(), nullptr, nullptr, route, false);
    }
  }

  void start_lanes() {
    for (const std::vector<Command>& commands : commands_) {
      endings_.emplace_back(commands.size());
    }
    for (Rank rank = 0; rank < program_.mesh.ranks(); ++rank) {
      for (std::size_t lane = 0; lane < program_.lanes.size(); ++lane) {
        s4u::Actor::create("lane", host(rank), [this, rank, lane] { run_lane(rank, lane); });
      }
    }
  }

  void run_lane(Rank rank, std::size_t lane) {
    std::vector<Ending>& endings = endings_[static_cast<std::size_t>(rank)];
    const std::vector<Command>& commands = commands_[static_cast<std::size_t>(rank)];
    for (std::size_t index = 0; index < commands.size(); ++index) {
      if (commands[index].lane != lane) {
        continue;
      }
      for (const std::int32_t wait : commands[index].waits) {
        const Ending& earlier = endings[static_cast<std::size_t>(wait)];
        earlier.open->acquire();
        earlier.open->release();  // for other waiters
      }
      run(rank, commands[index]);
      endings[index].time = s4u::Engine::get_clock();
      endings[index].open->release();
    }
  }

  void run(Rank rank, const Command& command) {
    check(command.kind != OpKind::collective, "a program simulated with SimGrid has no collectives");
    if (command.kind != OpKind::exchange) {
      s4u::this_actor::sleep_for(seconds(fluid_.costs.of(rank, position(command.op))));
      return;
    }
    s4u::ActorPtr sender;
    if (command.target >= 0) {
      sender = s4u::Actor::create("send", host(rank), [&] { send(rank, command); });
    }
    if (command.source >= 0) {
      s4u::Mailbox* mailbox = mailbox_of(command.lane, command.source, rank);
      mailbox->get<void>();  // both ends are posted
      mailbox->get<void>();  // all bytes have arrived
    }
    if (sender) {
      sender->join();
    }
  }

  void send(Rank rank, const Command& command) {
    static char payload = 0;
    s4u::Mailbox* mailbox = mailbox_of(command.lane, rank, command.target);
    mailbox->put(&payload, 0);
    s4u::this_actor::sleep_for(seconds(path_of(rank, command).latency));
    const auto& exchange = std::get<ExchangeShape>(program_.shapes[command.shape]);
    check(exchange.protocol == Protocol::rendezvous, "exchanges use the rendezvous protocol");
    const auto bytes = static_cast<std::uint64_t>(load_of(exchange, sizes_).count);
    mailbox->put_init(&payload, bytes)->set_rate(stage_of(rank, command).cap)->wait();
  }

  static s4u::Mailbox* mailbox_of(std::uint16_t lane, Rank from, Rank to) {
    return s4u::Mailbox::by_name(fmt::format("{}:{}:{}", lane, from, to));
  }
  static double seconds(Duration time) { return static_cast<double>(time.count()) * 1e-12; }
  [[nodiscard]] s4u::Host* host(Rank rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const WirePath& path_of(Rank rank, const Command& command) const {
    const WirePath* path = wiring_.path_of(rank, position(command.op));
    check(path != nullptr && path->stages == 1, "a transfer goes over wires of one stage");
    return *path;
  }
  [[nodiscard]] const WireStage& stage_of(Rank rank, const Command& command) const {
    return wiring_.stages[path_of(rank, command).first_stage];
  }

  const Program& program_;
  const Sizes& sizes_;
  const Fluid& fluid_;
  const Wiring& wiring_;
  s4u::Engine engine_;
  std::vector<s4u::Host*> hosts_;
  std::vector<s4u::Link*> links_;
  std::vector<std::vector<Command>> commands_;  // by rank
  std::vector<std::vector<Ending>> endings_;    // by rank
};

void write_all(int file, const std::vector<double>& values) {
  const auto* bytes = reinterpret_cast<const char*>(values.data());
  std::size_t remaining = values.size() * sizeof(double);
  while (remaining > 0) {
    const ssize_t written = write(file, bytes, remaining);
    check(written > 0, "the pipe accepts the times");
    bytes += written;
    remaining -= static_cast<std::size_t>(written);
  }
}

std::vector<double> read_all(int file) {
  std::string bytes;
  char buffer[4096];
  for (ssize_t count = 0; (count = read(file, buffer, sizeof buffer)) > 0;) {
    bytes.append(buffer, static_cast<std::size_t>(count));
  }
  std::vector<double> values(bytes.size() / sizeof(double));
  std::copy_n(bytes.data(), values.size() * sizeof(double), reinterpret_cast<char*>(values.data()));
  return values;
}

}  // namespace

/// SimGrid has one engine per process, which can run only once, so each run has its own process.
std::vector<double> ends_in_simgrid(const Lowered& lowered, const Sizes& sizes, const Fluid& fluid) {
  std::fflush(nullptr);  // so that the child does not print buffered output again
  int ends_of_pipe[2];
  check(pipe(ends_of_pipe) == 0, "pipe() succeeds");
  const pid_t child = fork();
  check(child >= 0, "fork() succeeds");
  if (child == 0) {
    close(ends_of_pipe[0]);
    write_all(ends_of_pipe[1], SimGridRun(lowered, sizes, fluid).ends());
    _exit(0);
  }
  close(ends_of_pipe[1]);
  std::vector<double> ends = read_all(ends_of_pipe[0]);
  close(ends_of_pipe[0]);
  int status = 0;
  check(waitpid(child, &status, 0) == child && status == 0, "SimGrid runs to completion");
  return ends;
}

}  // namespace commfuse::test
