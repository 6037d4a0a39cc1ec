// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/capabilities.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <stdexcept>
#include <string_view>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/wrapped.h"
#include "validate/cuda/load.h"
#include "validate/cuda/nvml.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

constexpr int threads = 8;
constexpr std::string_view unusable_mark = "; these cannot be used: ";

/// If sleeping threads wake up later than this, emulated runs need more dilation.
constexpr Duration max_oversleep = std::chrono::microseconds(500);

Capability machine() {
  const Environment environment = this_environment();
  return {.name = "machine",
          .text = fmt::format("{}, {}, {}", environment.cpu, counted(environment.cores, "core"), environment.os)};
}

Capability build() {
  const BuildInfo& build = build_info();
  return {.name = "build", .text = fmt::format("{} {}, {}", build.version, build.build_type, build.compiler)};
}

Capability timer() {
  const NoiseFloor noise = noise_floor(threads);
  Capability timer{.name = "timer", .text = in_words(noise)};
  if (summary_of(noise.samples).p90 > noise.stated + max_oversleep) {
    timer.text += "; end other programs, or give compare a larger --dilation";
    timer.status = HealthStatus::warn;
    timer.wrong = "sleeping threads wake up late, so emulated runs are inaccurate";
    timer.remedy = "end other programs, or give compare a larger --dilation";
  }
  return timer;
}

/// Loads MPI, but does not start it.
Capability mpi() {
  const MpiModule module = load_mpi_module();
  if (module.open != nullptr) {
    return {.name = "mpi", .text = "yes: check and run under mpirun, ranks are processes"};
  }
  return {.name = "mpi",
          .text = "no: " + module.missing,
          .status = HealthStatus::unknown,
          .wrong = "ranks cannot be processes",
          .remedy = "to use --executor mpi, install Open MPI and build again"};
}

std::string device_in_words(const DeviceFacts& device) {
  constexpr double giga = 1e9;
  return fmt::format("{} ({} multiprocessors, {:.0f} GB), driver for CUDA {}, runtime {}, cuBLASLt {}", device.name,
                     device.multiprocessors, static_cast<double>(device.memory.count) / giga, device.driver,
                     device.runtime, device.cublaslt);
}

/// Examines every device, which creates a context on each.
std::string cuda_in_words(const CudaPlugin& plugin) {
  if (!plugin.usable()) {
    return "no: " + plugin.missing;
  }
  return gpus_in_words(plugin.module->devices(), [&](int device) {
    const DeviceFacts facts = plugin.module->open(device)->facts();
    const std::optional<DeviceState> state = device_state(facts.uuid);
    return device_in_words(facts) + (state ? ", " + in_words(*state) : "");
  });
}

std::string nccl_in_words(const CudaPlugin& plugin) {
  if (plugin.module == nullptr) {
    return "no: it needs the GPU, see cuda";
  }
  if (!plugin.module->has_nccl()) {
    return fmt::format("no: {}", plugin.module->nccl_absence());
  }
  if (plugin.usable()) {
    try {
      return fmt::format("yes: {}", plugin.module->open(0)->facts().nccl);
    } catch (const std::runtime_error&) {
      // cuda_in_words() states why the GPU cannot be used.
    }
  }
  return fmt::format("no: it needs the GPU, see cuda; this build has {}", build_info().nccl);
}

/// Returns a capability that needs GPUs. Its absence is not a fault, because a node may have no GPU.
Capability gpu_capability(std::string name, std::string text) {
  Capability capability{.name = std::move(name), .text = std::move(text)};
  if (!capability.text.starts_with("yes")) {
    capability.status = HealthStatus::unknown;
    capability.wrong = "GPU executors cannot run here";
    capability.remedy = "none needed without a GPU; otherwise do what the finding says (docs/cluster.md)";
  } else if (capability.text.find(unusable_mark) != std::string::npos) {
    capability.status = HealthStatus::warn;
    capability.wrong = "some GPUs cannot be used";
    capability.remedy = "look for their processes and errors in nvidia-smi, or choose others by CUDA_VISIBLE_DEVICES";
  }
  return capability;
}

Capability configs() {
  try {
    return {.name = "configs",
            .text = fmt::format("yes: {} models, {} machines", known_names(Catalogue::models).size(),
                                known_names(Catalogue::hardware).size())};
  } catch (const ConfigError& error) {
    return {.name = "configs",
            .text = fmt::format("no: {}", error.what()),
            .status = HealthStatus::bad,
            .wrong = "names of models and machines are unknown",
            .remedy = "set COMMFUSE_CONFIG_DIR to the folder configs of commfuse, or install it again"};
  }
}

}  // namespace

std::string gpus_in_words(int gpus, const std::function<std::string(int gpu)>& describe) {
  std::vector<std::string> usable;
  std::vector<std::string> failures;
  for (int gpu = 0; gpu < gpus; ++gpu) {
    try {
      usable.push_back(describe(gpu));
    } catch (const std::runtime_error& error) {
      failures.push_back(fmt::format("GPU {}: {}", gpu, error.what()));
    }
  }
  if (usable.empty()) {
    return fmt::format("no: {}", fmt::join(failures, "; "));
  }
  return fmt::format("yes: {}{}{}", fmt::join(usable, "; "), failures.empty() ? "" : unusable_mark,
                     fmt::join(failures, "; "));
}

std::span<const std::string_view> capability_names() {
  static constexpr std::array<std::string_view, 9> names{"machine", "build", "timer", "reference", "cpu",
                                                         "mpi",     "cuda",  "nccl",  "configs"};
  return names;
}

std::vector<Capability> capabilities(std::span<const std::string> skipped) {
  const auto is_wanted = [&](std::string_view name) {
    return std::find(skipped.begin(), skipped.end(), name) == skipped.end();
  };
  std::optional<CudaPlugin> plugin;
  if (is_wanted("cuda") || is_wanted("nccl")) {
    plugin = load_cuda_plugin();
  }
  std::vector<Capability> findings;
  for (const std::string_view name : capability_names()) {
    if (!is_wanted(name)) {
      continue;
    }
    findings.push_back(name == "machine" ? machine()
                       : name == "build" ? build()
                       : name == "timer" ? timer()
                       : name == "reference"
                           ? Capability{"reference", "yes: check runs every schedule one op after another"}
                       : name == "cpu"  ? Capability{"cpu", "yes: check, run, compare, bench and calibrate on threads"}
                       : name == "mpi"  ? mpi()
                       : name == "cuda" ? gpu_capability("cuda", cuda_in_words(*plugin))
                       : name == "nccl" ? gpu_capability("nccl", nccl_in_words(*plugin))
                                        : configs());
  }
  return findings;
}

std::string capability_lines(std::span<const Capability> capabilities, std::size_t width) {
  std::string lines;
  for (const Capability& capability : capabilities) {
    lines += wrapped(capability.text, fmt::format("{:<10} ", capability.name), std::string(11, ' '), width);
  }
  return lines;
}

std::vector<HealthCheck> checks_of(std::span<const Capability> capabilities) {
  std::vector<HealthCheck> checks;
  for (const Capability& capability : capabilities) {
    checks.push_back({.name = capability.name,
                      .status = capability.status,
                      .found = capability.text,
                      .wrong = capability.wrong,
                      .remedy = capability.remedy});
  }
  return checks;
}

std::vector<CommonFact> common_facts(std::span<const Capability> capabilities) {
  const BuildInfo& build = build_info();
  std::vector<CommonFact> facts{{"commfuse build", fmt::format("{} {}", build.version, build.git_revision)}};
  for (const Capability& capability : capabilities) {
    if (capability.name == "machine") {
      facts.push_back({"processor", capability.text.substr(0, capability.text.rfind(", ")), HealthStatus::warn});
    } else if (capability.name == "nccl") {
      facts.push_back({"NCCL", capability.text});
    } else if (capability.name == "mpi") {
      facts.push_back({"MPI module", capability.text.substr(0, capability.text.find(':'))});
    }
  }
  return facts;
}

}  // namespace commfuse::validate
