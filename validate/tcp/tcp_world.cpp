// SPDX-License-Identifier: Apache-2.0
#include "validate/tcp/tcp_world.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace commfuse::validate {

namespace {

using Clock = std::chrono::steady_clock;

/// "cmf1": the other end is this program, and speaks as we do.
constexpr std::uint32_t greeting = 0x636d6631;
constexpr std::uint64_t longest_frame = std::uint64_t{1} << 30U;

struct Hello {
  std::uint32_t magic = greeting;
  std::int32_t process = 0;
  std::int32_t processes = 0;
};
struct Header {
  std::int32_t from = 0;
  std::int32_t to = 0;
  std::uint64_t length = 0;
};

[[noreturn]] void fail(const std::string& what) {
  throw std::runtime_error(fmt::format("{}: {}", what, std::generic_category().message(errno)));
}

void make_prompt(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);  // NOLINT(*-vararg): the way to set it
}

/// All of it, before the deadline; false when it does not come.
bool read_all(int descriptor, void* to, std::size_t length, Clock::time_point deadline) {
  auto* bytes = static_cast<std::byte*>(to);
  while (length > 0) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{.fd = descriptor, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) < 0) {
      return false;
    }
    if ((wait.revents & (POLLIN | POLLHUP | POLLERR)) == 0) {
      continue;
    }
    const ssize_t got = ::recv(descriptor, bytes, length, 0);
    if (got <= 0) {
      return false;
    }
    bytes += got;
    length -= static_cast<std::size_t>(got);
  }
  return true;
}

/// A connection to that place; none while nobody answers.
Socket try_to_connect(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found) != 0) {
    return Socket{};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) {
    Socket socket(::socket(one->ai_family, one->ai_socktype | SOCK_CLOEXEC, one->ai_protocol));
    if (socket.get() >= 0 && ::connect(socket.get(), one->ai_addr, one->ai_addrlen) == 0) {
      return socket;
    }
  }
  return Socket{};
}

template <class Value>
void append(std::deque<std::byte>& to, const Value& value) {
  std::array<std::byte, sizeof(Value)> bytes;
  std::memcpy(bytes.data(), &value, sizeof value);
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  return *this;
}

Socket::~Socket() {
  if (descriptor_ >= 0) {
    ::close(descriptor_);
  }
}

TcpDoor::TcpDoor(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  const int on = 1;
  ::setsockopt(socket_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  address.sin_port = htons(port);
  socklen_t length = sizeof address;
  auto* const general = reinterpret_cast<sockaddr*>(&address);  // NOLINT(*-reinterpret-cast): as sockets have it
  if (socket_.get() < 0 || ::bind(socket_.get(), general, length) != 0 || ::listen(socket_.get(), SOMAXCONN) != 0 ||
      ::getsockname(socket_.get(), general, &length) != 0) {
    fail(fmt::format("port {} cannot be listened at; set MASTER_PORT to another", port));
  }
  port_ = ntohs(address.sin_port);
}

TcpWorld::TcpWorld(int process, int processes) : process_(process), processes_(processes) {}

std::unique_ptr<TcpWorld> TcpWorld::lead(const TcpDoor& door, int processes, std::chrono::nanoseconds patience) {
  std::unique_ptr<TcpWorld> world(new TcpWorld(0, processes));  // NOLINT(*-owning-memory): its constructor is private
  world->peers_.resize(static_cast<std::size_t>(processes));
  const Clock::time_point deadline = Clock::now() + patience;
  for (int here = 1; here < processes;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wait{.fd = door.get(), .events = POLLIN, .revents = 0};
    if (left <= 0) {
      throw std::runtime_error(fmt::format("of {} processes {} came to port {} in time", processes, here, door.port()));
    }
    if (::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(left, 1000))) <= 0) {
      continue;
    }
    Socket socket(::accept4(door.get(), nullptr, nullptr, SOCK_CLOEXEC));
    Hello hello;
    // Whoever else comes by is not waited for.
    const bool ours =
        socket.get() >= 0 && read_all(socket.get(), &hello, sizeof hello, Clock::now() + std::chrono::seconds(2)) &&
        hello.magic == greeting && hello.process > 0 && hello.process < processes && hello.processes == processes;
    if (!ours || world->peers_[static_cast<std::size_t>(hello.process)].socket.get() >= 0) {
      continue;
    }
    make_prompt(socket.get());
    world->peers_[static_cast<std::size_t>(hello.process)].socket = std::move(socket);
    ++here;
  }
  return world;
}

std::unique_ptr<TcpWorld> TcpWorld::join(const std::string& host, std::uint16_t port, int process, int processes,
                                         std::chrono::nanoseconds patience) {
  std::unique_ptr<TcpWorld> world(new TcpWorld(process, processes));  // NOLINT(*-owning-memory): as above
  const Clock::time_point deadline = Clock::now() + patience;
  Socket socket = try_to_connect(host, port);
  while (socket.get() < 0) {
    if (Clock::now() > deadline) {
      throw std::runtime_error(
          fmt::format("process {} finds nobody at {}:{}; is process 0 there, and the port open?", process, host, port));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    socket = try_to_connect(host, port);
  }
  const Hello hello{.process = process, .processes = processes};
  if (::send(socket.get(), &hello, sizeof hello, MSG_NOSIGNAL) != sizeof hello) {
    fail("process 0 does not listen");
  }
  make_prompt(socket.get());
  world->peers_.emplace_back();
  world->peers_.front().socket = std::move(socket);
  return world;
}

TcpWorld::Peer& TcpWorld::way_to(int process) { return peers_[process_ == 0 ? static_cast<std::size_t>(process) : 0]; }

void TcpWorld::put(Peer& peer, int from, int to, const Payload& bytes) {
  append(peer.out, Header{.from = from, .to = to, .length = bytes.size()});
  peer.out.insert(peer.out.end(), bytes.begin(), bytes.end());
}

void TcpWorld::send(int to, Payload bytes) {
  if (to == process_) {
    arrived_.push_back({process_, std::move(bytes)});
    return;
  }
  Peer& peer = way_to(to);
  if (peer.closed) {
    throw std::runtime_error(fmt::format("process {} has gone", process_ == 0 ? to : 0));
  }
  put(peer, process_, to, bytes);
  pump();
}

bool TcpWorld::push(Peer& peer) {
  while (!peer.out.empty()) {
    std::array<std::byte, 16384> chunk;
    const std::size_t length = std::min(chunk.size(), peer.out.size());
    std::copy_n(peer.out.begin(), length, chunk.begin());
    const ssize_t sent = ::send(peer.socket.get(), chunk.data(), length, MSG_NOSIGNAL);
    if (sent < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    peer.out.erase(peer.out.begin(), peer.out.begin() + sent);
  }
  return true;
}

bool TcpWorld::pull(Peer& peer) {
  for (;;) {
    std::array<std::byte, 16384> chunk;
    const ssize_t got = ::recv(peer.socket.get(), chunk.data(), chunk.size(), 0);
    if (got < 0) {
      return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    }
    if (got == 0) {
      return false;
    }
    peer.in.insert(peer.in.end(), chunk.begin(), chunk.begin() + got);
  }
}

void TcpWorld::take_frames(Peer& peer) {
  std::size_t used = 0;
  while (peer.in.size() - used >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, peer.in.data() + used, sizeof header);
    if (header.length > longest_frame || header.to < 0 || header.to >= processes_ || header.from < 0 ||
        header.from >= processes_) {
      throw std::runtime_error("what came over TCP is not of this program");
    }
    if (peer.in.size() - used - sizeof header < header.length) {
      break;
    }
    const auto first = peer.in.begin() + static_cast<std::ptrdiff_t>(used + sizeof header);
    Payload bytes(first, first + static_cast<std::ptrdiff_t>(header.length));
    used += sizeof header + header.length;
    if (header.to == process_) {
      arrived_.push_back({header.from, std::move(bytes)});
    } else if (process_ == 0) {
      put(way_to(header.to), header.from, header.to, bytes);
    }
  }
  peer.in.erase(peer.in.begin(), peer.in.begin() + static_cast<std::ptrdiff_t>(used));
}

void TcpWorld::pump() {
  for (Peer& peer : peers_) {
    if (peer.socket.get() < 0 || peer.closed) {
      continue;
    }
    const bool open = pull(peer);
    take_frames(peer);
    peer.closed = !push(peer) || !open;
  }
}

std::optional<Parcel> TcpWorld::receive() {
  pump();
  if (arrived_.empty()) {
    return std::nullopt;
  }
  Parcel parcel = std::move(arrived_.front());
  arrived_.pop_front();
  return parcel;
}

std::string TcpWorld::host() const {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

/// What was sent goes out before the connections end; the first goes last, as it hands on what others send.
void TcpWorld::close() {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
  const auto waits = [&](const Peer& peer) {
    return peer.socket.get() >= 0 && !peer.closed && (!peer.out.empty() || process_ == 0);
  };
  while (Clock::now() < deadline && std::ranges::any_of(peers_, waits)) {
    pump();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  peers_.clear();
}

void TcpWorld::abort(int code) {
  peers_.clear();
  std::_Exit(code);
}

}  // namespace commfuse::validate
