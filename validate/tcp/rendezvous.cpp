// SPDX-License-Identifier: Apache-2.0
#include "validate/tcp/rendezvous.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "model/config_error.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse::validate {

namespace {

constexpr std::uint16_t usual_port = 29400;

using Variable = std::function<const char*(const char*)>;

std::optional<std::string> text_of(const Variable& variable, const char* name) {
  const char* value = variable(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

/// Returns nothing if the variable is not set.
std::optional<std::int64_t> number_of(const Variable& variable, const char* name, std::int64_t limit) {
  const std::optional<std::string> text = text_of(variable, name);
  if (!text) {
    return std::nullopt;
  }
  const std::optional<std::int64_t> number = parse_integer(*text);
  if (!number || *number < 0 || *number > limit) {
    throw ConfigError(
        fmt::format("{} is {} in the environment, not a whole number from 0 to {}; let the launcher set it", name,
                    in_quotes(*text), limit));
  }
  return number;
}

struct Names {
  const char* process;
  const char* processes;
};

std::optional<Rendezvous> by_names(const Variable& variable, const Names& names) {
  constexpr std::int64_t limit = 4096;  // the first process holds a connection to each
  const auto process = number_of(variable, names.process, limit);
  const auto processes = number_of(variable, names.processes, limit);
  if (!process || !processes) {
    return std::nullopt;
  }
  if (*process >= *processes) {
    throw ConfigError(fmt::format("{} is {} and {} is {} in the environment; let one launcher set both", names.process,
                                  *process, names.processes, *processes));
  }
  return Rendezvous{.process = static_cast<int>(*process),
                    .processes = static_cast<int>(*processes),
                    .host = text_of(variable, "MASTER_ADDR").value_or(""),
                    .port = static_cast<std::uint16_t>(number_of(variable, "MASTER_PORT", 65535).value_or(0))};
}

/// torchrun's agent sets this variable if it listens on MASTER_PORT while its processes run.
bool agent_listens(const Variable& variable) { return text_of(variable, "TORCHELASTIC_USE_AGENT_STORE") == "True"; }

/// Returns the port that all processes use instead of a port that is taken.
std::uint16_t port_next_to(std::uint16_t taken) {
  return static_cast<std::uint16_t>(taken == std::numeric_limits<std::uint16_t>::max() ? taken - 1 : taken + 1);
}

/// A plain shell of a job has the job's counts but is not a process of a step, so the variables of the step are
/// required.
std::optional<Rendezvous> by_slurm(const Variable& variable) {
  const std::optional<std::string> nodes = text_of(variable, "SLURM_STEP_NODELIST");
  std::optional<Rendezvous> rendezvous =
      nodes ? by_names(variable, {"SLURM_PROCID", "SLURM_NTASKS"}) : std::optional<Rendezvous>{};
  if (!rendezvous) {
    return std::nullopt;
  }
  if (rendezvous->host.empty()) {
    rendezvous->host = first_host(*nodes);
  }
  if (rendezvous->port == 0) {
    rendezvous->port = static_cast<std::uint16_t>(
        usual_port + number_of(variable, "SLURM_JOB_ID", std::int64_t{1} << 40U).value_or(0) % 1000);
  }
  return rendezvous;
}

}  // namespace

std::optional<Rendezvous> rendezvous_in(const Variable& variable) {
  constexpr std::array other_launchers{
      Names{"PMI_RANK", "PMI_SIZE"}, Names{"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
      Names{"FLUX_TASK_RANK", "FLUX_JOB_SIZE"}, Names{"JSM_NAMESPACE_RANK", "JSM_NAMESPACE_SIZE"}};
  constexpr Names torchrun{"RANK", "WORLD_SIZE"};
  Names names = torchrun;
  std::optional<Rendezvous> rendezvous = by_names(variable, torchrun);
  const bool is_taken = rendezvous && agent_listens(variable);
  if (!rendezvous) {
    rendezvous = by_slurm(variable);
  }
  for (const Names& other : other_launchers) {
    if (!rendezvous) {
      rendezvous = by_names(variable, other);
      names = other;
    }
  }
  if (!rendezvous) {
    return std::nullopt;
  }
  if (rendezvous->host.empty()) {
    throw ConfigError(fmt::format("{} and {} are set, but MASTER_ADDR is not; set it to the host of process 0",
                                  names.process, names.processes));
  }
  rendezvous->port = rendezvous->port == 0 ? usual_port : rendezvous->port;
  rendezvous->port = is_taken ? port_next_to(rendezvous->port) : rendezvous->port;
  return rendezvous;
}

std::string first_host(std::string_view node_list) {
  const std::size_t end = node_list.find_first_of(",[");
  std::string host(node_list.substr(0, end));
  if (end != std::string_view::npos && node_list[end] == '[') {
    const std::string_view numbers = node_list.substr(end + 1);
    host += numbers.substr(0, numbers.find_first_of("-,]"));
    const std::size_t close = node_list.find(']', end);
    const std::string_view rest = close == std::string_view::npos ? "" : node_list.substr(close + 1);
    host += rest.substr(0, rest.find(','));
  }
  return host;
}

}  // namespace commfuse::validate
