// SPDX-License-Identifier: Apache-2.0
// commfuse-validate probe: makes small measurements of a GPU, stage by stage, and writes them as CSV.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "validate/commands/commands.h"
#include "validate/commands/gpu.h"
#include "validate/commands/output_files.h"
#include "validate/cuda/probes.h"

namespace commfuse::validate {

namespace {

constexpr std::size_t max_output_bytes = std::size_t{1} << 26;

struct ProbeRequest {
  GpuArguments gpu;
  std::string stages = "all";
  std::string out;
  bool quick = false;
};

std::vector<const ProbeStage*> stages_of(const std::string& list) {
  std::vector<const ProbeStage*> chosen;
  std::vector<std::string_view> names;
  for (const ProbeStage& stage : probe_stages()) {
    names.push_back(stage.name);
    if (list == "all") {
      chosen.push_back(&stage);
    }
  }
  if (list == "all") {
    return chosen;
  }
  for (const std::string_view word : split_list(list)) {
    if (word == "all") {
      throw ConfigError("--stage: 'all' cannot be combined with other values; write --stage all");
    }
    const auto stage = std::ranges::find(probe_stages(), word, &ProbeStage::name);
    if (stage == probe_stages().end()) {
      throw ConfigError(
          fmt::format("--stage: unknown stage {}; {}", in_quotes(word), remedy_for(word, names, "stages")));
    }
    if (std::ranges::find(chosen, &*stage) == chosen.end()) {
      chosen.push_back(&*stage);
    }
  }
  return chosen;
}

/// Returns the output of an earlier call, which this one continues; only the header if there is no file. Throws
/// ConfigError for any other file.
std::string earlier_output(const std::string& path) {
  if (path.empty() || !std::filesystem::exists(path)) {
    return probe_header();
  }
  if (!std::filesystem::is_regular_file(path)) {
    throw ConfigError(fmt::format("{}: not a regular file; give another --out", path));
  }
  std::string text = read_file(path, max_output_bytes);
  if (!text.starts_with(probe_header()) || text.size() > max_output_bytes) {
    throw ConfigError(fmt::format("{}:1:1: not written by commfuse-validate probe; give another --out", path));
  }
  return without_unfinished(text);
}

/// Writes the rows of a stage that has not ended yet: at most twice per second, because rows of a GPU arrive faster.
class UnfinishedFile {
 public:
  /// Without a path nothing is written. `finished`: the text of the earlier stages.
  UnfinishedFile(std::string path, std::string_view stage, const std::string& finished)
      : path_(std::move(path)), stage_(stage), text_(finished + unfinished_row(stage)) {}

  void add(const ProbeRow& row) {
    text_ += to_csv(stage_, {&row, 1});
    is_written_ = false;
    if (const auto now = std::chrono::steady_clock::now(); now >= next_) {
      write();
      next_ = now + std::chrono::milliseconds(500);
    }
  }
  void write() {
    if (!path_.empty() && !is_written_) {
      reports::atomic_write(path_, text_);
      is_written_ = true;
    }
  }

 private:
  std::string path_;
  std::string_view stage_;
  std::string text_;
  bool is_written_ = true;
  std::chrono::steady_clock::time_point next_;
};

/// Runs a stage and returns its rows. If it throws, the rows that it had measured are in the file.
std::vector<ProbeRow> rows_of_stage(const ProbeStage& stage, Device& device, ProbeOptions options,
                                    UnfinishedFile unfinished) {
  options.on_row = [&unfinished](const ProbeRow& row) { unfinished.add(row); };
  try {
    return stage.run(device, options);
  } catch (...) {
    unfinished.write();
    throw;
  }
}

int run(const ProbeRequest& request) {
  const std::vector<const ProbeStage*> stages = stages_of(request.stages);
  std::string text = earlier_output(request.out);
  if (!request.gpu.dry_run) {
    require_outputs({{"--out", request.out}});
  }
  Gpu gpu(request.gpu);
  fmt::print(stderr, "{}\n", gpu.in_words());
  ProbeOptions options{.quick = request.quick};
  if (!gpu.is_dry() && gpu.module().has_nccl()) {
    options.connect = [&gpu](const NetworkOptions& network) {
      return gpu.module().connect(gpu.driver(), gpu.module().make_key(), 0, 1, network);
    };
  }
  for (const ProbeStage* stage : stages) {
    if (text.find(fmt::format("\n{},", stage->name)) != std::string::npos) {
      fmt::print(stderr, "{}: already in {}\n", stage->name, request.out);
      continue;
    }
    fmt::print(stderr, "{}: {}\n", stage->name, stage->what);
    const std::string out = gpu.is_dry() ? "" : request.out;
    text += to_csv(stage->name, rows_of_stage(*stage, gpu.device(), options, {out, stage->name, text}));
    if (!out.empty()) {
      reports::atomic_write(out, text);
    }
  }
  if (gpu.is_dry()) {
    fmt::print("{}\n", gpu.dry_run_in_words());
  } else if (request.out.empty()) {
    fmt::print("{}", text);
  }
  return exit_code::done;
}

}  // namespace

void add_probe(CLI::App& app, int& status) {
  add_verb(
      app, "probe", "Measure launches, events, copies, GEMMs and attention on a GPU", [&status](CLI::App& command) {
        const auto request = std::make_shared<ProbeRequest>();
        add_device_flag(command, request->gpu, "Options");
        offers_words(command
                         .add_option("--stage", request->stages,
                                     "Stages to measure: all, or some of launch, products, attention, fused, links, "
                                     "interference, engines, partitions, nccl, pinned, comma-separated")
                         ->capture_default_str()
                         ->type_name("WORDS"),
                     {"all", "launch", "products", "attention", "fused", "links", "interference", "engines",
                      "partitions", "nccl", "pinned"});
        command.add_flag("--quick", request->quick, "Measure fewer sizes");
        command
            .add_option("--out", request->out,
                        "CSV file to write, row by row; stages that are complete in it are skipped")
            ->type_name("FILE");
        command.footer(
            "Times are the median, p10 and p90 of 15 samples after a warm-up. Device events\n"
            "behind a gate measure them; the host's clock measures host_launch, group_enqueue\n"
            "and init (one sample).\n"
            "launch: a launch, a gap, an event, a graph node, the clock's resolution.\n"
            "products: GEMMs of slices of layers, on all SMs and on fewer.\n"
            "attention: slices of the queries, causal and full.\n"
            "fused: attention by cuDNN if it is found, and how much its results differ.\n"
            "links: copies by size and CTAs, at a given pace, through host memory.\n"
            "interference: a GEMM and a copy, alone and at the same time.\n"
            "engines: copies by a kernel, the runtime, the host; whether an engine copied.\n"
            "partitions: a GEMM on SMs that green contexts reserve.\n"
            "nccl: whether NCCL starts and can be traced and captured; the cost of a group on\n"
            "the host, and of a message to itself on the device.\n"
            "pinned: a GEMM run by the kernel of its shards: whether bits are equal; time.\n"
            "\n"
            "Examples:\n"
            "  commfuse-validate probe --out probes.csv\n"
            "  commfuse-validate probe --stage launch,interference --quick\n"
            "\n"
            "Exit codes: 0 done; 69 no GPU is available; 2 the input is wrong; 1 failed.");
        command.callback([request, &status] { status = run(*request); });
      });
}

}  // namespace commfuse::validate
