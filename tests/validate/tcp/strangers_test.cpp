// SPDX-License-Identifier: Apache-2.0
// Tests strangers that connect to the port: at most they end a run, with a clear error, and they cost little time and
// memory.
#include <arpa/inet.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "tests/validate/thrown_by.h"
#include "validate/mpi/crew.h"
#include "validate/tcp/tcp_world.h"

namespace commfuse::validate {
namespace {

using namespace std::chrono_literals;
using test::thrown_by;

/// The header that processes send before a message.
struct Head {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint64_t length = 0;
};

/// A connection to a port of this machine that sends arbitrary bytes.
class Stranger {
 public:
  explicit Stranger(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    const int small = 1 << 16;  // a small buffer, so that sent bytes soon exceed what is read
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_SNDBUF, &small, sizeof small);
    // NOLINTNEXTLINE(*-reinterpret-cast): sockets require it
    EXPECT_EQ(::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }

  void greet(std::int32_t process, std::int32_t processes) {
    send_value(std::array<std::int32_t, 3>{0x636d6632, process, processes});
  }
  template <class Value>
  void send_value(const Value& value) {
    EXPECT_EQ(::send(socket_.get(), &value, sizeof value, MSG_NOSIGNAL), static_cast<ssize_t>(sizeof value));
  }
  void send(std::int32_t from, std::int32_t to, const Payload& bytes) {
    send_value(Head{from, to, bytes.size()});
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<ssize_t>(bytes.size()));
  }
  /// Sends empty messages of process 1 until the socket would block. Returns the number of bytes.
  std::size_t flood() {
    const std::vector<Head> heads(1 << 12, Head{1, 0, 0});
    const auto bytes = std::as_bytes(std::span(heads));
    for (std::size_t sent = 0;;) {
      const std::size_t at = (flooded_ + sent) % bytes.size();
      const ssize_t length = ::send(socket_.get(), bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (length <= 0) {
        flooded_ += sent;
        return sent;
      }
      sent += static_cast<std::size_t>(length);
    }
  }

 private:
  Socket socket_;
  std::size_t flooded_ = 0;
};

/// The first of several processes. Strangers impersonate the others.
struct WorldOfStrangers {
  explicit WorldOfStrangers(int processes) {
    const TcpDoor door(0);
    for (int process = 1; process < processes; ++process) {
      strangers.push_back(std::make_unique<Stranger>(door.port()));
      strangers.back()->greet(process, processes);
    }
    world = TcpWorld::lead(door, processes, 1min);
  }
  Stranger& stranger(std::size_t process) { return *strangers[process - 1]; }

  std::vector<std::unique_ptr<Stranger>> strangers;
  std::unique_ptr<TcpWorld> world;
};

/// Receives until an exception is thrown. Returns its message.
std::string refusal_of(World& world) {
  return thrown_by([&] {
    for (const auto until = std::chrono::steady_clock::now() + 10s; std::chrono::steady_clock::now() < until;) {
      EXPECT_FALSE(world.receive().has_value());
    }
  });
}

TEST(TcpStrangers, CannotImpersonateAnotherProcess) {
  for (const std::int32_t from : {0, 2}) {
    WorldOfStrangers first(3);
    first.stranger(1).send(from, 0, Payload(9));
    EXPECT_EQ(refusal_of(*first.world),
              fmt::format("process 1 sends as process {}; run the same program everywhere", from));
  }
}

TEST(TcpStrangers, ARefusedConnectionStaysRefused) {
  WorldOfStrangers first(2);
  first.stranger(1).send_value(std::array<std::uint64_t, 8>{~0ULL, ~0ULL});
  EXPECT_EQ(refusal_of(*first.world), "data over TCP from process 1 is not of this program; choose another port");
  EXPECT_FALSE(first.world->receive().has_value());
  EXPECT_EQ(thrown_by([&] { first.world->send(1, {}); }), "process 1 has exited");
  first.world->close();
}

TEST(TcpStrangers, AreIgnoredDuringTheOrderlyEnd) {
  WorldOfStrangers first(2);
  first.stranger(1).send_value(std::array<std::uint64_t, 8>{~0ULL, ~0ULL});
  first.world->close();
}

TEST(TcpStrangers, ATooLongMessageIsRefusedBeforeItArrives) {
  WorldOfStrangers first(2);
  first.stranger(1).send_value(Head{1, 0, (std::uint64_t{64} << 20U) + 1});
  EXPECT_EQ(refusal_of(*first.world), "data over TCP from process 1 is not of this program; choose another port");
}

TEST(TcpStrangers, ATooLongMessageIsNotSent) {
  WorldOfStrangers first(2);
  EXPECT_EQ(thrown_by([&] { first.world->send(1, Payload((std::size_t{64} << 20U) + 1)); }),
            "a message between processes is larger than 64 MiB; choose a schedule of fewer ops");
}

TEST(TcpStrangers, AFloodIsReadInSmallPieces) {
  WorldOfStrangers first(2);
  std::size_t accepted = first.stranger(1).flood();
  for (int i = 0; i < 100; ++i) {
    EXPECT_TRUE(first.world->receive().has_value());
    accepted += first.stranger(1).flood();
  }
  EXPECT_LT(accepted, std::size_t{1} << 23U);
}

TEST(TcpStrangers, IdleStrangersDelayNobody) {
  const TcpDoor door(0);
  std::vector<std::unique_ptr<Stranger>> idle;
  for (int i = 0; i < 100; ++i) {
    idle.push_back(std::make_unique<Stranger>(door.port()));
  }
  idle[0]->send_value(std::uint32_t{0x636d6632});  // half a greeting
  std::unique_ptr<TcpWorld> joined;
  std::jthread other([&] { joined = TcpWorld::join("127.0.0.1", door.port(), 1, 2, 1min); });
  const auto begin = std::chrono::steady_clock::now();
  const auto world = TcpWorld::lead(door, 2, 1min);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_EQ(world->processes(), 2);
}

TEST(TcpWorld, DetectsALostFirstProcessImmediately) {
  const TcpDoor door(0);
  std::unique_ptr<TcpWorld> joined;
  {
    std::jthread other([&] { joined = TcpWorld::join("127.0.0.1", door.port(), 1, 2, 1min); });
    TcpWorld::lead(door, 2, 1min).reset();
  }
  ASSERT_NE(joined, nullptr);
  EXPECT_EQ(refusal_of(*joined), "process 0 has exited");
}

TEST(TcpStrangers, CannotImpersonateTheFirstProcess) {
  const TcpDoor silent(0);
  EXPECT_EQ(
      thrown_by([&] { TcpWorld::join("127.0.0.1", silent.port(), 1, 2, 20ms); }),
      fmt::format("process 1 finds another program at 127.0.0.1:{}; let one launcher set MASTER_ADDR, MASTER_PORT and "
                  "WORLD_SIZE",
                  silent.port()));
}

TEST(TcpStrangers, ProcessesOfAnotherLaunchDoNotMeet) {
  const TcpDoor door(0);
  std::string joined;
  std::jthread other([&] { joined = thrown_by([&] { TcpWorld::join("127.0.0.1", door.port(), 1, 3, 50ms); }); });
  EXPECT_EQ(thrown_by([&] { TcpWorld::lead(door, 2, 100ms); }),
            fmt::format("of 2 processes, 1 connected to port {} in time", door.port()));
  other.join();
  EXPECT_EQ(joined.rfind("process 1 finds another program at ", 0), 0U) << joined;
}

TEST(TcpStrangers, ALateProcessIsStillAccepted) {
  const TcpDoor door(0);
  Stranger slow(door.port());
  slow.send_value(std::array<std::int32_t, 2>{0x636d6632, 1});
  std::jthread rest([&] { slow.send_value(std::int32_t{2}); });
  EXPECT_EQ(TcpWorld::lead(door, 2, 1min)->processes(), 2);
}

}  // namespace
}  // namespace commfuse::validate
