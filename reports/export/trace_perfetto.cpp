// SPDX-License-Identifier: Apache-2.0
#include "reports/export/trace_perfetto.h"

#include <fmt/format.h>
#include <perfetto_trace.pb.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "model/cost/shape_sizes.h"
#include "model/program/names.h"
#include "reports/atomic_file.h"
#include "reports/export/trace_flows.h"
#include "reports/op_totals.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

using perfetto::TracePacket;
using perfetto::TrackEvent;

constexpr std::uint32_t sequence = 1;
// Perfetto's sequence flags: a packet forgets the names of earlier packets, or needs them.
constexpr std::uint32_t names_start_over = 1;
constexpr std::uint32_t needs_names = 2;

/// Rounds half up; times are never below zero here.
std::uint64_t nanoseconds(Instant instant) {
  return static_cast<std::uint64_t>(instant.time_since_epoch().count() + 500) / 1000U;
}

/// Consecutive packets, written a megabyte at a time.
class Packets {
 public:
  explicit Packets(const std::filesystem::path& path) : file_(path) {}

  void add(TracePacket& packet) {
    packet.set_trusted_packet_sequence_id(sequence);
    packet.set_sequence_flags(first_ ? names_start_over : needs_names);
    first_ = false;
    perfetto::Trace single;  // A trace of one packet: concatenated traces are one trace.
    single.add_packet()->Swap(&packet);
    single.AppendToString(&bytes_);
    constexpr std::size_t enough = 1U << 20U;
    if (bytes_.size() >= enough) {
      file_.write(bytes_);
      bytes_.clear();
    }
  }
  void finish() {
    file_.write(bytes_);
    file_.commit();
  }

 private:
  AtomicFile file_;
  std::string bytes_;
  bool first_ = true;
};

/// An event of a track. Events are ordered by time; ends precede beginnings.
struct Event {
  Instant at;
  enum class Kind : std::uint8_t { end, counter, begin } kind = Kind::begin;
  std::size_t span = 0;    // index in the timeline; only for begin and end
  std::int64_t value = 0;  // only for counters
  Rank rank = 0;
};

/// The next free ids of a trace.
struct NextIds {
  std::int64_t process = 1;
  std::int64_t thread = 1;
  std::uint64_t flow = 1;
};

class RunWriter {
 public:
  /// Takes ids of threads and flows from `next`. `run`, `next` and `packets` must outlive the writer.
  RunWriter(const TracedRun& run, NextIds& next, Packets& packets)
      : run_(run), first_pid_(next.process), next_thread_(next.thread), packets_(packets) {
    for (const Flow& flow : flows_of(run)) {
      starts_[flow.send].push_back(next.flow);
      ends_[flow.receive].push_back(next.flow++);
    }
  }

  void write() {
    for (Rank rank = 0; rank < program().mesh.ranks(); ++rank) {
      describe(rank);
    }
    for (const Event& event : events()) {
      event.kind == Event::Kind::begin ? begin(event) : event.kind == Event::Kind::end ? end(event) : count(event);
    }
  }

 private:
  [[nodiscard]] const Program& program() const { return *run_.program; }
  /// Returns the id of a track of a rank's process. Index 0 is the process itself, then come the lanes of the program,
  /// and last the counter.
  [[nodiscard]] std::uint64_t track(Rank rank, std::size_t index) const {
    constexpr std::uint64_t max_tracks = std::uint64_t{1} << 17U;  // An op has 16 bits for its lane.
    return static_cast<std::uint64_t>(first_pid_ + rank) * max_tracks + index;
  }
  [[nodiscard]] std::uint64_t counter_track(Rank rank) const { return track(rank, program().lanes.size() + 1); }

  void describe(Rank rank) {
    const auto pid = static_cast<std::int32_t>(first_pid_ + rank);
    const ResultRow& row = run_.row;
    TracePacket packet;
    auto* process = packet.mutable_track_descriptor();
    process->set_uuid(track(rank, 0));
    process->mutable_process()->set_pid(pid);
    process->mutable_process()->set_process_name(
        fmt::format("{} \u00b7 rank {}", strategy_label(row.strategy, row.parameters), rank));
    process->mutable_process()->add_process_labels(
        fmt::format("{} {} on {}, batch {}, seq {}", row.model, row.scope, machine_in_words(row), row.batch, row.seq));
    packets_.add(packet);
    for (std::size_t lane = 0; lane < program().lanes.size(); ++lane) {
      TracePacket lane_packet;
      lane_packet.mutable_track_descriptor()->set_uuid(track(rank, lane + 1));
      lane_packet.mutable_track_descriptor()->set_parent_uuid(track(rank, 0));
      auto* thread = lane_packet.mutable_track_descriptor()->mutable_thread();
      thread->set_pid(pid);
      thread->set_tid(static_cast<std::int32_t>(next_thread_++));  // Thread ids must differ on a machine.
      thread->set_thread_name(name_of(program().lanes[lane]));
      packets_.add(lane_packet);
    }
    TracePacket counter;
    counter.mutable_track_descriptor()->set_uuid(counter_track(rank));
    counter.mutable_track_descriptor()->set_parent_uuid(track(rank, 0));
    counter.mutable_track_descriptor()->set_name("bytes under way");
    counter.mutable_track_descriptor()->mutable_counter()->set_unit(perfetto::CounterDescriptor::UNIT_SIZE_BYTES);
    packets_.add(counter);
  }

  /// Returns true if the slice of an op has a length in whole nanoseconds. An op without such a length is an instant,
  /// because its end would be sorted before its beginning.
  static bool lasts(const OpSpan& span) { return nanoseconds(span.end) > nanoseconds(span.start); }

  /// Returns sorted events, so that a slice ends before the next one of its track begins.
  [[nodiscard]] std::vector<Event> events() const {
    std::vector<Event> sorted;
    sorted.reserve(2 * run_.timeline.size());
    for (std::size_t i = 0; i < run_.timeline.size(); ++i) {
      const OpSpan& span = run_.timeline[i];
      sorted.push_back({.at = span.start, .kind = Event::Kind::begin, .span = i, .rank = span.rank});
      if (lasts(span)) {
        sorted.push_back({.at = span.end, .kind = Event::Kind::end, .span = i, .rank = span.rank});
      }
    }
    for (const UnderWay& level : bytes_under_way(run_)) {
      sorted.push_back({.at = level.from, .kind = Event::Kind::counter, .value = level.bytes, .rank = level.rank});
    }
    std::stable_sort(sorted.begin(), sorted.end(), [](const Event& a, const Event& b) {
      return std::tuple(nanoseconds(a.at), a.kind, a.at) < std::tuple(nanoseconds(b.at), b.kind, b.at);
    });
    return sorted;
  }

  [[nodiscard]] const Op& op_of(const OpSpan& span) const { return program().ops[position(span.op)]; }

  TrackEvent* event_at(TracePacket& packet, const Event& event, std::uint64_t track, TrackEvent::Type type) {
    packet.set_timestamp(nanoseconds(event.at));
    packet.mutable_track_event()->set_type(type);
    packet.mutable_track_event()->set_track_uuid(track);
    return packet.mutable_track_event();
  }

  void begin(const Event& event) {
    const OpSpan& span = run_.timeline[event.span];
    const Op& op = op_of(span);
    TracePacket packet;
    TrackEvent* slice = event_at(packet, event, track(span.rank, op.lane + 1U),
                                 lasts(span) ? TrackEvent::TYPE_SLICE_BEGIN : TrackEvent::TYPE_INSTANT);
    slice->set_name_iid(name_id(op_label(program(), op, span.rank), packet));
    slice->add_categories(std::string{name_of(op.purpose)});
    annotate(*slice, "op", static_cast<std::int64_t>(position(span.op)));
    annotate(*slice, "start_ps", span.start.time_since_epoch().count());
    annotate(*slice, "length_ps", (span.end - span.start).count());
    annotate_work(*slice, program().shapes[op.shape]);
    for (const std::uint64_t flow : flows_at(starts_, event.span)) {
      slice->add_flow_ids(flow);
    }
    for (const std::uint64_t flow : flows_at(ends_, event.span)) {
      slice->add_terminating_flow_ids(flow);
    }
    packets_.add(packet);
  }
  void end(const Event& event) {
    const OpSpan& span = run_.timeline[event.span];
    TracePacket packet;
    event_at(packet, event, track(span.rank, op_of(span).lane + 1U), TrackEvent::TYPE_SLICE_END);
    packets_.add(packet);
  }
  void count(const Event& event) {
    TracePacket packet;
    event_at(packet, event, counter_track(event.rank), TrackEvent::TYPE_COUNTER)->set_counter_value(event.value);
    packets_.add(packet);
  }

  static void annotate(TrackEvent& event, const char* name, std::int64_t value) {
    auto* annotation = event.add_debug_annotations();
    annotation->set_name(name);
    annotation->set_int_value(value);
  }
  void annotate_work(TrackEvent& event, const Shape& shape) const {
    if (run_.sizes.block.empty()) {
      return;
    }
    if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      annotate(event, "bytes", load_of(*exchange, run_.sizes).count);
    } else if (const auto* collective = std::get_if<CollectiveShape>(&shape)) {
      annotate(event, "bytes", load_of(*collective, run_.sizes).count);
    } else {
      const OpTotals totals = totals_of(run_.sizes, shape);
      annotate(event, "bytes", totals.moved.count);
      annotate(event, "flops", totals.operations);
    }
  }

  /// Returns the id of a name; the first packet that uses the name spells it out.
  std::uint64_t name_id(const std::string& name, TracePacket& packet) {
    const auto [known, is_new] = names_.try_emplace(name, first_name_ + names_.size());
    if (is_new) {
      auto* entry = packet.mutable_interned_data()->add_event_names();
      entry->set_iid(known->second);
      entry->set_name(name);
    }
    return known->second;
  }
  using Flows = std::unordered_map<std::size_t, std::vector<std::uint64_t>>;
  static const std::vector<std::uint64_t>& flows_at(const Flows& flows, std::size_t span) {
    static const std::vector<std::uint64_t> none;
    const auto flow = flows.find(span);
    return flow == flows.end() ? none : flow->second;
  }

  const TracedRun& run_;
  std::int64_t first_pid_;
  std::int64_t& next_thread_;
  Packets& packets_;
  std::uint64_t first_name_ = static_cast<std::uint64_t>(first_pid_) << 24U | 1U;  // Ids of names differ between runs.
  std::unordered_map<std::string, std::uint64_t> names_;
  Flows starts_;
  Flows ends_;
};

}  // namespace

void write_perfetto(std::span<const TracedRun> runs, std::int64_t stride, const std::filesystem::path& path) {
  Packets packets(path);
  // Threads come after processes, because a process and its first thread share an id.
  NextIds next{.thread = static_cast<std::int64_t>(runs.size()) * stride + 1};
  for (const TracedRun& run : runs) {
    RunWriter(run, next, packets).write();
    next.process += stride;
  }
  packets.finish();
}

}  // namespace commfuse::reports
