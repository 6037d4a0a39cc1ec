// SPDX-License-Identifier: Apache-2.0
// Everything that the executors need from a GPU. CUDA implements it in a module that is loaded only when needed. Tests
// implement it with a recording fake, so that all code above this interface is tested without a GPU.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/dtype.h"
#include "model/program/program.h"
#include "model/units.h"
#include "validate/pace.h"
#include "validate/reference/attention.h"
#include "validate/values/arithmetic.h"

namespace commfuse::validate {

/// Alignment that cudaMalloc guarantees, which suffices for the widest loads.
inline constexpr std::int64_t memory_alignment = 256;
constexpr std::int64_t rounded_up_to_alignment(std::int64_t bytes) {
  return (bytes + memory_alignment - 1) / memory_alignment * memory_alignment;
}

/// An in-order queue of the device.
enum class StreamId : std::int32_t {};
/// A point in a stream that other streams can wait for; it may be recorded repeatedly.
enum class EventId : std::int32_t {};
/// A captured graph, ready to launch.
enum class GraphId : std::int32_t {};
/// Multiprocessors that are reserved for streams of their own.
struct Partition {
  std::int32_t id = 0;
  int multiprocessors = 0;
};
/// The address of a byte of device memory.
using Address = std::uint64_t;

/// A rectangle of device memory: row-major, `stride` elements from one row to the next.
struct Panel {
  Address at = 0;
  std::int64_t rows = 0;
  std::int64_t columns = 0;
  std::int64_t stride = 0;
  DType dtype = DType::fp32;

  /// Returns true if its elements are contiguous.
  [[nodiscard]] bool contiguous() const { return rows == 1 || stride == columns; }
  [[nodiscard]] Bytes bytes() const { return {rows * columns * bytes_of(dtype)}; }
  friend bool operator==(const Panel&, const Panel&) = default;
};

/// out = or += op(a) x op(b), summed in fp32 and rounded once, when stored. With `accumulate` the whole sum is added to
/// the value in `out`.
struct ProductCall {
  Panel a, b, out;
  bool transpose_a = false;
  bool transpose_b = false;
  bool accumulate = false;
  /// ascending: over k in ascending order, each product and each sum rounded to fp32, with the bits of the interpreter
  /// (T1, T-int); blocked: cuBLASLt with its fastest algorithm
  SumOrder sum_order = SumOrder::ascending;
  /// Limit on the multiprocessors of a library kernel; 0 means all.
  int multiprocessors = 0;
  /// Uses the algorithm that is chosen for a GEMM of this many rows, so that a whole GEMM can use the kernel of its
  /// shards (T2); 0 means the algorithm for its own rows.
  std::int64_t algorithm_rows = 0;
};

/// out = function(inputs), as run_elementwise() defines it. add has any number of inputs, residual two, zero none, all
/// other functions one. All inputs have as many rows as `out`. An input of swiglu has twice as many columns as `out`;
/// all other inputs have as many columns as `out`.
struct FunctionCall {
  Function function = Function::copy;
  Functions functions = Functions::real;
  /// ascending: in double where the reference uses double; blocked: real functions in fp32, as in fast kernels.
  SumOrder sum_order = SumOrder::ascending;
  std::int64_t block = 0;  ///< Columns of a block of the output: swiglu pairs blocks of this size.
  std::vector<Panel> inputs;
  Panel out;
  std::optional<DType> wire{};  ///< If set, inputs are first rounded to it, for sums of received data.
};

/// Library for fast attention.
enum class AttentionKernel : std::uint8_t {
  any,       ///< cuDNN if it is installed and accepts the shape, else cuBLASLt.
  cudnn,     ///< One fused kernel; fails if there is none for the shape.
  cublaslt,  ///< Two GEMMs of cuBLASLt and a softmax between them.
};

/// Thrown if fast attention was requested from cuDNN and cuDNN cannot compute it; what() states why.
class NoFusedAttention : public std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Attention of some query rows to the keys that they see. The columns are laid out as in attention.h.
struct AttentionCall {
  struct Part {
    Panel queries;
    std::int64_t first_row = 0;  ///< Row of the first query in the whole matrix: position * batch + sequence.
    Panel out;
  };
  AttentionLayout layout;
  Functions functions = Functions::real;
  /// ascending: in double, with the bits of the reference (attention.h); blocked: real functions only, by a library's
  /// kernels.
  SumOrder sum_order = SumOrder::ascending;
  AttentionKernel kernel = AttentionKernel::any;
  std::vector<Part> parts;
  Panel keys;  ///< The first rows of the whole matrix, up to the last row that the queries see.
};

/// Mechanism that moves data between virtual ranks.
enum class LinkKind : std::uint8_t {
  copy,    ///< A kernel of `ctas` CTAs, as fast as possible.
  paced,   ///< A kernel that ends no earlier than latency + bytes / bandwidth after it began: models a known link.
  plain,   ///< The runtime's own copy inside the device, by any mechanism. Requires equal dtypes.
  bounce,  ///< Copy engines move data down into pinned host memory and up again: a real link, the one to the host.
};

struct DeviceLink {
  LinkKind kind = LinkKind::copy;
  int ctas = 4;  ///< 0: one for every multiprocessor.
  Pace pace{};   ///< Pace of a paced link.
};

/// Copies every part's `from` to its `to`, which must have the same numbers of rows and columns. Bytes are unchanged if
/// both dtypes are the dtype of the wire; otherwise values are rounded to the wire's dtype and then to the target's.
struct MoveCall {
  struct Part {
    Panel from, to;
  };
  std::vector<Part> parts;
  DType wire = DType::bf16;
  DeviceLink link;
};

/// A panel that holds a part of a generated tensor whose elements are hashes of their positions: for level T0, at sizes
/// that are too large to generate on a host. The values are those of input_data(), DataKind::tags.
struct TagCall {
  Panel panel;
  std::uint64_t state = 0;  ///< State of the tensor's Random.
  std::int64_t row = 0;     ///< Row of the tensor where the panel begins.
  std::int64_t column = 0;
  std::int64_t columns = 0;  ///< Columns of the tensor.
};

struct DeviceFacts {
  std::string name;  ///< "NVIDIA H200"
  std::string uuid;
  int multiprocessors = 0;
  int capability = 0;  ///< 90: compute capability 9.0
  Bytes memory;
  Bytes level2;
  int clock_mhz = 0;  ///< Highest clock of the multiprocessors.
  int memory_clock_mhz = 0;
  std::string driver;  ///< Versions as text: "13.0"
  std::string runtime;
  std::string cublaslt;
  std::string nccl;  ///< Empty: none.

  /// Returns true for the software GPU, whose results are valid and whose times are not.
  [[nodiscard]] bool is_software() const { return name.starts_with("software GPU"); }
};

/// One kernel or copy in the tracer's records. Times are in nanoseconds of one clock.
struct DeviceSpan {
  std::uint64_t label = 0;  ///< Label under which it was launched.
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::string name;
  int ctas = 0;  ///< Number of CTAs; 0: a copy.
  bool by_copy_engine = false;
};

/// One device. Only one thread may use it. Every failure throws std::runtime_error with what failed; work of a stream
/// may also fail later, at the next call.
class Driver {
 public:
  Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;
  virtual ~Driver() = default;

  [[nodiscard]] virtual DeviceFacts facts() const = 0;

  /// Returns memory aligned to at least 256 bytes. Must not be called while a gate is closed.
  virtual Address allocate(Bytes bytes) = 0;
  virtual void release(Address at) = 0;
  /// Returns when done; requires that no stream has work left, as does download().
  virtual void upload(Address to, std::span<const std::byte> bytes) = 0;
  virtual void download(std::span<std::byte> bytes, Address from) = 0;

  /// With `urgent`, kernels of the stream go first if the device can choose.
  virtual StreamId make_stream(bool urgent) = 0;
  virtual EventId make_event(bool timed) = 0;
  /// Reserves at least this many multiprocessors (green contexts, CUDA 12.5). Kernels of streams on the partition run
  /// only there, and share it only with streams that were made without a partition. Drivers of tests may lack it.
  virtual Partition make_partition(int /*multiprocessors*/) { refuse("partitions"); }
  /// Ends a partition and its streams, whose ids become invalid; its multiprocessors can then be reserved again.
  /// Requires that its streams have no work left.
  virtual void end_partition(const Partition& /*partition*/) { refuse("partitions"); }
  virtual StreamId make_stream_on(const Partition& /*partition*/, bool /*urgent*/) { refuse("partitions"); }

  // Work in the order of a stream.

  virtual void record(EventId event, StreamId stream) = 0;
  /// Makes the stream wait for all work before the last record of the event. Requires that the event was recorded.
  virtual void wait(StreamId stream, EventId event) = 0;
  virtual void fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) = 0;
  /// Writes random-looking values in [-1, 1), because GEMMs of zeros would draw less power and run faster than real
  /// ones.
  virtual void randomize(StreamId stream, const Panel& panel, std::uint64_t seed) = 0;
  virtual void product(StreamId stream, const ProductCall& call) = 0;
  virtual void function(StreamId stream, const FunctionCall& call) = 0;
  virtual void attend(StreamId stream, const AttentionCall& call) = 0;
  /// Returns which libraries have computed fast attention so far, such as "cuDNN 9.19.0", and why cuDNN was not always
  /// used; empty if none has.
  [[nodiscard]] virtual std::string attention_by() const { return ""; }
  virtual void move(StreamId stream, const MoveCall& call) = 0;
  /// Occupies one CTA, which watches the clock for this time.
  virtual void spin(StreamId stream, Duration time) = 0;
  /// Holds the stream until open_gate() is called, but at most two seconds; gate_held() reports whether that sufficed.
  virtual void gate(StreamId stream) = 0;
  /// Writes the hashes that `call` describes. Drivers of tests may lack it.
  virtual void fill_tags(StreamId /*stream*/, const TagCall& /*call*/) { refuse("tags"); }
  /// Returns the number of elements whose bits differ from those of fill_tags(); waits for the stream.
  virtual std::int64_t count_wrong_tags(StreamId /*stream*/, const TagCall& /*call*/) { refuse("tags"); }

  virtual void close_gate() = 0;
  virtual void open_gate() = 0;
  /// Returns true if no gate has ended on its own since close_gate().
  [[nodiscard]] virtual bool gate_held() = 0;

  /// Returns true if all streams end within `patience`.
  [[nodiscard]] virtual bool finish(Duration patience) = 0;
  /// Returns the time between two timed events. Requires that both have ended.
  [[nodiscard]] virtual Duration elapsed(EventId from, EventId to) = 0;

  /// Captures work issued from now on into a graph. Its first stream is `origin`; other streams join by waiting for
  /// events of `origin`, which waits for their events in the end.
  virtual void begin_capture(StreamId origin) = 0;
  virtual GraphId end_capture() = 0;
  virtual void launch(StreamId stream, GraphId graph) = 0;

  /// Gives this label to work that is launched from now on.
  virtual void label(std::uint64_t id) = 0;
  /// Begins a trace, and drops an earlier trace that was never ended.
  virtual void begin_trace() = 0;
  /// Ends a trace, because traced work is slower. Discards its spans, and does not wait for the device, which may be
  /// stuck.
  virtual void drop_trace() = 0;
  /// Returns the spans of everything that ended since begin_trace().
  [[nodiscard]] virtual std::vector<DeviceSpan> end_trace() = 0;

 private:
  [[noreturn]] static void refuse(const char* what) {
    throw std::runtime_error(std::string("this driver has no ") + what);
  }
};

/// One end of a message.
struct MessageEnd {
  int peer = 0;  ///< Rank among all ranks.
  Panel data;    ///< contiguous
};

/// Requested behaviour of NCCL; notes() lists the options that its version lacks.
struct NetworkOptions {
  int max_ctas = 0;  ///< Limit for collectives; 0: NCCL's choice.
  int least_p2p_channels = 0;
  bool nvls = true;
  int cta_policy = 0;  ///< 0 default, 1 efficiency, 2 zero, which implies registered windows (NCCL 2.28.3)
  /// Memory that the driver allocates after connect() is registered with NCCL, on all ranks in the same way.
  bool registered = false;
  bool windows = false;  ///< Registered memory becomes a symmetric window (NCCL 2.27).
  bool puts = false;     ///< Messages are put into windows (NCCL 2.29.2); implies registered windows.
  /// Operations are captured into graphs. While such a graph runs, no other operation or graph of its communicators may
  /// run.
  bool graphs = false;
  /// True if groups are launched in the calling thread, as traces require; otherwise in a thread of NCCL.
  bool blocking = true;
  Duration patience = std::chrono::seconds(60);
};

/// NCCL among the processes that run a schedule together. Only one thread may use it.
class Network {
 public:
  Network() = default;
  Network(const Network&) = delete;
  Network& operator=(const Network&) = delete;
  virtual ~Network() = default;

  /// Returns a string such as "2.28.9".
  [[nodiscard]] virtual std::string version() const = 0;
  [[nodiscard]] virtual std::vector<std::string> notes() const = 0;
  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int ranks() const = 0;
  /// Makes a communicator of all ranks that pass the same `color`, in order of rank. It shares no stream with other
  /// communicators (ncclCommSplit, splitShare 0). All ranks must call it, in the same order, and not behind a gate.
  [[nodiscard]] virtual std::size_t split(int color) = 0;

  // Operations in the order of a stream. Operations on one communicator follow each other, even on different streams.

  /// Issues all messages as one group. Requires `communicator` to have all ranks.
  virtual void exchange(std::size_t communicator, StreamId stream, std::span<const MessageEnd> sends,
                        std::span<const MessageEnd> receives) = 0;
  /// Requires contiguous `in` and `out`; all_to_all has equal parts, one for each member.
  virtual void collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                          const Panel& out) = 0;

  /// Returns true if memory that the driver allocates becomes a window. All ranks must then allocate and release blocks
  /// of the same sizes in the same order, and an offset in a block of one rank is valid in that block on all ranks.
  [[nodiscard]] virtual bool has_windows() const { return false; }
  /// Returns true if put(), signal() and await_signals() are available. All signals from one rank to another on one
  /// communicator are counted together, whatever they mean.
  [[nodiscard]] virtual bool has_puts() const { return false; }
  /// Writes the data into the peer's memory and then raises the peer's signal. `to` is the address in this rank's block
  /// that corresponds to the target in the peer's block. The peer does nothing. Drivers of tests may lack it.
  virtual void put(std::size_t /*communicator*/, StreamId /*stream*/, const MessageEnd& /*data*/, Address /*to*/) {
    refuse_puts();
  }
  /// Raises the signal without writing data.
  virtual void signal(std::size_t /*communicator*/, StreamId /*stream*/, int /*peer*/) { refuse_puts(); }
  struct AwaitedSignals {
    int peer = 0;
    int count = 1;
  };
  /// Waits until the peer has raised `count` more signals to this rank than earlier calls waited for.
  virtual void await_signals(std::size_t /*communicator*/, StreamId /*stream*/, const AwaitedSignals& /*signals*/) {
    refuse_puts();
  }

  /// Returns an error that NCCL reports; nothing if there is none.
  [[nodiscard]] virtual std::optional<std::string> failure() = 0;
  /// Aborts all operations.
  virtual void abort() = 0;

 private:
  [[noreturn]] static void refuse_puts() { throw std::runtime_error("this network has no puts"); }
};

}  // namespace commfuse::validate
