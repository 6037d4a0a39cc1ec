// SPDX-License-Identifier: Apache-2.0
#include "reports/export/trace.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <perfetto_trace.pb.h>
#include <unistd.h>
#include <zlib.h>

#include <array>
#include <chrono>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>

#include "model/config_error.h"
#include "reports/atomic_file.h"
#include "reports/export/trace_flows.h"
#include "reports/trace_label.h"
#include "tests/reports/trace_runs.h"
#include "tests/slow_build.h"

namespace fs = std::filesystem;

namespace commfuse::reports {
namespace {

using nlohmann::json;
using test::traced;

/// Gives each test its own folder and removes it afterwards.
class TraceFiles : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "commfuse-trace-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  static std::string read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static std::string unpacked(const fs::path& path) {
    std::string text;
    gzFile file = gzopen(path.c_str(), "rb");
    std::array<char, 4096> buffer{};
    for (int count = 0; (count = gzread(file, buffer.data(), buffer.size())) > 0;) {
      text.append(buffer.data(), static_cast<std::size_t>(count));
    }
    gzclose(file);
    return text;
  }
  [[nodiscard]] std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }
  template <class Error>
  static std::string message_of(const fs::path& path) {
    try {
      atomic_write(path, "text");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  fs::path folder_;
};

std::int64_t picoseconds(const json& microseconds) { return std::llround(microseconds.get<double>() * 1e6); }

std::vector<TracedRun> three_strategies() {
  return {traced("serial", SiteKind::ag_gemm, 4), traced("sliced", SiteKind::ag_gemm, 4),
          traced("commfuse", SiteKind::ag_gemm, 4)};
}

TEST_F(TraceFiles, EveryOpOfEveryRankIsOneSliceOfItsExactDuration) {
  const std::vector<TracedRun> runs = three_strategies();
  write_trace(runs, folder_ / "trace.json");
  const json trace = json::parse(read(folder_ / "trace.json"));
  std::map<std::int64_t, std::int64_t> slices;
  std::map<std::int64_t, std::int64_t> sums;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") {
      ++slices[event["pid"]];
      sums[event["pid"]] += picoseconds(event["dur"]);
    }
  }
  ASSERT_EQ(slices.size(), 12U);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    for (Rank rank = 0; rank < 4; ++rank) {
      std::int64_t count = 0;
      std::int64_t sum = 0;
      for (const OpSpan& span : runs[i].timeline) {
        count += span.rank == rank ? 1 : 0;
        sum += span.rank == rank ? (span.end - span.start).count() : 0;
      }
      const std::int64_t pid = 1000 * static_cast<std::int64_t>(i) + rank + 1;
      EXPECT_EQ(slices[pid], count) << pid;
      EXPECT_EQ(sums[pid], sum) << pid;
    }
  }
}

TEST_F(TraceFiles, ProcessesAndTracksAreNamedAndSlicesOfATrackNeverOverlap) {
  write_trace(three_strategies(), folder_ / "trace.json");
  const json trace = json::parse(read(folder_ / "trace.json"));
  std::map<std::int64_t, std::string> processes;
  std::set<std::string> tracks;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> track_ends;
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") {
      processes[event["pid"]] = event["args"]["name"];
    } else if (event["name"] == "thread_name") {
      tracks.insert(event["args"]["name"].get<std::string>());
    } else if (event["ph"] == "X") {
      std::int64_t& end = track_ends[{event["pid"], event["tid"]}];
      EXPECT_LE(end, picoseconds(event["ts"]));
      end = picoseconds(event["ts"]) + picoseconds(event["dur"]);
    }
  }
  EXPECT_EQ(processes[1], "serial \u00b7 rank 0");
  EXPECT_EQ(processes[2004], "commfuse (ring) \u00b7 rank 3");
  EXPECT_EQ(tracks, (std::set<std::string>{"comm", "compute"}));
}

TEST_F(TraceFiles, ASliceStatesItsOutputAndCost) {
  TracedRun run = traced("commfuse", SiteKind::ag_gemm, 4);
  run.sizes.block.assign(run.program->dimensions.size(), 16);
  write_trace({&run, 1}, folder_ / "trace.json");
  const json trace = json::parse(read(folder_ / "trace.json"));
  std::map<std::string, json> on_rank_2;
  for (const json& event : trace["traceEvents"]) {
    if (event["pid"] == 3 && event["ph"] == "X") {
      on_rank_2[event["name"].get<std::string>()] = event;
    }
  }
  // Step 1 computes the shard of the previous rank.
  ASSERT_TRUE(on_rank_2.contains("gemm site[1]"));
  const json& gemm = on_rank_2["gemm site[1]"];
  EXPECT_EQ(gemm["cat"], "essential");
  EXPECT_EQ(gemm["args"]["lane"], "compute");
  EXPECT_EQ(gemm["args"]["m"], "tokens*1");
  EXPECT_EQ(gemm["args"]["flops"], 2 * 16 * 16 * 16);
  EXPECT_EQ(gemm["args"]["waits"].size(), 1U);
  const auto exchange = std::find_if(on_rank_2.begin(), on_rank_2.end(),
                                     [](const auto& named) { return named.first.starts_with("exchange"); });
  ASSERT_NE(exchange, on_rank_2.end());
  EXPECT_EQ(exchange->second["args"]["bytes"], 16 * 16 * 2);
  EXPECT_EQ(exchange->second["args"]["axis"], "tp");
}

TEST_F(TraceFiles, TheSmallestTraceMatchesItsText) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 2);
  std::erase_if(run.timeline, [](const OpSpan& span) { return span.rank != 1; });
  write_trace({&run, 1}, folder_ / "trace.json");
  const std::string text = read(folder_ / "trace.json");
  const std::string last = R"({"name":"gemm site","cat":"essential","ph":"X","tid":2,"args":{"op":1,)"
                           R"("purpose":"essential","lane":"compute","m":"tokens*2","n":"n*1","k":"k*1","waits":[0]},)"
                           R"("pid":2,"ts":60.000000,"dur":80.000000})"
                           "\n]}\n";
  ASSERT_GE(text.size(), last.size());
  EXPECT_EQ(text.substr(text.size() - last.size()), last);
}

TEST_F(TraceFiles, HostileNamesMakeValidJson) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 2);
  Program hostile_program = *run.program;
  for (Buffer& buffer : hostile_program.buffers) {
    buffer.name = "a\"b\\c\n</script>\xff";
  }
  run.program = std::make_shared<const Program>(hostile_program);
  run.row.model = "\"},{\xc3";
  write_trace({&run, 1}, folder_ / "trace.json");
  EXPECT_TRUE(json::accept(read(folder_ / "trace.json")));
}

/// The GEMM of each step waits for an exchange of 25 us. Each of 4 ranks sends to the next rank three times.
TEST_F(TraceFiles, AFlowConnectsEverySendWithItsReceive) {
  const TracedRun run = traced("commfuse", SiteKind::ag_gemm, 4);
  const std::vector<Flow> flows = flows_of(run);
  EXPECT_EQ(flows.size(), 12U);
  for (const Flow& flow : flows) {
    const OpSpan& send = run.timeline[flow.send];
    const OpSpan& receive = run.timeline[flow.receive];
    EXPECT_EQ(receive.op, send.op);
    EXPECT_EQ((send.rank + 1) % 4, receive.rank);
    EXPECT_LE(send.start, receive.end);
  }
  write_trace({&run, 1}, folder_ / "trace.json");
  const json trace = json::parse(read(folder_ / "trace.json"));
  std::map<std::int64_t, int> ends;
  for (const json& event : trace["traceEvents"]) {
    if (event["ph"] == "s" || event["ph"] == "f") {
      ends[event["id"].get<std::int64_t>()] += event["ph"] == "s" ? 1 : 10;
    }
  }
  EXPECT_EQ(ends.size(), 12U);
  EXPECT_TRUE(std::all_of(ends.begin(), ends.end(), [](const auto& flows_of_id) { return flows_of_id.second == 11; }));
}

TEST_F(TraceFiles, TheCounterOfBytesEndsAtZero) {
  TracedRun run = traced("commfuse", SiteKind::ag_gemm, 4);
  EXPECT_TRUE(bytes_under_way(run).empty());  // without sizes
  run.sizes.block.assign(run.program->dimensions.size(), 16);
  const std::vector<UnderWay> levels = bytes_under_way(run);
  ASSERT_FALSE(levels.empty());
  EXPECT_EQ(levels.front().bytes, 16 * 16 * 2);
  std::map<Rank, std::int64_t> last;
  for (const UnderWay& level : levels) {
    last[level.rank] = level.bytes;
  }
  EXPECT_EQ(last, (std::map<Rank, std::int64_t>{{0, 0}, {1, 0}, {2, 0}, {3, 0}}));
}

/// Rebuilds slices as viewers do: by track, from their beginnings and ends.
TEST_F(TraceFiles, ProtobufHasTheSameSlicesFlowsAndTracks) {
  TracedRun run = traced("commfuse", SiteKind::ag_gemm, 4);
  run.sizes.block.assign(run.program->dimensions.size(), 16);
  const std::vector<TracedRun> runs{run, traced("serial", SiteKind::ag_gemm, 4)};
  write_trace(runs, folder_ / "trace.pftrace");
  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(read(folder_ / "trace.pftrace")));
  std::map<std::uint64_t, std::string> names;
  std::set<std::uint64_t> tracks;
  std::map<std::uint64_t, int> depth;
  std::map<std::uint64_t, int> flows;
  std::int64_t length = 0;
  std::size_t slices = 0;
  std::size_t counters = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    for (const perfetto::EventName& name : packet.interned_data().event_names()) {
      names[name.iid()] = name.name();
    }
    if (packet.has_track_descriptor()) {
      EXPECT_TRUE(tracks.insert(packet.track_descriptor().uuid()).second);
    }
    if (!packet.has_track_event()) {
      continue;
    }
    const perfetto::TrackEvent& event = packet.track_event();
    EXPECT_TRUE(tracks.contains(event.track_uuid()));
    for (const std::uint64_t flow : event.flow_ids()) {
      flows[flow] += 1;
    }
    for (const std::uint64_t flow : event.terminating_flow_ids()) {
      flows[flow] += 10;
    }
    counters += event.type() == perfetto::TrackEvent::TYPE_COUNTER ? 1 : 0;
    if (event.type() == perfetto::TrackEvent::TYPE_SLICE_BEGIN) {
      EXPECT_FALSE(names[event.name_iid()].empty());
      EXPECT_EQ(++depth[event.track_uuid()], 1);
      ++slices;
      for (const perfetto::DebugAnnotation& annotation : event.debug_annotations()) {
        length += annotation.name() == "length_ps" ? annotation.int_value() : 0;
      }
    } else if (event.type() == perfetto::TrackEvent::TYPE_SLICE_END) {
      EXPECT_EQ(--depth[event.track_uuid()], 0);
    }
  }
  std::int64_t expected_length = 0;
  for (const TracedRun& traced : runs) {
    for (const OpSpan& span : traced.timeline) {
      expected_length += (span.end - span.start).count();
    }
  }
  EXPECT_EQ(slices, runs[0].timeline.size() + runs[1].timeline.size());
  EXPECT_EQ(length, expected_length);
  EXPECT_GT(counters, 0U);
  EXPECT_EQ(flows.size(), 12U);
  EXPECT_TRUE(std::all_of(flows.begin(), flows.end(), [](const auto& flow) { return flow.second == 11; }));
}

/// Ends precede beginnings in the order of events, so an op of less than a nanosecond must not have both.
TEST_F(TraceFiles, ProtobufHasAnOpWithinANanosecondAsAnInstant) {
  using namespace std::chrono_literals;
  TracedRun run = traced("serial", SiteKind::ag_gemm, 2);
  run.timeline.resize(1);
  run.timeline[0].start = Instant(1ns);
  run.timeline[0].end = run.timeline[0].start + Duration{400};
  write_trace({&run, 1}, folder_ / "trace.pftrace");
  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(read(folder_ / "trace.pftrace")));
  std::vector<perfetto::TrackEvent::Type> types;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    if (packet.has_track_event()) {
      types.push_back(packet.track_event().type());
      EXPECT_EQ(packet.timestamp(), 1U);
      EXPECT_EQ(packet.track_event().debug_annotations(2).name(), "length_ps");
      EXPECT_EQ(packet.track_event().debug_annotations(2).int_value(), 400);
    }
  }
  EXPECT_EQ(types, std::vector{perfetto::TrackEvent::TYPE_INSTANT});
}

/// Adds the fields of a serialized message, such as "1.11.9 varint". The set of fields that are messages is all that
/// this function takes from the schema.
void add_fields(std::string_view bytes, const std::string& prefix, const std::set<std::string>& messages,
                std::set<std::string>& fields) {
  const auto varint = [&bytes] {
    std::uint64_t value = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) {
        break;
      }
    }
    return value;
  };
  constexpr std::array kinds{"varint", "fixed64", "bytes"};
  while (!bytes.empty()) {
    const std::uint64_t key = varint();
    const std::string path = prefix + std::to_string(key >> 3);
    ASSERT_LT(key & 7, kinds.size()) << path;
    fields.insert(path + " " + kinds[key & 7]);
    const std::uint64_t length = (key & 7) == 0 ? (varint(), 0) : (key & 7) == 1 ? 8 : varint();
    ASSERT_LE(length, bytes.size()) << path;
    if (messages.contains(path)) {
      add_fields(bytes.substr(0, length), path + ".", messages, fields);
    }
    bytes.remove_prefix(length);
  }
}

TEST_F(TraceFiles, EveryLaneOfEveryRankIsAThreadOfItsOwn) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 4);
  auto program = std::make_shared<Program>(*run.program);
  program->lanes.resize(100, program->lanes.back());
  run.program = program;
  write_trace(std::vector{run, run}, folder_ / "trace.pftrace");
  perfetto::Trace trace;
  ASSERT_TRUE(trace.ParseFromString(read(folder_ / "trace.pftrace")));
  std::set<std::int32_t> ids;
  std::size_t processes = 0;
  std::size_t threads = 0;
  for (const perfetto::TracePacket& packet : trace.packet()) {
    const perfetto::TrackDescriptor& track = packet.track_descriptor();
    if (track.has_process()) {
      ids.insert(track.process().pid());
      ++processes;
    }
    if (track.has_thread()) {
      ids.insert(track.thread().tid());
      ++threads;
    }
  }
  EXPECT_EQ(processes, 2U * 4U);
  EXPECT_EQ(threads, 2U * 4U * 100U);
  EXPECT_EQ(ids.size(), processes + threads);
}

/// The numbers and types are from protos/perfetto/trace of Perfetto itself, because the schema of commfuse could be
/// wrong.
TEST_F(TraceFiles, ProtobufHasTheFieldNumbersOfPerfetto) {
  TracedRun run = traced("commfuse", SiteKind::ag_gemm, 4);
  run.sizes.block.assign(run.program->dimensions.size(), 16);
  write_trace({&run, 1}, folder_ / "trace.pftrace");
  std::set<std::string> fields;
  add_fields(read(folder_ / "trace.pftrace"), "",
             {"1", "1.11", "1.11.4", "1.12", "1.12.2", "1.60", "1.60.3", "1.60.4", "1.60.8"}, fields);
  const std::set<std::string> perfetto{"1 bytes",           // Trace.packet
                                       "1.8 varint",        // TracePacket.timestamp
                                       "1.10 varint",       // trusted_packet_sequence_id
                                       "1.13 varint",       // sequence_flags
                                       "1.11 bytes",        // track_event
                                       "1.11.4 bytes",      // TrackEvent.debug_annotations
                                       "1.11.4.4 varint",   // DebugAnnotation.int_value
                                       "1.11.4.10 bytes",   // name
                                       "1.11.9 varint",     // TrackEvent.type
                                       "1.11.10 varint",    // name_iid
                                       "1.11.11 varint",    // track_uuid
                                       "1.11.22 bytes",     // categories
                                       "1.11.30 varint",    // counter_value
                                       "1.11.47 fixed64",   // flow_ids
                                       "1.11.48 fixed64",   // terminating_flow_ids
                                       "1.12 bytes",        // TracePacket.interned_data
                                       "1.12.2 bytes",      // InternedData.event_names
                                       "1.12.2.1 varint",   // EventName.iid
                                       "1.12.2.2 bytes",    // name
                                       "1.60 bytes",        // TracePacket.track_descriptor
                                       "1.60.1 varint",     // TrackDescriptor.uuid
                                       "1.60.2 bytes",      // name
                                       "1.60.3 bytes",      // process
                                       "1.60.3.1 varint",   // ProcessDescriptor.pid
                                       "1.60.3.6 bytes",    // process_name
                                       "1.60.3.8 bytes",    // process_labels
                                       "1.60.4 bytes",      // TrackDescriptor.thread
                                       "1.60.4.1 varint",   // ThreadDescriptor.pid
                                       "1.60.4.2 varint",   // tid
                                       "1.60.4.5 bytes",    // thread_name
                                       "1.60.5 varint",     // TrackDescriptor.parent_uuid
                                       "1.60.8 bytes",      // counter
                                       "1.60.8.3 varint"};  // CounterDescriptor.unit
  EXPECT_EQ(fields, perfetto);
}

TEST_F(TraceFiles, ANameWithoutAnExtensionGetsOneBySize) {
  TracedRun run = traced("serial", SiteKind::ag_gemm, 2);
  EXPECT_EQ(trace_path({&run, 1}, folder_ / "mine"), folder_ / "mine.json");
  EXPECT_EQ(trace_path({&run, 1}, folder_ / "mine.json.gz"), folder_ / "mine.json.gz");
  EXPECT_EQ(trace_path({&run, 1}, "/dev/stdout"), "/dev/stdout") << "even if a shell has redirected it to a file";
  fs::create_symlink("loop", folder_ / "loop");
  EXPECT_EQ(trace_path({&run, 1}, folder_ / "loop" / "mine"), folder_ / "loop" / "mine.json");
  run.timeline.resize(max_json_slices + 1);
  EXPECT_EQ(trace_path({&run, 1}, folder_ / "mine"), folder_ / "mine.pftrace");
  EXPECT_EQ(trace_path({&run, 1}, folder_ / "mine.json"), folder_ / "mine.json");
}

TEST_F(TraceFiles, GzipHoldsTheSameBytes) {
  write_trace(three_strategies(), folder_ / "trace.json");
  write_trace(three_strategies(), folder_ / "trace.json.gz");
  EXPECT_EQ(unpacked(folder_ / "trace.json.gz"), read(folder_ / "trace.json"));
  EXPECT_LT(fs::file_size(folder_ / "trace.json.gz"), fs::file_size(folder_ / "trace.json") / 4);
}

TEST_F(TraceFiles, NoRunsMakeAnEmptyTrace) {
  write_trace({}, folder_ / "trace.json");
  EXPECT_EQ(json::parse(read(folder_ / "trace.json"))["traceEvents"].size(), 0U);
}

TEST_F(TraceFiles, AMillionSlicesAreAllWritten) {
  TracedRun run = traced("commfuse", SiteKind::ag_gemm, 8);
  const Timeline first_period = run.timeline;
  const Duration period = run.row.analysis.critical.makespan;
  run.timeline.clear();
  constexpr std::size_t count = slow_build ? 20'000 : 1'000'000;
  for (std::int64_t i = 0; run.timeline.size() < count; ++i) {
    for (OpSpan span : first_period) {
      span.start += i * period;
      span.end += i * period;
      run.timeline.push_back(span);
    }
  }
  run.timeline.resize(count);
  const auto begin = std::chrono::steady_clock::now();
  write_trace({&run, 1}, folder_ / "trace.json");
  const std::chrono::duration<double> duration = std::chrono::steady_clock::now() - begin;
  RecordProperty("seconds", std::to_string(duration.count()));
  const std::string text = read(folder_ / "trace.json");
  ASSERT_TRUE(json::accept(text));
  std::size_t slices = 0;
  for (std::size_t at = 0; (at = text.find("\"ph\":\"X\"", at)) != std::string::npos; ++at) {
    ++slices;
  }
  EXPECT_EQ(slices, count);
}

TEST_F(TraceFiles, AMissingFolderIsAUserError) {
  const fs::path path = folder_ / "no" / "trace.json";
  EXPECT_EQ(message_of<ConfigError>(path), path.string() + " cannot be written: folder " + (folder_ / "no").string() +
                                               " does not exist; create it or choose another path");
}

TEST_F(TraceFiles, AFolderOrAFileInPlaceOfAFolderIsAUserError) {
  EXPECT_EQ(message_of<ConfigError>(folder_), folder_.string() + " cannot be written: it is a folder; add a file name");
  atomic_write(folder_ / "file", "text");
  EXPECT_EQ(message_of<ConfigError>(folder_ / "file" / "trace.json"),
            (folder_ / "file" / "trace.json").string() + " cannot be written: " + (folder_ / "file").string() +
                " is not a folder; choose another path");
}

TEST_F(TraceFiles, AFolderThatCannotBeReachedIsAUserError) {
  const fs::path loop = folder_ / "loop";
  fs::create_symlink("loop", loop);
  EXPECT_EQ(message_of<ConfigError>(loop / "trace.json"),
            (loop / "trace.json").string() + " cannot be written: folder " + loop.string() +
                ": Too many levels of symbolic links; choose another path");
}

TEST_F(TraceFiles, ALongNameIsAUserError) {
  const fs::path path = folder_ / (std::string(245, 'a') + ".json");  // 250 characters; the temporary name has more
  EXPECT_EQ(message_of<ConfigError>(path),
            path.string() + " cannot be written: File name too long; choose a shorter name");
}

TEST_F(TraceFiles, AFolderWithoutPermissionIsAUserError) {
  if (::geteuid() == 0) {
    GTEST_SKIP() << "root may write anywhere";
  }
  fs::permissions(folder_, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(
      message_of<ConfigError>(folder_ / "trace.json"),
      (folder_ / "trace.json").string() + " cannot be written: Permission denied; choose a folder you may write to");
  fs::permissions(folder_, fs::perms::owner_all);
}

TEST_F(TraceFiles, AFullDiskIsAnErrorThatNamesTheFile) {
  EXPECT_EQ(message_of<std::runtime_error>("/dev/full"),
            "/dev/full could not be written completely: No space left on device; free some space or choose "
            "another disk");
  EXPECT_TRUE(fs::is_character_file("/dev/full")) << "a device is written to, never replaced";
}

TEST_F(TraceFiles, AnUncommittedFileLeavesOnlyTheOldFile) {
  atomic_write(folder_ / "trace.json", "old");
  {
    AtomicFile file(folder_ / "trace.json");
    file.write("half of the n");
  }
  EXPECT_EQ(read(folder_ / "trace.json"), "old");
  EXPECT_EQ(files(), 1U);
  atomic_write(folder_ / "trace.json", "new");
  EXPECT_EQ(read(folder_ / "trace.json"), "new");
  EXPECT_EQ(files(), 1U);
}

TEST_F(TraceFiles, ASymbolicLinkStaysALink) {
  atomic_write(folder_ / "real.json", "old");
  fs::create_symlink(folder_ / "real.json", folder_ / "link.json");
  atomic_write(folder_ / "link.json", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(read(folder_ / "real.json"), "new");
}

TEST_F(TraceFiles, ALinkWithoutATargetStaysALink) {
  fs::create_symlink("later.json", folder_ / "link.json");
  atomic_write(folder_ / "link.json", "new");
  EXPECT_TRUE(fs::is_symlink(folder_ / "link.json"));
  EXPECT_EQ(read(folder_ / "later.json"), "new");
}

TEST_F(TraceFiles, AStreamThatAShellAppendsKeepsItsText) {
  atomic_write(folder_ / "log", "old\n");
  const int before = ::dup(STDERR_FILENO);
  const int log = ::open((folder_ / "log").c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
  ASSERT_GE(::dup2(log, STDERR_FILENO), 0);
  atomic_write("/dev/stderr", "new\n");
  ASSERT_GE(::dup2(before, STDERR_FILENO), 0);
  ::close(log);
  ::close(before);
  EXPECT_EQ(read(folder_ / "log"), "old\nnew\n");
}

TEST_F(TraceFiles, LinksCanBeReplacedInsteadOfTheirTargets) {
  atomic_write(folder_ / "real.json", "old");
  fs::create_symlink(folder_ / "real.json", folder_ / "link.json");
  fs::create_symlink("/dev/full", folder_ / "device.json");
  for (const char* name : {"link.json", "device.json"}) {
    atomic_write(folder_ / name, "new", Links::replaced);
    EXPECT_FALSE(fs::is_symlink(folder_ / name)) << name;
    EXPECT_EQ(read(folder_ / name), "new");
  }
  EXPECT_EQ(read(folder_ / "real.json"), "old");
}

TEST_F(TraceFiles, ADatabaseIsNeverReplaced) {
  std::ofstream(folder_ / "a.sqlite") << "SQLite format 3" << std::string(100, 'x');
  EXPECT_EQ(message_of<ConfigError>(folder_ / "a.sqlite"),
            (folder_ / "a.sqlite").string() +
                " cannot be written: it is a database, which would be overwritten; choose another path");
  EXPECT_EQ(fs::file_size(folder_ / "a.sqlite"), 115U);
  EXPECT_EQ(files(), 1U);
}

TEST_F(TraceFiles, AReplacedFileKeepsItsPermissions) {
  const fs::path path = folder_ / "trace.json";
  atomic_write(path, "old");
  for (const fs::perms perms : {fs::perms{0600}, fs::perms{0664}}) {
    fs::permissions(path, perms);
    atomic_write(path, "new");
    EXPECT_EQ(fs::status(path).permissions(), perms);
  }
}

TEST_F(TraceFiles, RecognizesAnInputByAnyPath) {
  atomic_write(folder_ / "a.json", "old");
  fs::create_directory(folder_ / "sweep");
  atomic_write(folder_ / "sweep" / "results.sqlite", "old");
  fs::create_symlink(folder_ / "a.json", folder_ / "link.json");
  fs::create_hard_link(folder_ / "a.json", folder_ / "b.json");
  const std::vector<std::string> inputs{"", "absent", (folder_ / "a.json").string(), (folder_ / "sweep").string()};
  for (const fs::path& out : {folder_ / "a.json", folder_ / "sweep" / ".." / "a.json", folder_ / "link.json",
                              folder_ / "b.json", folder_ / "sweep" / "results.sqlite"}) {
    try {
      require_no_input(out, inputs);
      ADD_FAILURE() << out;
    } catch (const ConfigError& error) {
      EXPECT_EQ(error.what(), out.string() + " cannot be written: the command reads this file; choose another path");
    }
  }
  for (const fs::path& out : {folder_ / "c.json", folder_, fs::path(), fs::path("/dev/stdout")}) {
    EXPECT_NO_THROW(require_no_input(out, inputs)) << out;
  }
}

TEST(TraceLabel, NamesTheOutputOnThatRank) {
  const TracedRun ring = traced("commfuse", SiteKind::ag_gemm, 4);
  std::vector<std::string> names;
  for (const OpSpan& span : ring.timeline) {
    if (span.rank == 3) {
      names.push_back(op_label(*ring.program, ring.program->ops[position(span.op)], 3));
    }
  }
  EXPECT_EQ(names[0].rfind("exchange ", 0), 0U) << names[0];
  EXPECT_EQ(names[1], "gemm site[3]");
  EXPECT_EQ(names[3], "gemm site[2]");
}

TEST(TraceLabel, LongListsOfRegionsAreShortened) {
  const TracedRun sliced = traced("sliced", SiteKind::ag_gemm, 8);
  const Program& program = *sliced.program;
  std::set<std::string> names;
  for (const Op& op : program.ops) {
    names.insert(op_label(program, op, 0));
  }
  EXPECT_TRUE(names.contains("gemm site[0; 4; 8; \u2026]")) << *names.begin();
}

}  // namespace
}  // namespace commfuse::reports
