// SPDX-License-Identifier: Apache-2.0
#include "validate/mpi/note.h"

#include "validate/reference/rounding.h"

namespace commfuse::validate {

namespace {

constexpr const char* truncated = "a message between processes is truncated; run the same program everywhere";

}  // namespace

void PayloadWriter::put_text(const std::string& text) {
  put(static_cast<std::int64_t>(text.size()));
  const auto bytes = std::as_bytes(std::span(text));
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

void PayloadWriter::put_matrix(DType dtype, const Matrix<float>& matrix) {
  put(matrix.rows());
  put(matrix.columns());
  const std::size_t first = bytes_.size();
  bytes_.resize(first + matrix.values().size() * static_cast<std::size_t>(bytes_of(dtype)));
  encode(dtype, matrix.values(), std::span(bytes_).subspan(first));
}

std::span<const std::byte> PayloadReader::next(std::size_t count) {
  if (count > bytes_.size()) {
    throw std::runtime_error(truncated);
  }
  const std::span<const std::byte> front = bytes_.first(count);
  bytes_ = bytes_.subspan(count);
  return front;
}

std::string PayloadReader::get_text() {
  const auto text = next(static_cast<std::size_t>(get<std::int64_t>()));
  return {reinterpret_cast<const char*>(text.data()), text.size()};  // NOLINT(*-reinterpret-cast): its bytes
}

Matrix<float> PayloadReader::get_matrix(DType dtype) {
  const auto rows = get<std::int64_t>();
  const auto columns = get<std::int64_t>();
  const auto limit = static_cast<std::int64_t>(bytes_.size()) / bytes_of(dtype);
  if (rows < 0 || columns < 0 || (columns > 0 && rows > limit / columns)) {
    throw std::runtime_error(truncated);
  }
  Matrix<float> matrix(rows, columns);
  decode(dtype, next(matrix.values().size() * static_cast<std::size_t>(bytes_of(dtype))), matrix.values());
  return matrix;
}

Payload packed(const Note& note) {
  PayloadWriter writer;
  writer.put(note.kind);
  writer.put(note.op);
  Payload bytes = writer.take();
  bytes.insert(bytes.end(), note.body.begin(), note.body.end());
  return bytes;
}

Note unpacked(std::span<const std::byte> bytes) {
  PayloadReader reader(bytes);
  Note note{.kind = reader.get<Note::Kind>(), .op = reader.get<OpId>()};
  if (note.kind > Note::Kind::verdict) {
    throw std::runtime_error("a message between processes has an unknown kind; run the same program everywhere");
  }
  const std::span<const std::byte> body = reader.rest();
  note.body.assign(body.begin(), body.end());
  return note;
}

Payload text_payload(const std::string& text) {
  PayloadWriter writer;
  writer.put_text(text);
  return writer.take();
}

}  // namespace commfuse::validate
