// SPDX-License-Identifier: Apache-2.0
// commfuse-sim expect: predicts what a machine should do, and writes floors for checkers.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/meant.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/dtype.h"
#include "model/expect/expectation.h"
#include "model/stderr_text.h"
#include "model/text/quantity.h"
#include "model/text/ranges.h"
#include "model/text/suggest.h"
#include "reports/point_rows.h"
#include "reports/step_rows.h"
#include "sim/commands/answer.h"
#include "sim/commands/commands.h"
#include "sim/commands/expect_text.h"
#include "sim/commands/setting_flags.h"
#include "sim/expect/expected_kernels.h"
#include "sim/expect/expected_rows.h"
#include "sim/expect/expected_runs.h"
#include "sim/expect/nccl_version.h"
#include "sim/expect/thresholds.h"
#include "sim/point/unused_variables.h"

namespace commfuse::sim {

namespace {

constexpr std::int32_t max_gpus = 1 << 20;
constexpr const char* default_hardware = "h100-sxm";

struct ExpectRequest {
  std::optional<std::string> hardware;
  std::optional<int> nodes;
  std::string ranks;
  std::optional<int> gpus_per_node;
  std::string collectives = "all";
  std::string sizes;
  std::string smallest;
  std::string largest;
  std::int64_t factor = 2;
  std::string nvls;
  std::optional<int> ctas;
  std::optional<int> rails;
  std::string nccl;
  std::string false_alarms = "1%";
  std::string gemms;
  std::string copies;
  std::string dtype = "bf16";
  std::string scope;
  std::string model;
  std::vector<std::string> sets;
  std::string form;
  std::string format = "table";
};

Machine machine_of(const ExpectRequest& request) {
  Machine machine = load_machine(meant_name(Catalogue::hardware, request.hardware.value_or(default_hardware)));
  if (request.nodes) {
    if (*request.nodes < 1) {
      throw ConfigError(fmt::format("--nodes: {} is below 1; use 1 or more", *request.nodes));
    }
    if (!machine.network && *request.nodes > 1) {
      throw ConfigError(fmt::format("--nodes: {} has no network; use a cluster such as dgx-h100-x2", machine.name));
    }
    if (*request.nodes > max_gpus / machine.gpus_per_node) {
      throw ConfigError(
          fmt::format("--nodes: {} is too many; use {} or fewer", *request.nodes, max_gpus / machine.gpus_per_node));
    }
    machine.nodes = *request.nodes;
  }
  return machine;
}

expect::Setup setup_of(const ExpectRequest& request) {
  expect::Setup setup{.ctas = request.ctas, .rails = request.rails};
  if (!request.nvls.empty()) {
    require_word("--nvls", request.nvls, std::array<std::string_view, 2>{"on", "off"}, "choice");
    setup.nvls = request.nvls == "on";
  }
  if (!request.nccl.empty()) {
    setup.nccl = expect::nccl_version_named(request.nccl);
    if (!setup.nccl) {
      throw ConfigError(
          fmt::format("--nccl: {} is not a version of NCCL; write one, as in 2.28.9", in_quotes(request.nccl)));
    }
  }
  return setup;
}

Bytes size_of(std::string_view flag, std::string_view text) {
  const std::optional<Bytes> size = parse_size(text);
  if (!size) {
    const std::optional<std::int64_t> plain = parse_integer(text);  // nccl-tests also accepts plain numbers.
    if (plain) {
      return {*plain};
    }
    throw ConfigError(fmt::format("{}: {} is not a size; write one, as in 64M", flag, in_quotes(text)));
  }
  return *size;
}

std::vector<Bytes> sizes_of(const ExpectRequest& request) {
  if (!request.sizes.empty() && (!request.smallest.empty() || !request.largest.empty())) {
    throw ConfigError("--sizes cannot be combined with -b and -e; keep one of them");
  }
  const std::size_t dots = request.sizes.find("..");
  if (!request.sizes.empty() && dots == std::string::npos) {
    std::vector<Bytes> sizes;
    for (const std::string_view word : split_list(request.sizes)) {
      const Bytes size = size_of("--sizes", word);
      const Bytes allowed = expect::sizes_between(size, size, 2).front();
      if (std::ranges::find(sizes, allowed) == sizes.end()) {
        sizes.push_back(allowed);
      }
    }
    return sizes;
  }
  const bool is_range = dots != std::string::npos;
  const std::string smallest = is_range                   ? request.sizes.substr(0, dots)
                               : request.smallest.empty() ? "1K"
                                                          : request.smallest;
  const std::string largest = is_range                  ? request.sizes.substr(dots + 2)
                              : request.largest.empty() ? "8G"
                                                        : request.largest;
  return expect::sizes_between(size_of(is_range ? "--sizes" : "-b", smallest),
                               size_of(is_range ? "--sizes" : "-e", largest), request.factor);
}

std::vector<LinkOp> ops_of(const ExpectRequest& request) {
  if (request.collectives == "all") {
    return {all_link_ops.begin(), all_link_ops.end()};
  }
  std::vector<LinkOp> ops;
  for (const std::string_view word : split_list(request.collectives)) {
    const std::optional<LinkOp> op = link_op_named(word);
    if (!op) {
      constexpr std::array<std::string_view, 5> known{"all_gather", "reduce_scatter", "all_reduce", "all_to_all",
                                                      "send_recv"};
      throw ConfigError(fmt::format("--collective: unknown collective {}; {}", in_quotes(word),
                                    remedy_for(word, known, "collectives")));
    }
    if (std::ranges::find(ops, *op) == ops.end()) {
      ops.push_back(*op);
    }
  }
  return ops;
}

std::vector<std::int64_t> ranks_of(const ExpectRequest& request, const Machine& machine) {
  if (request.ranks.empty()) {
    const std::int64_t gpus = std::int64_t{request.gpus_per_node.value_or(machine.gpus_per_node)} * machine.nodes;
    if (gpus == 1 && request.collectives != "send_recv") {
      throw ConfigError(
          fmt::format("a collective takes at least 2 GPUs, and only 1 of {} takes part; choose more, or a cluster such "
                      "as dgx-h100-x2",
                      machine.name));
    }
    return {gpus};
  }
  const std::vector<std::int32_t> ranks =
      parse_whole_numbers(request.ranks, {.flag = "--ranks", .lowest = 2, .highest = max_gpus});
  return {ranks.begin(), ranks.end()};
}

std::int64_t gpus_per_node_of(const ExpectRequest& request) {
  if (request.gpus_per_node && *request.gpus_per_node < 1) {
    throw ConfigError("--gpus-per-node: at least one GPU of each node takes part; use 1 or more");
  }
  return request.gpus_per_node.value_or(0);
}

double false_alarms_of(const ExpectRequest& request) {
  const std::optional<double> share = parse_share(request.false_alarms);
  if (!share || *share < 1e-6 || *share > 0.25) {
    throw ConfigError(fmt::format("--false-alarms: {} is not a share of 0.0001% to 25%; write one, as in 1%",
                                  in_quotes(request.false_alarms)));
  }
  return *share;
}

constexpr std::array<std::string_view, 4> expect_formats{"table", "json", "csv", "yaml"};

/// Returns the answer for GEMMs and copies instead of collectives.
Answer kernels_answer(const ExpectRequest& request, const Machine& machine, double false_alarms) {
  const std::optional<DType> dtype = dtype_named(request.dtype);
  if (!dtype) {
    throw ConfigError(fmt::format("--dtype: unknown dtype {}; use bf16, fp16, fp32 or fp8", in_quotes(request.dtype)));
  }
  expect::KernelQuestion question{.false_alarms = false_alarms};
  if (!request.gemms.empty()) {
    for (const std::string_view word : split_list(request.gemms)) {
      question.gemms.push_back(expect::parse_gemm_size(word, *dtype));
    }
  }
  if (!request.copies.empty()) {
    for (const std::string_view word : split_list(request.copies)) {
      question.copies.push_back(size_of("--copy", word));
    }
  }
  return {.write = [rows = expect::expected_kernels(machine, question),
                    shared = SharedValues{machine.name, false_alarms}](std::string_view format, const Sink& sink) {
    require_word("--output", format, expect_formats, "format");
    sink(format == "json"   ? kernel_json(rows, shared)
         : format == "csv"  ? kernel_csv(rows, shared)
         : format == "yaml" ? kernel_yaml(rows, shared)
                            : kernel_table(rows, shared));
  }};
}

/// Returns a line for runs that do not fit in memory; empty if all fit.
std::string memory_warning_of(const expect::ExpectedRuns& expected) {
  const std::string sentence =
      expected.steps.empty() ? reports::memory_sentence(expected.layers) : reports::memory_sentence(expected.steps);
  return sentence.empty() ? sentence : fmt::format("warning: {}\n", sentence);
}

/// Returns the answer for layers and steps instead of collectives. The settings are those of `run`, for a single point.
/// As in `run`, flags take precedence over --set.
Answer runs_answer(const ExpectRequest& request, double false_alarms, Caller& caller) {
  SettingArguments arguments{.sets = request.sets};
  for (const auto& [key, text] :
       {std::pair("scope", request.scope), std::pair("hardware", request.hardware.value_or("")),
        std::pair("model", request.model), std::pair("ranks", request.ranks)}) {
    if (!text.empty()) {
      arguments.flags.emplace_back(find_field(key), text);
    }
  }
  Settings settings = settings_of(arguments);
  caller.note(for_stderr(ignore_unused_variables(settings)));
  caller.note(for_stderr(notes_on_unused_draws(settings)));
  expect::ExpectedRuns expected = expect::expected_runs(settings, false_alarms);
  caller.note(for_stderr(memory_warning_of(expected)));
  return {.write = [rows = std::move(expected.runs), shared = SharedValues{settings.text("hardware"), false_alarms}](
                       std::string_view format, const Sink& sink) {
    require_word("--output", format, expect_formats, "format");
    sink(format == "json"   ? run_json(rows, shared)
         : format == "csv"  ? run_csv(rows, shared)
         : format == "yaml" ? run_yaml(rows, shared)
                            : run_table(rows, shared));
  }};
}

Expectation expectation_of(const ExpectRequest& request) {
  const expect::Setup setup = setup_of(request);
  Machine machine = machine_of(request);
  const SoftwareErrors software = setup.nccl ? expect::errors_of(machine, *setup.nccl) : SoftwareErrors{};
  return Expectation(expect::with_setup(std::move(machine), setup), ParameterErrors::every, software);
}

/// Returns a note on the effect of --nccl; empty without --nccl.
std::string note_of(const ExpectRequest& request) {
  const std::optional<expect::NcclVersion> version = setup_of(request).nccl;
  if (!version) {
    return "";
  }
  const Machine machine = machine_of(request);
  const std::optional<expect::NcclVersion> fitted = expect::fitted_version(machine);
  const SoftwareErrors errors = expect::errors_of(machine, *version);
  const std::string source = fitted ? fmt::format("times were fitted to {}", expect::name_of(*fitted))
                                    : "the hardware file does not state the version to which times were fitted";
  return fmt::format("NCCL {}; {}{}", expect::name_of(*version), source,
                     errors.latency == 0.0 ? ""
                                           : fmt::format(": ranges have {:.0f}% more error, {:.0f}% for small messages",
                                                         100.0 * errors.bandwidth, 100.0 * errors.latency));
}

Answer run_expect(const ExpectRequest& request, Caller& caller) {
  require_word("--output", request.format, expect_formats, "format");
  const double false_alarms = false_alarms_of(request);
  if (!request.scope.empty()) {
    return runs_answer(request, false_alarms, caller);
  }
  const Expectation expectation = expectation_of(request);
  const Machine& machine = expectation.machine();
  if (!request.form.empty()) {
    return text_answer(expect::thresholds(request.form, expectation, false_alarms));
  }
  if (!request.gemms.empty() || !request.copies.empty()) {
    return kernels_answer(request, machine, false_alarms);
  }
  std::vector<expect::ExpectedRow> rows =
      expect::expected_rows(expectation, {.ops = ops_of(request),
                                          .gpus = ranks_of(request, machine),
                                          .sizes = sizes_of(request),
                                          .false_alarms = false_alarms,
                                          .gpus_per_node = gpus_per_node_of(request)});
  return {.write = [rows = std::move(rows), shared = SharedValues{machine.name, false_alarms, note_of(request)}](
                       std::string_view format, const Sink& sink) {
    require_word("--output", format, expect_formats, "format");
    sink(format == "json"   ? expected_json(rows, shared)
         : format == "csv"  ? expected_csv(rows, shared)
         : format == "yaml" ? expected_yaml(rows, shared)
                            : expected_table(rows, shared));
  }};
}

void add_setup_flags(CLI::App& command, ExpectRequest& request) {
  offers_words(command.add_option("--nvls", request.nvls, "Sums in the switch: on or off (default: on if supported)")
                   ->type_name("CHOICE"),
               {"on", "off"});
  command.add_option("--ctas", request.ctas, "Maximum CTAs per kernel, as NCCL_MAX_CTAS")->type_name("COUNT");
  command.add_option("--nccl", request.nccl, "Version of NCCL, for example 2.28.9 (default: the fit's)")
      ->type_name("VERSION");
  command.add_option("--rails", request.rails, "Working NICs per node (default: all)")->type_name("COUNT");
}

void add_other_flags(CLI::App& command, ExpectRequest& request) {
  command.add_option("--gemm", request.gemms, "GEMMs in place of collectives, for example 8Kx8Kx8K,4096x28672x8192")
      ->type_name("SIZES");
  command.add_option("--copy", request.copies, "Copies in HBM in place of collectives, for example 1G")
      ->type_name("SIZES");
  offers_words(command.add_option("--dtype", request.dtype, "With --gemm: bf16, fp16, fp32 or fp8")
                   ->capture_default_str()
                   ->type_name("DTYPE"),
               {"bf16", "fp16", "fp32", "fp8"});
}

void add_run_flags(CLI::App& command, ExpectRequest& request) {
  usual(command.add_option("--scope", request.scope, "Layers and steps in place of collectives: a scope of run")
            ->type_name("SCOPE"));
  offers_names(command.add_option("--model", request.model, "With --scope: model, a name or a file")->type_name("NAME"),
               Catalogue::models);
  command.add_option("--set", request.sets, "With --scope: any setting of run, for example --set seq=8K")
      ->type_name("KEY=VALUE");
}

void add_size_flags(CLI::App& command, ExpectRequest& request) {
  usual(
      command.add_option("--sizes", request.sizes, "Sizes as FIRST..LAST by powers of -f, or a list (default 1K..8G)")
          ->type_name("SIZES"));
  command.add_option("-b,--minbytes", request.smallest, "Smallest size, as in nccl-tests")->type_name("SIZE");
  command.add_option("-e,--maxbytes", request.largest, "Largest size, as in nccl-tests")->type_name("SIZE");
  command.add_option("-f,--stepfactor", request.factor, "Factor between sizes")->capture_default_str();
}

/// Throws ConfigError for flags that the chosen question does not use, because users would assume that they apply.
void refuse_idle_flags(CLI::App& command) {
  const auto has = [&](const char* flag) { return command.count(flag) > 0; };
  const bool predicts_kernels = has("--gemm") || has("--copy");
  constexpr std::array<const char*, 7> message_flags{"--collective", "--ranks", "--gpus-per-node", "--sizes", "-b",
                                                     "-e",           "-f"};
  constexpr std::array<const char*, 5> link_flags{"--nodes", "--nvls", "--nccl", "--ctas", "--rails"};
  const auto refuse = [&](const auto& flags, std::string_view why) {
    for (const char* const flag : flags) {
      if (has(flag)) {
        throw ConfigError(fmt::format("{0}: {1}; remove {0}", flag, why));
      }
    }
  };
  constexpr std::array<const char*, 6> size_flags{"--collective", "--gpus-per-node", "--sizes", "-b", "-e", "-f"};
  constexpr std::array<const char*, 4> other_flags{"--thresholds", "--gemm", "--copy", "--dtype"};
  if (has("--scope")) {
    refuse(size_flags, "--scope predicts layers and steps instead of collectives");
    refuse(link_flags, "not used with --scope, which takes the settings of run from --set");
    refuse(other_flags, "--scope predicts layers and steps only");
    return;
  }
  refuse(std::array{"--model", "--set"}, "requires --scope");
  if (has("--thresholds")) {
    refuse(message_flags, "--thresholds uses the sizes that the checker measures");
    refuse(std::array{"--gemm", "--copy", "--dtype"}, "--thresholds prints floors of collectives");
    refuse(std::array{"--output"}, "--thresholds prints the checker's own format");
  } else if (predicts_kernels) {
    refuse(message_flags, "--gemm and --copy replace collectives");
    refuse(link_flags, "--gemm and --copy use a single GPU");
  }
  if (has("--dtype") && !has("--gemm")) {
    throw ConfigError("--dtype: requires --gemm; add --gemm, or remove --dtype");
  }
}

std::vector<std::string_view> form_names() {
  std::vector<std::string_view> names;
  for (const expect::ThresholdForm& form : expect::threshold_forms()) {
    names.push_back(form.name);
  }
  return names;
}

void add_flags(CLI::App& command, ExpectRequest& request) {
  usual(offers_names(
      command
          .add_option("--hardware,--cluster", request.hardware, "Hardware or cluster: a name, or a file of your own")
          ->default_str(default_hardware)
          ->type_name("NAME"),
      Catalogue::hardware));
  usual(command.add_option("--nodes", request.nodes, "Nodes of a cluster (default: those of its file)")
            ->type_name("COUNT"));
  usual(command.add_option("--ranks", request.ranks, "GPUs per group, for example 2,4,8 (default: all)")
            ->type_name("COUNTS"));
  command.add_option("--gpus-per-node", request.gpus_per_node, "GPUs of each node that take part (default: all)")
      ->type_name("COUNT");
  usual(command.add_option("--collective", request.collectives, "Collectives, comma-separated; send_recv: two GPUs")
            ->capture_default_str()
            ->type_name("NAMES"));
  add_size_flags(command, request);
  add_setup_flags(command, request);
  add_other_flags(command, request);
  add_run_flags(command, request);
  usual(command.add_option("--false-alarms", request.false_alarms, "Share of healthy measurements called slow")
            ->capture_default_str()
            ->type_name("SHARE"));
  usual(offers_words(command
                         .add_option("--thresholds", request.form,
                                     "Print floors for a checker: nccl-tests, nvsentinel, aicr, superbench, "
                                     "google-chs, azure-nhc or prometheus")
                         ->type_name("FORMAT"),
                     form_names()));
  usual(offers_words(command.add_option("-o,--output", request.format, "Format: table, json, csv or yaml")
                         ->capture_default_str()
                         ->type_name("FORMAT"),
                     {"table", "json", "csv", "yaml"}));
}

}  // namespace

void add_expect(CLI::App& app, Caller& caller) {
  add_verb(app, "expect", "Print what a machine's collectives should reach", [&caller](CLI::App& command) {
    const auto request = std::make_shared<ExpectRequest>();
    add_flags(command, *request);
    command.footer(
        "Times are those of out-of-place operations and bandwidths are in GB/s, both as\n"
        "nccl-tests prints them.\n"
        "Ranges combine the errors of the machine's parameters with the residual of its\n"
        "fit. A floor is for a single measurement; commfuse-validate verdict judges a\n"
        "node by all of its measurements and finds smaller faults.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim expect --hardware h100-sxm --collective all_reduce\n"
        "  commfuse-sim expect --cluster dgx-h100-x4 --sizes 1M..8G -o csv\n"
        "  commfuse-sim expect --hardware h100-sxm -b 8 -e 128M --nvls off\n"
        "  commfuse-sim expect --hardware h100-sxm --gemm 8Kx8Kx8K --copy 1G\n"
        "  commfuse-sim expect --scope layer --model llama-3.1-70b --set seq=8K\n"
        "  commfuse-sim expect --hardware h100-sxm --thresholds nvsentinel");
    command.callback([request, &command, &caller] {
      refuse_idle_flags(command);
      Answer answer = run_expect(*request, caller);
      answer.format = request->format;
      caller.take(answer);
    });
  });
}

}  // namespace commfuse::sim
