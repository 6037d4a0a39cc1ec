// SPDX-License-Identifier: Apache-2.0
// commfuse-sim calibrate: measurements of a machine become a hardware file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config_error.h"
#include "reports/atomic_file.h"
#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/observations.h"
#include "sim/calibrate/residual_plot.h"
#include "sim/commands/commands.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

struct CalibrateRequest {
  std::vector<std::string> files;
  std::string base;
  std::string name;
  std::string out;
  std::optional<std::string> machine;
};

void require_name(const std::string& name) {
  constexpr std::string_view allowed = "abcdefghijklmnopqrstuvwxyz0123456789.-";
  if (name.empty() || name.find_first_not_of(allowed) != std::string::npos) {
    throw ConfigError(fmt::format("'{}' is no name of a machine; write small letters, digits, '-' and '.'", name));
  }
}

std::string summary_of(const calibrate::FittedPart& part) {
  std::string text = fmt::format("{}, from {}\n", part.name, part.source);
  for (const auto& [words, quality] : {std::pair("fitted", part.fitted), std::pair("held out", part.held_back)}) {
    text += fmt::format("    {:<9} {:>6} rows, error {:5.1f} % median, {:5.1f} % p90, {:5.1f} % max\n", words,
                        quality.rows, 100.0 * quality.median, 100.0 * quality.p90, 100.0 * quality.max);
  }
  std::string undecided;
  for (const FittedParameter& parameter : part.parameters) {
    if (parameter.undecided) {
      undecided += (undecided.empty() ? "" : ", ") + parameter.name;
    }
  }
  if (!undecided.empty()) {
    text += fmt::format("    the rows leave open: {}\n", undecided);
  }
  return text + calibrate::residual_plot(part.residuals);
}

/// A file that is gone when its scope ends, whether it was renamed or not.
class Draft {
 public:
  explicit Draft(fs::path path) : path_(std::move(path)) {}
  Draft(const Draft&) = delete;
  Draft& operator=(const Draft&) = delete;
  ~Draft() {
    std::error_code error;
    fs::remove(path_, error);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

/// Whole or not at all, and only when it reads back: a fit may end where no hardware file may go.
void write_machine(const fs::path& path, const std::string& yaml) {
  const Draft draft(fs::absolute(path.string() + ".part"));
  reports::atomic_write(draft.path(), yaml);
  load_machine(draft.path().string());
  fs::rename(draft.path(), path);
}

int run_calibrate(const CalibrateRequest& request) {
  require_name(request.name);
  const fs::path out = request.out.empty() ? request.name + ".yaml" : request.out;
  if (fs::exists(out)) {
    throw ConfigError(fmt::format("{} is there already; choose another --out, or remove it", out.string()));
  }
  const Machine base = load_machine(request.base);
  if (base.nodes > 1) {
    throw ConfigError(fmt::format("{} has several nodes; name hardware of one", request.base));
  }
  const calibrate::Observations seen =
      calibrate::read_observations({request.files.begin(), request.files.end()}, request.machine);
  const calibrate::Calibration calibration = calibrate::calibrate(base, request.base, request.name, seen);
  write_machine(out, calibration.yaml);
  for (const calibrate::FittedPart& part : calibration.parts) {
    fmt::print("{}\n", summary_of(part));
  }
  for (const auto* sentences : {&seen.skipped, &calibration.skipped}) {
    for (const std::string& sentence : *sentences) {
      fmt::print("left out: {}\n", sentence);
    }
  }
  fmt::print("wrote {}\n", out.string());
  for (const std::string& fault : seen.faults) {
    fmt::print(stderr, "{}\n", fault);
  }
  return seen.faults.empty() ? exit_code::done : exit_code::failed_points;
}

}  // namespace

void add_calibrate(CLI::App& app, int& status) {
  CLI::App* command = app.add_subcommand("calibrate", "Fit a machine's parameters to its measurements");
  const auto request = std::make_shared<CalibrateRequest>();
  command->add_option("files", request->files, "Text or JSON of nccl-tests; CSV of products, attention, messages")
      ->required()
      ->type_name("FILE");
  command->add_option("--base", request->base, "Hardware to start from, as in h100-sxm")->required()->type_name("NAME");
  command->add_option("--name", request->name, "Of the new machine")->required()->type_name("NAME");
  command->add_option("--out", request->out, "The file to write; default: the name with .yaml")->type_name("FILE");
  command->add_option("--machine", request->machine, "Only rows of this machine, as the tables call it")
      ->type_name("TEXT");
  command->footer(
      "Writes a hardware file that extends the base: what was measured is fitted, with\n"
      "its error and where it is from, everything else stays. One group of rows in\n"
      "five is held out and tells how good the fit is. Faulty rows are named on\n"
      "stderr, and the exit code is 3. Of nccl-tests' output only sizes and times are\n"
      "kept, never its environment.\n\n"
      "Examples:\n"
      "  all_gather_perf -b 1K -e 1G -f 2 -g 8 > ag.txt\n"
      "  commfuse-sim calibrate --base h100-sxm --name my-h100 ag.txt rs.txt gemm.csv\n"
      "  commfuse-sim run --hardware ./my-h100.yaml");
  command->callback([request, &status] { status = run_calibrate(*request); });
}

}  // namespace commfuse::sim
