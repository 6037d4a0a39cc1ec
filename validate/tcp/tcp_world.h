// SPDX-License-Identifier: Apache-2.0
// Processes that communicate over TCP because no MPI started them. All are connected to the first process, which
// forwards messages between the others: they exchange NCCL ids, memory handles, verdicts and records, not data.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "model/process/world.h"

namespace commfuse::validate {

/// A file descriptor that is closed by the destructor.
class Socket {
 public:
  explicit Socket(int descriptor = -1) : descriptor_(descriptor) {}
  Socket(Socket&& other) noexcept : descriptor_(other.descriptor_) { other.descriptor_ = -1; }
  Socket& operator=(Socket&& other) noexcept;
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket();
  [[nodiscard]] int get() const { return descriptor_; }

 private:
  int descriptor_;
};

/// The listening socket where the first process waits for the others.
class TcpDoor {
 public:
  /// Port 0 chooses a free one. Throws std::runtime_error when the port is not available.
  explicit TcpDoor(std::uint16_t port);
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int get() const { return socket_.get(); }

 private:
  Socket socket_;
  std::uint16_t port_ = 0;
};

class TcpWorld final : public World {
 public:
  /// Returns the first process's world once all others are connected; throws std::runtime_error if they are late. Other
  /// connections to the port are read at the same time, and do not delay processes.
  static std::unique_ptr<TcpWorld> lead(const TcpDoor& door, int processes, std::chrono::nanoseconds patience);
  /// Returns another process's world; retries until the first process is there and accepts the connection. Throws
  /// std::runtime_error if that takes too long.
  static std::unique_ptr<TcpWorld> join(const std::string& host, std::uint16_t port, int process, int processes,
                                        std::chrono::nanoseconds patience);

  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return processes_; }
  /// Throws as World::send() does, for more than 64 MiB, and if more than 256 MiB would wait for the other end.
  void send(int to, Payload bytes) override;
  /// Throws std::runtime_error if the first process has exited, or if a process sends anything but this program's
  /// protocol; the connection to that process is then closed.
  [[nodiscard]] std::optional<Parcel> receive() override;
  [[nodiscard]] std::string library() const override { return "TCP"; }
  [[nodiscard]] std::string host() const override;
  void close() override;
  [[noreturn]] void abort(int code) override;

 private:
  /// A connection, with the bytes not yet sent and the frame not yet complete.
  struct Peer {
    Socket socket{};
    std::deque<std::byte> out{};
    std::vector<std::byte> in{};
    bool closed = false;
  };

  TcpWorld(int process, int processes);
  /// Returns the connection that leads to a process.
  [[nodiscard]] Peer& connection_to(int process);
  /// Sends and receives whatever is possible without waiting.
  void pump();
  static void push(Peer& peer);
  static void pull(Peer& peer);
  /// `number` is the number of the process at the other end.
  void take_frames(Peer& peer, int number);
  void put(int from, int to, const Payload& bytes);

  int process_;
  int processes_;
  /// On the first process, the connections by number, with its own unused; elsewhere, only that to the first process.
  std::vector<Peer> peers_;
  std::deque<Parcel> arrived_;
};

}  // namespace commfuse::validate
