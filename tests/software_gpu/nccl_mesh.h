// SPDX-License-Identifier: Apache-2.0
// Connects ranks of the double of NCCL, which are threads or processes of one machine, by a local socket between any
// two ranks. The unique id is a part of the sockets' names.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace software_gpu {

using Bytes = std::vector<std::byte>;

/// Purposes of messages: messages of one purpose between two ranks arrive in order.
enum class Purpose : std::uint32_t {
  introduction,
  split,
  connection,
  registration,
  ready,
  message,
  collective,
  put,  ///< No rank receives it: it is passed to the listener as soon as it arrives.
};

struct Tag {
  std::uint64_t communicator = 0;
  Purpose purpose = Purpose::message;
  friend auto operator<=>(const Tag&, const Tag&) = default;
};

/// Thrown when an aborted communicator waits.
struct Aborted {};

class Mesh {
 public:
  /// Returns when all ranks have arrived. Throws Aborted when `aborted` becomes true.
  Mesh(const std::string& token, int rank, int ranks, const std::atomic<bool>& aborted);
  Mesh(const Mesh&) = delete;
  Mesh& operator=(const Mesh&) = delete;
  ~Mesh();

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int ranks() const { return static_cast<int>(peers_.size()); }

  /// Sends without waiting for the receiver.
  void send(int peer, Tag tag, const Bytes& bytes);
  /// Waits for a message, forever if the peer has ended, because NCCL does not detect that either. Throws Aborted when
  /// `aborted` becomes true.
  Bytes receive(int peer, Tag tag, const std::atomic<bool>& aborted);
  /// Returns the number of messages of a communicator that have arrived but were not received.
  [[nodiscard]] std::size_t left_over(std::uint64_t communicator);
  /// Called for every put, from any thread, with the sender's rank in the mesh, and the communicator.
  using Listener = std::function<void(int peer, std::uint64_t communicator, const Bytes& bytes)>;
  void listen(Listener listener);
  /// Wakes the waiting threads, which then see that they are aborted.
  void wake();

 private:
  struct Peer {
    int socket = -1;
    std::mutex writing;
    std::thread reader;
  };
  void connect(const std::string& token, const std::atomic<bool>& aborted);
  void read(int peer);
  void deliver(int peer, Tag tag, Bytes bytes);

  int rank_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::map<std::pair<int, Tag>, std::deque<Bytes>> mail_;
  std::mutex listening_;
  Listener listener_;
};

}  // namespace software_gpu
