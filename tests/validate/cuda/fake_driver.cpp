// SPDX-License-Identifier: Apache-2.0
#include "tests/validate/cuda/fake_driver.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "validate/reference/collective.h"
#include "validate/reference/rounding.h"

namespace commfuse::validate::test {

namespace {

void require(bool ok, const std::string& sentence) {
  if (!ok) {
    throw std::runtime_error(sentence);
  }
}

std::byte* bytes_at(Address at) { return reinterpret_cast<std::byte*>(at); }  // NOLINT(*-int-to-ptr): it was one

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
    require(part.from.rows == part.to.rows && part.from.columns == part.to.columns, "what is moved fits its place");
    if (part.from.dtype == call.wire && part.to.dtype == call.wire) {
      for (std::int64_t row = 0; row < part.from.rows; ++row) {
        std::ranges::copy(row_of(part.from, row), row_of(part.to, row).begin());
      }
    } else {
      write(part.to, rounded(call.wire, read(part.from)));
    }
  }
}

}  // namespace

FakeCluster::FakeCluster(int devices, std::uint64_t seed) : random_(seed) {
  for (int rank = 0; rank < devices; ++rank) {
    devices_.push_back(std::make_unique<FakeDriver>(*this, rank));
  }
}

FakeCluster::~FakeCluster() = default;

void FakeCluster::meet_and_run() {
  std::unique_lock lock(mutex_);
  if (++here_ == devices()) {
    here_ = 0;
    ++round_;
    run();
    all_here_.notify_all();
    return;
  }
  const int round = round_;
  all_here_.wait(lock, [&] { return round_ != round; });
}

void FakeCluster::run() {
  while (step()) {
  }
}

/// One stream of one device, of those that can, goes on.
bool FakeCluster::step() {
  std::vector<std::pair<std::size_t, std::size_t>> ready;
  for (std::size_t rank = 0; rank < devices_.size(); ++rank) {
    trade(rank);
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
  return true;
}

/// What stands first on the streams of a device.
std::vector<FakeOp*> FakeCluster::heads(std::size_t rank) {
  std::vector<FakeOp*> result;
  for (std::deque<FakeOp>& queue : devices_[rank]->streams_) {
    if (!queue.empty()) {
      result.push_back(&queue.front());
    }
  }
  return result;
}

void FakeCluster::trade(std::size_t rank) {
  for (FakeOp* mine : heads(rank)) {
    if (mine->kind == FakeOp::Kind::exchange) {
      send(rank, *mine);
    } else if (mine->kind == FakeOp::Kind::collective && mine->sent.empty()) {
      meet(rank, *mine);
    }
  }
}

/// Messages whose both groups stand first on their streams go over: the k-th of a communicator from one rank to another
/// is the k-th that the other receives.
void FakeCluster::send(std::size_t rank, FakeOp& mine) {
  for (std::size_t i = 0; i < mine.sends.size(); ++i) {
    const Message& message = mine.sends[i];
    for (FakeOp* theirs : heads(static_cast<std::size_t>(message.peer))) {
      if (mine.sent[i] != 0 || theirs->kind != FakeOp::Kind::exchange || theirs->communicator != mine.communicator) {
        continue;
      }
      for (std::size_t k = 0; k < theirs->receives.size(); ++k) {
        const Message& receive = theirs->receives[k];
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

/// A collective is done once all members of its communicator stand at it.
void FakeCluster::meet(std::size_t rank, FakeOp& mine) {
  std::vector<FakeOp*> stand;
  std::vector<Matrix<float>> inputs;
  const std::vector<std::size_t> all = members(mine.communicator, rank);
  for (const std::size_t member : all) {
    for (FakeOp* head : heads(member)) {
      if (head->kind == FakeOp::Kind::collective && head->communicator == mine.communicator && head->sent.empty()) {
        require(head->collective == mine.collective, "all members call the same collective");
        stand.push_back(head);
        inputs.push_back(read(head->in));
      }
    }
  }
  if (stand.size() != all.size()) {
    return;
  }
  const std::vector<Matrix<float>> results = collective(mine.collective, inputs);
  for (std::size_t i = 0; i < stand.size(); ++i) {
    write(stand[i]->out, results[i]);
    stand[i]->sent = {1};
  }
}

void FakeCluster::name_color(std::size_t split, std::size_t rank, int color) {
  const std::lock_guard lock(color_mutex_);
  colors_[{split, rank}] = color;
}

std::vector<std::size_t> FakeCluster::members(std::size_t communicator, std::size_t rank) {
  const std::lock_guard lock(color_mutex_);
  std::vector<std::size_t> result;
  for (std::size_t other = 0; other < devices_.size(); ++other) {
    if (colors_.at({communicator, other}) == colors_.at({communicator, rank})) {
      result.push_back(other);
    }
  }
  return result;
}

DeviceFacts FakeDriver::facts() const {
  return {.name = "a device that is not there", .multiprocessors = 8, .capability = 90, .memory = {1 << 30}};
}

Address FakeDriver::allocate(Bytes bytes) {
  require(open_ || bytes.count == 0, "memory is asked for under a closed gate");
  // With room to align, and a little more, so that addresses differ.
  std::vector<std::byte> memory(static_cast<std::size_t>(bytes.count) + 512, std::byte{0xff});
  const auto at = (reinterpret_cast<Address>(memory.data()) + 255) / 256 * 256;  // NOLINT(*-reinterpret-cast)
  memory_.emplace(at, std::move(memory));
  return at;
}

void FakeDriver::release(Address at) { require(memory_.erase(at) == 1, "what is released was allocated"); }

void FakeDriver::require_idle(const char* what) const {
  require(std::ranges::all_of(streams_, [](const auto& queue) { return queue.empty(); }), what);
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
  streams_.emplace_back();
  return StreamId{static_cast<std::int32_t>(streams_.size() - 1)};
}

/// In pairs, as devices hand them out.
Partition FakeDriver::set_apart(int multiprocessors) {
  if (!sets_apart_) {
    return Driver::set_apart(multiprocessors);  // as a driver before 12.4
  }
  const int taken = (multiprocessors + 1) / 2 * 2;
  require(apart_ + taken <= facts().multiprocessors, "too few multiprocessors are left to set apart");
  apart_ += taken;
  return {partitions_++, taken};
}

StreamId FakeDriver::make_stream_on(const Partition& partition, bool urgent) {
  require(partition.id < partitions_, "a partition is used that was not set apart");
  const StreamId made = make_stream(urgent);
  streams_apart_.insert(static_cast<std::size_t>(made));
  return made;
}

EventId FakeDriver::make_event(bool timed) {
  events_.push_back({.timed = timed});
  return EventId{static_cast<std::int32_t>(events_.size() - 1)};
}

/// Outside a capture into the queue; inside it into the graph, which issues it anew at every launch.
void FakeDriver::issue(StreamId stream, FakeOp op) {
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

void FakeDriver::give(StreamId stream, FakeOp op) {
  op.label = label_;
  issue(stream, std::move(op));
}

void FakeDriver::record(EventId event, StreamId stream) {
  issue(stream, {.kind = FakeOp::Kind::record, .event = position(event)});
}
void FakeDriver::wait(StreamId stream, EventId event) {
  issue(stream, {.kind = FakeOp::Kind::wait, .event = position(event)});
}
void FakeDriver::fill(StreamId stream, Address at, Bytes bytes, std::uint8_t byte) {
  give(stream,
       {.work = [at, bytes, byte] { std::fill_n(bytes_at(at), bytes.count, std::byte{byte}); }, .name = "fill"});
}
void FakeDriver::randomize(StreamId stream, const Panel& panel, std::uint64_t seed) {
  const auto work = [panel, seed] {
    Random random(seed);
    Matrix<float> value(panel.rows, panel.columns);
    std::ranges::generate(value.values(), [&] { return random.uniform(); });
    write(panel, value);
  };
  give(stream, {.work = work, .name = "randomize"});
}
void FakeDriver::product(StreamId stream, const ProductCall& call) {
  give(stream, {.work = [call] { multiply(call); }, .name = "product"});
}
void FakeDriver::function(StreamId stream, const FunctionCall& call) {
  give(stream, {.work = [call] { apply_function(call); }, .name = "function"});
}
void FakeDriver::attend(StreamId stream, const AttentionCall& call) {
  const bool fused = call.products == Products::blocked && call.kernel != AttentionKernel::cublaslt;
  if (fused && !cudnn_ && call.kernel == AttentionKernel::cudnn) {
    throw NoFusedAttention("fused attention is where cuDNN is");
  }
  if (call.products == Products::blocked) {
    attention_by_ = fused && cudnn_ ? "cuDNN" : "cuBLASLt";
  }
  AttentionCall done = call;
  done.layout.causal = call.layout.causal && !(fused && wrong_);
  give(stream, {.work = [done] { attend_to(done); }, .name = "attention"});
}
void FakeDriver::move(StreamId stream, const MoveCall& call) {
  give(stream, {.work = [call] { move_parts(call); }, .name = "move"});
}
void FakeDriver::spin(StreamId stream, Duration /*time*/) {
  give(stream, {.work = [] {}, .name = "spin"});
}
void FakeDriver::gate(StreamId stream) {
  FakeOp op{.kind = FakeOp::Kind::gate};
  op.name = "gate";
  give(stream, std::move(op));
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
  }
  return false;
}

void FakeDriver::execute(std::size_t stream) {
  const FakeOp op = std::move(streams_[stream].front());
  streams_[stream].pop_front();
  const std::int64_t began = clock_;
  ++clock_;
  if (op.kind == FakeOp::Kind::record) {
    events_[op.event].reached = op.version;
    events_[op.event].time = clock_;
    return;
  }
  if (op.work) {
    op.work();
  }
  if (trace_ && !op.name.empty()) {
    trace_->push_back({.label = op.label, .begin = began * 1000, .end = clock_ * 1000, .name = op.name, .ctas = 1});
  }
}

bool FakeDriver::finish(Duration /*patience*/) {
  cluster_.meet_and_run();
  return std::ranges::all_of(streams_, [](const auto& queue) { return queue.empty(); });
}

/// Every op that is done takes a microsecond.
Duration FakeDriver::elapsed(EventId from, EventId to) {
  const Event& first = events_.at(position(from));
  const Event& last = events_.at(position(to));
  require(first.timed && last.timed && first.reached > 0 && last.reached > 0, "time between events that keep none");
  return std::chrono::microseconds(last.time - first.time);
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
  std::vector<DeviceSpan> spans = std::move(*trace_);
  trace_.reset();
  return spans;
}

std::size_t FakeNetwork::split(int color) {
  cluster_.name_color(splits_, static_cast<std::size_t>(rank_), color);
  return splits_++;
}

void FakeNetwork::exchange(std::size_t communicator, StreamId stream, std::span<const Message> sends,
                           std::span<const Message> receives) {
  require(communicator < splits_, "a communicator is made before it is used");
  for (const std::span<const Message> side : {sends, receives}) {
    require(std::ranges::all_of(side, [](const Message& message) { return message.data.contiguous(); }),
            "a message lies together");
  }
  FakeOp op{.kind = FakeOp::Kind::exchange, .communicator = communicator};
  op.sends.assign(sends.begin(), sends.end());
  op.receives.assign(receives.begin(), receives.end());
  op.sent.resize(sends.size(), 0);
  op.received.resize(receives.size(), 0);
  op.name = "exchange";
  cluster_.device(rank_).give(stream, std::move(op));
}

void FakeNetwork::collective(std::size_t communicator, StreamId stream, CollectiveKind kind, const Panel& in,
                             const Panel& out) {
  require(communicator < splits_, "a communicator is made before it is used");
  require(in.contiguous() && out.contiguous(), "what a collective gives and takes lies together");
  FakeOp op{.kind = FakeOp::Kind::collective, .communicator = communicator, .collective = kind, .in = in, .out = out};
  op.name = "collective";
  cluster_.device(rank_).give(stream, std::move(op));
}

}  // namespace commfuse::validate::test
