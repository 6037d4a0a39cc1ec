// SPDX-License-Identifier: Apache-2.0
#include "validate/verdict/jobs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "model/config_error.h"
#include "model/formats/step_times.h"
#include "model/record/run_record.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/traces/kineto_events.h"
#include "model/traces/rank_trace.h"

namespace commfuse::validate {

namespace {

constexpr std::size_t max_step_times_bytes = std::size_t{256} << 20U;

enum class JobFile : std::uint8_t { none, steps, trace, record };

/// Returns the beginning of a file; empty if it cannot be read, because the file's own reader has the better message.
std::string beginning_of(const std::string& file) {
  constexpr std::size_t head_bytes = std::size_t{1} << 13U;
  if (is_named_pipe(file)) {
    return "";
  }
  std::string head(head_bytes, '\0');
  std::ifstream stream(file, std::ios::binary);
  stream.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(0, stream.gcount())));
  return head;
}

JobFile kind_of(const std::string& file) {
  const std::string head = beginning_of(file);
  const std::size_t first = head.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) {
    return JobFile::none;
  }
  if (head.find(run_record_schema) != std::string::npos) {
    return JobFile::record;
  }
  if (is_step_times(head)) {
    return JobFile::steps;
  }
  const bool may_be_trace = head.starts_with("\x1f\x8b") || head[first] == '{' || head[first] == '[';
  return may_be_trace && is_kineto_trace(file) ? JobFile::trace : JobFile::none;
}

Job job_of_steps(const std::string& file, std::vector<std::string>& passed_over) {
  const std::string text = read_file(file, max_step_times_bytes);
  if (text.size() > max_step_times_bytes) {
    throw ConfigError(fmt::format("{}: is larger than {} MiB; give fewer steps", file, max_step_times_bytes >> 20U));
  }
  const JobSteps result = read_step_times(text, file);
  Job job{.name = with_escapes(file)};
  for (const StepTimes& times : result.steps) {
    job.steps.push_back({.rank = times.rank,
                         .step = times.step,
                         .time_us = times.time_us,
                         .compute_us = times.compute_us,
                         .communication_us = times.communication_us,
                         .send_us = times.send_us,
                         .idle_us = times.idle_us});
  }
  for (const auto& [rank, host] : result.hosts) {
    job.hosts[rank] = with_escapes(host);
  }
  passed_over.insert(passed_over.end(), result.notes.begin(), result.notes.end());
  return job;
}

double upper_median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// Times of a rank's GEMM, and of its largest transfers to all peers, by repetition.
struct MeasuredRank {
  std::vector<double> compute_us;
  std::vector<std::vector<double>> sends_us;  ///< By peer.
};

/// Returns nothing if the record is not a record of links, or if its links were emulated.
std::optional<Job> job_of_record(const std::string& file, std::vector<std::string>& passed_over) {
  const RunRecord record = load_run_record(file);
  std::int64_t largest = 0;
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    largest = std::max(largest, benchmark.op == "transfer" ? benchmark.bytes : 0);
  }
  std::map<std::int64_t, MeasuredRank> ranks;
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    std::vector<double> samples;
    for (const Duration sample : benchmark.samples) {
      samples.push_back(to_microseconds(sample));
    }
    if (benchmark.rank < 0 || samples.empty() || !benchmark.beside.empty()) {
      continue;
    }
    if (benchmark.op == "product") {
      ranks[benchmark.rank].compute_us = std::move(samples);
    } else if (benchmark.op == "transfer" && benchmark.bytes == largest) {
      ranks[benchmark.rank].sends_us.push_back(std::move(samples));
    }
  }
  Job job{.name = with_escapes(file)};
  for (const auto& [rank, measured] : ranks) {
    std::size_t steps = measured.compute_us.size();
    for (const auto& send : measured.sends_us) {
      steps = std::min(steps, send.size());
    }
    for (std::size_t step = 0; step < steps && !measured.sends_us.empty(); ++step) {
      std::vector<double> sends;
      for (const auto& send : measured.sends_us) {
        sends.push_back(send[step]);
      }
      const double compute = measured.compute_us[step];
      const double send = upper_median(std::move(sends));
      job.steps.push_back({.rank = rank,
                           .step = static_cast<std::int64_t>(step),
                           .time_us = compute + send,
                           .compute_us = compute,
                           .send_us = send});
    }
    if (static_cast<std::size_t>(rank) < record.environment.hosts.size()) {
      job.hosts[rank] = with_escapes(record.environment.hosts[static_cast<std::size_t>(rank)]);
    }
  }
  const bool is_of_links = !job.steps.empty() && record.links != "emulated";
  const bool has_collectives = std::any_of(record.micro_benchmarks.begin(), record.micro_benchmarks.end(),
                                           [](const MicroBenchmark& benchmark) { return benchmark.rank < 0; });
  if (is_of_links && has_collectives) {
    passed_over.push_back(fmt::format(
        "{}: the collectives, because a record of links compares ranks; measure them with bench", job.name));
  }
  return is_of_links ? std::optional(std::move(job)) : std::nullopt;
}

/// Combines the traces of several ranks into one job. A collective's transfer time is its duration on the rank that
/// came last, because the other ranks waited inside theirs.
class TracedJob {
 public:
  void add(std::int64_t rank, RankTrace trace) { traces_[rank] = std::move(trace); }
  [[nodiscard]] bool has(std::int64_t rank) const { return traces_.contains(rank); }
  [[nodiscard]] std::size_t size() const { return traces_.size(); }

  [[nodiscard]] std::vector<RankStep> steps() const {
    std::map<Key, Shortest> shortest;
    for_each_call([&](std::int64_t /*rank*/, const TracedCall& call, const Key& key) {
      const auto [entry, is_new] = shortest.try_emplace(key, Shortest{call.duration_us, 0});
      entry->second.us = std::min(entry->second.us, call.duration_us);
      ++entry->second.ranks;
    });
    std::map<std::pair<std::int64_t, std::int64_t>, double> sends;
    for_each_call([&](std::int64_t rank, const TracedCall& call, const Key& key) {
      sends[{rank, call.step}] += shortest.at(key).us;
    });
    std::vector<RankStep> steps;
    for (const auto& [rank, trace] : traces_) {
      for (const TracedStep& traced : trace.steps) {
        RankStep step{.rank = rank,
                      .step = traced.step,
                      .time_us = traced.time_us,
                      .compute_us = traced.compute_us,
                      .communication_us = traced.communication_us,
                      .idle_us = traced.idle_us};
        if (const auto send = sends.find({rank, traced.step}); send != sends.end()) {
          step.send_us = send->second;
        }
        steps.push_back(step);
      }
    }
    return steps;
  }

 private:
  using Key = std::tuple<std::string, std::int64_t, std::size_t>;  // group, step, number within the step
  struct Shortest {
    double us = 0.0;
    std::size_t ranks = 0;
  };

  template <class Visit>
  void for_each_call(const Visit& visit) const {
    for (const auto& [rank, trace] : traces_) {
      std::map<std::pair<std::string, std::int64_t>, std::size_t> counts;
      for (const TracedCall& call : trace.calls) {
        visit(rank, call, Key{call.group, call.step, counts[{call.group, call.step}]++});
      }
    }
  }

  std::map<std::int64_t, RankTrace> traces_;
};

Job job_of_traces(const std::vector<std::string>& files, JobFiles& result) {
  TracedJob traced;
  std::vector<std::string> used_files;
  std::map<std::size_t, RankTrace> unranked;  // by index of the file
  for (std::size_t i = 0; i < files.size(); ++i) {
    try {
      RankTrace trace = read_rank_trace(files[i]);
      if (trace.rank && traced.has(*trace.rank)) {
        throw ConfigError(fmt::format("{}: two traces are of rank {}; give one trace per rank", files[i], *trace.rank));
      }
      used_files.push_back(files[i]);
      if (trace.rank) {
        traced.add(*trace.rank, std::move(trace));
      } else {
        unranked.emplace(i, std::move(trace));
      }
    } catch (const ConfigError& error) {
      result.unread.emplace_back(error.what());
    }
  }
  // A trace without a rank takes the index of its file, or the lowest free rank if another trace states that one.
  for (auto& [index, trace] : unranked) {
    auto rank = static_cast<std::int64_t>(index);
    for (std::int64_t lowest = 0; traced.has(rank); ++lowest) {
      rank = lowest;
    }
    result.passed_over.push_back(fmt::format("{}: states no rank; used as rank {}", with_escapes(files[index]), rank));
    traced.add(rank, std::move(trace));
  }
  if (used_files.empty()) {
    return {};
  }
  const std::filesystem::path folder = std::filesystem::path(used_files.front()).parent_path();
  const std::string name = used_files.size() == 1 || folder.empty() ? used_files.front() : folder.string();
  return {.name = with_escapes(name), .steps = traced.steps(), .hosts = {}};
}

std::string degree_in_words(const SuspectedRank& suspect) {
  switch (suspect.fault) {
    case RankFault::jitter: return fmt::format("late in {:.0f}% of its steps", 100.0 * suspect.degree);
    case RankFault::slow_host:
    case RankFault::late: return fmt::format("{:.0f}% of the step", 100.0 * suspect.degree);
    default: return fmt::format("{:.2f} times as long as the others", suspect.degree);
  }
}

}  // namespace

JobFiles read_jobs(const std::vector<std::string>& files) {
  JobFiles result;
  std::vector<std::string> traces;
  for (const std::string& file : files) {
    try {
      const JobFile kind = kind_of(file);
      std::optional<Job> job;
      if (kind == JobFile::steps) {
        job = job_of_steps(file, result.passed_over);
      } else if (kind == JobFile::record) {
        job = job_of_record(file, result.passed_over);
      }
      if (job) {
        result.jobs.push_back(std::move(*job));
      } else if (kind == JobFile::trace) {
        traces.push_back(file);
      } else {
        result.others.push_back(file);
      }
    } catch (const ConfigError& error) {
      result.unread.emplace_back(error.what());
    }
  }
  if (Job job = job_of_traces(traces, result); !job.steps.empty()) {
    result.jobs.push_back(std::move(job));
  }
  return result;
}

std::string rank_in_words(const Job& job, std::int64_t rank) {
  const auto host = job.hosts.find(rank);
  return host == job.hosts.end() ? fmt::format("rank {}", rank) : fmt::format("rank {} on {}", rank, host->second);
}

JobVerdict verdict_on(const Job& job, double false_alarms) {
  JobVerdict verdict{.job = job, .judgement = judge_steps(job.steps, false_alarms)};
  const StepJudgement& judgement = verdict.judgement;
  if (judgement.health == Health::healthy) {
    verdict.why = "no rank differs from the others";
  } else if (judgement.health == Health::undecided) {
    verdict.why = "not enough to decide: three ranks and three steps are needed";
  } else {
    for (const SuspectedRank& suspect : judgement.suspects) {
      verdict.why += fmt::format("{}{} {} ({})", verdict.why.empty() ? "" : "; ", rank_in_words(job, suspect.rank),
                                 text_of(suspect.fault).summary, degree_in_words(suspect));
    }
    verdict.next = text_of(judgement.suspects.front().fault).next;
  }
  return verdict;
}

}  // namespace commfuse::validate
