// SPDX-License-Identifier: Apache-2.0
// The processes that run a schedule together, and the messages between them. MPI implements this interface in a module
// that is loaded only when needed, validate/tcp implements it with sockets, and tests with threads.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

using Payload = std::vector<std::byte>;

/// Data that one process sent to another.
struct Parcel {
  int from = 0;
  Payload bytes;
};

/// Communication as one process sees it. Only one thread may use it.
class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  [[nodiscard]] virtual int process() const = 0;
  [[nodiscard]] virtual int processes() const = 0;
  /// Sends without waiting for the receiver, which may be this process. Throws std::runtime_error when the message
  /// cannot be sent.
  virtual void send(int to, Payload bytes) = 0;
  /// Returns immediately, with nullopt if nothing has arrived. The parcels of one sender arrive in the order in which
  /// they were sent.
  virtual std::optional<Parcel> receive() = 0;
  /// Returns the name of the library, "Open MPI v4.1.4", or of the transport, "TCP".
  [[nodiscard]] virtual std::string library() const = 0;
  /// Returns the name of the machine on which this process runs.
  [[nodiscard]] virtual std::string host() const = 0;
  /// Shuts communication down cleanly. All processes must call it, and no process may send afterwards.
  virtual void close() = 0;
  /// Terminates all processes, even those that no longer respond.
  [[noreturn]] virtual void abort(int code) = 0;
};

}  // namespace commfuse
