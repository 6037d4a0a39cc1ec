// SPDX-License-Identifier: Apache-2.0
#include "model/formats/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "model/config_error.h"
#include "model/formats/measured_time.h"
#include "model/json_budget.h"
#include "model/text/blanks.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

constexpr std::string_view program_suffix = "_perf";
// A row has size, count and type; redop and root if the version prints them; then time, algbw, busbw and wrong
// elements, first out of place and then in place. With -I, four figures about the iterations follow each of these two
// groups.
constexpr std::size_t least_lead = 3;
constexpr std::size_t max_lead = 5;
constexpr std::size_t body_columns = 4;
constexpr std::size_t iteration_columns = 4;
constexpr std::size_t plain_columns = max_lead + 2 * body_columns;
constexpr std::int64_t max_bytes = std::int64_t{1} << 46;  // Largest message, so that sums of sizes stay in range.
constexpr std::int64_t max_ranks = std::int64_t{1} << 20;

[[noreturn]] void refuse(const std::string& path, std::string_view sentence) {
  throw ConfigError(fmt::format("{}: {}", path, sentence));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = line.find_first_not_of(line_blanks);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(line_blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(line_blanks, end);
  }
  return words;
}

/// Returns "all_gather" for "/opt/bin/all_gather_perf_mpi"; nullopt for other programs.
std::optional<std::string> op_of_program(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0
  const std::size_t suffix = program.find(program_suffix);
  return suffix == std::string_view::npos || suffix == 0 ? std::nullopt
                                                         : std::optional(std::string(program.substr(0, suffix)));
}

/// Returns the time if it is valid; otherwise sets `reason` and returns nullopt.
std::optional<double> time_in(std::optional<double> value, std::string& reason) {
  if (!value || !std::isfinite(*value)) {
    reason = "the time is not a number";
  } else if (*value <= 0.0) {
    reason = "the time is not above 0";
  } else if (!is_measured_time(*value)) {
    reason =
        fmt::format("the time is {:g} us, outside {:g} to {:g} us", *value, shortest_measured_us, longest_measured_us);
  } else {
    return value;
  }
  return std::nullopt;
}

/// One rank, from a line of the list of devices.
struct Device {
  std::int64_t rank = 0;
  std::int64_t group = 0;
  std::string host;
  std::int64_t device = 0;
};

/// Collects the rows and ranks of one run.
class Reading {
 public:
  void add_device(Device device) { devices_.push_back(std::move(device)); }
  /// Sets the number of ranks that each line of the list of devices represents.
  void set_ranks_per_device(std::int64_t ranks) { ranks_per_device_ = std::clamp<std::int64_t>(ranks, 1, max_ranks); }
  void set_op(std::string op) { run_.op = std::move(op); }
  void note_missing_devices() { lacks_devices_ = true; }
  void set_version(std::string version) { run_.nccl_version = std::move(version); }

  /// Times of a row, in microseconds.
  struct RowTimes {
    std::optional<double> out_of_place;
    std::optional<double> in_place;
  };
  void add_row(std::string place, std::int64_t bytes, const RowTimes& times) {
    std::string reason;
    if (bytes > max_bytes) {
      add_mistake(std::move(place), fmt::format("the size is {} bytes, above {}", bytes, max_bytes));
    } else if (const std::optional<double> valid_time_us = time_in(times.out_of_place, reason)) {
      run_.rows.push_back({.bytes = bytes,
                           .time_us = *valid_time_us,
                           .in_place_time_us = time_in(times.in_place, reason),
                           .place = std::move(place)});
    } else {
      add_mistake(std::move(place), std::move(reason));
    }
  }

  void add_mistake(std::string place, std::string reason, bool is_wrong_result = false) {
    run_.mistakes.push_back({std::move(place), std::move(reason), is_wrong_result});
  }

  [[nodiscard]] bool has_rows() const { return !run_.rows.empty() || !run_.mistakes.empty(); }
  [[nodiscard]] bool is_named() const { return !run_.op.empty(); }
  [[nodiscard]] bool is_empty() const { return !has_rows() && devices_.empty(); }

  NcclTestsRun finish(const std::string& path, const std::optional<std::string>& op) {
    run_.op = run_.op.empty() ? op.value_or("") : run_.op;
    if (run_.op.empty()) {
      refuse(path, "does not name its collective; name the file after the collective, as in all_gather.txt");
    }
    if (devices_.empty()) {
      refuse(path, "has no lines of ranks and devices; give the whole output");
    }
    refuse_lone_processes(path);
    count_ranks();
    return std::move(run_);
  }

 private:
  /// Throws ConfigError if several processes name the same rank: without MPI, every process counts as rank 0.
  void refuse_lone_processes(const std::string& path) const {
    std::map<std::pair<std::int64_t, std::int64_t>, int> times;
    int max_times = 0;
    std::int64_t rank = 0;  // the rank that is named most often
    for (const Device& device : devices_) {
      if (const int named = ++times[{device.group, device.rank}]; named > max_times) {
        max_times = named;
        rank = device.rank;
      }
    }
    if (max_times > 1) {
      refuse(path, fmt::format("names rank {} {} times, so every process ran alone and nothing was sent between them; "
                               "build nccl-tests with MPI=1, or run one process with -g",
                               rank, max_times));
    }
  }

  void count_ranks() {
    std::set<std::int64_t> groups;
    std::set<std::string> hosts;
    std::int64_t last = 0;
    std::int64_t last_device = 0;
    for (const Device& device : devices_) {
      groups.insert(device.group);
      last = std::max(last, device.rank);
      last_device = std::max(last_device, device.device);
      if (device.group == devices_.front().group && hosts.insert(device.host).second) {
        run_.hosts.push_back(device.host);
      }
    }
    const auto named = static_cast<std::int64_t>(devices_.size()) * ranks_per_device_;
    const std::int64_t ranks_of_groups = std::max(named, last + 1);
    run_.groups = static_cast<int>(groups.size());
    run_.ranks = static_cast<int>(ranks_of_groups / run_.groups);
    run_.nodes = std::max<int>(1, static_cast<int>(hosts.size()));
    if (named < ranks_of_groups || lacks_devices_) {
      const std::int64_t nodes = (run_.ranks + last_device) / (last_device + 1);
      run_.nodes = std::max(run_.nodes, static_cast<int>(nodes));
      if (static_cast<std::size_t>(run_.nodes) != run_.hosts.size()) {
        run_.hosts.clear();
      }
      run_.notes.push_back(fmt::format("the list of ranks is cut off; assuming {} ranks on {}", run_.ranks,
                                       counted(run_.nodes, "node")));
    }
    if (run_.groups > 1) {
      run_.notes.push_back(fmt::format("{} groups of {} ranks ran simultaneously", run_.groups, run_.ranks));
    }
  }

  NcclTestsRun run_;
  std::vector<Device> devices_;
  std::int64_t ranks_per_device_ = 1;
  bool lacks_devices_ = false;
};

/// Collects the runs of a file.
class Runs {
 public:
  Reading& current() {
    if (readings_.empty()) {
      readings_.emplace_back();
    }
    return readings_.back();
  }
  /// Begins another run unless the current one is still empty.
  void begin() {
    if (readings_.empty() || !readings_.back().is_empty()) {
      readings_.emplace_back();
    }
  }
  void take(Runs&& others) {
    readings_.insert(readings_.end(), std::make_move_iterator(others.readings_.begin()),
                     std::make_move_iterator(others.readings_.end()));
  }
  std::vector<NcclTestsRun> finish(const std::string& path, const std::optional<std::string>& op) {
    std::erase_if(readings_, [](const Reading& reading) { return !reading.has_rows(); });
    if (readings_.empty()) {
      throw NoNcclTests(fmt::format("{}: has no rows of nccl-tests; give the output of one of its programs", path));
    }
    std::vector<NcclTestsRun> runs;
    const auto unnamed =
        std::count_if(readings_.begin(), readings_.end(), [](const Reading& reading) { return !reading.is_named(); });
    if (unnamed > 1) {
      refuse(path, fmt::format("has {} runs that do not name their collective; split it into one file per run, "
                               "each named after its collective, as in all_gather.txt",
                               unnamed));
    }
    for (Reading& reading : readings_) {
      runs.push_back(reading.finish(path, op));
    }
    const bool ran_alone = runs.size() > 1 && std::all_of(runs.begin(), runs.end(), [&](const NcclTestsRun& run) {
                             return run.ranks == 1 && run.op == runs.front().op;
                           });
    if (ran_alone) {
      refuse(path, fmt::format("has {} runs of one rank each, so every process ran alone; build nccl-tests with MPI=1, "
                               "or run one process with -g",
                               runs.size()));
    }
    return runs;
  }

 private:
  std::vector<Reading> readings_;
};

// Text.

/// Returns the word that follows `before`.
std::optional<std::string_view> word_after(const std::vector<std::string_view>& words, std::string_view before) {
  const auto match = std::find(words.begin(), words.end(), before);
  return match == words.end() || match + 1 == words.end() ? std::nullopt : std::optional(*(match + 1));
}

std::optional<std::int64_t> number_after(const std::vector<std::string_view>& words, std::string_view before) {
  const std::optional<std::string_view> word = word_after(words, before);
  const std::optional<std::int64_t> number = word ? parse_integer(*word) : std::nullopt;
  return number && *number < max_ranks ? number : std::nullopt;
}

/// Returns "2.28.9" for 22809, and "2.8.4" for 2804, the form of codes before 2.9; empty for other numbers.
std::string version_of_code(std::int64_t code) {
  constexpr std::int64_t first_long = 10000;
  const std::int64_t major = code >= first_long ? code / 10000 : code / 1000;
  const std::int64_t rest = code >= first_long ? code % 10000 : code % 1000;
  return code < 1000 || code >= 1'000'000 ? "" : fmt::format("{}.{}.{}", major, rest / 100, rest % 100);
}

/// Returns the version of the library in "# nccl-tests version 2.17.6 nccl-headers=22803 nccl-library=22803"; empty if
/// the line has none.
std::string library_version_in(const std::vector<std::string_view>& words) {
  constexpr std::string_view key = "nccl-library=";
  for (const std::string_view word : words) {
    if (word.starts_with(key)) {
      return version_of_code(parse_integer(word.substr(key.size())).value_or(0));
    }
  }
  return "";
}

/// Parses "#  Rank  0 Group  0 Pid  4242 on node-1 device  0 [0x07] NVIDIA H100"; older versions print no group.
std::optional<Device> device_in(const std::vector<std::string_view>& words) {
  const std::optional<std::int64_t> rank = number_after(words, "Rank");
  const std::optional<std::string_view> host = word_after(words, "on");
  if (words.size() < 4 || words[0] != "#" || words[1] != "Rank" || !rank || !host) {
    return std::nullopt;
  }
  return Device{.rank = *rank,
                .group = number_after(words, "Group").value_or(0),
                .host = std::string(*host),
                .device = number_after(words, "device").value_or(0)};
}

void read_comment(const std::vector<std::string_view>& words, const std::string& path, Runs& runs) {
  if (std::optional<Device> device = device_in(words)) {
    if (runs.current().has_rows()) {  // an old version, whose output begins with the devices
      runs.begin();
    }
    runs.current().add_device(std::move(*device));
    if (words.back().ends_with("...")) {  // nccl-tests cuts the list of one process off at 2 KiB
      runs.current().note_missing_devices();
    }
    return;
  }
  const auto is_word = [&](std::size_t at, std::string_view word) { return words.size() > at && words[at] == word; };
  if (is_word(1, "Collective") && is_word(2, "test") && is_word(3, "starting:")) {  // starting: all_reduce_perf
    runs.begin();
    if (std::optional<std::string> op = op_of_program(words.back())) {
      runs.current().set_op(std::move(*op));
    }
  } else if (is_word(1, "nccl-tests")) {
    if (runs.current().has_rows()) {
      runs.begin();
    }
    runs.current().set_version(library_version_in(words));
  } else if (is_word(1, "nThread")) {
    runs.begin();  // an earlier attempt may have died after its list of devices
  } else if (is_word(1, "Using") && is_word(2, "devices") && runs.current().has_rows()) {
    runs.begin();
  } else if (is_word(1, "...")) {
    runs.current().note_missing_devices();
  } else if (is_word(1, "size") && std::find(words.begin(), words.end(), "cputime") != words.end()) {
    refuse(path, "the times are CPU times, which cover only the launch (-C 1); run nccl-tests without -C 1");
  }
}

/// Returns a sentence about wrong elements, which were counted out of place and in place; empty if there are none.
std::string wrong_elements(double out_of_place, double in_place) {
  const double wrong = out_of_place > 0.0 ? out_of_place : in_place;
  return wrong > 0.0 ? fmt::format("{} {} wrong{}", wrong, wrong == 1.0 ? "element was" : "elements were",
                                   out_of_place > 0.0 ? "" : " in place")
                     : "";
}

/// Returns the count of wrong elements in a row; 0 for "N/A". Older versions print the rounding error of sums instead,
/// such as 1e-07, which is not a count of elements.
double count_of_wrong(std::string_view word) {
  const double wrong = parse_number(word).value_or(0.0);
  const bool is_rounding = word.find('e') != std::string_view::npos && wrong < 1.0;
  return is_rounding ? 0.0 : wrong;
}

/// Returns true for "2026-11-25" or "12:00:00", which -T prints after a row.
bool is_of_clock(std::string_view word) {
  return word.size() >= 8 && word.find_first_not_of("0123456789-:.") == std::string_view::npos &&
         word.find_first_of("-:", 1) != std::string_view::npos;
}

/// Returns true if the words are a row: a size, a count and a type come first. Lines of logs may begin with a number,
/// too.
bool is_row(const std::vector<std::string_view>& words) {
  constexpr std::string_view types =
      " float double half bfloat16 int8 int32 int64 uint8 uint32 uint64 f8e4m3 f8e5m2 "
      "fp8_e4m3 fp8_e5m2 ";
  return words.size() >= least_lead && parse_integer(words[1]) &&
         types.find(fmt::format(" {} ", words[2])) != std::string_view::npos;
}

void read_row(std::string place, std::vector<std::string_view> words, Reading& reading) {
  const std::optional<std::int64_t> bytes = parse_integer(words[0]);
  if (!bytes) {
    reading.add_mistake(std::move(place), fmt::format("'{}' is not a size in bytes", words[0]));
    return;
  }
  while (!words.empty() && is_of_clock(words.back())) {
    words.pop_back();
  }
  const auto has_lead_of = [&](std::size_t body) {
    return words.size() >= least_lead + 2 * body && words.size() <= max_lead + 2 * body;
  };
  const bool has_iterations = has_lead_of(body_columns + iteration_columns);
  if (!has_iterations && !has_lead_of(body_columns)) {
    reading.add_mistake(std::move(place),
                        words.size() < plain_columns
                            ? fmt::format("the row is cut off: {} of {} columns", words.size(), plain_columns)
                            : fmt::format("the row has {} columns instead of {}", words.size(), plain_columns));
    return;
  }
  const std::size_t body = body_columns + (has_iterations ? iteration_columns : 0);
  const std::size_t out_of_place = words.size() - 2 * body;
  const std::size_t in_place = out_of_place + body;
  if (std::string wrong = wrong_elements(count_of_wrong(words[out_of_place + body_columns - 1]),
                                         count_of_wrong(words[in_place + body_columns - 1]));
      !wrong.empty()) {
    reading.add_mistake(std::move(place), std::move(wrong), true);
    return;
  }
  if (*bytes > 0) {
    reading.add_row(std::move(place), *bytes,
                    {.out_of_place = parse_number(words[out_of_place]), .in_place = parse_number(words[in_place])});
  }
}

/// Returns the length of the prefixes that launchers put before a line, 0 for none: "[1,0]<stdout>:", "[0]", " 0: ",
/// "node-1: ", "[pod/launcher/mpi] ", "2026-11-25T12:00:00.123Z ". A line may have several.
std::size_t launcher_prefix(std::string_view line) {
  std::size_t taken = 0;
  for (;;) {
    const std::string_view rest = line.substr(taken);
    const std::size_t first = rest.find_first_not_of(line_blanks);
    if (first == std::string_view::npos || rest[first] == '#') {
      return taken;
    }
    const std::string_view word = rest.substr(first, rest.find_first_of(line_blanks, first) - first);
    std::size_t end = 0;  // end of the word's part that belongs to the prefix
    if (word.front() == '[') {
      constexpr std::size_t longest = 128;
      const std::string_view mark = rest.substr(first, longest);  // "[2026-11-25 12:00:00]" contains a blank
      const std::size_t closed = mark.find(']');
      const std::size_t stream =
          closed == std::string_view::npos ? closed : word.find("<std", std::min(closed, word.size()));
      const std::size_t colon = stream == std::string_view::npos ? stream : word.find(':', stream);
      end = closed == std::string_view::npos   ? 0
            : colon != std::string_view::npos  ? colon + 1
            : stream != std::string_view::npos ? word.find('>', stream) + 1
                                               : closed + 1;
    } else if (const std::size_t colon = word.find(':'); colon + 1 == word.size() && word.size() > 1) {
      end = word.size();  // "0:", "node-1:"
    } else if (is_of_clock(word) || (word.size() > 19 && word[4] == '-' && word.find('T') == 10)) {
      end = word.size();
    } else if (const std::size_t mark = word.find(":#"); mark != std::string_view::npos) {
      end = mark + 1;  // "node-1:# Rank"
    }
    if (end == 0) {
      return taken;
    }
    taken += first + end;
  }
}

/// Replaces the launcher's mark with blanks, because some launchers insert it wherever a process pauses.
std::string without_marks(std::string_view line, std::string_view mark) {
  std::string text(line);
  for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at)) {
    text.replace(at, mark.size(), " ");
  }
  return text;
}

/// Returns the position at which the text of nccl-tests begins in a line with any prefix; nullopt for other lines.
std::optional<std::size_t> begin_of_nccl_tests(std::string_view line) {
  constexpr std::array<std::string_view, 7> comments{"Rank", "Collective", "nThread", "Using",
                                                     "size", "nccl-tests", "..."};
  for (std::size_t at = line.find('#'); at != std::string_view::npos; at = line.find('#', at + 1)) {
    const std::vector<std::string_view> words = words_of(line.substr(at));
    if (words.size() > 1 && words[0] == "#" &&
        std::find(comments.begin(), comments.end(), words[1]) != comments.end()) {
      return at;
    }
  }
  constexpr std::size_t max_before = 8;  // longest prefix, in words
  const std::vector<std::string_view> words = words_of(line);
  for (std::size_t i = 0; i < std::min(words.size(), max_before); ++i) {
    const std::vector<std::string_view> rest(words.begin() + static_cast<std::ptrdiff_t>(i), words.end());
    if (parse_integer(words[i]) && is_row(rest)) {
      return static_cast<std::size_t>(words[i].data() - line.data());
    }
  }
  return std::nullopt;
}

/// Returns the launcher's name for the process that wrote a line: the launcher's mark without dates and times.
std::string label_in(std::string_view mark) {
  std::string label;
  for (const std::string_view word : words_of(mark)) {
    const bool has_clock = is_of_clock(word) || (word.size() > 15 && word[4] == '-');
    label += has_clock ? "" : std::string(word) + " ";
  }
  return label;
}

/// Runs by the process that wrote them, because lines of several processes may be interleaved.
using Streams = std::map<std::string, Runs>;

void read_line(std::string_view line, int number, const std::string& path, Streams& streams) {
  std::size_t prefix = launcher_prefix(line);
  const std::vector<std::string_view> plain = words_of(line.substr(prefix));
  const bool is_plain = plain.empty() || plain[0].front() == '#' || is_row(plain);
  std::string label = label_in(line.substr(0, prefix));
  if (!is_plain) {
    const std::optional<std::size_t> begin = begin_of_nccl_tests(line);
    if (!begin) {
      return;  // a log: "node-1:4242:4242 [0] NCCL INFO ..."
    }
    prefix = *begin;
    label.clear();  // the prefix has an unknown form, so it does not identify the process that wrote the line
  }
  std::string rest(line.substr(prefix));
  std::string_view mark = line.substr(0, prefix);
  mark.remove_prefix(std::min(mark.find_first_not_of(line_blanks), mark.size()));
  while (!mark.empty() && line_blanks.find(mark.back()) != std::string_view::npos) {
    mark.remove_suffix(1);
  }
  if (mark.size() > 2 && mark.front() == '[' && !rest.empty() && rest.find('#') == std::string::npos) {
    rest = without_marks(rest, mark);
  }
  const std::vector<std::string_view> words = words_of(rest);
  if (words.empty()) {
    return;
  }
  if (words[0].front() == '#') {
    read_comment(words, path, streams[label]);
  } else if (is_row(words)) {
    read_row(fmt::format("line {}", number), words, streams[label].current());
  }
}

Streams read_text(std::string_view text, const std::string& path) {
  Streams streams;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    read_line(text.substr(0, end), number, path, streams);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return streams;
}

// JSON.

std::optional<double> number_at(const Json& object, const char* key) {
  const auto member = object.find(key);
  return member != object.end() && member->is_number() ? std::optional(member->get<double>()) : std::nullopt;
}

/// Returns the number at `key` in "out_of_place" or "in_place"; nullopt if it is missing.
std::optional<double> number_in(const Json& row, const char* placing, const char* key) {
  const auto member = row.find(placing);
  return member != row.end() && member->is_object() ? number_at(*member, key) : std::nullopt;
}

void read_result(std::string place, const Json& row, const std::string& path, Reading& reading) {
  const std::optional<double> bytes = row.is_object() ? number_at(row, "size") : std::nullopt;
  if (!bytes || *bytes < 0.0 || *bytes > static_cast<double>(max_bytes)) {
    reading.add_mistake(std::move(place), "the size is not a number of bytes");
    return;
  }
  if (const auto out = row.find("out_of_place"); out != row.end() && out->is_object()) {
    if (out->contains("cpu_time")) {
      refuse(path, "the times are CPU times, which cover only the launch (-C 1); run nccl-tests without -C 1");
    }
  }
  if (std::string wrong = wrong_elements(number_in(row, "out_of_place", "nwrong").value_or(0.0),
                                         number_in(row, "in_place", "nwrong").value_or(0.0));
      !wrong.empty()) {
    reading.add_mistake(std::move(place), std::move(wrong), true);
    return;
  }
  if (*bytes > 0.0) {
    reading.add_row(
        std::move(place), static_cast<std::int64_t>(*bytes),
        {.out_of_place = number_in(row, "out_of_place", "time"), .in_place = number_in(row, "in_place", "time")});
  }
}

Json parsed(std::string_view text, const std::string& path) {
  try {
    return parse_json<Json>(text, path);
  } catch (const Json::parse_error& error) {
    refuse(fmt::format("{}:{}", path, line_and_column(text, error.byte)),
           "is not JSON; give the whole file that nccl-tests -J wrote");
  } catch (const Json::exception&) {  // a number that no double can hold
    refuse(path, "a number is out of range; give the whole file that nccl-tests -J wrote");
  }
}

/// Returns the number of ranks of each process, because nccl-tests lists only the first device of a process
/// (src/util.cu, writeDeviceReport).
std::int64_t ranks_per_device(const Json& settings, std::int64_t processes, const std::string& path) {
  const auto in_config = [&](const char* key) {
    return settings.is_object() ? std::max(1.0, std::floor(number_at(settings, key).value_or(1.0))) : 1.0;
  };
  const double threads = in_config("nthreads");
  const double gpus = in_config("ngpus");
  if (threads * gpus * static_cast<double>(processes) > static_cast<double>(max_ranks)) {
    refuse(path, fmt::format("config: {} x nthreads {} x ngpus {} are more than {} ranks; give the whole file that "
                             "nccl-tests -J wrote",
                             counted(processes, "device"), threads, gpus, max_ranks));
  }
  return static_cast<std::int64_t>(std::min(threads * gpus, static_cast<double>(max_ranks)));
}

void read_json(std::string_view text, const std::string& path, Reading& reading) {
  const Json json = parsed(text, path);
  const Json empty_list = Json::array();
  const auto list = [&](const Json& object, const char* key) -> const Json& {
    const auto member = object.is_object() ? object.find(key) : object.end();
    return member != object.end() && member->is_array() ? *member : empty_list;
  };
  if (const Json& arguments = list(json, "args"); !arguments.empty() && arguments.front().is_string()) {
    if (std::optional<std::string> op = op_of_program(arguments.front().get_ref<const std::string&>())) {
      reading.set_op(std::move(*op));
    }
  }
  const double code = json.is_object() ? number_at(json, "nccl_version").value_or(0.0) : 0.0;
  reading.set_version(version_of_code(static_cast<std::int64_t>(std::clamp(code, 0.0, 1e9))));
  const auto config = json.find("config");
  const Json& settings = config != json.end() && config->is_object() ? *config : empty_list;
  std::int64_t index = 0;
  for (const Json& device : list(settings, "devices")) {
    const auto host = device.is_object() ? device.find("hostname") : device.end();
    const auto whole = [&](const char* key, std::int64_t fallback) {
      const std::optional<double> number = device.is_object() ? number_at(device, key) : std::nullopt;
      return number && *number >= 0.0 && *number < static_cast<double>(max_ranks) ? static_cast<std::int64_t>(*number)
                                                                                  : fallback;
    };
    reading.add_device({.rank = whole("rank", index),
                        .group = whole("group", 0),
                        .host = host != device.end() && host->is_string() ? host->get<std::string>() : "",
                        .device = whole("device", 0)});
    ++index;
  }
  reading.set_ranks_per_device(ranks_per_device(settings, index, path));
  const Json& results = list(json, "results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    read_result(fmt::format("results[{}]", i), results[i], path, reading);
  }
}

}  // namespace

std::vector<NcclTestsRun> read_nccl_tests(std::string_view text, const std::string& path,
                                          const std::optional<std::string>& op) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    Runs runs;
    read_json(text, path, runs.current());
    return runs.finish(path, op);
  }
  Runs every_run;
  for (auto& [label, runs] : read_text(text, path)) {
    every_run.take(std::move(runs));
  }
  return every_run.finish(path, op);
}

std::optional<std::string> nccl_program_in(std::string_view file) {
  std::string letters;
  std::copy_if(file.begin(), file.end(), std::back_inserter(letters), [](char c) { return c != '_' && c != '-'; });
  std::vector<std::string> programs;
  for (const auto& [bare, program] :
       {std::pair("allgather", "all_gather"), std::pair("reducescatter", "reduce_scatter"),
        std::pair("allreduce", "all_reduce"), std::pair("alltoall", "alltoall"), std::pair("sendrecv", "sendrecv")}) {
    if (letters.find(bare) != std::string::npos) {
      programs.emplace_back(program);
    }
  }
  return programs.size() == 1 ? std::optional(programs.front()) : std::nullopt;
}

}  // namespace commfuse
