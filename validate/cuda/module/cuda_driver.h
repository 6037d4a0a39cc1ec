// SPDX-License-Identifier: Apache-2.0
// The driver interface over the CUDA runtime.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "validate/cuda/attention_graph.h"
#include "validate/cuda/driver.h"
#include "validate/cuda/module/bounce.h"
#include "validate/cuda/module/device_memory.h"
#include "validate/cuda/module/fused_attention.h"
#include "validate/cuda/module/handles.h"
#include "validate/cuda/module/kernels.h"
#include "validate/cuda/module/nccl_device.h"
#include "validate/cuda/module/partitions.h"
#include "validate/cuda/module/products.h"
#include "validate/cuda/module/ranges.h"
#include "validate/cuda/module/tracer.h"

namespace commfuse::validate {

class CudaDriver final : public Driver, public NcclDevice {
 public:
  /// Makes the context of the device.
  explicit CudaDriver(int device);
  CudaDriver(const CudaDriver&) = delete;
  CudaDriver& operator=(const CudaDriver&) = delete;
  /// Opens a closed gate, and waits for the device.
  ~CudaDriver() override;

  [[nodiscard]] DeviceFacts facts() const override;

  Address allocate(Bytes bytes) override;
  void release(Address at) override;
  void upload(Address to, std::span<const std::byte> bytes) override;
  void download(std::span<std::byte> bytes, Address from) override;

  StreamId make_stream(bool urgent) override;
  EventId make_event(bool timed) override;
  Partition make_partition(int multiprocessors) override;
  void end_partition(const Partition& partition) override;
  StreamId make_stream_on(const Partition& partition, bool urgent) override;

  void record(EventId event, StreamId stream) override;
  void wait(StreamId stream, EventId event) override;
  void fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) override;
  void randomize(StreamId stream, const Panel& panel, std::uint64_t seed) override;
  void product(StreamId stream, const ProductCall& call) override;
  void function(StreamId stream, const FunctionCall& call) override;
  void attend(StreamId stream, const AttentionCall& call) override;
  void move(StreamId stream, const MoveCall& call) override;
  void spin(StreamId stream, Duration time) override;
  void gate(StreamId stream) override;
  void fill_tags(StreamId stream, const TagCall& call) override;
  std::int64_t count_wrong_tags(StreamId stream, const TagCall& call) override;

  void close_gate() override;
  void open_gate() override;
  [[nodiscard]] bool gate_held() override;

  [[nodiscard]] bool finish(Duration patience) override;
  [[nodiscard]] Duration elapsed(EventId from, EventId to) override;

  void begin_capture(StreamId origin) override;
  GraphId end_capture() override;
  void launch(StreamId stream, GraphId graph) override;

  [[nodiscard]] std::string attention_by() const override { return in_words(attention_); }

  void label(std::uint64_t id) override;
  void begin_trace() override;
  void drop_trace() override { tracer_.reset(); }
  [[nodiscard]] std::vector<DeviceSpan> end_trace() override;

  // Members that NCCL's network needs.

  void make_current() override;
  [[nodiscard]] cudaStream_t stream_of(StreamId id) const override { return stream(id).handle.get(); }
  void take_memory_from(std::shared_ptr<MemorySource> source) override { source_ = std::move(source); }
  void take_plain_memory() override { source_ = std::make_shared<PlainMemory>(); }
  void end_graphs() override;

 private:
  /// Resources of one stream. Kernels of other streams do not use its device memory.
  struct Stream {
    OwnedStream handle;                    // null after it was destroyed with its partition
    std::optional<std::size_t> partition;  // partition of the stream
    OwnedMemory workspace;                 // workspace of cuBLASLt
    OwnedMemory note;                      // start of a paced move, and counts
    OwnedMemory room;                      // memory for attention and bounces; it never shrinks, but may move
    std::size_t room_bytes = 0;
    std::unique_ptr<Bounce> bounce;
  };
  /// A captured record is an edge of the graph; for its time, a timed event is recorded as an additional node.
  struct Event {
    OwnedEvent order;
    OwnedEvent time;  // null if the event is not timed
  };

  StreamId keep(OwnedStream handle, std::optional<std::size_t> partition);
  [[nodiscard]] const Stream& stream(StreamId id) const;
  [[nodiscard]] Stream& stream(StreamId id);
  [[nodiscard]] const Event& event(EventId id) const;
  /// Throws during a capture, and if the gate is closed, because the device would then wait for itself.
  void require_open(const char* what) const;
  /// Returns whether cuDNN computed the attention. Throws if cuDNN is required and cannot compute it.
  bool attend_fused(Stream& on, const AttentionCall& call);
  /// Returns device memory of the stream, at least `bytes`.
  void* room(Stream& owner, std::size_t bytes);
  [[nodiscard]] GateFlags& flags() const;

  int device_ = 0;
  int multiprocessors_ = 0;
  std::shared_ptr<MemorySource> source_ = std::make_shared<PlainMemory>();
  std::map<Address, std::shared_ptr<MemorySource>> blocks_;  // source of each block
  PinnedMemory flags_;
  bool gate_closed_ = false;
  bool capturing_ = false;
  StreamId origin_{};
  LibraryProducts products_;
  FusedAttention fused_attention_;
  AttentionUse attention_;
  Partitions partitions_;
  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::vector<OwnedGraph> graphs_;         // null after end_graphs()
  std::vector<OwnedMemory> former_rooms_;  // earlier rooms, whose addresses graphs may hold
  LabelRange range_;
  std::unique_ptr<Tracer> tracer_;
};

}  // namespace commfuse::validate
