// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/cuda/fake_driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "validate/cuda/stated_costs.h"
#include "validate/reference/collective.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate::test {

namespace {

std::span<std::byte> row_of(const Panel& panel, std::int64_t row) {
  return {bytes_at(panel.at) + row * panel.stride * bytes_of(panel.dtype),
          static_cast<std::size_t>(panel.columns * bytes_of(panel.dtype))};
}

Matrix<float> read(const Panel& panel) {
  Matrix<float> value(panel.rows, panel.columns);
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    decode(panel.dtype, row_of(panel, row), value.row(row));
  }
  return value;
}

void write(const Panel& panel, const Matrix<float>& value) {
  require(panel.rows == value.rows() && panel.columns == value.columns(), "a result fits where it is stored");
  for (std::int64_t row = 0; row < panel.rows; ++row) {
    encode(panel.dtype, value.row(row), row_of(panel, row));
  }
}

Matrix<float> rounded(DType wire, Matrix<float> value) {
  for (float& element : value.values()) {
    element = stored(wire, element);
  }
  return value;
}

void multiply(const ProductCall& call) {
  Matrix<float> out = product(factor(read(call.a), call.transpose_a), factor(read(call.b), call.transpose_b));
  if (call.accumulate) {
    const std::array terms{read(call.out), std::move(out)};
    out = sum(terms);
  }
  write(call.out, out);
}

void apply_function(const FunctionCall& call) {
  std::vector<Matrix<float>> inputs;
  for (const Panel& input : call.inputs) {
    inputs.push_back(call.wire ? rounded(*call.wire, read(input)) : read(input));
  }
  switch (call.function) {
    case Function::add: write(call.out, sum(inputs)); return;
    case Function::residual: write(call.out, residual(call.functions, inputs.at(0), inputs.at(1))); return;
    case Function::zero: write(call.out, Matrix<float>(call.out.rows, call.out.columns)); return;
    default: write(call.out, apply(call.function, call.functions, call.block, inputs.at(0)));
  }
}

void attend_to(const AttentionCall& call) {
  const Matrix<float> keys = read(call.keys);
  for (const AttentionCall::Part& part : call.parts) {
    std::vector<std::int64_t> rows;
    for (std::int64_t row = 0; row < part.queries.rows; ++row) {
      rows.push_back(part.first_row + row);
    }
    write(part.out, attention(call.layout, call.functions, read(part.queries), rows, keys));
  }
}

void move_parts(const MoveCall& call) {
  for (const MoveCall::Part& part : call.parts) {
    require(part.from.rows == part.to.rows && part.from.columns == part.to.columns,
            "source and target of a move have the same shape");
    if (part.from.dtype == call.wire && part.to.dtype == call.wire) {
      for (std::int64_t row = 0; row < part.from.rows; ++row) {
        std::ranges::copy(row_of(part.from, row), row_of(part.to, row).begin());
      }
    } else {
      write(part.to, rounded(call.wire, read(part.from)));
    }
  }
}

/// Returns the result of member `to`. A ring adds one contribution per hop, starting at the rank after the receiver,
/// and every hop stores the partial sum in the dtype of the wire. An all-reduce sums once and gives all members
/// identical bits.
Matrix<float> summed_by_hops(CollectiveKind kind, DType wire, const std::vector<Matrix<float>>& inputs,
                             std::size_t to) {
  if (!adds(kind)) {
    return collective(kind, inputs)[to];
  }
  const std::size_t members = inputs.size();
  to = kind == CollectiveKind::all_reduce ? 0 : to;
  Matrix<float> partial = part_for(kind, inputs[(to + 1) % members], to, members);
  for (std::size_t hop = 2; hop <= members; ++hop) {
    const std::array terms{partial, part_for(kind, inputs[(to + hop) % members], to, members)};
    partial = rounded(wire, sum(terms));
  }
  return partial;
}

}  // namespace

FakeCluster::FakeCluster(FakeOptions options) : options_(std::move(options)), random_(options_.seed) {
  for (int rank = 0; rank < options_.devices; ++rank) {
    devices_.push_back(std::make_unique<FakeDriver>(*this, rank));
  }
}

FakeCluster::~FakeCluster() = default;

bool FakeCluster::finish(const FakeDriver& device, Duration patience) {
  std::unique_lock lock(mutex_);
  waiting_.insert(&device);
  const auto leave = [&](bool done) {
    waiting_.erase(&device);
    something_happened_.notify_all();
    return done;
  };
  for (;;) {
    run();
    if (device.is_idle()) {
      return leave(true);
    }
    if (all_wait()) {  // no device remains to issue the work that others wait for
      return leave(false);
    }
    const std::uint64_t seen = happened_;
    const bool has_progressed =
        something_happened_.wait_for(lock, std::chrono::ceil<std::chrono::milliseconds>(patience),
                                     [&] { return happened_ != seen || device.is_idle() || all_wait(); });
    if (!has_progressed) {
      return leave(false);
    }
  }
}

bool FakeCluster::all_wait() const {
  return std::ranges::all_of(devices_,
                             [&](const auto& device) { return waiting_.contains(device.get()) && !device->is_idle(); });
}

void FakeCluster::run() {
  while (step()) {
  }
}

/// Runs the first op of a random stream whose first op is ready. Returns false if there is none.
bool FakeCluster::step() {
  std::vector<std::pair<std::size_t, std::size_t>> ready;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    match_first_ops(rank);
  }
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    for (std::size_t stream = 0; stream < devices_[rank]->streams_.size(); ++stream) {
      const std::deque<FakeOp>& queue = devices_[rank]->streams_[stream];
      if (!queue.empty() && devices_[rank]->ready(queue.front())) {
        ready.emplace_back(rank, stream);
      }
    }
  }
  if (ready.empty()) {
    return false;
  }
  const auto [rank, stream] = ready[random_.next() % ready.size()];
  devices_[rank]->execute(stream);
  ++happened_;
  return true;
}

/// Returns the first op of each stream of a device.
std::vector<FakeOp*> FakeCluster::heads(std::size_t rank) {
  std::vector<FakeOp*> result;
  for (std::deque<FakeOp>& queue : devices_[rank]->streams_) {
    if (!queue.empty()) {
      result.push_back(&queue.front());
    }
  }
  return result;
}

void FakeCluster::match_first_ops(std::size_t rank) {
  for (FakeOp* mine : heads(rank)) {
    if (mine->kind == FakeOp::Kind::exchange) {
      send(rank, *mine);
    } else if (mine->kind == FakeOp::Kind::collective && mine->sent.empty()) {
      run_collective(rank, *mine);
    }
  }
}

/// Transfers messages whose groups are both first on their streams: the k-th message of a communicator from one rank to
/// another is the k-th that the other rank receives.
void FakeCluster::send(std::size_t rank, FakeOp& mine) {
  for (std::size_t i = 0; i < mine.sends.size(); ++i) {
    const MessageEnd& message = mine.sends[i];
    for (FakeOp* theirs : heads(static_cast<std::size_t>(message.peer))) {
      if (mine.sent[i] != 0 || theirs->kind != FakeOp::Kind::exchange || theirs->communicator != mine.communicator) {
        continue;
      }
      for (std::size_t k = 0; k < theirs->receives.size(); ++k) {
        const MessageEnd& receive = theirs->receives[k];
        if (receive.peer == static_cast<int>(rank) && theirs->received[k] == 0) {
          require(message.data.bytes() == receive.data.bytes(), "a message is as long as its receiver expects");
          std::memmove(bytes_at(receive.data.at), bytes_at(message.data.at),
                       static_cast<std::size_t>(message.data.bytes().count));
          mine.sent[i] = 1;
          theirs->received[k] = 1;
          break;
        }
      }
    }
  }
}

/// Runs a collective once it is the first op of a stream on all members of its communicator.
void FakeCluster::run_collective(std::size_t rank, FakeOp& mine) {
  std::vector<FakeOp*> arrived;
  std::vector<Matrix<float>> inputs;
  const std::vector<std::size_t> communicator_members = members(mine.communicator, rank);
  for (const std::size_t member : communicator_members) {
    for (FakeOp* head : heads(member)) {
      if (head->kind == FakeOp::Kind::collective && head->communicator == mine.communicator && head->sent.empty()) {
        require(head->collective == mine.collective, "all members call the same collective");
        arrived.push_back(head);
        inputs.push_back(read(head->in));
      }
    }
  }
  if (arrived.size() != communicator_members.size()) {
    return;
  }
  for (std::size_t i = 0; i < arrived.size(); ++i) {
    write(arrived[i]->out, summed_by_hops(mine.collective, mine.in.dtype, inputs, i));
    arrived[i]->sent = {1};
  }
}

void FakeCluster::name_color(std::size_t split, std::size_t rank, int color, int ranks) {
  std::unique_lock lock(color_mutex_);
  colors_[{split, rank}] = color;
  all_named_.notify_all();
  all_named_.wait(lock, [&] {
    return std::ranges::count_if(colors_, [&](const auto& entry) { return entry.first.first == split; }) >= ranks;
  });
}

std::vector<std::size_t> FakeCluster::members(std::size_t communicator, std::size_t rank) {
  const std::lock_guard lock(color_mutex_);
  std::vector<std::size_t> result;
  for (std::size_t other = 0; other < devices_.size(); ++other) {
    const auto color = colors_.find({communicator, other});
    if (color != colors_.end() && color->second == colors_.at({communicator, rank})) {
      result.push_back(other);
    }
  }
  return result;
}

DeviceFacts FakeDriver::facts() const {
  return {.name = cluster_.options().name,
          .uuid = fmt::format("GPU-{}", rank_),
          .multiprocessors = cluster_.options().multiprocessors,
          .capability = 90,
          .memory = {1 << 30}};
}

Address FakeDriver::allocate(Bytes bytes) {
  require(open_ || bytes.count == 0, "memory is requested under a closed gate");
  require(!capture_, "memory is requested during a capture");
  constexpr std::int64_t poisoned = 1 << 24;  // larger blocks are zeros, which cost nothing
  // The block is larger than requested, for alignment and so that addresses differ.
  const std::size_t size = static_cast<std::size_t>(bytes.count) + 512;
  std::unique_ptr<std::byte, Free> block(static_cast<std::byte*>(std::calloc(size, 1)));  // NOLINT(*-no-malloc)
  require(block != nullptr, "out of memory");
  if (bytes.count <= poisoned) {
    std::fill_n(block.get(), size, std::byte{0xff});
  }
  const auto at = (reinterpret_cast<Address>(block.get()) + 255) / 256 * 256;  // NOLINT(*-reinterpret-cast)
  memory_.emplace(at, std::move(block));
  const Lock lock(cluster_.mutex_);
  allocated_.push_back(at);
  return at;
}

FakeDriver::Place FakeDriver::place_of(Address at) const {
  const auto next = memory_.upper_bound(at);
  require(next != memory_.begin(), "a put uses memory of a window");
  const Address begin = std::prev(next)->first;
  const auto last = std::ranges::find(allocated_.rbegin(), allocated_.rend(), begin);
  return {static_cast<std::size_t>(allocated_.rend() - last) - 1, at - begin};
}

Address FakeDriver::at(const Place& place) const {
  const Address begin = allocated_.at(place.block);
  require(begin != 0, "the target window of a put exists");
  return begin + place.offset;
}

void FakeDriver::release(Address at) {
  require(open_, "memory is released under a closed gate");
  require(!capture_, "memory is released during a capture");
  require(memory_.erase(at) == 1, "released memory was allocated");
  const Lock lock(cluster_.mutex_);
  std::ranges::replace(allocated_, at, Address{0});
}

bool FakeDriver::is_idle() const {
  return std::ranges::all_of(streams_, [](const auto& queue) { return queue.empty(); });
}

void FakeDriver::require_idle(const char* what) const {
  const Lock lock(cluster_.mutex_);
  require(is_idle(), what);
}

void FakeDriver::set_gate(bool open) {
  const Lock lock(cluster_.mutex_);
  open_ = open;
  ++cluster_.happened_;
  cluster_.something_happened_.notify_all();
}

template <class Call>
Duration FakeDriver::time_of(const Call& call) const {
  return cluster_.options().stated_times ? stated_time(StatedCosts{}, call) : std::chrono::microseconds(1);
}

void FakeDriver::upload(Address to, std::span<const std::byte> bytes) {
  require_idle("uploaded while streams work");
  std::ranges::copy(bytes, bytes_at(to));
}

void FakeDriver::download(std::span<std::byte> bytes, Address from) {
  require_idle("downloaded while streams work");
  std::copy_n(bytes_at(from), bytes.size(), bytes.begin());
}

StreamId FakeDriver::make_stream(bool /*urgent*/) {
  const Lock lock(cluster_.mutex_);
  streams_.emplace_back();
  return StreamId{static_cast<std::int32_t>(streams_.size() - 1)};
}

/// Reserves whole groups of eight multiprocessors, the granularity of an H100.
Partition FakeDriver::make_partition(int multiprocessors) {
  if (!sets_apart_) {
    return Driver::make_partition(multiprocessors);  // a driver before 12.4 does this
  }
  constexpr int group = 8;
  int unreserved = facts().multiprocessors;
  for (const auto& [id, reserved] : apart_) {
    unreserved -= reserved;
  }
  const int taken = (multiprocessors + group - 1) / group * group;
  require(taken <= unreserved, "too few multiprocessors are left to set apart");
  apart_[partitions_] = taken;
  return {partitions_++, taken};
}

void FakeDriver::end_partition(const Partition& partition) {
  require_idle("a partition is given back while streams work");
  require(apart_.erase(partition.id) == 1, "a partition is given back that is not held");
}

StreamId FakeDriver::make_stream_on(const Partition& partition, bool urgent) {
  require(apart_.contains(partition.id), "a partition is used that is not held");
  const StreamId stream = make_stream(urgent);
  streams_apart_.insert(static_cast<std::size_t>(stream));
  return stream;
}

EventId FakeDriver::make_event(bool timed) {
  const Lock lock(cluster_.mutex_);
  events_.push_back({.timed = timed});
  return EventId{static_cast<std::int32_t>(events_.size() - 1)};
}

/// Queues the op outside a capture; inside a capture adds it to the graph, which issues it again at every launch.
void FakeDriver::issue(StreamId stream, FakeOp op) {
  const Lock lock(cluster_.mutex_);
  ++cluster_.happened_;
  cluster_.something_happened_.notify_all();
  if (capture_) {
    note_capture(stream, op);
    capture_->calls.emplace_back([this, stream, op] { issue(stream, op); });
    return;
  }
  Event* event = op.kind == FakeOp::Kind::record || op.kind == FakeOp::Kind::wait ? &events_[op.event] : nullptr;
  if (op.kind == FakeOp::Kind::record) {
    op.version = ++event->recorded;
  } else if (op.kind == FakeOp::Kind::wait) {
    require(event->recorded > 0, "a stream waits for an event that was never recorded: CUDA would not wait at all");
    op.version = event->recorded;
  } else {
    issued_.push_back(op.name);
    if (streams_apart_.contains(position(stream))) {
      issued_apart_.push_back(op.name);
    }
  }
  streams_.at(position(stream)).push_back(std::move(op));
}

void FakeDriver::note_capture(StreamId stream, const FakeOp& op) {
  if (op.kind == FakeOp::Kind::wait) {
    require(events_[op.event].captured, "a captured stream waits for an event from outside its capture");
    capture_->joined.insert(position(stream));
    return;
  }
  require(capture_->joined.contains(position(stream)), "a stream that did not join is used under capture");
  if (op.kind == FakeOp::Kind::record) {
    require(!events_[op.event].timed, "a timed event is recorded under capture");
    events_[op.event].captured = true;
  }
}

void FakeDriver::issue_labelled(StreamId stream, FakeOp op) {
  op.label = label_;
  issue(stream, std::move(op));
}

void FakeDriver::issue_unlabelled(StreamId stream, FakeOp op) {
  op.label = 0;
  issue(stream, std::move(op));
}

void FakeDriver::record(EventId event, StreamId stream) {
  issue(stream, {.kind = FakeOp::Kind::record, .event = position(event)});
}
void FakeDriver::wait(StreamId stream, EventId event) {
  issue(stream, {.kind = FakeOp::Kind::wait, .event = position(event)});
}
void FakeDriver::recover() {
  const Lock lock(cluster_.mutex_);
  open_ = true;
  capture_.reset();
  trace_.reset();
  for (std::deque<FakeOp>& queue : streams_) {
    queue.clear();
  }
}

void FakeDriver::begin_trace() {
  const Lock lock(cluster_.mutex_);
  require(traces_, "CUPTI was not found");
  trace_.emplace();
}

void FakeDriver::drop_trace() {
  const Lock lock(cluster_.mutex_);
  trace_.reset();
}

void FakeDriver::fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) {
  issue_labelled(
      stream, {.work = [at, bytes, byte] { std::fill_n(bytes_at(at), bytes.count, std::byte{byte}); }, .name = "fill"});
}
void FakeDriver::randomize(StreamId stream, const Panel& panel, std::uint64_t seed) {
  const double max_work = cluster_.options().max_work;
  const auto work = [panel, seed, max_work] {
    if (static_cast<double>(panel.bytes().count) > max_work) {
      return;
    }
    Random random(seed);
    Matrix<float> value(panel.rows, panel.columns);
    std::ranges::generate(value.values(), [&] { return random.uniform(); });
    write(panel, value);
  };
  issue_labelled(stream, {.work = work, .name = "randomize"});
}
void FakeDriver::use(const std::string& what) {
  if (!used_.contains(what)) {
    require(open_ && !capture_, "its first use waits for the gate or breaks the capture: " + what);
    used_.insert(what);
  }
}

void FakeDriver::product(StreamId stream, const ProductCall& call) {
  if (call.sum_order == SumOrder::blocked) {
    use(fmt::format("product {} x {} x {} {}{}{} on {}, algorithm of {}", call.out.rows, call.out.columns,
                    call.transpose_a ? call.a.rows : call.a.columns, call.transpose_a, call.transpose_b,
                    call.accumulate, call.multiprocessors, call.algorithm_rows));
  }
  const std::int64_t k = call.transpose_a ? call.a.rows : call.a.columns;
  const bool is_done = 2.0 * static_cast<double>(call.out.rows * call.out.columns * k) <= cluster_.options().max_work;
  issue_labelled(stream, {.work =
                              [call, is_done] {
                                if (is_done) {
                                  multiply(call);
                                }
                              },
                          .name = "product",
                          .time = time_of(call)});
}
void FakeDriver::function(StreamId stream, const FunctionCall& call) {
  const bool is_done = static_cast<double>(call.out.bytes().count) <= cluster_.options().max_work;
  issue_labelled(stream, {.work =
                              [call, is_done] {
                                if (is_done) {
                                  apply_function(call);
                                }
                              },
                          .name = "function",
                          .time = time_of(call)});
}
void FakeDriver::attend(StreamId stream, const AttentionCall& call) {
  const bool fused = call.sum_order == SumOrder::blocked && call.kernel != AttentionKernel::cublaslt;
  if (fused && !cudnn_ && call.kernel == AttentionKernel::cudnn) {
    throw NoFusedAttention("fused attention needs cuDNN");
  }
  if (call.sum_order == SumOrder::blocked) {
    attention_by_ = fused && cudnn_ ? "cuDNN" : "cuBLASLt";
  }
  if (call.sum_order == SumOrder::blocked) {
    use(fmt::format("attention of {} on {} rows", call.parts.front().queries.rows, call.keys.rows));
  }
  AttentionCall done = call;
  done.layout.causal = call.layout.causal && !(fused && wrong_);
  const double scores = static_cast<double>(call.keys.rows) * static_cast<double>(call.parts.front().queries.rows);
  const bool is_done = scores * static_cast<double>(call.keys.columns) <= cluster_.options().max_work;
  issue_labelled(stream, {.work =
                              [done, is_done] {
                                if (is_done) {
                                  attend_to(done);
                                }
                              },
                          .name = "attention",
                          .time = time_of(call)});
}
void FakeDriver::move(StreamId stream, const MoveCall& call) {
  double bytes = 0.0;
  for (const MoveCall::Part& part : call.parts) {
    bytes += static_cast<double>(part.from.bytes().count);
  }
  const bool is_done = bytes <= cluster_.options().max_work;
  issue_labelled(stream, {.work =
                              [call, is_done] {
                                if (is_done) {
                                  move_parts(call);
                                }
                              },
                          .name = "move",
                          .time = time_of(call)});
}
void FakeDriver::spin(StreamId stream, Duration time) {
  const Duration stated = std::max<Duration>(time, StatedCosts{}.launch);
  issue_labelled(
      stream,
      {.work = [] {}, .name = "spin", .time = cluster_.options().stated_times ? stated : std::chrono::microseconds(1)});
}
void FakeDriver::gate(StreamId stream) {
  FakeOp op{.kind = FakeOp::Kind::gate};
  op.name = "gate";
  issue_labelled(stream, std::move(op));
}

bool FakeDriver::ready(const FakeOp& op) const {
  switch (op.kind) {
    case FakeOp::Kind::work:
    case FakeOp::Kind::record: return true;
    case FakeOp::Kind::wait: return events_[op.event].reached >= op.version;
    case FakeOp::Kind::gate: return open_;
    case FakeOp::Kind::exchange:
      return std::ranges::all_of(op.sent, [](char done) { return done != 0; }) &&
             std::ranges::all_of(op.received, [](char done) { return done != 0; });
    case FakeOp::Kind::collective: return !op.sent.empty();
    case FakeOp::Kind::await: return op.reached();
  }
  return false;
}

void FakeDriver::execute(std::size_t stream) {
  const FakeOp op = std::move(streams_[stream].front());
  streams_[stream].pop_front();
  const Duration began = clock_;
  clock_ += op.time;
  if (op.kind == FakeOp::Kind::record) {
    events_[op.event].reached = op.version;
    events_[op.event].time = clock_;
    return;
  }
  if (op.work) {
    op.work();
  }
  if (trace_ && !op.name.empty()) {
    const auto nanoseconds = [](Duration at) { return std::chrono::floor<std::chrono::nanoseconds>(at).count(); };
    trace_->push_back(
        {.label = op.label, .begin = nanoseconds(began), .end = nanoseconds(clock_), .name = op.name, .ctas = 1});
  }
}

bool FakeDriver::finish(Duration patience) { return cluster_.finish(*this, patience); }

Duration FakeDriver::elapsed(EventId from, EventId to) {
  const Lock lock(cluster_.mutex_);
  const Event& first = events_.at(position(from));
  const Event& last = events_.at(position(to));
  require(first.timed && last.timed && first.reached > 0 && last.reached > 0,
          "both events are timed and have been reached");
  return last.time - first.time;
}

void FakeDriver::begin_capture(StreamId origin) {
  capture_.emplace();
  capture_->origin = position(origin);
  capture_->joined.insert(capture_->origin);
  for (Event& event : events_) {
    event.captured = false;
  }
}

GraphId FakeDriver::end_capture() {
  graphs_.push_back(std::move(capture_->calls));
  capture_.reset();
  return GraphId{static_cast<std::int32_t>(graphs_.size() - 1)};
}

void FakeDriver::launch(StreamId /*stream*/, GraphId graph) {
  for (const std::function<void()>& call : graphs_.at(position(graph))) {
    call();
  }
}

std::vector<DeviceSpan> FakeDriver::end_trace() {
  const Lock lock(cluster_.mutex_);
  std::vector<DeviceSpan> spans = std::move(*trace_);
  trace_.reset();
  return spans;
}

std::size_t FakeNetwork::split(int color) {
  cluster_.name_color(next_, static_cast<std::size_t>(rank_), color, ranks_);
  return next_++;
}

void FakeNetwork::issue_labelled(StreamId stream, FakeOp op) {
  FakeDriver& device = cluster_.device(rank_);
  if (options_.blocking) {
    device.issue_labelled(stream, std::move(op));
  } else {
    device.issue_unlabelled(stream, std::move(op));
  }
}

void FakeNetwork::exchange(std::size_t communicator, StreamId stream, std::span<const MessageEnd> sends,
                           std::span<const MessageEnd> receives) {
  require(communicator >= first_ && communicator < next_, "a communicator is made before it is used");
  for (const std::span<const MessageEnd> side : {sends, receives}) {
    require(std::ranges::all_of(side, [](const MessageEnd& message) { return message.data.contiguous(); }),
            "a message is contiguous");
  }
  for (const MessageEnd& message : sends) {
    cluster_.device(rank_).use(fmt::format("sends of communicator {} to {}", communicator, message.peer));
  }
  for (const MessageEnd& message : receives) {
    cluster_.device(rank_).use(fmt::format("receives of communicator {} from {}", communicator, message.peer));
  }
  FakeOp op{.kind = FakeOp::Kind::exchange, .communicator = communicator};
  op.sends.assign(sends.begin(), sends.end());
  op.receives.assign(receives.begin(), receives.end());
  op.sent.resize(sends.size(), 0);
  op.received.resize(receives.size(), 0);
  op.name = "exchange";
  issue_labelled(stream, std::move(op));
}

void FakeNetwork::collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                             const Panel& out) {
  require(communicator >= first_ && communicator < next_, "a communicator is made before it is used");
  require(in.contiguous() && out.contiguous(), "input and output of a collective are contiguous");
  cluster_.device(rank_).use(fmt::format("collectives {} of communicator {}", static_cast<int>(kind), communicator));
  FakeOp op{.kind = FakeOp::Kind::collective, .communicator = communicator, .collective = kind, .in = in, .out = out};
  op.name = "collective";
  issue_labelled(stream, std::move(op));
}

void FakeNetwork::put(std::size_t communicator, StreamId stream, const MessageEnd& data, Address to) {
  require(data.data.contiguous(), "the data of a put is contiguous");
  FakeDriver& mine = cluster_.device(rank_);
  const FakeDriver::Place place = mine.place_of(to);
  static_cast<void>(mine.place_of(data.data.at));
  const FakeCluster::Way way{communicator, rank_, data.peer};
  issue_labelled(stream, {.work =
                              [this, data, place, way] {
                                std::memmove(bytes_at(cluster_.device(data.peer).at(place)), bytes_at(data.data.at),
                                             static_cast<std::size_t>(data.data.bytes().count));
                                ++cluster_.raised_[way];
                              },
                          .name = "put"});
}

void FakeNetwork::signal(std::size_t communicator, StreamId stream, int peer) {
  const FakeCluster::Way way{communicator, rank_, peer};
  issue_labelled(stream, {.work = [this, way] { ++cluster_.raised_[way]; }, .name = "signal"});
}

void FakeNetwork::await_signals(std::size_t communicator, StreamId stream, const AwaitedSignals& signals) {
  require(signals.count > 0, "a wait is for at least one signal");
  const FakeCluster::Way way{communicator, signals.peer, rank_};
  const int awaited = awaited_[way] += signals.count;
  if (waits_) {
    issue_labelled(stream, {.kind = FakeOp::Kind::await,
                            .reached = [this, way, awaited] { return cluster_.raised_[way] >= awaited; }});
  }
}

int FakeNetwork::left_over() const {
  const std::lock_guard lock(cluster_.mutex_);
  int unawaited = 0;
  for (const auto& [way, raised] : cluster_.raised_) {
    const auto awaited = awaited_.find(way);
    unawaited += way.to == rank_ ? raised - (awaited == awaited_.end() ? 0 : awaited->second) : 0;
  }
  return unawaited;
}

}  // namespace commfuse::validate::test
