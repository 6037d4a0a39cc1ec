// SPDX-License-Identifier: Apache-2.0
// Tests processes that meet over TCP, without MPI: their identities, and the messages between them.
#include "validate/tcp/tcp_world.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "model/config_error.h"
#include "validate/mpi/crew.h"
#include "validate/tcp/rendezvous.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;

/// Calls `work` on `count` processes, which are threads; returns for each process the message of the exception that it
/// threw; empty if it threw none.
std::vector<std::string> on_tcp_processes(int count, const std::function<void(World&)>& work) {
  const TcpDoor door(0);
  std::vector<std::string> thrown(static_cast<std::size_t>(count));
  std::vector<std::jthread> threads;
  threads.reserve(thrown.size());
  for (int process = 0; process < count; ++process) {
    threads.emplace_back([&, process] {
      try {
        const auto world = process == 0 ? TcpWorld::lead(door, count, 1min)
                                        : TcpWorld::join("127.0.0.1", door.port(), process, count, 1min);
        work(*world);
        world->close();
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(process)] = error.what();
      }
    });
  }
  threads.clear();
  return thrown;
}

Payload payload_of(const std::string& text) {
  PayloadWriter writer;
  writer.put_text(text);
  return writer.take();
}

TEST(TcpWorld, EveryProcessReportsToTheLeader) {
  std::vector<std::string> received;
  const auto thrown = on_tcp_processes(4, [&](World& world) {
    Crew crew(world, 1min);
    const auto reports = crew.gather(4, payload_of("process " + std::to_string(world.process())));
    for (const Payload& report : reports) {
      received.push_back(PayloadReader(report).get_text());
    }
  });
  EXPECT_EQ(thrown, std::vector<std::string>(4));
  EXPECT_EQ(received, (std::vector<std::string>{"process 0", "process 1", "process 2", "process 3"}));
}

TEST(TcpWorld, ProcessesExchangeMessagesThroughTheLeader) {
  std::string received;
  const std::string long_text(1 << 20, 'x');
  const auto thrown = on_tcp_processes(3, [&](World& world) {
    if (world.process() == 1) {
      world.send(2, payload_of(long_text));
    }
    if (world.process() == 2) {
      std::optional<Parcel> parcel;
      while (!(parcel = world.receive()) || parcel->from == 0) {  // the leader may already announce itself
        std::this_thread::yield();
      }
      EXPECT_EQ(parcel->from, 1);
      received = PayloadReader(parcel->bytes).get_text();
    }
    Crew crew(world, 1min);
    crew.gather(3, {});
  });
  EXPECT_EQ(thrown, std::vector<std::string>(3));
  EXPECT_EQ(received, long_text);
}

/// Connects without sending anything yet; returns the descriptor.
int guest_at(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const int guest = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  EXPECT_EQ(::connect(guest, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return guest;
}

TEST(TcpWorld, ManyIdleConnectionsDoNotDropAWaitingProcess) {
  const TcpDoor door(0);
  bool led = false;
  std::jthread leader([&] {
    try {
      TcpWorld::lead(door, 2, 20s);
      led = true;
    } catch (const std::exception&) {  // no process connected in time
    }
  });
  std::vector<int> guests;
  for (int i = 0; i < 256; ++i) {  // the largest number that may wait
    guests.push_back(guest_at(door.port()));
  }
  std::this_thread::sleep_for(200ms);
  const std::array<std::int32_t, 3> hello{0x636d6632, 1, 2};  // process 1 of 2
  EXPECT_EQ(::send(guests.front(), hello.data(), sizeof hello, MSG_NOSIGNAL), ssize_t{sizeof hello});
  leader.join();
  EXPECT_TRUE(led);
  for (const int guest : guests) {
    ::close(guest);
  }
}

TEST(TcpWorld, DoesNotWaitForeverForAMissingProcess) {
  const TcpDoor door(0);
  EXPECT_THROW(TcpWorld::lead(door, 2, 1ms), std::runtime_error);
}

std::optional<Rendezvous> rendezvous(std::map<std::string, const char*> variables) {
  return rendezvous_in([&](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? nullptr : at->second;
  });
}

TEST(Rendezvous, ReadsTheVariablesOfTorchrunAndSlurm) {
  EXPECT_EQ(rendezvous({}), std::nullopt);
  EXPECT_EQ(
      rendezvous(
          {{"RANK", "3"}, {"WORLD_SIZE", "8"}, {"LOCAL_RANK", "3"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "1234"}}),
      (Rendezvous{3, 8, "node1", 1234}));
  EXPECT_EQ(rendezvous({{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "localhost"}}),
            (Rendezvous{0, 1, "localhost", 29400}));
  EXPECT_EQ(rendezvous({{"SLURM_PROCID", "9"},
                        {"SLURM_NTASKS", "16"},
                        {"SLURM_LOCALID", "1"},
                        {"SLURM_JOB_ID", "4021"},
                        {"SLURM_STEP_NODELIST", "gpu[07-08]"}}),
            (Rendezvous{9, 16, "gpu07", 29421}));
  EXPECT_EQ(rendezvous({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "16"}}), std::nullopt);  // a job's plain shell
}

TEST(Rendezvous, TakesTheNextPortIfTorchrunListensOnItsOwn) {
  const auto port = [](const char* master_port, const char* uses_agent) {
    return rendezvous({{"RANK", "1"},
                       {"WORLD_SIZE", "2"},
                       {"MASTER_ADDR", "node1"},
                       {"MASTER_PORT", master_port},
                       {"TORCHELASTIC_USE_AGENT_STORE", uses_agent}})
        .value()
        .port;
  };
  EXPECT_EQ(port("29500", "True"), 29501);
  EXPECT_EQ(port("65535", "True"), 65534);
  EXPECT_EQ(port("29500", "False"), 29500);
  // Another launcher inside torchrun has a MASTER_PORT of its own.
  EXPECT_EQ(rendezvous({{"PMI_RANK", "1"},
                        {"PMI_SIZE", "2"},
                        {"MASTER_ADDR", "a1"},
                        {"MASTER_PORT", "1234"},
                        {"TORCHELASTIC_USE_AGENT_STORE", "True"}}),
            (Rendezvous{1, 2, "a1", 1234}));
}

TEST(Rendezvous, OtherLaunchersNeedOnlyAnAddress) {
  for (const auto& [rank, size] : {std::pair{"PMI_RANK", "PMI_SIZE"}, std::pair{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"},
                                   std::pair{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"},
                                   std::pair{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}}) {
    EXPECT_EQ(rendezvous({{rank, "2"}, {size, "4"}, {"MASTER_ADDR", "a1"}}), (Rendezvous{2, 4, "a1", 29400})) << rank;
    EXPECT_THROW(static_cast<void>(rendezvous({{rank, "2"}, {size, "4"}})), ConfigError) << rank;
  }
}

TEST(Rendezvous, InvalidNumbersAreRejected) {
  const auto sentence = [](std::map<std::string, const char*> variables) -> std::string {
    try {
      rendezvous(std::move(variables));
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(sentence({{"RANK", "8"}, {"WORLD_SIZE", "8"}, {"MASTER_ADDR", "a"}}),
            "RANK is 8 and WORLD_SIZE is 8 in the environment; let one launcher set both");
  EXPECT_EQ(sentence({{"RANK", "x"}, {"WORLD_SIZE", "8"}}),
            "RANK is 'x' in the environment, not a whole number from 0 to 4096; let the launcher set it");
  EXPECT_EQ(sentence({{"RANK", "0"}, {"WORLD_SIZE", "1048576"}, {"MASTER_ADDR", "a"}}),
            "WORLD_SIZE is '1048576' in the environment, not a whole number from 0 to 4096; let the launcher set it");
  EXPECT_EQ(sentence({{"RANK", "0"}, {"WORLD_SIZE", "8"}}),
            "RANK and WORLD_SIZE are set, but MASTER_ADDR is not; set it to the host of process 0");
}

TEST(Rendezvous, ReadsTheFirstHostOfASlurmNodeList) {
  EXPECT_EQ(first_host("node[003-010,012]"), "node003");
  EXPECT_EQ(first_host("a1,b[2-3]"), "a1");
  EXPECT_EQ(first_host("rack[2,4]-gpu,x"), "rack2-gpu");
  EXPECT_EQ(first_host("localhost"), "localhost");
}

}  // namespace
}  // namespace commfuse::validate
