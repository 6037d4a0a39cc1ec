// SPDX-License-Identifier: Apache-2.0
// commfuse-sim calibrate: converts measurements of a machine to a hardware file.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "sim/calibrate/calibrate.h"
#include "sim/calibrate/observations.h"
#include "sim/commands/answer.h"
#include "sim/commands/commands.h"
#include "sim/commands/machine_file.h"

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

Answer run_calibrate(const CalibrateRequest& request) {
  const fs::path out = request.out.empty() ? request.name + ".yaml" : request.out;
  require_new_machine(request.name, out);
  const std::string base_name = meant_name(Catalogue::hardware, request.base);
  const Machine base = load_machine(base_name);
  const calibrate::Observations observations =
      calibrate::read_observations({request.files.begin(), request.files.end()}, request.machine, &base);
  const calibrate::Calibration calibration =
      calibrate::calibrate(base, from_anywhere(Catalogue::hardware, base_name), request.name, observations);
  const fs::path node =
      calibration.node_yaml.empty() ? fs::path() : out.parent_path() / (calibration.node_name + ".yaml");
  if (!node.empty()) {
    if (node == out) {
      throw ConfigError(fmt::format("--out: {} is the file of the cluster's nodes; choose another name", out.string()));
    }
    require_new_machine(calibration.node_name, node);
    write_machine(node, base.node_name, calibration.node_yaml);
  }
  try {
    write_machine(out, base_name, calibration.yaml);
  } catch (const ConfigError& error) {
    if (!node.empty()) {
      fs::remove(node);  // Otherwise the next attempt would fail, because the file exists.
    }
    if (observations.faults.empty()) {
      throw;
    }
    throw ConfigError(fmt::format("{}\n{}", error.what(), first_fault(observations)));
  }
  Answer answer = text_answer(calibration_in_words(observations, calibration, out) +
                              (node.empty() ? "" : fmt::format("wrote {}\n", node.string())));
  answer.code = observations.faults.empty() ? exit_code::done : exit_code::failed_points;
  for (const std::string& fault : observations.faults) {
    answer.notes += fault + "\n";
  }
  answer.files.push_back(out.string());
  if (!node.empty()) {
    answer.files.push_back(node.string());
  }
  return answer;
}

}  // namespace

void add_calibrate(CLI::App& app, Caller& caller) {
  add_verb(app, "calibrate", "Fit a machine's parameters to its measurements", [&caller](CLI::App& command) {
    const auto request = std::make_shared<CalibrateRequest>();
    command
        .add_option("files", request->files,
                    "CSV tables of GEMMs, attention, layers or messages; nccl-tests logs (text or JSON); profiles "
                    "(PyTorch profiler traces, also .gz, SQLite exports of Nsight Systems, Chakra traces); records of "
                    "commfuse-validate bench")
        ->required()
        ->type_name("FILE");
    offers_names(command.add_option("--base", request->base, "Hardware or cluster to start from, for example h100-sxm")
                     ->required()
                     ->type_name("NAME"),
                 Catalogue::hardware);
    command.add_option("--name", request->name, "Name of the new machine")->required()->type_name("NAME");
    command.add_option("--out", request->out, "File to write; default: the name with .yaml")->type_name("FILE");
    command.add_option("--machine", request->machine, "Machine whose rows to fit, by its name in the tables")
        ->type_name("TEXT");
    command.footer(
        "Writes a hardware file that extends the base: measured parameters are fitted and\n"
        "listed with their error and source; all others keep the base's values. With a\n"
        "cluster as --base, collectives over whole nodes are fitted too, and the result\n"
        "is a cluster. With many rows, a fifth of the sizes (n and k of GEMMs, attention\n"
        "layers, bytes of messages) is held out, and the error is measured on the rows of\n"
        "those sizes; with few rows, only a few parameters are fitted. Faulty rows are\n"
        "named on stderr, and the exit code is 3. Only sizes and times are read from the\n"
        "output of nccl-tests, never its environment. If a log does not name its program,\n"
        "name the file after the collective, as in all_gather.txt.\n"
        "\n"
        "Headers of CSV tables (docs/machines.md has the others):\n"
        "  GEMMs      hw,dtype,m,n,k,time_us\n"
        "  attention  hw,batch,seqlen,heads,kv_heads,head_dim,time_us\n"
        "  layers     hw,op,tp,m,n,k,median_us\n"
        "  messages   op,ngpus,bytes,time_us\n"
        "\n"
        "Examples:\n"
        "  all_gather_perf -b 1K -e 1G -f 2 -g 8 > all_gather.txt\n"
        "  commfuse-sim calibrate --base h100-sxm --name my-h100 all_gather.txt gemm.csv\n"
        "  commfuse-sim run --hardware ./my-h100.yaml");
    command.callback([request, &caller] { caller.take(run_calibrate(*request)); });
  });
}

}  // namespace commfuse::sim
