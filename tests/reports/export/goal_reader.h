// SPDX-License-Identifier: Apache-2.0
// Reads GOAL text by the rules of txt2bin, for tests of the exporter.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace commfuse::test {

struct GoalTask {
  enum class Kind { calc, send, recv };
  Kind kind = Kind::calc;
  std::int64_t amount = 0;  // nanoseconds of a calc; bytes of send and recv
  std::int64_t peer = -1;
  std::int64_t tag = 0;
  std::int64_t cpu = 0;
  std::int64_t nic = 0;
  std::vector<std::size_t> after;  // indices in the same rank
};

using GoalRank = std::vector<GoalTask>;

/// Reads line by line, as strictly as LogGOPSim's scanner: no blanks at either end, one blank between words,
/// comments on separate lines, labels before their use. Throws std::runtime_error with the line.
class GoalReader {
 public:
  static std::vector<GoalRank> read(const std::string& text) {
    GoalReader reader;
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
      reader.line(line);
    }
    if (reader.in_rank_ || reader.ranks_.size() != reader.rank_count_) {
      throw std::runtime_error("the last rank is not closed, or ranks are missing");
    }
    return std::move(reader.ranks_);
  }

 private:
  void line(const std::string& line) {
    static const std::regex num_ranks(R"(num_ranks ([0-9]+))");
    static const std::regex rank(R"(rank ([0-9]+) \{)");
    static const std::regex calc(R"(([a-zA-Z][a-zA-Z0-9_]*): calc ([0-9]+)(?: cpu ([0-9]+))?)");
    static const std::regex message(
        R"(([a-zA-Z][a-zA-Z0-9_]*): (?:(send) ([0-9]+)b to|(recv) ([0-9]+)b from) ([0-9]+)(?: tag ([0-9]+))?(?: cpu ([0-9]+))?(?: nic ([0-9]+))?)");
    static const std::regex required(R"(([a-zA-Z][a-zA-Z0-9_]*) requires ([a-zA-Z][a-zA-Z0-9_]*))");
    std::smatch match;
    if (line.empty() || line.rfind("//", 0) == 0) {
      return;
    }
    if (!in_rank_ && std::regex_match(line, match, num_ranks) && rank_count_ == 0) {
      rank_count_ = std::stoul(match[1]);
    } else if (!in_rank_ && std::regex_match(line, match, rank) && std::stoul(match[1]) == ranks_.size()) {
      in_rank_ = true;
      ranks_.emplace_back();
      labels_.clear();
    } else if (in_rank_ && line == "}") {
      in_rank_ = false;
    } else if (in_rank_ && std::regex_match(line, match, calc)) {
      add(match[1], {.amount = number(match[2]), .cpu = number(match[3])});
    } else if (in_rank_ && std::regex_match(line, match, message)) {
      const bool sends = match[2].matched;
      add(match[1], {.kind = sends ? GoalTask::Kind::send : GoalTask::Kind::recv,
                     .amount = number(match[sends ? 3 : 5]),
                     .peer = number(match[6]),
                     .tag = number(match[7]),
                     .cpu = number(match[8]),
                     .nic = number(match[9])});
    } else if (in_rank_ && std::regex_match(line, match, required) && labels_.contains(match[1]) &&
               labels_.contains(match[2])) {
      ranks_.back()[labels_.at(match[1])].after.push_back(labels_.at(match[2]));
    } else {
      throw std::runtime_error("not GOAL: '" + line + "'");
    }
  }

  void add(const std::string& label, const GoalTask& task) {
    if (!labels_.emplace(label, ranks_.back().size()).second) {
      throw std::runtime_error("two tasks have the label '" + label + "'");
    }
    if (task.cpu > 255 || task.nic > 255) {
      throw std::runtime_error("cpu and nic must be at most 255");
    }
    ranks_.back().push_back(task);
  }

  static std::int64_t number(const std::ssub_match& match) { return match.matched ? std::stoll(match.str()) : 0; }

  std::size_t rank_count_ = 0;
  bool in_rank_ = false;
  std::vector<GoalRank> ranks_;
  std::map<std::string, std::size_t> labels_;
};

/// Meaning of a rank's text, independent of labels, tags and CPUs: the k-th calc, send and recv, and the dependencies
/// that no others imply.
struct GoalMeaning {
  using Name = std::pair<GoalTask::Kind, std::size_t>;
  std::map<Name, std::pair<std::int64_t, std::int64_t>> tasks;  // amount, peer
  std::set<std::pair<Name, Name>> after;
  friend bool operator==(const GoalMeaning&, const GoalMeaning&) = default;
};

inline GoalMeaning meaning_of(const GoalRank& rank) {
  GoalMeaning meaning;
  std::map<GoalTask::Kind, std::size_t> counts;
  std::vector<GoalMeaning::Name> names;
  std::vector<std::set<std::size_t>> ancestors_of_tasks;  // all tasks that end before a task starts
  for (const GoalTask& task : rank) {
    names.emplace_back(task.kind, counts[task.kind]++);
    meaning.tasks[names.back()] = {task.amount, task.peer};
    std::set<std::size_t> implied;
    for (const std::size_t earlier : task.after) {
      implied.insert(ancestors_of_tasks[earlier].begin(), ancestors_of_tasks[earlier].end());
    }
    std::set<std::size_t> ancestors = implied;
    for (const std::size_t earlier : task.after) {
      ancestors.insert(earlier);
      if (!implied.contains(earlier)) {
        meaning.after.emplace(names.back(), names[earlier]);
      }
    }
    ancestors_of_tasks.push_back(std::move(ancestors));
  }
  return meaning;
}

/// Pairs sends and recvs: (rank, index of the send) to (rank, index of the recv). Throws unless every message has both
/// ends, of one size, and tags are unambiguous.
inline std::map<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>> messages_of(
    const std::vector<GoalRank>& ranks) {
  using Channel = std::tuple<std::size_t, std::size_t, std::int64_t>;  // from, to, tag
  std::map<Channel, std::pair<std::size_t, std::int64_t>> sends;
  std::map<std::pair<std::size_t, std::size_t>, std::pair<std::size_t, std::size_t>> pairs;
  const auto for_each_task = [&](GoalTask::Kind kind, const auto& visit) {
    for (std::size_t rank = 0; rank < ranks.size(); ++rank) {
      for (std::size_t index = 0; index < ranks[rank].size(); ++index) {
        if (ranks[rank][index].kind == kind) {
          visit(rank, index, ranks[rank][index]);
        }
      }
    }
  };
  for_each_task(GoalTask::Kind::send, [&](std::size_t rank, std::size_t index, const GoalTask& task) {
    if (!sends.emplace(Channel{rank, task.peer, task.tag}, std::pair{index, task.amount}).second) {
      throw std::runtime_error("two sends share a tag");
    }
  });
  for_each_task(GoalTask::Kind::recv, [&](std::size_t rank, std::size_t index, const GoalTask& task) {
    const auto send = sends.find(Channel{static_cast<std::size_t>(task.peer), rank, task.tag});
    if (send == sends.end() || send->second.second != task.amount) {
      throw std::runtime_error("a recv has no matching send of its size");
    }
    pairs[{static_cast<std::size_t>(task.peer), send->second.first}] = {rank, index};
    sends.erase(send);
  });
  if (!sends.empty()) {
    throw std::runtime_error("a send has no recv");
  }
  return pairs;
}

}  // namespace commfuse::test
