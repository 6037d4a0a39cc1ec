// SPDX-License-Identifier: Apache-2.0
// What the processes of a run tell each other.
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
    // Of an op, named by the receiver's op.
    posted,     // the receiver of a rendezvous stands ready
    data,       // what was sent
    delivered,  // what was sent lies there
    shown,      // what is to be pulled may be fetched
    fetch,      // send what is to be pulled
    part,       // what a member gives to a collective
    met,        // a member of a collective has its result
    // Of a run.
    arrived,  // ready to begin
    start,
    left,  // all ops have ended; with a report
    over,
    beat,      // still alive, and at work
    ask,       // where do you stand?
    standing,  // the answer
    fail,      // the run is given up, and why
    // Of the program.
    finished,  // with an exit code and why
    verdict,   // the exit code of all
  };

  Kind kind = Kind::beat;
  OpId op{};
  Payload body{};
};

Payload packed(const Note& note);
/// Throws std::runtime_error for what packed() does not write.
Note unpacked(std::span<const std::byte> bytes);

/// Values one after another, as they lie in the memory of all processes.
class PayloadWriter {
 public:
  template <class Value>
  void put(const Value& value) {
    static_assert(std::is_trivially_copyable_v<Value>);
    const auto* first = reinterpret_cast<const std::byte*>(&value);  // NOLINT(*-reinterpret-cast): its bytes
    bytes_.insert(bytes_.end(), first, first + sizeof(Value));
  }
  void put_text(const std::string& text);
  /// Its values are those of the dtype already.
  void put_matrix(DType dtype, const Matrix<float>& matrix);
  [[nodiscard]] Payload take() { return std::move(bytes_); }

 private:
  Payload bytes_;
};

/// One text and nothing else.
Payload text_payload(const std::string& text);

/// Throws std::runtime_error where there are not as many bytes.
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
