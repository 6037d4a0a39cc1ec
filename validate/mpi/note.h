// SPDX-License-Identifier: Apache-2.0
// The messages between the processes of a run.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "model/process/world.h"
#include "model/program/program.h"
#include "validate/values/matrix.h"

namespace commfuse::validate {

struct Note {
  enum class Kind : std::uint8_t {
    // Notes about an op. They name the receiver's op.
    posted,     // the receiver of a rendezvous is ready
    data,       // the data of a send
    delivered,  // the data has arrived
    shown,      // the data of a pull may be fetched
    fetch,      // requests the data of a pull
    part,       // a member's part of a collective
    met,        // a member of a collective has its result
    // Notes about a run.
    arrived,   // ready to begin
    start,     // the run begins
    left,      // all ops have ended; with a report
    over,      // the run has ended on all processes
    beat,      // still alive, and at work
    ask,       // requests the places where the process waits
    standing,  // the answer
    fail,      // the run is given up; with the reason
    // Notes about the program.
    finished,  // with an exit code and the reason
    verdict,   // the common exit code
  };

  Kind kind = Kind::beat;
  OpId op{};
  Payload body{};
};

Payload packed(const Note& note);
/// Throws std::runtime_error for bytes that packed() does not write.
Note unpacked(std::span<const std::byte> bytes);

/// Writes values one after another in their memory layout, which all processes share.
class PayloadWriter {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const auto* first = reinterpret_cast<const std::byte*>(&value);  // NOLINT(*-reinterpret-cast): its bytes
    bytes_.insert(bytes_.end(), first, first + sizeof(Value));
  }
  void put_text(const std::string& text);
  /// Requires the values of `matrix` to be rounded to `dtype` already.
  void put_matrix(DType dtype, const Matrix<float>& matrix);
  [[nodiscard]] Payload take() { return std::move(bytes_); }

 private:
  Payload bytes_;
};

/// Returns a payload with a single string.
Payload text_payload(const std::string& text);

/// Throws std::runtime_error if too few bytes remain.
class PayloadReader {
 public:
  explicit PayloadReader(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class Value>
  Value get() {
    static_assert(std::is_trivially_copyable_v<Value>);
    Value value{};
    std::memcpy(&value, next(sizeof(Value)).data(), sizeof(Value));
    return value;
  }
  std::string get_text();
  Matrix<float> get_matrix(DType dtype);
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::span<const std::byte> rest() { return next(bytes_.size()); }

 private:
  std::span<const std::byte> next(std::size_t count);
  std::span<const std::byte> bytes_;
};

}  // namespace commfuse::validate
