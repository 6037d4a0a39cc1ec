// SPDX-License-Identifier: Apache-2.0
#include "tests/software_gpu/nccl_mesh.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "tests/software_gpu/misuse.h"

namespace software_gpu {

namespace {

constexpr int poll_ms = 2;

struct Frame {
  Tag tag;
  std::uint64_t bytes = 0;
};

/// Returns the address of a rank's socket. Its name belongs to no file and disappears with the sockets that use it.
std::pair<sockaddr_un, socklen_t> address_of(const std::string& token, int rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string name = "commfuse-software-gpu/" + token + "/" + std::to_string(rank);
  check(name.size() + 1 < sizeof address.sun_path, "the name of a socket is too long");
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  return {address, static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size())};
}

bool write_all(int socket, const void* from, std::size_t bytes) {
  const auto* next = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const ssize_t written = ::send(socket, next, bytes, MSG_NOSIGNAL);
    if (written <= 0) {
      return false;
    }
    next += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return true;
}

bool read_all(int socket, void* to, std::size_t bytes) {
  auto* next = static_cast<std::byte*>(to);
  while (bytes > 0) {
    const ssize_t received = ::recv(socket, next, bytes, 0);
    if (received <= 0) {
      return false;
    }
    next += received;
    bytes -= static_cast<std::size_t>(received);
  }
  return true;
}

/// A socket that is closed unless take() has been called.
class Socket {
 public:
  explicit Socket(int socket) : socket_(socket) {}
  Socket(const Socket&) = delete;
  Socket& operator=(const Socket&) = delete;
  ~Socket() {
    if (socket_ >= 0) {
      ::close(socket_);
    }
  }
  [[nodiscard]] int get() const { return socket_; }
  int take() { return std::exchange(socket_, -1); }

 private:
  int socket_;
};

int connected_to(const std::string& token, int peer, int rank, const std::atomic<bool>& aborted) {
  const auto [address, size] = address_of(token, peer);
  while (!aborted) {
    Socket connection(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (::connect(connection.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
        write_all(connection.get(), &rank, sizeof rank)) {
      return connection.take();
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(poll_ms));
  }
  throw Aborted{};
}

}  // namespace

Mesh::Mesh(const std::string& token, int rank, int ranks, const std::atomic<bool>& aborted) : rank_(rank) {
  for (int i = 0; i < ranks; ++i) {
    peers_.push_back(std::make_unique<Peer>());
  }
  try {
    connect(token, aborted);
  } catch (...) {
    for (const auto& peer : peers_) {
      if (peer->socket >= 0) {
        ::close(peer->socket);
      }
    }
    throw;
  }
  for (int i = 0; i < ranks; ++i) {
    if (i != rank) {
      peers_[static_cast<std::size_t>(i)]->reader = std::thread([this, i] { read(i); });
    }
  }
}

/// Connects to the ranks before this one, and accepts connections from the ranks after it.
void Mesh::connect(const std::string& token, const std::atomic<bool>& aborted) {
  const Socket listening(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const auto [address, size] = address_of(token, rank_);
  check(::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 &&
            ::listen(listening.get(), ranks()) == 0,
        "two ranks of one network have the number " + std::to_string(rank_));
  for (int peer = 0; peer < rank_; ++peer) {
    peers_[static_cast<std::size_t>(peer)]->socket = connected_to(token, peer, rank_, aborted);
  }
  for (int missing = ranks() - 1 - rank_; missing > 0;) {
    if (aborted) {
      throw Aborted{};
    }
    pollfd waits{.fd = listening.get(), .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, poll_ms) != 1) {
      continue;
    }
    Socket connection(::accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC));
    int peer = -1;
    if (!read_all(connection.get(), &peer, sizeof peer) || peer <= rank_ || peer >= ranks()) {
      continue;
    }
    peers_[static_cast<std::size_t>(peer)]->socket = connection.take();
    --missing;
  }
}

Mesh::~Mesh() {
  for (const auto& peer : peers_) {
    if (peer->socket >= 0) {
      ::shutdown(peer->socket, SHUT_RDWR);
      peer->reader.join();
      ::close(peer->socket);
    }
  }
}

void Mesh::send(int peer, Tag tag, const Bytes& bytes) {
  if (peer == rank_) {
    deliver(peer, tag, bytes);
    return;
  }
  Peer& to = *peers_.at(static_cast<std::size_t>(peer));
  const Frame frame{tag, bytes.size()};
  const std::lock_guard lock(to.writing);
  // Data for a rank that has ended is lost.
  static_cast<void>(write_all(to.socket, &frame, sizeof frame) && write_all(to.socket, bytes.data(), bytes.size()));
}

void Mesh::read(int peer) {
  const int socket = peers_[static_cast<std::size_t>(peer)]->socket;
  for (Frame frame; read_all(socket, &frame, sizeof frame);) {
    Bytes bytes(frame.bytes);
    if (!read_all(socket, bytes.data(), bytes.size())) {
      return;
    }
    deliver(peer, frame.tag, std::move(bytes));
  }
}

void Mesh::listen(Listener listener) {
  const std::lock_guard lock(listening_);
  listener_ = std::move(listener);
}

void Mesh::deliver(int peer, Tag tag, Bytes bytes) {
  if (tag.purpose == Purpose::put) {
    const std::lock_guard listening(listening_);
    check(listener_ != nullptr, "a put arrives before the network is set up");
    listener_(peer, tag.communicator, bytes);
    return;
  }
  const std::lock_guard lock(mutex_);
  mail_[{peer, tag}].push_back(std::move(bytes));
  arrived_.notify_all();
}

Bytes Mesh::receive(int peer, Tag tag, const std::atomic<bool>& aborted) {
  std::unique_lock lock(mutex_);
  std::deque<Bytes>& box = mail_[{peer, tag}];
  arrived_.wait(lock, [&] { return !box.empty() || aborted; });
  if (aborted) {
    throw Aborted{};
  }
  Bytes bytes = std::move(box.front());
  box.pop_front();
  return bytes;
}

std::size_t Mesh::left_over(std::uint64_t communicator) {
  const std::lock_guard lock(mutex_);
  std::size_t count = 0;
  for (const auto& [from, box] : mail_) {
    count += from.second.communicator == communicator ? box.size() : 0;
  }
  return count;
}

void Mesh::wake() {
  const std::lock_guard lock(mutex_);
  arrived_.notify_all();
}

}  // namespace software_gpu
