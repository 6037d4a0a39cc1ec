// SPDX-License-Identifier: Apache-2.0
// Reads the time of every step on every rank of a job from files, and names the rank that delays the others.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "model/expect/rank_steps.h"

namespace commfuse::validate {

struct Job {
  std::string name;  ///< The file; for several traces, the folder of the first, or the first if its path has no folder.
  std::vector<RankStep> steps;
  std::map<std::int64_t, std::string> hosts;  ///< By rank, where a file names them.
};

struct JobFiles {
  std::vector<Job> jobs;
  std::vector<std::string> others;       ///< Files that belong to no job, in the given order.
  std::vector<std::string> unread;       ///< Sentences: files of jobs that could not be read, and why.
  std::vector<std::string> passed_over;  ///< Sentences about data that was read but is not judged.
};

/// Accepts step times (model/formats/step_times.h), Kineto traces, and records of commfuse-validate links. All traces
/// together are one job, with a file for each rank; a trace that states no rank gets the index of its file, or the
/// lowest free rank if another trace has that one.
JobFiles read_jobs(const std::vector<std::string>& files);

struct JobVerdict {
  Job job;
  StepJudgement judgement;
  std::string why;   ///< A sentence: the decision and its basis.
  std::string next;  ///< The command to run next; empty if there is nothing to do.
};

/// Requires 0 < false_alarms < 0.5.
JobVerdict verdict_on(const Job& job, double false_alarms);

/// Returns "rank 5 on node-3", or "rank 5" if no file names the host.
std::string rank_in_words(const Job& job, std::int64_t rank);

}  // namespace commfuse::validate
