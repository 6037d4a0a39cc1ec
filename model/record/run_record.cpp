// SPDX-License-Identifier: Apache-2.0
#include "model/record/run_record.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <system_error>

#include "model/config_error.h"
#include "model/json_budget.h"
#include "model/program_text/index_text.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

using Json = nlohmann::ordered_json;

constexpr std::array all_statuses{RunStatus::done, RunStatus::wrong, RunStatus::failed};
constexpr std::size_t largest_file = std::size_t{256} << 20U;
/// The commands that write records.
constexpr std::string_view writers = "commfuse-validate run, bench or links";
constexpr std::int64_t unlimited = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t longest = std::int64_t{100'000} * 1'000'000'000'000;  // ps; the longest time of an op

Json json_of(const Words& words) {
  Json object = Json::object();
  for (const auto& [name, value] : words) {
    object[name] = value;
  }
  return object;
}

Json json_of(const std::vector<Duration>& times) {
  Json list = Json::array();
  for (const Duration time : times) {
    list.push_back(time.count());
  }
  return list;
}

Json json_of(const Timeline& spans) {
  Json list = Json::array();
  for (const OpSpan& span : spans) {
    list.push_back(
        {span.rank, position(span.op), span.start.time_since_epoch().count(), span.end.time_since_epoch().count()});
  }
  return list;
}

Json json_of(const std::vector<LevelResult>& levels) {
  Json list = Json::array();
  for (const LevelResult& level : levels) {
    // JSON has no infinity, so the error of a value that was never written becomes `null`.
    list.push_back({{"level", level.level},
                    {"elements", level.elements},
                    {"wrong", level.wrong},
                    {"worst", std::isfinite(level.worst) ? Json(level.worst) : Json()}});
  }
  return list;
}

Json json_of(const MeasuredRun& run) {
  return {{"strategy", run.strategy},
          {"options", json_of(run.options)},
          {"parameters", run.parameters},
          {"schedule_sha256", run.schedule_sha256},
          {"status", name_of(run.status)},
          {"message", run.message},
          {"makespans_ps", json_of(run.makespans)},
          {"spans_ps", json_of(run.spans)},
          {"levels", json_of(run.levels)}};
}

Json json_of(const MicroBenchmark& benchmark) {
  Json json{{"op", benchmark.op}, {"beside", benchmark.beside}, {"dtype", benchmark.dtype}, {"m", benchmark.m},
            {"n", benchmark.n},   {"k", benchmark.k},           {"bytes", benchmark.bytes}, {"ranks", benchmark.ranks}};
  if (benchmark.rank >= 0) {
    json["rank"] = benchmark.rank;
  }
  if (benchmark.peer >= 0) {
    json["peer"] = benchmark.peer;
  }
  if (benchmark.in_place) {
    json["in_place"] = true;
  }
  json["samples_ps"] = json_of(benchmark.samples);
  return json;
}

Json json_of(const DeviceReading& reading) {
  Json json{{"when", reading.when}, {"rank", reading.rank}, {"gpu", reading.gpu}};
  const auto add = [&](const char* name, const auto& value) {
    if (value) {
      json[name] = *value;
    }
  };
  add("clock_mhz", reading.clock_mhz);
  add("memory_clock_mhz", reading.memory_clock_mhz);
  add("power_w", reading.power_w);
  add("temperature_c", reading.temperature_c);
  if (!reading.throttle_reasons.empty()) {
    json["throttle_reasons"] = reading.throttle_reasons;
  }
  return json;
}

Json json_of(const NoiseFloor& noise) {
  Json json{{"stated_ps", noise.stated.count()}};
  if (noise.threads > 0) {
    json["threads"] = noise.threads;
  }
  json["samples_ps"] = json_of(noise.samples);
  return json;
}

Json json_of(const Environment& environment) {
  Json json{{"cpu", environment.cpu},
            {"cores", environment.cores},
            {"os", environment.os},
            {"compiler", environment.compiler},
            {"build", environment.build}};
  if (!environment.gpu.empty()) {
    json["gpu"] = environment.gpu;
  }
  if (!environment.attention.empty()) {
    json["attention"] = environment.attention;
  }
  if (!environment.mpi.empty()) {
    json["mpi"] = environment.mpi;
    json["hosts"] = environment.hosts;
  }
  if (!environment.variables.empty()) {
    json["variables"] = json_of(environment.variables);
  }
  for (const DeviceReading& reading : environment.devices) {
    json["devices"].push_back(json_of(reading));
  }
  return json;
}

/// Returns a list of the file, with one item per line.
template <class Item>
std::string lines_of(std::string_view key, const std::vector<Item>& items) {
  std::string text = fmt::format("  \"{}\": [", key);
  for (const Item& item : items) {
    text += fmt::format("{}\n    {}", &item == items.data() ? "" : ",",
                        json_of(item).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text + "\n  ]";
}

/// A value of the file with its path, "runs[2].status". Throws ConfigError when the value has another type or form.
class Reader {
 public:
  Reader(const Json& value, const std::string& path, std::string key_path)
      : value_(value), path_(path), key_path_(std::move(key_path)) {}

  [[noreturn]] void refuse(const std::string& sentence) const {
    throw ConfigError(fmt::format("{}: {}{}{}; record it again with --out of {}", path_, key_path_,
                                  key_path_.empty() ? "" : ": ", sentence, writers));
  }

  [[nodiscard]] bool has(const std::string& key) const { return value_.is_object() && value_.contains(key); }
  [[nodiscard]] Reader at(const std::string& key) const {
    require(value_.is_object(), "it is not an object");
    const auto entry = value_.find(key);
    const std::string key_path = key_path_.empty() ? key : fmt::format("{}.{}", key_path_, key);
    if (entry == value_.end()) {
      throw ConfigError(fmt::format("{}: {} is missing; record it again with --out of {}", path_, key_path, writers));
    }
    return {*entry, path_, key_path};
  }
  /// Returns the items of an optional list.
  [[nodiscard]] std::vector<Reader> items_at(const std::string& key) const {
    return value_.contains(key) ? at(key).items() : std::vector<Reader>{};
  }
  [[nodiscard]] std::vector<Reader> items() const {
    require(value_.is_array(), "it is not a list");
    std::vector<Reader> readers;
    for (std::size_t i = 0; i < value_.size(); ++i) {
      readers.emplace_back(value_[i], path_, fmt::format("{}[{}]", key_path_, i));
    }
    return readers;
  }
  [[nodiscard]] std::string text() const {
    require(value_.is_string(), "it is not text");
    return with_escapes(value_.get<std::string>(), "\t\n");  // Users will see it.
  }
  [[nodiscard]] bool truth() const {
    require(value_.is_boolean(), "it is neither true nor false");
    return value_.get<bool>();
  }
  [[nodiscard]] std::int64_t count(std::int64_t least = 0, std::int64_t largest = unlimited) const {
    const bool fits =
        value_.is_number_integer() &&
        (!value_.is_number_unsigned() || value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(unlimited));
    require(fits, "it is not a whole number");
    const auto number = value_.get<std::int64_t>();
    require(number >= least && number <= largest, "it is out of range");
    return number;
  }
  [[nodiscard]] std::uint64_t seed() const {
    require(value_.is_number_unsigned(), "it is not a whole number of at least 0");
    return value_.get<std::uint64_t>();
  }
  [[nodiscard]] double number() const {
    require(value_.is_number(), "it is not a number");
    return value_.get<double>();
  }
  [[nodiscard]] double number_or_infinity() const {
    return value_.is_null() ? std::numeric_limits<double>::infinity() : number();
  }
  [[nodiscard]] Duration duration() const { return Duration(count(0, longest)); }
  [[nodiscard]] std::vector<Duration> durations() const {
    std::vector<Duration> durations;
    for (const Reader& item : items()) {
      durations.push_back(item.duration());
    }
    return durations;
  }
  [[nodiscard]] Words words() const {
    require(value_.is_object(), "it is not an object");
    Words words;
    for (const auto& [name, value] : value_.items()) {
      words.emplace_back(with_escapes(name, "\t\n"), at(name).text());
    }
    return words;
  }
  void require(bool holds, const char* sentence) const {
    if (!holds) {
      refuse(sentence);
    }
  }

 private:
  const Json& value_;
  const std::string& path_;
  std::string key_path_;
};

RunStatus status_in(const Reader& reader) {
  const std::string word = reader.text();
  const auto* const status = std::find_if(all_statuses.begin(), all_statuses.end(),
                                          [&](RunStatus candidate) { return name_of(candidate) == word; });
  if (status == all_statuses.end()) {
    reader.refuse(fmt::format("{} is not done, wrong or failed", in_quotes(word)));
  }
  return *status;
}

OpSpan span_in(const Reader& reader) {
  const std::vector<Reader> parts = reader.items();
  reader.require(parts.size() == 4, "a span is [rank, op, start, end]");
  constexpr std::int64_t largest = std::numeric_limits<std::int32_t>::max();
  const OpSpan span{.rank = static_cast<Rank>(parts[0].count(0, largest)),
                    .op = OpId{static_cast<std::int32_t>(parts[1].count(0, largest))},
                    .start = Instant(parts[2].duration()),
                    .end = Instant(parts[3].duration())};
  reader.require(span.start <= span.end, "it ends before it starts");
  return span;
}

MeasuredRun run_in(const Reader& reader) {
  MeasuredRun run{.strategy = reader.at("strategy").text(),
                  .options = reader.at("options").words(),
                  .parameters = reader.at("parameters").text(),
                  .schedule_sha256 = reader.at("schedule_sha256").text(),
                  .status = status_in(reader.at("status")),
                  .message = reader.at("message").text(),
                  .makespans = reader.at("makespans_ps").durations()};
  reader.at("makespans_ps")
      .require(run.status != RunStatus::done || !run.makespans.empty(), "it has no sample, but the status is done");
  for (const Reader& span : reader.at("spans_ps").items()) {
    run.spans.push_back(span_in(span));
  }
  for (const Reader& level : reader.at("levels").items()) {
    run.levels.push_back({.level = level.at("level").text(),
                          .elements = level.at("elements").count(),
                          .wrong = level.at("wrong").count(),
                          .worst = level.at("worst").number_or_infinity()});
  }
  return run;
}

MicroBenchmark micro_benchmark_in(const Reader& reader) {
  MicroBenchmark benchmark{.op = reader.at("op").text(),
                           .beside = reader.at("beside").text(),
                           .dtype = reader.at("dtype").text(),
                           .m = reader.at("m").count(),
                           .n = reader.at("n").count(),
                           .k = reader.at("k").count(),
                           .bytes = reader.at("bytes").count(),
                           .ranks = reader.at("ranks").count(1, text::max_ranks),
                           .samples = reader.at("samples_ps").durations()};
  if (reader.has("rank")) {
    benchmark.rank = reader.at("rank").count(0, benchmark.ranks - 1);
  }
  if (reader.has("peer")) {
    benchmark.peer = reader.at("peer").count(0, benchmark.ranks - 1);
  }
  benchmark.in_place = reader.has("in_place") && reader.at("in_place").truth();
  reader.at("samples_ps").require(!benchmark.samples.empty(), "it has no sample");
  return benchmark;
}

DeviceReading device_reading_in(const Reader& reader) {
  DeviceReading reading{.when = reader.at("when").text(),
                        .rank = reader.at("rank").count(0, text::max_ranks - 1),
                        .gpu = reader.at("gpu").text()};
  const auto count = [&](const char* name, std::optional<std::int64_t>& to) {
    if (reader.has(name)) {
      to = reader.at(name).count();
    }
  };
  count("clock_mhz", reading.clock_mhz);
  count("memory_clock_mhz", reading.memory_clock_mhz);
  count("temperature_c", reading.temperature_c);
  if (reader.has("power_w")) {
    reading.power_w = reader.at("power_w").number();
  }
  if (reader.has("throttle_reasons")) {
    reading.throttle_reasons = reader.at("throttle_reasons").text();
  }
  return reading;
}

NoiseFloor noise_in(const Reader& reader) {
  return {.stated = reader.at("stated_ps").duration(),
          .threads = reader.has("threads") ? static_cast<int>(reader.at("threads").count(1, text::max_ranks)) : 0,
          .samples = reader.at("samples_ps").durations()};
}

Environment environment_in(const Reader& reader) {
  Environment environment{.cpu = reader.at("cpu").text(),
                          .cores = reader.at("cores").count(),
                          .os = reader.at("os").text(),
                          .compiler = reader.at("compiler").text(),
                          .build = reader.at("build").text()};
  if (reader.has("gpu")) {
    environment.gpu = reader.at("gpu").text();
  }
  if (reader.has("attention")) {
    environment.attention = reader.at("attention").text();
  }
  if (reader.has("mpi")) {
    environment.mpi = reader.at("mpi").text();
    for (const Reader& host : reader.at("hosts").items()) {
      environment.hosts.push_back(host.text());
    }
  }
  if (reader.has("variables")) {
    environment.variables = reader.at("variables").words();
  }
  if (reader.has("devices")) {
    for (const Reader& reading : reader.at("devices").items()) {
      environment.devices.push_back(device_reading_in(reading));
    }
  }
  return environment;
}

void require_schema(const Reader& top, const std::string& path) {
  const std::string schema = top.at("schema").text();
  if (schema != run_record_schema) {
    throw ConfigError(fmt::format("{}: schema is {}, but {} is required here; give a file of that kind", path,
                                  in_quotes(schema), in_quotes(run_record_schema)));
  }
}

Json parsed(const std::string& text, const std::string& path) {
  try {
    return parse_json<Json>(text, path);
  } catch (const Json::parse_error& error) {
    throw ConfigError(fmt::format("{}:{}: not valid JSON; record it again with --out of {}", path,
                                  line_and_column(text, error.byte), writers));
  } catch (const Json::exception&) {  // a number outside the range of a double
    throw ConfigError(fmt::format("{}: a number is out of range; record it again with --out of {}", path, writers));
  }
}

}  // namespace

std::string_view name_of(RunStatus status) {
  switch (status) {
    case RunStatus::done: return "done";
    case RunStatus::wrong: return "wrong";
    case RunStatus::failed: return "failed";
  }
  return "";
}

std::string to_json(const RunRecord& record) {
  const Json head{{"schema", run_record_schema},
                  {"executor", record.executor},
                  {"compute", record.compute},
                  {"links", record.links},
                  {"dilation", record.dilation},
                  {"version", record.version},
                  {"git_revision", record.git_revision},
                  {"environment", json_of(record.environment)},
                  {"settings", json_of(record.settings)},
                  {"seed", record.seed},
                  {"warm_up", record.warm_up},
                  {"noise", json_of(record.noise)}};
  std::string text = "{";
  for (const auto& [key, value] : head.items()) {
    text += fmt::format("\n  {}: {},", Json(key).dump(), value.dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  text += "\n";
  text += lines_of("runs", record.runs);
  text += record.micro_benchmarks.empty() ? "" : ",\n" + lines_of("micro_benchmarks", record.micro_benchmarks);
  return text + "\n}\n";
}

RunRecord parse_run_record(const std::string& text, const std::string& path) {
  const Json json = parsed(text, path);
  const Reader top(json, path, "");
  require_schema(top, path);
  RunRecord record{.executor = top.at("executor").text(),
                   .compute = top.at("compute").text(),
                   .links = top.at("links").text(),
                   .dilation = top.at("dilation").number(),
                   .version = top.at("version").text(),
                   .git_revision = top.at("git_revision").text(),
                   .environment = environment_in(top.at("environment")),
                   .settings = top.at("settings").words(),
                   .seed = top.at("seed").seed(),
                   .warm_up = top.at("warm_up").count(),
                   .noise = noise_in(top.at("noise"))};
  top.at("dilation").require(record.dilation > 0.0, "it is out of range");
  for (const Reader& run : top.at("runs").items()) {
    record.runs.push_back(run_in(run));
  }
  for (const Reader& item : top.items_at("micro_benchmarks")) {
    record.micro_benchmarks.push_back(micro_benchmark_in(item));
  }
  return record;
}

RunRecord load_run_record(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw ConfigError(fmt::format("{}: no such file; write it with --out of {}", path, writers));
  }
  const std::string text = read_file(path, largest_file);
  if (text.size() > largest_file) {
    throw ConfigError(fmt::format("{}: it is larger than 256 MiB; record fewer iterations", path));
  }
  return parse_run_record(text, path);
}

}  // namespace commfuse
