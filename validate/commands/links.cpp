// SPDX-License-Identifier: Apache-2.0
// commfuse-validate links: finds links and ranks that are slower than the rest.
#include "validate/bench/links.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "model/wrapped.h"
#include "sim/commands/setting_flags.h"
#include "validate/commands/commands.h"
#include "validate/commands/gpu.h"
#include "validate/commands/link_copies.h"
#include "validate/commands/link_rates.h"
#include "validate/commands/micro_measurement.h"
#include "validate/commands/output_files.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

struct LinksRequest {
  MicroArguments arguments;
  RateArguments rates;
  CopyArguments copies;
  std::string record;
  std::string sizes;
  std::string iterations = "9";
  std::string tolerance = "25";
  std::string format = "table";
  std::string out;
  std::string expect;
  std::string false_alarms = "1%";
};

/// A transfer consists of rows of this size.
constexpr std::int64_t row_bytes = 512;
constexpr std::int64_t max_transfer_bytes = std::int64_t{256} << 20U;

double tolerance_of(const LinksRequest& request) {
  const std::optional<double> percent = parse_number(request.tolerance);
  if (!percent || *percent < 0.0) {
    throw ConfigError(fmt::format("--tolerance: {} is not a percentage; write one, as in --tolerance 25",
                                  in_quotes(request.tolerance)));
  }
  return *percent / 100.0;
}

/// All measurements are repeated in three passes, so that drift affects all of them equally.
BenchOptions options_of(const LinksRequest& request) {
  constexpr std::int64_t max_iterations = 10'000;
  constexpr int passes = 3;
  const std::optional<std::int64_t> iterations = parse_integer(request.iterations);
  if (!iterations || *iterations < passes || *iterations > max_iterations || *iterations % passes != 0) {
    throw ConfigError(fmt::format("--iterations: {} is not a multiple of 3 up to 9999; write one, as in --iterations 9",
                                  in_quotes(request.iterations)));
  }
  return {.passes = passes, .repetitions = static_cast<int>(*iterations) / passes, .seed = 1};
}

std::vector<Bytes> sizes_of(const LinksRequest& request) {
  if (request.sizes.empty()) {
    return request.copies.wanted() ? std::vector{usual_copy} : LinkPlan{}.sizes;
  }
  std::vector<Bytes> sizes;
  for (const std::string_view word : split_list(request.sizes)) {
    const std::optional<Bytes> size = parse_size(word);
    if (!size || size->count < row_bytes || size->count > max_transfer_bytes || size->count % row_bytes != 0) {
      throw ConfigError(fmt::format("--bytes: {} is not a multiple of {} bytes up to 256 MiB; write one, as in '4 MiB'",
                                    in_quotes(word), row_bytes));
    }
    if (std::ranges::find(sizes, *size) == sizes.end()) {
      sizes.push_back(*size);
    }
  }
  return sizes;
}

double false_alarms_of(const LinksRequest& request) {
  const std::optional<double> share = parse_share(request.false_alarms);
  if (!share || *share < 1e-6 || *share > 0.25) {
    throw ConfigError(fmt::format("--false-alarms: {} is not a share of 0.0001% to 25%; write one, as in 1%",
                                  in_quotes(request.false_alarms)));
  }
  return *share;
}

/// Returns the machine of --expect.
Machine expected_machine(const LinksRequest& request) {
  return load_machine(meant_name(Catalogue::hardware, request.expect));
}

/// Throws ConfigError if --expect or --false-alarms is wrong, because minutes of measuring precede their use.
void require_expectation(const LinksRequest& request) {
  static_cast<void>(false_alarms_of(request));
  if (!request.expect.empty()) {
    static_cast<void>(expected_machine(request));
  }
}

/// Returns the minimum number of channels for messages, from the words that GpuCrew::in_words() writes into records, or
/// from the environment's variables.
std::int64_t least_channels(const Environment& environment) {
  constexpr std::string_view mark = ", at least ";
  std::int64_t channels = 0;
  if (const std::size_t at = environment.gpu.find(mark); at != std::string::npos) {
    const std::string_view rest = std::string_view(environment.gpu).substr(at + mark.size());
    channels = parse_integer(rest.substr(0, rest.find(' '))).value_or(0);
  }
  for (const auto& [name, value] : environment.variables) {
    channels = name == "NCCL_MIN_P2P_NCHANNELS" ? std::max(channels, parse_integer(value).value_or(0)) : channels;
  }
  return channels;
}

/// Throws ConfigError if the messages had fewer channels than the machine's rate was measured with. Among more than two
/// ranks, NCCL gives each pair only some of the channels.
void require_channels(const LinksRequest& request, const RunRecord& record, std::int32_t ranks,
                      const Machine& machine) {
  const int required_channels = machine.link.peer.ctas.value;
  constexpr int channels_by_default = 2;
  if (record.executor == "nccl" && ranks > 2 && required_channels > channels_by_default &&
      least_channels(record.environment) < required_channels) {
    throw ConfigError(
        fmt::format("--expect {}: NCCL gives a pair among {} GPUs only some of its {} channels; measure with "
                    "--nccl-p2p-channels {}",
                    request.expect, ranks, required_channels, required_channels));
  }
}

/// Prints how each kind of copy compares with the machine of --expect, and returns true if some copies are too slow.
bool print_slow_copies(const LinksRequest& request, const RunRecord& record, const Machine& machine) {
  const std::vector<CopyJudgement> judgements = judged_copies(record, machine, false_alarms_of(request));
  fmt::print(request.format == "table" ? stdout : stderr, "{}", in_words(judgements, machine.name));
  return std::ranges::any_of(judgements, [](const CopyJudgement& copies) { return copies.health == Health::bad; });
}

/// Prints what is slower than the machine of --expect, and returns true if something is.
bool print_slower_than_expected(const LinksRequest& request, const RunRecord& record, std::int32_t ranks,
                                const LinkFindings& findings) {
  Machine machine = expected_machine(request);
  const bool are_copies_slow = print_slow_copies(request, record, machine);
  require_channels(request, record, ranks, machine);
  machine.nodes = machine.network ? std::max(machine.nodes, 2) : 1;
  const LinksBelow below = below_expectation(findings, machine, false_alarms_of(request));
  const bool is_table = request.format == "table";
  if (is_table && below.compared + below.left_out > 0) {
    const std::string left_out =
        below.left_out == 0 ? "" : fmt::format("; {} latency-limited transfers are not compared", below.left_out);
    fmt::print("{}", wrapped(fmt::format("against {}: {} of {} transfers are slower than expected{}", machine.name,
                                         below.sentences.size(), below.compared, left_out),
                             "", "  "));
  }
  for (const std::string& sentence : below.sentences) {
    fmt::print(is_table ? stdout : stderr, "{}", is_table ? wrapped(sentence, "", "  ") : sentence + "\n");
  }
  return are_copies_slow || !below.sentences.empty();
}

int report(const LinksRequest& request, const RunRecord& record, std::int32_t ranks, double tolerance) {
  const LinkFindings findings = findings_in(record.micro_benchmarks, record.environment.hosts, tolerance);
  if (findings.groups.empty()) {
    throw ConfigError(
        fmt::format("{}: no link was measured; give a file of commfuse-validate links --out", request.record));
  }
  if (request.format == "json") {
    fmt::print("{}", to_json(record));
  } else {
    fmt::print("{}", to_table(findings, ranks, tolerance));
    fmt::print("{}", rates_in_words(record.micro_benchmarks));
    if (!record.noise.samples.empty()) {  // A record without samples has no measured noise.
      fmt::print("noise floor: {}\n", in_words(record.noise));
    }
  }
  const bool is_below = !request.expect.empty() && print_slower_than_expected(request, record, ranks, findings);
  return findings.culprits.empty() && !is_below ? exit_code::done : exit_code::gate_missed;
}

int report_record(const LinksRequest& request, double tolerance) {
  const RunRecord record = load_run_record(request.record);
  std::int64_t ranks = 0;
  for (const MicroBenchmark& benchmark : record.micro_benchmarks) {
    ranks = std::max(ranks, benchmark.ranks);
  }
  return report(request, record, static_cast<std::int32_t>(ranks), tolerance);
}

/// Writes the record if that was requested, and reports it.
int write_and_report(const LinksRequest& request, const MicroRecord& measured, std::int32_t ranks) {
  const std::exception_ptr unwritten = exception_of_writing(request.out, [&] { return to_json(measured.record); });
  const int code = report(request, measured.record, ranks, tolerance_of(request));
  const int code_of_failures = measured.print_failures();
  rethrow(unwritten);
  return std::max(code, code_of_failures);
}

int run_copies(const LinksRequest& request, Launch& launch) {
  if (!request.arguments.executor.empty() || launch.under_mpi()) {
    throw ConfigError(
        "--copies runs one process, which uses all visible GPUs; remove --executor, and start without mpirun");
  }
  if (!request.rates.collectives.empty()) {
    throw ConfigError("--copies cannot be combined with --collectives; run them separately");
  }
  require_outputs({{"--out", request.out}});
  const MicroRecord measured = copies_measured({.arguments = request.copies,
                                                .ranks = request.arguments.ranks,
                                                .sizes = sizes_of(request),
                                                .both_ways = request.rates.both_ways,
                                                .options = options_of(request)});
  return write_and_report(request, measured, static_cast<std::int32_t>(measured.record.micro_benchmarks.front().ranks));
}

int run(const LinksRequest& request, Launch& launch) {
  sim::require_word("--output", request.format, std::array<std::string_view, 2>{"table", "json"}, "format");
  const double tolerance = tolerance_of(request);
  const std::vector<Bytes> sizes = sizes_of(request);
  require_expectation(request);
  if (!request.record.empty()) {
    return launch.works_alone() ? report_record(request, tolerance) : exit_code::done;
  }
  const BenchOptions options = options_of(request);
  if (request.copies.wanted()) {
    return run_copies(request, launch);
  }
  constexpr std::int64_t min_ranks = 2;
  const MicroWhere where = where_of(request.arguments, launch, min_ranks);
  if (!where.takes_part()) {
    return exit_code::done;
  }
  if (where.leads() && !where.is_dry()) {
    require_outputs({{"--out", request.out}});
  }
  const LinkPlan plan{.ranks = where.ranks, .sizes = sizes};
  std::vector<MicroProgram> programs = link_programs(plan);
  std::ranges::move(rate_programs(rate_plan_of(request.rates, where.ranks, sizes)), std::back_inserter(programs));
  const MicroRecord measured = micro_measured(where, programs, options);
  if (!where.leads()) {
    return exit_code::done;
  }
  if (where.is_dry()) {
    fmt::print("{}\n", where.gpu->dry_run_in_words());
    return measured.print_failures();
  }
  return write_and_report(request, measured, where.ranks);
}

/// Throws ConfigError for flags that control measuring, because the record has been measured already.
void require_only_judging(const CLI::App& command) {
  std::vector<const char*> flags{"--copies",       "--executor",  "--ranks",       "--bytes",      "--link-bandwidth",
                                 "--link-latency", "--both-ways", "--collectives", "--iterations", "--out"};
  flags.insert(flags.end(), gpu_flags().begin(), gpu_flags().end());
  for (const char* flag : flags) {
    if (command.count(flag) > 0) {
      throw ConfigError(
          fmt::format("{} applies to a measurement, but a record was given; remove {}, or the record", flag, flag));
    }
  }
}

}  // namespace

void add_links(CLI::App& app, Launch& launch, int& status) {
  add_verb(app, "links", "Time every link and rank, and name the slow ones", [&launch, &status](CLI::App& command) {
    const auto request = std::make_shared<LinksRequest>();
    command.add_option("RECORD", request->record, "Record of an earlier run (links --out)")->type_name("RECORD");
    add_where_flags(command, request->arguments);
    usual(
        command
            .add_option("--bytes", request->sizes, "Sizes of transfers, comma-separated, a latency-limited size first")
            ->default_str("8 KiB,4 MiB; with --copies 64 MiB")
            ->type_name("SIZES"));
    add_rate_flags(command, request->rates);
    add_copy_flag(command, request->copies);
    command.add_option("--iterations", request->iterations, "Samples of each measurement, a multiple of 3")
        ->capture_default_str()
        ->type_name("COUNT");
    usual(command
              .add_option("--tolerance", request->tolerance,
                          "Slowdown above which a link or rank is reported, in percent")
              ->capture_default_str()
              ->type_name("PERCENT"));
    usual(offers_names(
        command.add_option("--expect", request->expect, "Also compare with this machine: hardware, cluster or a file")
            ->type_name("NAME"),
        Catalogue::hardware));
    command.add_option("--false-alarms", request->false_alarms, "With --expect: share of healthy runs called slow")
        ->capture_default_str()
        ->type_name("SHARE");
    usual(offers_words(
        command.add_option("-o,--output", request->format, "table; json: the record itself")->capture_default_str(),
        {"table", "json"}));
    usual(command.add_option("--out", request->out, "Write the record here, as JSON")->type_name("FILE"));
    command.footer(
        "Each ordered pair of ranks sends while all other ranks are idle; then all ranks\n"
        "run the same GEMM simultaneously. Links inside hosts, links between hosts, and\n"
        "ranks are each compared with the median of their kind. A time is off if its\n"
        "whole 95% interval exceeds that median by more than the tolerance. If most links\n"
        "of a rank are off, the rank is named instead. --expect compares\n"
        "bandwidth-limited transfers with what the machine should reach, which also finds\n"
        "links that are all equally slow. --both-ways and --collectives add rates as\n"
        "nvbandwidth and nccl-tests count them; collectives run out of place and,\n"
        "except all-to-all, in place. --copies times what nvbandwidth times, in one\n"
        "process: copies between every pair of GPUs and between pinned host memory and\n"
        "every GPU; with --both-ways also while another copy runs in the opposite\n"
        "direction.\n"
        "\n"
        "Examples:\n"
        "  commfuse-validate links --ranks 4\n"
        "  mpirun -np 8 --hostfile hosts commfuse-validate links --out links.json\n"
        "  commfuse-validate links links.json --tolerance 10\n"
        "  commfuse-validate links links.json --expect h100-sxm\n"
        "  commfuse-validate links --ranks 4 --both-ways --collectives '8 KiB,1 MiB'\n"
        "  commfuse-validate links --copies all --both-ways --expect h100-sxm\n"
        "\n"
        "Exit codes: 0 nothing is off; 4 something is; 3 (if nothing is off) some links\n"
        "could not be measured; 1 failed; 2 the input is wrong; 69 no GPU is available.");
    command.callback([request, &command, &launch, &status] {
      if (!request->record.empty()) {
        require_only_judging(command);
      }
      if (request->expect.empty() && command.count("--false-alarms") > 0) {
        throw ConfigError("--false-alarms: requires --expect; add --expect, or remove --false-alarms");
      }
      if (request->copies.wanted()) {
        refuse_gpu_flags(command);
      } else {
        require_fitting_gpu_flags(command, request->arguments.executor);
      }
      status = run(*request, launch);
    });
  });
}

}  // namespace commfuse::validate
