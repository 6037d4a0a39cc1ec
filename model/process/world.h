// SPDX-License-Identifier: Apache-2.0
// The processes that run a schedule together, and how messages go among them. MPI stands behind this in a module that
// is loaded only where it is needed; tests put threads behind it.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace commfuse {

using Payload = std::vector<std::byte>;

/// What one process sent to another.
struct Parcel {
  int from = 0;
  Payload bytes;
};

/// One process's view. Used by one thread.
class World {
 public:
  World() = default;
  World(const World&) = delete;
  World& operator=(const World&) = delete;
  virtual ~World() = default;

  [[nodiscard]] virtual int process() const = 0;
  [[nodiscard]] virtual int processes() const = 0;
  /// Returns at once, whoever receives; may be to itself. Throws std::runtime_error when it cannot be sent.
  virtual void send(int to, Payload bytes) = 0;
  /// Returns at once. The parcels of one sender come in the order they were sent.
  virtual std::optional<Parcel> receive() = 0;
  /// "Open MPI v4.1.4".
  [[nodiscard]] virtual std::string library() const = 0;
  /// The machine that this process is on.
  [[nodiscard]] virtual std::string host() const = 0;
  /// The orderly end, after which nothing is sent; all processes call it.
  virtual void close() = 0;
  /// Ends all processes, also those that no longer answer.
  [[noreturn]] virtual void abort(int code) = 0;
};

}  // namespace commfuse
