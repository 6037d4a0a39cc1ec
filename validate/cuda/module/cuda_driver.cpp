// SPDX-License-Identifier: Apache-2.0
#include "validate/cuda/module/cuda_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <new>
#include <thread>

#include "validate/cuda/module/fast_attention.h"
#include "validate/cuda/module/versions.h"
#include "validate/cuda/module/views.h"

namespace commfuse::validate {

namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  require(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

std::string uuid_in_words(const cudaUUID_t& uuid) {
  std::string text = "GPU";
  for (std::size_t i = 0; i < sizeof uuid.bytes; ++i) {
    const bool needs_dash = i == 0 || i == 4 || i == 6 || i == 8 || i == 10;
    text += fmt::format("{}{:02x}", needs_dash ? "-" : "", static_cast<unsigned char>(uuid.bytes[i]));
  }
  return text;
}

template <class Id>
std::size_t position_of(Id id) {
  return static_cast<std::size_t>(id);
}

constexpr std::size_t note_bytes = 256;

int priority_of(bool urgent) {
  int least = 0;
  int greatest = 0;
  require(cudaDeviceGetStreamPriorityRange(&least, &greatest), "cudaDeviceGetStreamPriorityRange");
  return urgent ? greatest : least;
}

}  // namespace

CudaDriver::CudaDriver(int device)
    : device_(device),
      flags_((require(cudaSetDevice(device), "cudaSetDevice"),
              require(cudaFree(nullptr), "the first call to the device"), new_pinned_memory(sizeof(GateFlags)))),
      partitions_(device) {
  new (flags_.get()) GateFlags{.open = 1};
  multiprocessors_ = attribute(cudaDevAttrMultiProcessorCount, device_);
}

CudaDriver::~CudaDriver() {
  open_gate();
  static_cast<void>(cudaDeviceSynchronize());
  tracer_.reset();
  for (const auto& [at, source] : blocks_) {
    try {
      source->release(pointer_to(at));
    } catch (const std::exception&) {  // the end of the process frees everything
    }
  }
}

DeviceFacts CudaDriver::facts() const {
  cudaDeviceProp properties{};
  require(cudaGetDeviceProperties(&properties, device_), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  require(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  require(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  constexpr int kilo = 1000;  // clock rates are in kHz
  return {.name = properties.name,
          .uuid = uuid_in_words(properties.uuid),
          .multiprocessors = properties.multiProcessorCount,
          .capability = properties.major * 10 + properties.minor,
          .memory = {static_cast<std::int64_t>(properties.totalGlobalMem)},
          .level2 = {properties.l2CacheSize},
          .clock_mhz = attribute(cudaDevAttrClockRate, device_) / kilo,
          .memory_clock_mhz = attribute(cudaDevAttrMemoryClockRate, device_) / kilo,
          .driver = cuda_version_in_words(driver),
          .runtime = cuda_version_in_words(runtime),
          .cublaslt = cublaslt_version_in_words(),
          .nccl = nccl_version_in_words()};
}

Address CudaDriver::allocate(Bytes bytes) {
  require_open("memory");
  void* at = source_->allocate(static_cast<std::size_t>(std::max<std::int64_t>(bytes.count, 1)));
  blocks_[address_of(at)] = source_;
  return address_of(at);
}

void CudaDriver::release(Address at) {
  const auto block = blocks_.find(at);
  require(block != blocks_.end(), "memory is released that was not allocated");
  require_open("releasing memory");
  block->second->release(pointer_to(at));
  blocks_.erase(block);
}

void CudaDriver::upload(Address to, std::span<const std::byte> bytes) {
  require(cudaMemcpy(pointer_to(to), bytes.data(), bytes.size(), cudaMemcpyHostToDevice), "cudaMemcpy");
  // The call may return before a copy from pageable memory is done.
  require(cudaStreamSynchronize(nullptr), "cudaStreamSynchronize");
}

void CudaDriver::download(std::span<std::byte> bytes, Address from) {
  require(cudaMemcpy(bytes.data(), pointer_to(from), bytes.size(), cudaMemcpyDeviceToHost), "cudaMemcpy");
}

StreamId CudaDriver::make_stream(bool urgent) {
  require_open("a stream");
  return keep(new_stream(priority_of(urgent)), std::nullopt);
}

Partition CudaDriver::make_partition(int multiprocessors) {
  require_open("a partition");
  const std::size_t id = partitions_.add(multiprocessors);
  return {static_cast<std::int32_t>(id), partitions_.multiprocessors(id)};
}

void CudaDriver::end_partition(const Partition& partition) {
  require_open("giving a partition back");
  const auto id = static_cast<std::size_t>(partition.id);
  require(partitions_.contains(id), "a partition is ended that does not exist");
  for (Stream& stream : streams_) {
    if (stream.partition == id && stream.handle != nullptr) {
      require(cudaStreamSynchronize(stream.handle.get()), "cudaStreamSynchronize");
      stream = {};  // its id is never used again
    }
  }
  partitions_.give_back(id);
}

StreamId CudaDriver::make_stream_on(const Partition& partition, bool urgent) {
  require_open("a stream");
  const auto id = static_cast<std::size_t>(partition.id);
  return keep(partitions_.new_stream(id, priority_of(urgent)), id);
}

StreamId CudaDriver::keep(OwnedStream handle, std::optional<std::size_t> partition) {
  streams_.push_back({.handle = std::move(handle),
                      .partition = partition,
                      .workspace = new_device_memory(LibraryProducts::workspace_bytes),
                      .note = new_device_memory(note_bytes)});
  return static_cast<StreamId>(streams_.size() - 1);
}

EventId CudaDriver::make_event(bool timed) {
  events_.push_back({.order = new_event(false), .time = timed ? new_event(true) : nullptr});
  return static_cast<EventId>(events_.size() - 1);
}

void CudaDriver::record(EventId event_id, StreamId stream_id) {
  const Event& event = this->event(event_id);
  cudaStream_t on = stream_of(stream_id);
  if (event.time != nullptr) {
    const unsigned how = capturing_ ? cudaEventRecordExternal : cudaEventRecordDefault;
    require(cudaEventRecordWithFlags(event.time.get(), on, how), "cudaEventRecordWithFlags");
  }
  // In a capture, `order` is recorded after the time, so that streams that wait for the event also wait for the node
  // that records the time: a capture cannot end with a node for which no stream waits.
  if (event.time == nullptr || capturing_) {
    require(cudaEventRecord(event.order.get(), on), "cudaEventRecord");
  }
}

void CudaDriver::wait(StreamId stream_id, EventId event_id) {
  const Event& event = this->event(event_id);
  const bool by_order = event.time == nullptr || capturing_;
  require(cudaStreamWaitEvent(stream_of(stream_id), by_order ? event.order.get() : event.time.get(), 0),
          "cudaStreamWaitEvent");
}

void CudaDriver::fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) {
  require(cudaMemsetAsync(pointer_to(at), byte, static_cast<std::size_t>(bytes.count), stream_of(stream)),
          "cudaMemsetAsync");
}

void CudaDriver::randomize(StreamId stream, const Panel& panel, std::uint64_t seed) {
  launch_randomize(stream_of(stream), panel, seed);
}

void CudaDriver::product(StreamId stream_id, const ProductCall& call) {
  const Stream& on = stream(stream_id);
  if (call.sum_order == SumOrder::ascending) {
    launch_exact_product(on.handle.get(), call);
  } else {
    products_.run(on.handle.get(), {on.workspace.get(), LibraryProducts::workspace_bytes}, {.call = call});
  }
}

void CudaDriver::function(StreamId stream, const FunctionCall& call) { launch_function(stream_of(stream), call); }

void CudaDriver::attend(StreamId stream_id, const AttentionCall& call) {
  Stream& on = stream(stream_id);
  if (call.sum_order == SumOrder::ascending) {
    launch_exact_attention(on.handle.get(), call);
    return;
  }
  require(call.functions == Functions::real, "fast attention computes real functions only");
  if (call.kernel == AttentionKernel::cublaslt || !attend_fused(on, call)) {
    attention_.cublaslt = true;
    launch_fast_attention(
        on.handle.get(), products_, {on.workspace.get(), LibraryProducts::workspace_bytes},
        [&](std::size_t bytes) { return room(on, bytes); }, call);
  }
}

bool CudaDriver::attend_fused(Stream& on, const AttentionCall& call) {
  const std::vector<AttentionPiece> pieces = pieces_of(call, true);
  const std::string why = fused_attention_.refused(pieces, [this] { require_open("a cuDNN kernel"); });
  if (why.empty()) {
    fused_attention_.run(on.handle.get(), pieces, [&](std::size_t bytes) { return room(on, bytes); });
    attention_.cudnn = fused_attention_.version();
  } else if (call.kernel == AttentionKernel::cudnn) {
    throw NoFusedAttention(fmt::format("attention cannot use cuDNN: {}; use cuBLASLt", why));
  } else if (attention_.without_cudnn.empty()) {
    attention_.without_cudnn = why;
  }
  return why.empty();
}

namespace {

void copy_plainly(cudaStream_t stream, const MoveCall& call) {
  for (const MoveCall::Part& part : call.parts) {
    require(keeps_bytes(part, call.wire), "a plain copy does not convert bytes");
    const auto pitch = [](const Panel& panel) {
      return static_cast<std::size_t>((panel.rows == 1 ? panel.columns : panel.stride) * bytes_of(panel.dtype));
    };
    require(cudaMemcpy2DAsync(pointer_to(part.to.at), pitch(part.to), pointer_to(part.from.at), pitch(part.from),
                              static_cast<std::size_t>(part.from.columns * bytes_of(part.from.dtype)),
                              static_cast<std::size_t>(part.from.rows), cudaMemcpyDeviceToDevice, stream),
            "cudaMemcpy2DAsync");
  }
}

}  // namespace

void CudaDriver::move(StreamId stream_id, const MoveCall& call) {
  Stream& on = stream(stream_id);
  if (call.link.kind == LinkKind::plain) {
    copy_plainly(on.handle.get(), call);
    return;
  }
  const int ctas = call.link.ctas > 0 ? call.link.ctas : multiprocessors_;
  if (call.link.kind != LinkKind::bounce) {
    launch_move(on.handle.get(), call, ctas, reinterpret_cast<std::int64_t*>(on.note.get()));
    return;
  }
  if (on.bounce == nullptr) {
    require_open("pinned memory for a link");
    on.bounce = std::make_unique<Bounce>();
  }
  on.bounce->run(on.handle.get(), call, ctas, [&](std::size_t bytes) { return room(on, bytes); });
}

void CudaDriver::spin(StreamId stream, Duration time) { launch_spin(stream_of(stream), time); }

void CudaDriver::gate(StreamId stream) {
  void* device_pointer = nullptr;
  require(cudaHostGetDevicePointer(&device_pointer, flags_.get(), 0), "cudaHostGetDevicePointer");
  launch_gate(stream_of(stream), static_cast<GateFlags*>(device_pointer));
}

void CudaDriver::fill_tags(StreamId stream, const TagCall& call) { launch_tags(stream_of(stream), call); }

std::int64_t CudaDriver::count_wrong_tags(StreamId stream_id, const TagCall& call) {
  require_open("a count");
  const Stream& on = stream(stream_id);
  unsigned long long count = 0;
  require(cudaMemsetAsync(on.note.get(), 0, sizeof count, on.handle.get()), "cudaMemsetAsync");
  launch_count_of_wrong_tags(on.handle.get(), call, reinterpret_cast<unsigned long long*>(on.note.get()));
  require(cudaMemcpyAsync(&count, on.note.get(), sizeof count, cudaMemcpyDeviceToHost, on.handle.get()),
          "cudaMemcpyAsync");
  require(cudaStreamSynchronize(on.handle.get()), "cudaStreamSynchronize");
  return static_cast<std::int64_t>(count);
}

void CudaDriver::close_gate() {
  std::atomic_ref(flags().opened_alone).store(0);
  std::atomic_ref(flags().open).store(0);
  gate_closed_ = true;
}

void CudaDriver::open_gate() {
  std::atomic_ref(flags().open).store(1);
  gate_closed_ = false;
}

bool CudaDriver::gate_held() { return std::atomic_ref(flags().opened_alone).load() == 0; }

bool CudaDriver::finish(Duration patience) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::nanoseconds>(patience);
  for (const Stream& stream : streams_) {
    while (stream.handle != nullptr) {
      const cudaError_t status = cudaStreamQuery(stream.handle.get());
      if (status == cudaSuccess) {
        break;
      }
      if (status != cudaErrorNotReady) {
        require(status, "work of a stream");
      }
      if (std::chrono::steady_clock::now() > deadline) {
        return false;
      }
      std::this_thread::yield();
    }
  }
  return true;
}

Duration CudaDriver::elapsed(EventId from, EventId to) {
  float milliseconds = 0.0F;
  require(cudaEventElapsedTime(&milliseconds, event(from).time.get(), event(to).time.get()), "cudaEventElapsedTime");
  return Duration(std::llround(static_cast<double>(milliseconds) * 1e9));
}

void CudaDriver::begin_capture(StreamId origin) {
  require(!capturing_, "a capture is already in progress");
  require(cudaStreamBeginCapture(stream_of(origin), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  capturing_ = true;
  origin_ = origin;
}

GraphId CudaDriver::end_capture() {
  require(capturing_, "no capture is in progress");
  capturing_ = false;
  cudaGraph_t captured = nullptr;
  require(cudaStreamEndCapture(stream_of(origin_), &captured), "cudaStreamEndCapture");
  const Owned<cudaGraph_t, cudaGraphDestroy> graph(captured);
  cudaGraphExec_t executable = nullptr;
  require(cudaGraphInstantiate(&executable, graph.get(), 0), "cudaGraphInstantiate");
  graphs_.emplace_back(executable);
  require(cudaGraphUpload(executable, stream_of(origin_)), "cudaGraphUpload");
  return static_cast<GraphId>(graphs_.size() - 1);
}

void CudaDriver::launch(StreamId stream, GraphId graph) {
  require(position_of(graph) < graphs_.size() && graphs_[position_of(graph)] != nullptr,
          "a graph is launched that was not captured, or ended with its network");
  require(cudaGraphLaunch(graphs_[position_of(graph)].get(), stream_of(stream)), "cudaGraphLaunch");
}

void CudaDriver::end_graphs() {
  for (OwnedGraph& graph : graphs_) {
    graph.reset();  // the vector keeps its size, so that later graphs have new ids
  }
}

void CudaDriver::make_current() { require(cudaSetDevice(device_), "cudaSetDevice"); }

void CudaDriver::label(std::uint64_t id) {
  range_.begin(id);
  if (tracer_ != nullptr) {
    tracer_->label(id);
  }
}

void CudaDriver::begin_trace() {
  tracer_.reset();  // only one tracer may exist at a time
  tracer_ = make_tracer();
}

std::vector<DeviceSpan> CudaDriver::end_trace() {
  require(tracer_ != nullptr, "a trace is ended that was not begun");
  require(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  std::vector<DeviceSpan> spans = tracer_->spans();
  tracer_.reset();
  return spans;
}

const CudaDriver::Stream& CudaDriver::stream(StreamId id) const {
  require(position_of(id) < streams_.size() && streams_[position_of(id)].handle != nullptr,
          "a stream is used that was not made, or ended with its partition");
  return streams_[position_of(id)];
}

CudaDriver::Stream& CudaDriver::stream(StreamId id) {
  require(position_of(id) < streams_.size() && streams_[position_of(id)].handle != nullptr,
          "a stream is used that was not made, or ended with its partition");
  return streams_[position_of(id)];
}

const CudaDriver::Event& CudaDriver::event(EventId id) const {
  require(position_of(id) < events_.size(), "an event is used that was not made");
  return events_[position_of(id)];
}

void CudaDriver::require_open(const char* what) const {
  if (gate_closed_ || capturing_) {
    throw std::runtime_error(fmt::format("{} requested {}", what,
                                         capturing_
                                             ? "during a capture, which forbids it; run once outside a capture first"
                                             : "under a closed gate; run once with an open gate first"));
  }
}

void* CudaDriver::room(Stream& owner, std::size_t bytes) {
  if (owner.room_bytes < bytes) {
    require_open("memory for attention or a link");
    if (owner.room != nullptr && !graphs_.empty()) {
      former_rooms_.push_back(std::move(owner.room));
    }
    owner.room.reset();  // freeing waits for the device
    owner.room = new_device_memory(bytes);
    owner.room_bytes = bytes;
  }
  return owner.room.get();
}

GateFlags& CudaDriver::flags() const {
  return *std::launder(reinterpret_cast<GateFlags*>(flags_.get()));  // NOLINT(*-reinterpret-cast): made in place there
}

}  // namespace commfuse::validate
