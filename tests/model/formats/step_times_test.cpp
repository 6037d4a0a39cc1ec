// SPDX-License-Identifier: Apache-2.0
#include "model/formats/step_times.h"

#include <gtest/gtest.h>

#include "tests/refusal.h"

namespace commfuse {
namespace {

JobSteps read_steps(const std::string& text) { return read_step_times(text, "s.csv"); }

std::string steps_refusal(const std::string& text) {
  return test::refusal_of([&] { read_steps(text); });
}

TEST(StepTimesFile, CsvHasUnitsAndHosts) {
  const JobSteps job = read_steps(
      "# a comment\nrank,step,time_ms,compute_us,communication_s,send_us,idle_us,host,loss\n"
      "0,7,412.5,300,0.1,5,0,node-1,2.5\n\n1, 7, 412.5, 300, 0.1, 5, 1, \"node-2\", 2.5\n");
  ASSERT_EQ(job.steps.size(), 2U);
  EXPECT_EQ(job.steps[1].rank, 1);
  EXPECT_EQ(job.steps[1].step, 7);
  EXPECT_DOUBLE_EQ(job.steps[1].time_us, 412500.0);
  EXPECT_DOUBLE_EQ(job.steps[1].compute_us.value(), 300.0);
  EXPECT_DOUBLE_EQ(job.steps[1].communication_us.value(), 1e5);
  EXPECT_DOUBLE_EQ(job.steps[1].send_us.value(), 5.0);
  EXPECT_DOUBLE_EQ(job.steps[1].idle_us.value(), 1.0);
  EXPECT_EQ(job.hosts.at(0), "node-1");
  EXPECT_EQ(job.hosts.at(1), "node-2");
  EXPECT_EQ(job.notes, std::vector<std::string>{"s.csv: column 'loss' is not used"});
}

TEST(StepTimesFile, JsonIsAListOrOneObjectPerLine) {
  for (const std::string text : {R"([{"rank": 0, "step": 1, "time_s": 0.5}, {"rank": 1, "step": 1, "time_s": 0.25}])",
                                 "\n [\n{\"rank\": 0, \"step\": 1, \"time_s\": 0.5},\n"
                                 "{\"rank\": 1, \"step\": 1, \"time_s\": 0.25}]\n",
                                 "{\"rank\": 0, \"step\": 1, \"time_s\": 0.5}\n"
                                 "{\"rank\": 1, \"step\": 1, \"time_s\": 0.25}\n"}) {
    EXPECT_TRUE(is_step_times(text));
    const JobSteps job = read_steps(text);
    ASSERT_EQ(job.steps.size(), 2U) << text;
    EXPECT_DOUBLE_EQ(job.steps[1].time_us, 250000.0);
    EXPECT_FALSE(job.steps[1].compute_us.has_value());
    EXPECT_TRUE(job.hosts.empty());
  }
}

TEST(StepTimesFile, OtherFilesAreNotRecognized) {
  for (const std::string text : {"", "rank,time_us\n", "#  Rank  0 Pid 1\n 1024 256 float\n", "{\"traceEvents\": []}",
                                 "rank,step,time\n", "[", "{\"rank"}) {
    EXPECT_FALSE(is_step_times(text)) << text;
  }
  EXPECT_EQ(steps_refusal("a,b\n1,2\n"),
            "s.csv: has no columns rank, step and time_us, time_ms or time_s; add a header with them");
}

TEST(StepTimesFile, MistakesAreNamedWithTheirPlace) {
  const std::string header = "rank,step,time_us,compute_us\n";
  EXPECT_EQ(steps_refusal(header), "s.csv: has a header but no steps; give the whole file");
  EXPECT_EQ(steps_refusal(header + "0,0,5\n"), "s.csv:2: has 3 cells, but the header has 4; give the whole file");
  EXPECT_EQ(steps_refusal(header + "-1,0,5,1\n"), "s.csv:2: rank: '-1' is not a whole number from 0 to 1099511627776");
  EXPECT_EQ(steps_refusal(header + "0,0,0,1\n"), "s.csv:2: time_us: '0' is not a time; write a number of more than 0");
  EXPECT_EQ(steps_refusal(header + "0,0,5,\n"), "s.csv:2: compute_us: '' is not a time; write a number of 0 or more");
  EXPECT_EQ(steps_refusal(header + "0,0,5,nan\n"),
            "s.csv:2: compute_us: 'nan' is not a time; write a number of 0 or more");
  EXPECT_EQ(steps_refusal(header + "0,3,5,1\n0,3,5,1\n"),
            "s.csv:3: rank 0 appears twice in step 3; give each rank once per step");
  EXPECT_EQ(steps_refusal(R"([{"rank": 0, "step": 1, "time_s": 0.5}, {"rank": 1, "step": 1}])"),
            "s.csv: [1]: has no 'time_s', which the first object has; give the whole file");
  EXPECT_EQ(steps_refusal(R"([{"rank": 0, "step": 1, "time_s": 0.5}, 7])"),
            "s.csv: [1]: is not an object; write rank, step and time_us");
  EXPECT_EQ(steps_refusal(R"([{"rank": 0, "step": 1, "time_s": "x"}])"),
            "s.csv: [0].time_s: 'x' is not a time; write a number of more than 0");
  EXPECT_EQ(steps_refusal(R"([{"rank": 0, "step": 1, "time_s": 1})"),
            "s.csv: is neither a JSON list of objects nor one JSON object per line; give the whole file");
  EXPECT_EQ(steps_refusal(header + "0\n"), "s.csv:2: has 1 cell, but the header has 4; give the whole file");
}

TEST(StepTimesFile, ATimeThatIsTooLongMayHaveAnotherUnit) {
  EXPECT_EQ(steps_refusal("rank,step,time_s\n0,0,1700000000\n"),
            "s.csv:2: time_s: '1700000000' is longer than 100000 s; correct the time, or the unit in its name");
  EXPECT_DOUBLE_EQ(read_steps("rank,step,time_s\n0,0,100000\n").steps.front().time_us, 1e11);
}

TEST(StepTimesFile, RefusesTwoColumnsWithTheSameMeaning) {
  EXPECT_EQ(steps_refusal("rank,step,time_us,time_ms\n0,0,5,7\n"),
            "s.csv: columns 'time_us' and 'time_ms' have the same meaning; keep one of them");
  EXPECT_EQ(steps_refusal(R"([{"rank": 0, "step": 1, "time_us": 5, "time_ms": 7}])"),
            "s.csv: columns 'time_ms' and 'time_us' have the same meaning; keep one of them");
  EXPECT_EQ(steps_refusal(R"([{"rank": 0, "step": 1, "time_us": 5, "time_us": 7}])"),
            "s.csv: an object has the key 'time_us' twice; keep one of them");
  EXPECT_EQ(steps_refusal(R"({"rank": 0, "step": 1, "time_us": 5, "step": 2})"),
            "s.csv: line 1: an object has the key 'step' twice; keep one of them");
}

TEST(StepTimesFile, OnlyKeysOfTheFirstObjectAreItsColumns) {
  EXPECT_FALSE(is_step_times(R"({"rank": 0, "step": 1, "metric": "time_ms", "value": 5})"));
  EXPECT_FALSE(is_step_times(R"({"rank": 0, "step": 1, "inner": {"time_ms": 5}})"));
  const JobSteps job = read_steps(R"({"run": {"name": "a\"}", "ids": [1]}, "rank": 3, "step": 1, "time_ms": 5})");
  ASSERT_EQ(job.steps.size(), 1U);
  EXPECT_EQ(job.steps[0].rank, 3);
  EXPECT_EQ(job.notes, std::vector<std::string>{"s.csv: column 'run' is not used"});
}

TEST(StepTimesFile, NotesValuesThatTheFirstObjectLacks) {
  const std::string first = R"({"rank": 0, "step": 1, "time_s": 1}, {"rank": 1, "step": 1, "time_s": 1, "host": "b")";
  const JobSteps job = read_steps("[" + first + R"(}, {"rank": 2, "step": 1, "time_s": 1, "host": "c", "loss": 2}])");
  EXPECT_EQ(job.steps.size(), 3U);
  EXPECT_TRUE(job.hosts.empty());
  EXPECT_EQ(job.notes,
            std::vector<std::string>{"s.csv: [1]: key 'host' is not used, because the first object lacks it"});
}

TEST(StepTimesFile, AHostThatIsNullIsUnknown) {
  const JobSteps job = read_steps(
      R"([{"rank": 0, "step": 1, "time_s": 1, "host": null}, {"rank": 1, "step": 1, "time_s": 1, "host": "b"}])");
  EXPECT_EQ(job.hosts, (std::map<std::int64_t, std::string>{{1, "b"}}));
}

}  // namespace
}  // namespace commfuse
