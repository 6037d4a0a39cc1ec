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
#include <iterator>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace commfuse::validate {

namespace {

using Clock = std::chrono::steady_clock;

/// "cmf2": identifies this program and its protocol.
constexpr std::uint32_t greeting = 0x636d6632;
/// The longest frame is a record of one rank's spans: 24 bytes per op.
constexpr std::size_t max_frame_bytes = std::size_t{64} << 20U;
/// Largest single read from one connection, so that other connections get their turn and a flood stays in the socket.
constexpr std::size_t max_read_bytes = std::size_t{64} << 10U;
/// Limits the bytes of incomplete frames on all connections, and the bytes that wait to be sent to one process.
constexpr std::size_t max_pending_bytes = 4 * max_frame_bytes;
/// Limits the connections that have not yet identified themselves, and their time to do so.
constexpr std::size_t max_guests = 256;
constexpr std::chrono::seconds longest_greeting{2};

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

bool is_for_later(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

void make_prompt(int descriptor) {
  const int on = 1;
  ::setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  ::fcntl(descriptor, F_SETFL, ::fcntl(descriptor, F_GETFL) | O_NONBLOCK);  // NOLINT(*-vararg): the way to set it
}

/// Returns milliseconds for poll(), at most a second.
int wait_until(Clock::time_point deadline) {
  const auto remaining = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(remaining, 0, 1000));
}

/// A connection that has not yet identified itself.
struct Guest {
  Socket socket;
  Clock::time_point until{};
  std::array<std::byte, sizeof(Hello)> greeting_bytes{};
  std::size_t length = 0;

  [[nodiscard]] bool has_greeted() const { return length == greeting_bytes.size(); }
  /// Reads the data that has arrived. Returns false when the guest has closed or its time is over.
  bool read_greeting() {
    const ssize_t received = ::recv(socket.get(), greeting_bytes.data() + length, greeting_bytes.size() - length, 0);
    length += received > 0 ? static_cast<std::size_t>(received) : 0;
    const bool is_open = received > 0 || (received < 0 && is_for_later(errno));
    return is_open && (has_greeted() || Clock::now() < until);
  }
  [[nodiscard]] Hello hello() const {
    Hello hello;
    std::memcpy(&hello, greeting_bytes.data(), sizeof hello);
    return hello;
  }
};

/// Returns the number of the other process; 0 if it is not a process of this launch.
int process_in(const Hello& hello, int processes) {
  const bool is_of_this_launch = hello.magic == greeting && hello.processes == processes;
  return is_of_this_launch && hello.process > 0 && hello.process < processes ? hello.process : 0;
}

/// Returns whether the other end answers as process 0 of the same number of processes.
bool is_welcome(Socket& socket, const Hello& mine, Clock::time_point deadline) {
  if (::send(socket.get(), &mine, sizeof mine, MSG_NOSIGNAL) != sizeof mine) {
    return false;
  }
  make_prompt(socket.get());
  Guest host{.socket = std::move(socket), .until = deadline};
  while (host.read_greeting() && !host.has_greeted()) {
    pollfd wait{.fd = host.socket.get(), .events = POLLIN, .revents = 0};
    ::poll(&wait, 1, wait_until(deadline));
  }
  socket = std::move(host.socket);
  const Hello hello = host.hello();
  return hello.magic == greeting && hello.process == 0 && hello.processes == mine.processes;
}

/// Returns when a connection or data arrives, or after at most a second.
void await_any(int door, const std::deque<Guest>& guests, Clock::time_point deadline) {
  std::vector<pollfd> waits{{.fd = door, .events = POLLIN, .revents = 0}};
  for (const Guest& guest : guests) {
    waits.push_back({.fd = guest.socket.get(), .events = POLLIN, .revents = 0});
  }
  ::poll(waits.data(), waits.size(), wait_until(deadline));
}

/// Accepts some of the waiting connections. If there are too many guests, closes the one that has waited longest,
/// because processes of this program identify themselves immediately.
void accept_guests(int door, std::deque<Guest>& guests) {
  for (std::size_t times = 0; times < max_guests / 4; ++times) {
    Socket socket(::accept4(door, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    const bool is_short = socket.get() < 0 && (errno == EMFILE || errno == ENFILE);
    if (is_short && guests.empty()) {
      fail("cannot accept another process; raise ulimit -n");
    }
    const bool is_full = socket.get() >= 0 && guests.size() == max_guests;
    if (is_short || is_full) {
      guests.pop_front();
    }
    if (socket.get() >= 0) {
      guests.push_back({.socket = std::move(socket), .until = Clock::now() + longest_greeting});
    } else if (!is_short) {
      return;
    }
  }
}

/// Returns a connection to that address, or an unconnected socket if nothing listens there.
Socket try_to_connect(const std::string& host, std::uint16_t port) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  const timeval longest_call{.tv_sec = 5, .tv_usec = 0};  // without it, a machine that is off would take minutes
  addrinfo* addresses = nullptr;
  if (::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &addresses) != 0) {
    return Socket{};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(addresses, ::freeaddrinfo);
  for (const addrinfo* address = addresses; address != nullptr; address = address->ai_next) {
    Socket socket(::socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol));
    ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &longest_call, sizeof longest_call);
    if (socket.get() >= 0 && ::connect(socket.get(), address->ai_addr, address->ai_addrlen) == 0) {
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

TcpDoor::TcpDoor(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
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
    fail(fmt::format("cannot listen on port {}; set MASTER_PORT, or --master-port of torchrun, to another", port));
  }
  port_ = ntohs(address.sin_port);
}

TcpWorld::TcpWorld(int process, int processes) : process_(process), processes_(processes) {}

std::unique_ptr<TcpWorld> TcpWorld::lead(const TcpDoor& door, int processes, std::chrono::nanoseconds patience) {
  std::unique_ptr<TcpWorld> world(new TcpWorld(0, processes));  // NOLINT(*-owning-memory): its constructor is private
  world->peers_.resize(static_cast<std::size_t>(processes));
  const Clock::time_point deadline = Clock::now() + patience;
  std::deque<Guest> guests;
  int arrived = 1;
  const auto is_settled = [&](Guest& guest) {
    if (!guest.read_greeting()) {
      return true;
    }
    if (!guest.has_greeted()) {
      return false;
    }
    const int process = process_in(guest.hello(), processes);
    Socket& seat = world->peers_[static_cast<std::size_t>(process)].socket;
    if (process > 0 && seat.get() < 0) {
      make_prompt(guest.socket.get());
      const Hello welcome{.processes = processes};
      ::send(guest.socket.get(), &welcome, sizeof welcome, MSG_NOSIGNAL);  // the socket has room for it, or is closed
      seat = std::move(guest.socket);
      ++arrived;
    }
    return true;
  };
  while (arrived < processes) {
    if (Clock::now() >= deadline) {
      throw std::runtime_error(
          fmt::format("of {} processes, {} connected to port {} in time", processes, arrived, door.port()));
    }
    await_any(door.get(), guests, deadline);
    for (auto guest = guests.begin(); guest != guests.end();) {
      guest = is_settled(*guest) ? guests.erase(guest) : std::next(guest);
    }
    accept_guests(door.get(), guests);
  }
  return world;
}

std::unique_ptr<TcpWorld> TcpWorld::join(const std::string& host, std::uint16_t port, int process, int processes,
                                         std::chrono::nanoseconds patience) {
  std::unique_ptr<TcpWorld> world(new TcpWorld(process, processes));  // NOLINT(*-owning-memory): as above
  const Clock::time_point deadline = Clock::now() + patience;
  const Hello hello{.process = process, .processes = processes};
  Socket socket = try_to_connect(host, port);
  while (socket.get() < 0 || !is_welcome(socket, hello, deadline)) {
    if (Clock::now() > deadline) {
      const bool is_reached = socket.get() >= 0;
      throw std::runtime_error(fmt::format("process {} finds {} at {}:{}; {}", process,
                                           is_reached ? "another program" : "no program", host, port,
                                           is_reached ? "let one launcher set MASTER_ADDR, MASTER_PORT and WORLD_SIZE"
                                                      : "check that process 0 runs and that the port is open"));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    socket = try_to_connect(host, port);
  }
  world->peers_.emplace_back();
  world->peers_.front().socket = std::move(socket);
  return world;
}

TcpWorld::Peer& TcpWorld::connection_to(int process) {
  return peers_[process_ == 0 ? static_cast<std::size_t>(process) : 0];
}

void TcpWorld::put(int from, int to, const Payload& bytes) {
  Peer& peer = connection_to(to);
  if (peer.closed) {
    return;
  }
  if (peer.out.size() + bytes.size() > max_pending_bytes) {
    throw std::runtime_error(fmt::format("process {} does not read its messages", to));
  }
  append(peer.out, Header{.from = from, .to = to, .length = bytes.size()});
  peer.out.insert(peer.out.end(), bytes.begin(), bytes.end());
}

void TcpWorld::send(int to, Payload bytes) {
  if (to == process_) {
    arrived_.push_back({process_, std::move(bytes)});
    return;
  }
  if (bytes.size() > max_frame_bytes) {
    throw std::runtime_error(fmt::format(
        "a message between processes is larger than {} MiB; choose a schedule of fewer ops", max_frame_bytes >> 20U));
  }
  if (connection_to(to).closed) {
    throw std::runtime_error(fmt::format("process {} has exited", process_ == 0 ? to : 0));
  }
  put(process_, to, bytes);
  push(connection_to(to));
}

/// If the other end has closed, pull() detects that once all earlier data is taken.
void TcpWorld::push(Peer& peer) {
  while (!peer.out.empty()) {
    std::array<std::byte, 16384> chunk;
    const std::size_t length = std::min(chunk.size(), peer.out.size());
    std::copy_n(peer.out.begin(), length, chunk.begin());
    const ssize_t sent = ::send(peer.socket.get(), chunk.data(), length, MSG_NOSIGNAL);
    if (sent < 0) {
      if (!is_for_later(errno)) {
        peer.out.clear();
      }
      return;
    }
    peer.out.erase(peer.out.begin(), peer.out.begin() + sent);
  }
}

void TcpWorld::pull(Peer& peer) {
  std::array<std::byte, max_read_bytes> chunk;
  const ssize_t received = ::recv(peer.socket.get(), chunk.data(), chunk.size(), 0);
  if (received > 0) {
    peer.in.insert(peer.in.end(), chunk.begin(), chunk.begin() + received);
  } else {
    peer.closed = received == 0 || !is_for_later(errno);
  }
}

void TcpWorld::take_frames(Peer& peer, int number) {
  const auto refuse = [&](const std::string& sentence) {
    peer = Peer{.closed = true};
    throw std::runtime_error(sentence);
  };
  std::size_t read_bytes = 0;
  while (peer.in.size() - read_bytes >= sizeof(Header)) {
    Header header;
    std::memcpy(&header, peer.in.data() + read_bytes, sizeof header);
    const auto is_process = [&](std::int32_t value) { return value >= 0 && value < processes_; };
    if (header.length > max_frame_bytes || !is_process(header.from) || !is_process(header.to) ||
        (process_ != 0 && header.to != process_)) {
      refuse(fmt::format("data over TCP from process {} is not of this program; choose another port", number));
    }
    if (process_ == 0 && header.from != number) {
      refuse(fmt::format("process {} sends as process {}; run the same program everywhere", number, header.from));
    }
    if (peer.in.size() - read_bytes - sizeof header < header.length) {
      break;
    }
    const auto first = peer.in.begin() + static_cast<std::ptrdiff_t>(read_bytes + sizeof header);
    Payload bytes(first, first + static_cast<std::ptrdiff_t>(header.length));
    read_bytes += sizeof header + header.length;
    if (header.to == process_) {
      arrived_.push_back({header.from, std::move(bytes)});
    } else {
      put(header.from, header.to, bytes);
    }
  }
  peer.in.erase(peer.in.begin(), peer.in.begin() + static_cast<std::ptrdiff_t>(read_bytes));
  if (peer.in.empty() && peer.in.capacity() > 2 * max_read_bytes) {
    peer.in.shrink_to_fit();
  }
}

/// While incomplete frames hold much memory, only the first of them grows, so that some always complete.
void TcpWorld::pump() {
  std::size_t pending_bytes = 0;
  for (const Peer& peer : peers_) {
    pending_bytes += peer.in.size();
  }
  bool is_behind = false;
  for (std::size_t i = 0; i < peers_.size(); ++i) {
    Peer& peer = peers_[i];
    if (peer.socket.get() < 0 || peer.closed) {
      continue;
    }
    const bool is_first = !is_behind && !peer.in.empty();
    is_behind = is_behind || is_first;
    if (pending_bytes < max_pending_bytes || is_first) {
      pending_bytes -= peer.in.size();
      pull(peer);
      take_frames(peer, static_cast<int>(i));
      pending_bytes += peer.in.size();
    }
    if (peer.closed) {  // an incomplete frame stays incomplete
      pending_bytes -= peer.in.size();
      peer.in = {};
    }
  }
  std::ranges::for_each(peers_, push);
}

std::optional<Parcel> TcpWorld::receive() {
  if (arrived_.empty()) {
    pump();
  }
  if (arrived_.empty()) {
    if (process_ != 0 && peers_.front().closed) {  // process 0 is the last to close
      throw std::runtime_error("process 0 has exited");
    }
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

/// Sends the remaining data before the connections end. The first process closes last, because it forwards what others
/// send.
void TcpWorld::close() {
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(10);
  const auto waits = [&](const Peer& peer) {
    return peer.socket.get() >= 0 && !peer.closed && (!peer.out.empty() || process_ == 0);
  };
  while (Clock::now() < deadline && std::ranges::any_of(peers_, waits)) {
    try {
      pump();
    } catch (const std::runtime_error&) {  // the data was sent, and that connection has ended
      continue;
    }
    arrived_.clear();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  peers_.clear();
}

void TcpWorld::abort(int code) {
  peers_.clear();
  std::_Exit(code);
}

}  // namespace commfuse::validate
