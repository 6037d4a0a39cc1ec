// SPDX-License-Identifier: Apache-2.0
// Processes that talk over TCP, where no MPI started them. All are connected to the first, which hands on what others
// send each other: it carries keys, verdicts and records, not data.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "model/process/world.h"

namespace commfuse::validate {

/// A file descriptor that is closed in the end.
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

/// Where the first process waits for the others.
class TcpDoor {
 public:
  /// Port 0: one that is free. Throws std::runtime_error when it cannot be had.
  explicit TcpDoor(std::uint16_t port);
  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] int get() const { return socket_.get(); }

 private:
  Socket socket_;
  std::uint16_t port_ = 0;
};

class TcpWorld final : public World {
 public:
  /// The first process, once all others are there; throws std::runtime_error when they are not in time. Whoever else
  /// comes to the door is heard beside them, and keeps nobody waiting.
  static std::unique_ptr<TcpWorld> lead(const TcpDoor& door, int processes, std::chrono::nanoseconds patience);
  /// Another one; it tries again until the first is there and takes it. Throws std::runtime_error when it is not in
  /// time.
  static std::unique_ptr<TcpWorld> join(const std::string& host, std::uint16_t port, int process, int processes,
                                        std::chrono::nanoseconds patience);

  [[nodiscard]] int process() const override { return process_; }
  [[nodiscard]] int processes() const override { return processes_; }
  /// Throws std::runtime_error also for more than 64 MiB, and where the other end has long taken nothing.
  void send(int to, Payload bytes) override;
  /// Throws std::runtime_error where a process does not speak as this program does, whose connection ends with that,
  /// and where the first has gone.
  [[nodiscard]] std::optional<Parcel> receive() override;
  [[nodiscard]] std::string library() const override { return "TCP"; }
  [[nodiscard]] std::string host() const override;
  void close() override;
  [[noreturn]] void abort(int code) override;

 private:
  /// A connection, with what has not gone out and what has not wholly come in.
  struct Peer {
    Socket socket{};
    std::deque<std::byte> out{};
    std::vector<std::byte> in{};
    bool closed = false;
  };

  TcpWorld(int process, int processes);
  /// The connection that leads to a process.
  [[nodiscard]] Peer& way_to(int process);
  /// Sends and takes what can be without waiting.
  void pump();
  static void push(Peer& peer);
  static void pull(Peer& peer);
  /// `number`: the process at the other end.
  void take_frames(Peer& peer, int number);
  void put(int to, int from, const Payload& bytes);

  int process_;
  int processes_;
  std::vector<Peer> peers_;  // of the first process by number, its own unused; of others one, to the first
  std::deque<Parcel> arrived_;
};

}  // namespace commfuse::validate
