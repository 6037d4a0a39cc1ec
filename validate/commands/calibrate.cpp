// SPDX-License-Identifier: Apache-2.0
// commfuse-validate calibrate: writes a hardware file of this machine from micro-benchmarks that it runs now.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "reports/atomic_file.h"
#include "sim/calibrate/calibrate.h"
#include "sim/commands/machine_file.h"
#include "validate/commands/commands.h"
#include "validate/commands/micro_measurement.h"
#include "validate/commands/output_files.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

namespace fs = std::filesystem;

struct CalibrateRequest {
  MicroArguments arguments;
  std::string base = "cpu";
  std::string out;
  std::string record;
};

int run(const CalibrateRequest& request, Launch& launch) {
  const fs::path out(request.out);
  const std::string name = out.stem().string();
  sim::require_new_machine(name, out);
  reports::require_no_input(request.record, std::array{request.base});
  require_outputs({{"--out", request.out}, {"--record", request.record}});
  if (crew_links_of(request.arguments.executor) || request.arguments.executor == "mpi") {
    throw ConfigError(fmt::format(
        "--executor {}: calibrate runs in one process; choose cpu or cuda-virtual, or give a record of bench --out to "
        "commfuse-sim calibrate",
        request.arguments.executor));
  }
  const Machine base = load_machine(request.base);
  const MicroWhere where = where_of(request.arguments, launch);
  if (where.crew != nullptr) {
    throw ConfigError(
        "calibrate does not run under mpirun; remove mpirun, or give a record of bench --out to commfuse-sim "
        "calibrate");
  }
  if (!where.gpu && base.executor != "cpu") {
    throw ConfigError(fmt::format(
        "--base: {} is not a machine of --executor cpu; remove --base, or name a file that extends cpu", request.base));
  }
  if (where.gpu && !base.executor.empty()) {
    throw ConfigError(
        fmt::format("--base: {} has no GPU; name the hardware file of this GPU, as in --base h200-sxm", request.base));
  }
  const MicroRecord measured = micro_measured(where, request.arguments);
  const RunRecord& record = measured.record;
  if (where.is_dry()) {
    fmt::print("{}\n", where.gpu->dry_run_in_words());
    return measured.print_failures();
  }
  // The fit may fail, so the record is written first.
  const std::exception_ptr unwritten = exception_of_writing(request.record, [&] { return to_json(record); });
  const calibrate::Observations observations = calibrate::observations_of(
      record, where.gpu && where.gpu->is_software() ? "micro-benchmarks on a software GPU" : "micro-benchmarks");
  const calibrate::Calibration calibration =
      calibrate::calibrate(base, request.base, name, observations, "commfuse-validate calibrate");
  const std::exception_ptr no_machine = exception_of([&] { sim::write_machine(out, request.base, calibration.yaml); });
  fmt::print("{}", sim::calibration_in_words(observations, calibration, out));
  fmt::print("noise floor: {}\n", in_words(record.noise));
  const int code = measured.print_failures();
  rethrow(unwritten);
  rethrow(no_machine);
  return code;
}

}  // namespace

void add_calibrate(CLI::App& app, Launch& launch, int& status) {
  add_verb(
      app, "calibrate", "Measure single ops here and fit a hardware file to them",
      [&launch, &status](CLI::App& command) {
        const auto request = std::make_shared<CalibrateRequest>();
        add_micro_flags(command, request->arguments);
        offers_names(usual(command.add_option("--base", request->base, "Hardware to start from")
                               ->capture_default_str()
                               ->type_name("NAME")),
                     Catalogue::hardware);
        usual(command.add_option("--out", request->out, "Hardware file to write; its name becomes the machine's name")
                  ->required()
                  ->type_name("FILE"));
        usual(command
                  .add_option("--record", request->record, "Write the measurements to this record, as bench --out does")
                  ->type_name("FILE"));
        command.footer(
            "Fits GEMMs, copies and adds, messages, and the gap between ops: single ops only,\n"
            "never the makespan of a schedule. A fifth of the sizes (n and k of GEMMs, bytes\n"
            "of messages) is held out, and the error of a fit is measured on the rows of\n"
            "those sizes.\n"
            "\n"
            "Examples:\n"
            "  commfuse-validate calibrate --out my-cpu.yaml\n"
            "  commfuse-validate calibrate --dtype fp32 --out my-cpu.yaml --record bench.json\n"
            "  commfuse-validate compare --hardware ./my-cpu.yaml\n"
            "  commfuse-validate calibrate --executor cuda-virtual --base h200-sxm \\\n"
            "    --out my-h200.yaml --record bench.json\n"
            "\n"
            "Exit codes: 0 done; 3 some ops could not be measured; 1 failed; 2 the input is\n"
            "wrong; 69 no GPU is available.");
        command.callback([request, &command, &launch, &status] {
          require_fitting_gpu_flags(command, request->arguments.executor);
          status = run(*request, launch);
        });
      });
}

}  // namespace commfuse::validate
