// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/bounce.h"

#include <algorithm>
#include <utility>

#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

namespace {

constexpr std::int64_t alignment = 256;

Panel packed(Address at, const Panel& like, DType dtype) { return {at, like.rows, like.columns, like.columns, dtype}; }

std::int64_t padded_bytes(const MoveCall::Part& part, DType wire) {
  return groups_of(part.from.rows * part.from.columns * bytes_of(wire), alignment) * alignment;
}

}  // namespace

Bounce::Bounce() : down_(new_stream(0)), up_(new_stream(0)) {}

void Bounce::run(cudaStream_t stream, const MoveCall& call, int ctas, const std::function<void*(std::size_t)>& room) {
  std::int64_t needed = 0;
  for (const MoveCall::Part& part : call.parts) {
    needed += keeps_bytes(part, call.wire) ? 0 : 2 * padded_bytes(part, call.wire);
  }
  auto next = needed == 0 ? Address{0} : reinterpret_cast<Address>(room(static_cast<std::size_t>(needed)));
  MoveCall pack{.wire = call.wire};
  MoveCall unpack = pack;
  std::vector<MoveCall::Part> parts = call.parts;
  for (MoveCall::Part& part : parts) {
    if (keeps_bytes(part, call.wire)) {
      continue;
    }
    const auto bytes = static_cast<Address>(padded_bytes(part, call.wire));
    const MoveCall::Part staging{packed(next, part.from, call.wire), packed(next + bytes, part.from, call.wire)};
    next += 2 * bytes;
    pack.parts.push_back({part.from, staging.from});
    unpack.parts.push_back({staging.to, part.to});
    part = staging;
  }
  if (!pack.parts.empty()) {
    launch_move(stream, pack, ctas, nullptr);
  }
  bounce(parts, stream);
  if (!unpack.parts.empty()) {
    launch_move(stream, unpack, ctas, nullptr);
  }
}

// All slots are empty when the first chunk arrives, because the stream waited for the last chunk of the previous run.
void Bounce::bounce(const std::vector<MoveCall::Part>& parts, cudaStream_t stream) {
  chunks_ = 0;
  require(cudaEventRecord(begin_.get(), stream), "cudaEventRecord");
  require(cudaStreamWaitEvent(down_.get(), begin_.get(), 0), "cudaStreamWaitEvent");
  require(cudaStreamWaitEvent(up_.get(), begin_.get(), 0), "cudaStreamWaitEvent");
  for (const MoveCall::Part& part : parts) {
    const Panel& from = part.from;
    const Panel& to = part.to;
    require(from.rows == to.rows && from.columns == to.columns, "a move keeps its rows and columns");
    const std::int64_t size = bytes_of(from.dtype);
    const Rows rows{from.at, to.at, from.rows, from.columns * size, from.stride * size, to.stride * size};
    if (!from.contiguous() || !to.contiguous()) {
      bounce(rows);
      continue;
    }
    bounce({rows.from, rows.to, 1, rows.rows * rows.bytes, 0, 0});
  }
  // A capture must rejoin both streams, even unused ones. up_ waits for down_, and the caller's stream waits for up_.
  // begin_ can be recorded again, because the waits for it were issued.
  require(cudaEventRecord(begin_.get(), down_.get()), "cudaEventRecord");
  require(cudaStreamWaitEvent(up_.get(), begin_.get(), 0), "cudaStreamWaitEvent");
  require(cudaEventRecord(end_.get(), up_.get()), "cudaEventRecord");
  require(cudaStreamWaitEvent(stream, end_.get(), 0), "cudaStreamWaitEvent");
}

/// Cuts the rows into strips that are at most one chunk wide. Each chunk takes as many rows of a strip as fit into it.
void Bounce::bounce(const Rows& rows) {
  for (std::int64_t byte = 0; byte < rows.bytes; byte += chunk_bytes) {
    const std::int64_t bytes = std::min(chunk_bytes, rows.bytes - byte);
    const std::int64_t height = chunk_bytes / bytes;
    for (std::int64_t row = 0; row < rows.rows; row += height) {
      chunk({rows.from + static_cast<Address>(row * rows.from_pitch + byte),
             rows.to + static_cast<Address>(row * rows.to_pitch + byte), std::min(height, rows.rows - row), bytes,
             std::max(rows.from_pitch, bytes), std::max(rows.to_pitch, bytes)});
    }
  }
}

void Bounce::chunk(const Rows& rows) {
  const Slot& slot = slots_[chunks_ % slots_.size()];
  const auto width = static_cast<std::size_t>(rows.bytes);
  const auto height = static_cast<std::size_t>(rows.rows);
  if (chunks_ >= slots_.size()) {
    require(cudaStreamWaitEvent(down_.get(), slot.emptied.get(), 0), "cudaStreamWaitEvent");
  }
  require(
      cudaMemcpy2DAsync(slot.bytes.get(), width,
                        reinterpret_cast<const void*>(rows.from),  // NOLINT(*-no-int-to-ptr): device memory
                        static_cast<std::size_t>(rows.from_pitch), width, height, cudaMemcpyDeviceToHost, down_.get()),
      "cudaMemcpy2DAsync");
  require(cudaEventRecord(slot.filled.get(), down_.get()), "cudaEventRecord");
  require(cudaStreamWaitEvent(up_.get(), slot.filled.get(), 0), "cudaStreamWaitEvent");
  require(cudaMemcpy2DAsync(reinterpret_cast<void*>(rows.to),  // NOLINT(*-no-int-to-ptr): device memory
                            static_cast<std::size_t>(rows.to_pitch), slot.bytes.get(), width, width, height,
                            cudaMemcpyHostToDevice, up_.get()),
          "cudaMemcpy2DAsync");
  require(cudaEventRecord(slot.emptied.get(), up_.get()), "cudaEventRecord");
  ++chunks_;
}

}  // namespace commfuse::validate
