// SPDX-License-Identifier: Apache-2.0
#include "reports/export/trace.h"

#include <fmt/format.h>
#define ZLIB_CONST  // next_in points to const
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include "model/program/names.h"
#include "reports/atomic_file.h"
#include "reports/export/trace_flows.h"
#include "reports/export/trace_perfetto.h"
#include "reports/trace_label.h"

namespace commfuse::reports {

namespace {

using Json = nlohmann::ordered_json;

/// Writes JSON on one line; bytes that are not UTF-8 are replaced, so any name makes valid JSON.
std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

/// Escapes text for the inside of a JSON string.
std::string json_escaped(const std::string& text) {
  const std::string quoted = dump(text);
  return quoted.substr(1, quoted.size() - 2);
}

class Gzip {
 public:
  Gzip() {
    constexpr int gzip_window = 15 + 16;
    if (deflateInit2(&stream_, Z_DEFAULT_COMPRESSION, Z_DEFLATED, gzip_window, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
      throw std::runtime_error("zlib could not start; free some memory and run again");
    }
  }
  Gzip(const Gzip&) = delete;
  Gzip& operator=(const Gzip&) = delete;
  ~Gzip() { deflateEnd(&stream_); }

  void write(std::string_view bytes, bool last, AtomicFile& file) {
    std::array<char, 65536> packed{};
    stream_.next_in = reinterpret_cast<const Bytef*>(bytes.data());
    stream_.avail_in = static_cast<uInt>(bytes.size());
    do {
      stream_.next_out = reinterpret_cast<Bytef*>(packed.data());
      stream_.avail_out = static_cast<uInt>(packed.size());
      deflate(&stream_, last ? Z_FINISH : Z_NO_FLUSH);
      file.write({packed.data(), packed.size() - stream_.avail_out});
    } while (stream_.avail_out == 0);
  }

 private:
  z_stream stream_{};
};

/// Collects text and writes it a megabyte at a time.
class Output {
 public:
  explicit Output(const std::filesystem::path& path) : file_(path) {
    text.reserve(chunk + chunk / 4);
    if (path.extension() == ".gz") {
      gzip_.emplace();
    }
  }
  /// Must be called before each event.
  void separate() {
    text += first_ ? "\n" : ",\n";
    first_ = false;
  }
  void pass_on_when_full() {
    if (text.size() >= chunk) {
      pass_on(false);
    }
  }
  void finish() {
    pass_on(true);
    file_.commit();
  }

  std::string text;

 private:
  static constexpr std::size_t chunk = 1U << 20U;

  void pass_on(bool last) {
    gzip_ ? gzip_->write(text, last, file_) : file_.write(text);
    text.clear();
  }

  AtomicFile file_;
  std::optional<Gzip> gzip_;
  bool first_ = true;
};

void append(std::string& text, std::int64_t number) {
  const fmt::format_int digits(number);
  text.append(digits.data(), digits.size());
}

/// Appends 1234567 ps as 1.234567.
void append_microseconds(std::string& text, Duration duration) {
  constexpr std::int64_t scale = 1'000'000;
  const std::int64_t ps = duration.count();
  text += ps < 0 ? "-" : "";
  append(text, std::abs(ps / scale));
  std::array<char, 7> decimals{'.'};
  std::int64_t rest = std::abs(ps % scale);
  for (std::size_t digit = decimals.size(); --digit > 0; rest /= 10) {
    decimals[digit] = static_cast<char>('0' + rest % 10);
  }
  text.append(decimals.data(), decimals.size());
}

/// Adds extents in blocks of their dimension, "tokens*4", and bytes and FLOPs if the sizes are known.
class Arguments {
 public:
  Arguments(const Program& program, const Sizes& sizes, Json& json) : program_(program), sizes_(sizes), json_(json) {}

  void operator()(const GemmShape& gemm) const {
    extents({{"m", gemm.m}, {"n", gemm.n}, {"k", gemm.k}});
    if (sized()) {
      json_["flops"] = 2 * sizes_.elements(gemm.m) * sizes_.elements(gemm.n) * sizes_.elements(gemm.k);
    }
  }
  void operator()(const AttentionShape& attention) const {
    extents({{"queries", attention.queries}, {"keys", attention.keys}});
    json_["causal"] = attention.causal;
  }
  void operator()(const ElementwiseShape& elementwise) const {
    matrix(elementwise.rows, elementwise.columns, elementwise.dtype);
  }
  void operator()(const ExchangeShape& exchange) const {
    matrix(exchange.rows, exchange.columns, exchange.wire);
    json_["axis"] = axis(exchange.axis);
    json_["shift"] = exchange.shift;
  }
  void operator()(const CollectiveShape& collective) const {
    matrix(collective.rows, collective.columns, collective.wire);
    json_["axis"] = axis(collective.axis);
  }

 private:
  struct Named {
    const char* name;
    Extent extent;
  };
  void extents(std::initializer_list<Named> operands) const {
    for (const Named& operand : operands) {
      json_[operand.name] =
          fmt::format("{}*{}", program_.dimensions[position(operand.extent.dimension)].name, operand.extent.blocks);
    }
  }
  void matrix(Extent rows, Extent columns, DType dtype) const {
    extents({{"rows", rows}, {"columns", columns}});
    json_["dtype"] = name_of(dtype);
    if (sized()) {
      json_["bytes"] = sizes_.elements(rows) * sizes_.elements(columns) * bytes_of(dtype);
    }
  }
  [[nodiscard]] bool sized() const { return !sizes_.block.empty(); }
  [[nodiscard]] const std::string& axis(std::int8_t number) const {
    return program_.mesh.axes[static_cast<std::size_t>(number)].name;
  }

  const Program& program_;
  const Sizes& sizes_;
  Json& json_;
};

std::string arguments_of(const TracedRun& run, std::size_t id) {
  const Program& program = *run.program;
  const Op& op = program.ops[id];
  Json json;
  json["op"] = id;
  json["purpose"] = name_of(op.purpose);
  json["lane"] = name_of(program.lanes[op.lane]);
  std::visit(Arguments(program, run.sizes, json), program.shapes[op.shape]);
  json["waits"] = Json::array();
  for (const OpId wait : program.waits_of(op)) {
    json["waits"].push_back(position(wait));
  }
  return dump(json);
}

/// The text of an op's slices that is identical on all ranks, made once per op.
struct PreparedOp {
  std::vector<LabelPiece> name;  // escaped
  std::string behind_name;       // category, track and arguments, up to the process
};

std::vector<PreparedOp> prepare(const TracedRun& run) {
  std::vector<PreparedOp> prepared;
  for (std::size_t id = 0; id < run.program->ops.size(); ++id) {
    const Op& op = run.program->ops[id];
    PreparedOp slice{label_pieces(*run.program, op), {}};
    for (LabelPiece& piece : slice.name) {
      piece.text = json_escaped(piece.text);
    }
    slice.behind_name = fmt::format(R"(","cat":"{}","ph":"X","tid":{},"args":{},"pid":)", name_of(op.purpose),
                                    op.lane + 1, arguments_of(run, id));
    prepared.push_back(std::move(slice));
  }
  return prepared;
}

void write_slices(const TracedRun& run, std::int64_t first_pid, Output& out) {
  const std::vector<PreparedOp> prepared = prepare(run);
  const Mesh& mesh = run.program->mesh;
  Rank rank = -1;
  Coordinates coordinates{};
  for (const OpSpan& span : run.timeline) {
    if (span.rank != rank) {
      rank = span.rank;
      coordinates = mesh.coordinates(rank);
    }
    const PreparedOp& op = prepared[position(span.op)];
    out.separate();
    out.text += "{\"name\":\"";
    for (const LabelPiece& piece : op.name) {
      out.text += piece.text;
      if (piece.index) {
        append(out.text, piece.index->at(mesh, coordinates));
      }
    }
    out.text += op.behind_name;
    append(out.text, first_pid + rank);
    out.text += ",\"ts\":";
    append_microseconds(out.text, span.start.time_since_epoch());
    out.text += ",\"dur\":";
    append_microseconds(out.text, span.end - span.start);
    out.text += '}';
    out.pass_on_when_full();
  }
}

Json metadata(std::int64_t pid, const char* name, Json arguments) {
  return {{"name", name}, {"ph", "M"}, {"pid", pid}, {"args", std::move(arguments)}};
}

/// Writes names of processes and tracks, which viewers need before the slices.
void write_names(const TracedRun& run, std::int64_t first_pid, Output& out) {
  const ResultRow& row = run.row;
  const std::string strategy = strategy_label(row.strategy, row.parameters);
  for (Rank rank = 0; rank < run.program->mesh.ranks(); ++rank) {
    const std::int64_t pid = first_pid + rank;
    std::vector<Json> names{metadata(pid, "process_name", {{"name", fmt::format("{} \u00b7 rank {}", strategy, rank)}}),
                            metadata(pid, "process_sort_index", {{"sort_index", pid}}),
                            metadata(pid, "process_labels",
                                     {{"labels", fmt::format("{} {} on {}, batch {}, seq {}", row.model, row.scope,
                                                             machine_in_words(row), row.batch, row.seq)}})};
    for (std::size_t lane = 0; lane < run.program->lanes.size(); ++lane) {
      for (const Json& named : {metadata(pid, "thread_name", {{"name", name_of(run.program->lanes[lane])}}),
                                metadata(pid, "thread_sort_index", {{"sort_index", lane + 1}})}) {
        names.push_back(named);
        names.back()["tid"] = lane + 1;
      }
    }
    for (const Json& event : names) {
      out.separate();
      out.text += dump(event);
    }
    out.pass_on_when_full();
  }
}

/// Writes arrows from sends to their receives. Viewers join the slices that run at the times of the two ends.
void write_flows(const TracedRun& run, std::int64_t first_pid, std::int64_t& next, Output& out) {
  const auto half = [&](const char* how, const OpSpan& span, Instant at, std::int64_t id) {
    out.separate();
    out.text += fmt::format(R"({{"name":"transfer","cat":"flow",{},"id":{},"pid":{},"tid":{},"ts":)", how, id,
                            first_pid + span.rank, run.program->ops[position(span.op)].lane + 1);
    append_microseconds(out.text, at.time_since_epoch());
    out.text += '}';
  };
  for (const Flow& flow : flows_of(run)) {
    const OpSpan& send = run.timeline[flow.send];
    const OpSpan& receive = run.timeline[flow.receive];
    half(R"("ph":"s")", send, send.start, next);
    half(R"("ph":"f","bp":"e")", receive, std::max(send.start, receive.start), next++);
    out.pass_on_when_full();
  }
}

void write_counters(const TracedRun& run, std::int64_t first_pid, Output& out) {
  for (const UnderWay& level : bytes_under_way(run)) {
    out.separate();
    out.text += fmt::format(R"({{"name":"bytes under way","ph":"C","pid":{},"args":{{"bytes":{}}},"ts":)",
                            first_pid + level.rank, level.bytes);
    append_microseconds(out.text, level.from.time_since_epoch());
    out.text += '}';
    out.pass_on_when_full();
  }
}

std::int64_t pids_per_run(std::span<const TracedRun> runs) {
  std::int64_t stride = 1000;
  for (const TracedRun& run : runs) {
    while (run.program->mesh.ranks() >= stride) {
      stride *= 10;
    }
  }
  return stride;
}

}  // namespace

std::filesystem::path trace_path(std::span<const TracedRun> runs, const std::filesystem::path& path) {
  std::error_code ignored;
  const std::filesystem::file_status status = std::filesystem::status(path, ignored);
  if (path.extension() == ".json" || path.extension() == ".gz" || path.extension() == ".pftrace" ||
      is_output_stream(path) || (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status))) {
    return path;
  }
  std::size_t slices = 0;
  for (const TracedRun& run : runs) {
    slices += run.timeline.size();
  }
  return path.string() + (slices > max_json_slices ? ".pftrace" : ".json");
}

void write_trace(std::span<const TracedRun> runs, const std::filesystem::path& path) {
  if (path.extension() == ".pftrace") {
    write_perfetto(runs, pids_per_run(runs), path);
    return;
  }
  Output out(path);
  out.text = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[";
  const std::int64_t stride = pids_per_run(runs);
  std::int64_t first_pid = 1;
  std::int64_t flow = 1;
  for (const TracedRun& run : runs) {
    write_names(run, first_pid, out);
    write_counters(run, first_pid, out);
    write_flows(run, first_pid, flow, out);
    write_slices(run, first_pid, out);
    first_pid += stride;
  }
  out.text += "\n]}\n";
  out.finish();
}

}  // namespace commfuse::reports
