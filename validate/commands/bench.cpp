// SPDX-License-Identifier: Apache-2.0
// commfuse-validate bench: measures single ops on this machine.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <exception>
#include <memory>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "sim/commands/setting_flags.h"
#include "validate/bench/bench.h"
#include "validate/commands/commands.h"
#include "validate/commands/micro_measurement.h"
#include "validate/commands/output_files.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

struct BenchRequest {
  MicroArguments arguments;
  std::string format = "table";
  std::string out;
};

int run(const BenchRequest& request, Launch& launch) {
  sim::require_word("--output", request.format, std::array<std::string_view, 2>{"table", "json"}, "format");
  const MicroWhere where = where_of(request.arguments, launch);
  if (!where.takes_part()) {
    return exit_code::done;
  }
  if (where.leads() && !where.is_dry()) {
    require_outputs({{"--out", request.out}});
  }
  const MicroRecord measured = micro_measured(where, request.arguments);
  const RunRecord& record = measured.record;
  if (!where.leads()) {
    return exit_code::done;
  }
  if (where.is_dry()) {
    fmt::print("{}\n", where.gpu->dry_run_in_words());
    return measured.print_failures();
  }
  const std::exception_ptr unwritten = exception_of_writing(request.out, [&] { return to_json(record); });
  if (request.format == "json") {
    fmt::print("{}", to_json(record));
  } else {
    fmt::print("{}noise floor: {}\n", to_table(record.micro_benchmarks), in_words(record.noise));
  }
  const int code = measured.print_failures();
  rethrow(unwritten);
  return code;
}

}  // namespace

void add_bench(CLI::App& app, Launch& launch, int& status) {
  add_verb(app, "bench", "Time single ops: GEMMs, kernels, messages, and pairs", [&launch, &status](CLI::App& command) {
    const auto request = std::make_shared<BenchRequest>();
    add_micro_flags(command, request->arguments);
    usual(offers_words(
        command.add_option("-o,--output", request->format, "table; json: the record itself")->capture_default_str(),
        {"table", "json"}));
    usual(command.add_option("--out", request->out, "Write the record here, as JSON")->type_name("FILE"));
    command.footer(
        "All ranks run each op simultaneously, as a program of its own. next and wake:\n"
        "time from an op's end until a waiting op starts, on the same or another lane.\n"
        "A record feeds commfuse-sim calibrate.\n"
        "\n"
        "Examples:\n"
        "  commfuse-validate bench --quick\n"
        "  commfuse-validate bench --dtype bf16,fp32 --out bench.json\n"
        "  mpirun -np 2 commfuse-validate bench --quick\n"
        "  commfuse-sim calibrate --base cpu --name my-cpu bench.json\n"
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
