// SPDX-License-Identifier: Apache-2.0
#include "model/formats/nccl_tests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>

#include "model/config_error.h"
#include "model/formats/measured_time.h"
#include "model/json_budget.h"
#include "model/text/quantity.h"

namespace commfuse {

namespace {

using Json = nlohmann::json;

constexpr std::string_view blanks = " \t\r";
constexpr std::string_view program_suffix = "_perf";
// Size, count, type, redop and root, then time, algbw, busbw and wrong elements: out of place, then in place. With -I
// each of the two is followed by four figures of its iterations.
constexpr std::size_t time_column = 5;
constexpr std::size_t body_columns = 4;
constexpr std::size_t iteration_columns = 4;
constexpr std::size_t plain_columns = time_column + 2 * body_columns;
constexpr std::int64_t most_bytes = std::int64_t{1} << 46;  // What a message may be: sums of them stay in range.

[[noreturn]] void refuse(const std::string& path, std::string_view sentence) {
  throw ConfigError(fmt::format("{}: {}", path, sentence));
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t at = line.find_first_not_of(blanks);
  while (at != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(blanks, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = line.find_first_not_of(blanks, end);
  }
  return words;
}

/// all_gather of "/opt/bin/all_gather_perf_mpi"; nothing of other programs.
std::optional<std::string> op_of_program(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);  // npos + 1 is 0.
  const std::size_t suffix = program.find(program_suffix);
  return suffix == std::string_view::npos || suffix == 0 ? std::nullopt
                                                         : std::optional(std::string(program.substr(0, suffix)));
}

/// A time or nothing, with the reason.
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

/// The rows and ranks found so far.
class Reading {
 public:
  void add_rank(std::string_view host) {
    ++run_.ranks;
    hosts_.insert(std::string(host));
  }

  void name_op(std::string op) { run_.op = std::move(op); }

  void add_row(std::string place, std::int64_t bytes, std::optional<double> time, std::optional<double> in_place) {
    std::string reason;
    if (bytes > most_bytes) {
      add_mistake(std::move(place), fmt::format("the size is {} bytes, above {}", bytes, most_bytes));
    } else if (const std::optional<double> good = time_in(time, reason)) {
      run_.rows.push_back(
          {.bytes = bytes, .time_us = *good, .in_place_time_us = time_in(in_place, reason), .place = std::move(place)});
    } else {
      add_mistake(std::move(place), std::move(reason));
    }
  }

  void add_mistake(std::string place, std::string reason) {
    run_.mistakes.push_back({std::move(place), std::move(reason)});
  }

  NcclTestsRun finish(const std::string& path, const std::optional<std::string>& op) {
    run_.op = run_.op.empty() ? op.value_or("") : run_.op;
    run_.nodes = std::max<int>(1, static_cast<int>(hosts_.size()));
    if (run_.rows.empty() && run_.mistakes.empty()) {
      refuse(path, "has no rows of nccl-tests; give what one of its programs printed");
    }
    if (run_.op.empty()) {
      refuse(path, "does not say which collective was timed; name it, as in all_gather");
    }
    if (run_.ranks < 1) {
      refuse(path, "has no lines of ranks and devices; give the whole output");
    }
    return std::move(run_);
  }

 private:
  NcclTestsRun run_;
  std::set<std::string> hosts_;
};

// Text.

/// "#  Rank  0 Group  0 Pid  4242 on node-1 device  0 [0x07] NVIDIA H100"; older ones know no group.
std::optional<std::string_view> host_of_rank(const std::vector<std::string_view>& words) {
  if (words.size() < 4 || words[0] != "#" || words[1] != "Rank" || !parse_integer(words[2])) {
    return std::nullopt;
  }
  const auto on = std::find(words.begin(), words.end(), "on");
  return on == words.end() || on + 1 == words.end() ? std::nullopt : std::optional(*(on + 1));
}

void read_comment(const std::vector<std::string_view>& words, Reading& reading) {
  if (const std::optional<std::string_view> host = host_of_rank(words)) {
    reading.add_rank(*host);
  }
  if (words.size() >= 5 && words[1] == "Collective" && words[2] == "test") {  // starting: all_reduce_perf
    if (std::optional<std::string> op = op_of_program(words.back())) {
      reading.name_op(std::move(*op));
    }
  }
}

std::string wrong_elements(std::string_view word) {
  const std::optional<double> wrong = parse_number(word);
  return wrong && *wrong > 0.0 ? fmt::format("{} elements were wrong", word) : "";
}

void read_row(std::string place, const std::vector<std::string_view>& words, Reading& reading) {
  const std::optional<std::int64_t> bytes = parse_integer(words[0]);
  if (!bytes) {
    reading.add_mistake(std::move(place), fmt::format("'{}' is not a size in bytes", words[0]));
    return;
  }
  if (words.size() < plain_columns) {
    reading.add_mistake(std::move(place),
                        fmt::format("the row is cut off: {} of {} columns", words.size(), plain_columns));
    return;
  }
  const bool has_iterations = words.size() >= plain_columns + 2 * iteration_columns;
  const std::size_t in_place = time_column + body_columns + (has_iterations ? iteration_columns : 0);
  if (std::string wrong = wrong_elements(words[time_column + body_columns - 1]); !wrong.empty()) {
    reading.add_mistake(std::move(place), std::move(wrong));
    return;
  }
  if (*bytes > 0) {
    reading.add_row(std::move(place), *bytes, parse_number(words[time_column]), parse_number(words[in_place]));
  }
}

void read_text(std::string_view text, Reading& reading) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::vector<std::string_view> words = words_of(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (words.empty()) {
      continue;
    }
    if (words[0].front() == '#') {
      read_comment(words, reading);
    } else if (words[0].front() >= '0' && words[0].front() <= '9') {
      read_row(fmt::format("line {}", number), words, reading);
    }  // Else a log: "node-1:4242:4242 [0] NCCL INFO ...".
  }
}

// JSON.

std::optional<double> number_at(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number() ? std::optional(found->get<double>()) : std::nullopt;
}

std::optional<double> time_of(const Json& row, const char* placing) {
  const auto found = row.find(placing);
  return found != row.end() && found->is_object() ? number_at(*found, "time") : std::nullopt;
}

void read_result(std::string place, const Json& row, Reading& reading) {
  const std::optional<double> bytes = row.is_object() ? number_at(row, "size") : std::nullopt;
  if (!bytes || *bytes < 0.0 || *bytes > static_cast<double>(most_bytes)) {
    reading.add_mistake(std::move(place), "the size is not a number of bytes");
    return;
  }
  if (const auto out = row.find("out_of_place"); out != row.end() && out->is_object()) {
    if (const double wrong = number_at(*out, "nwrong").value_or(0.0); wrong > 0.0) {
      reading.add_mistake(std::move(place), fmt::format("{} elements were wrong", wrong));
      return;
    }
  }
  if (*bytes > 0.0) {
    reading.add_row(std::move(place), static_cast<std::int64_t>(*bytes), time_of(row, "out_of_place"),
                    time_of(row, "in_place"));
  }
}

Json parsed(std::string_view text, const std::string& path) {
  try {
    return parse_json<Json>(text, path);
  } catch (const Json::parse_error& error) {
    refuse(fmt::format("{}:{}", path, line_and_column(text, error.byte)),
           "is not JSON; give the whole file that nccl-tests -J wrote");
  } catch (const Json::exception&) {  // A number that fits no double.
    refuse(path, "a number is out of range; give the whole file that nccl-tests -J wrote");
  }
}

void read_json(std::string_view text, const std::string& path, Reading& reading) {
  const Json json = parsed(text, path);
  const Json none = Json::array();
  const auto list = [&](const Json& of, const char* key) -> const Json& {
    const auto found = of.is_object() ? of.find(key) : of.end();
    return found != of.end() && found->is_array() ? *found : none;
  };
  if (const Json& arguments = list(json, "args"); !arguments.empty() && arguments.front().is_string()) {
    if (std::optional<std::string> op = op_of_program(arguments.front().get_ref<const std::string&>())) {
      reading.name_op(std::move(*op));
    }
  }
  const auto config = json.find("config");
  for (const Json& device : list(config != json.end() ? *config : none, "devices")) {
    const auto host = device.is_object() ? device.find("hostname") : device.end();
    reading.add_rank(host != device.end() && host->is_string() ? host->get<std::string>() : "");
  }
  const Json& results = list(json, "results");
  for (std::size_t i = 0; i < results.size(); ++i) {
    read_result(fmt::format("results[{}]", i), results[i], reading);
  }
}

}  // namespace

NcclTestsRun read_nccl_tests(std::string_view text, const std::string& path, const std::optional<std::string>& op) {
  Reading reading;
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    read_json(text, path, reading);
  } else {
    read_text(text, reading);
  }
  return reading.finish(path, op);
}

}  // namespace commfuse
