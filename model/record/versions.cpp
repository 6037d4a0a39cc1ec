// SPDX-License-Identifier: Apache-2.0
#include "model/record/versions.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "model/build_info.h"
#include "model/record/model_version.h"
#include "model/wrapped.h"

namespace commfuse {

namespace {

constexpr auto written = std::to_array<std::string_view>({
    "commfuse.capacity/1",
    "commfuse.check/1",
    "commfuse.cluster/1",
    "commfuse.compare/1",
    "commfuse.doctor/1",
    "commfuse.engine_agreement/1",
    "commfuse.expectation/1",
    "commfuse.expectation_kernel/1",
    "commfuse.expectation_run/1",
    "commfuse.faults/1",
    "commfuse.framework/1",
    "commfuse.hardware/1",
    "commfuse.implementation/1",
    "commfuse.jitter/1",
    "commfuse.lab/1",
    "commfuse.lab_result/1",
    "commfuse.map/1",
    "commfuse.model/1",
    "commfuse.mutant/1",
    "commfuse.mutations/1",
    "commfuse.plan/1",
    "commfuse.record/1",
    "commfuse.result/2",
    "commfuse.run/1",
    "commfuse.schedule/1",
    "commfuse.score/1",
    "commfuse.sweep/1",
    "commfuse.tune/1",
    "commfuse.verdict/1",
    "commfuse.verdict_score/1",
    "commfuse.version/1",
    "commfuse.why/1",
});
constexpr std::array<std::string_view, 2> read{"commfuse.result/1", "commfuse.step/1"};

/// Returns the name without the prefix that all schemas have: "sweep/1".
std::string short_name(std::string_view schema) { return std::string(schema.substr(schema.find('.') + 1)); }

}  // namespace

std::span<const std::string_view> written_schemas() { return written; }
std::span<const std::string_view> read_schemas() { return read; }

std::string versions_as_text(std::string_view program) {
  const BuildInfo& info = build_info();
  std::string text =
      fmt::format("{} {} ({}), model version {}\n", program, info.version, info.git_revision, model_version);
  for (const auto& [name, value] :
       {std::pair{"compiler", info.compiler}, std::pair{"build", info.build_type}, std::pair{"CUDA", info.cuda},
        std::pair{"NCCL", info.nccl}, std::pair{"MPI", info.mpi}}) {
    text += fmt::format("{:<10} {}\n", name, value);
  }
  std::vector<std::string> names;
  std::transform(written.begin(), written.end(), std::back_inserter(names), short_name);
  const std::string indent(11, ' ');
  text += wrapped(fmt::format("{}", fmt::join(names, " ")), fmt::format("{:<11}", "schemas"), indent);
  return text;
}

std::string versions_as_json(std::string_view program) {
  const BuildInfo& info = build_info();
  const nlohmann::ordered_json json{{"schema", "commfuse.version/1"},
                                    {"program", program},
                                    {"version", info.version},
                                    {"git_revision", info.git_revision},
                                    {"model_version", model_version},
                                    {"schemas", written},
                                    {"reads", read},
                                    {"compiler", info.compiler},
                                    {"build", info.build_type},
                                    {"cuda", info.cuda},
                                    {"nccl", info.nccl},
                                    {"mpi", info.mpi}};
  return json.dump(2) + "\n";
}

}  // namespace commfuse
