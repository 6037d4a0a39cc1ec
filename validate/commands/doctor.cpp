// SPDX-License-Identifier: Apache-2.0
// commfuse-validate doctor: what can run here, and what is missing.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/build_info.h"
#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config_error.h"
#include "validate/commands/commands.h"
#include "validate/cuda/load.h"
#include "validate/cuda/nvml.h"
#include "validate/measure/protocol.h"
#include "validate/mpi/launch.h"

namespace commfuse::validate {

namespace {

constexpr int threads = 8;

/// Beyond, a sleeping thread is so late that emulated runs need more dilation.
constexpr Duration late = std::chrono::microseconds(500);

std::string timer_in_words(const NoiseFloor& noise) {
  const bool is_late = summary_of(noise.samples).p90 > noise.stated + late;
  return fmt::format("{}{}", in_words(noise, threads),
                     is_late ? "; end other programs, or give compare a larger --dilation" : "");
}

/// Loads MPI, but does not start it.
std::string mpi_in_words() {
  const MpiModule module = load_mpi_module();
  return module.open == nullptr ? "no: " + module.missing : "yes: check and run under mpirun, ranks are processes";
}

std::string device_in_words(const DeviceFacts& device) {
  constexpr double giga = 1e9;
  return fmt::format("{} ({} multiprocessors, {:.0f} GB), driver for CUDA {}, runtime {}, cuBLASLt {}", device.name,
                     device.multiprocessors, static_cast<double>(device.memory.count) / giga, device.driver,
                     device.runtime, device.cublaslt);
}

/// Looks at every device, which makes a context there.
std::string cuda_in_words(const CudaPlugin& plugin) {
  if (!plugin.usable()) {
    return "no: " + plugin.missing;
  }
  std::vector<std::string> devices;
  for (int device = 0; device < plugin.module->devices(); ++device) {
    try {
      const DeviceFacts facts = plugin.module->open(device)->facts();
      const std::optional<DeviceState> state = device_state(facts.uuid);
      devices.push_back(device_in_words(facts) + (state ? ", " + in_words(*state) : ""));
    } catch (const std::runtime_error& error) {
      return fmt::format("no: GPU {}: {}", device, error.what());
    }
  }
  return fmt::format("yes: {}", fmt::join(devices, "; "));
}

std::string nccl_in_words(const CudaPlugin& plugin) {
  if (plugin.module == nullptr) {
    return "no: it needs the GPU, see cuda";
  }
  if (!plugin.module->has_nccl()) {
    return fmt::format("no: {}", plugin.module->nccl_absence());
  }
  return plugin.usable() ? fmt::format("yes: {}", plugin.module->open(0)->facts().nccl)
                         : fmt::format("no: it needs the GPU, see cuda; of this build: {}", build_info().nccl);
}

std::string configs_in_words() {
  try {
    return fmt::format("yes: {} models, {} machines", known_names(Catalogue::models).size(),
                       known_names(Catalogue::hardware).size());
  } catch (const ConfigError& error) {
    return fmt::format("no: {}", error.what());
  }
}

void print_diagnosis() {
  constexpr auto line = "{:<10} {}\n";
  const Environment here = this_environment();
  const BuildInfo& build = build_info();
  fmt::print(line, "machine", fmt::format("{}, {} cores, {}", here.cpu, here.cores, here.os));
  fmt::print(line, "build", fmt::format("{} {}, {}", build.version, here.build, here.compiler));
  fmt::print(line, "timer", timer_in_words(noise_floor(threads)));
  fmt::print(line, "reference", "yes: check runs every schedule one op after another");
  fmt::print(line, "cpu", "yes: check, run, compare, bench and calibrate on threads");
  fmt::print(line, "mpi", mpi_in_words());
  const CudaPlugin cuda = load_cuda_plugin();
  fmt::print(line, "cuda", cuda_in_words(cuda));
  fmt::print(line, "nccl", nccl_in_words(cuda));
  fmt::print(line, "configs", configs_in_words());
}

}  // namespace

void add_doctor(CLI::App& app, int& status) {
  add_verb(app, "doctor", "Show what can run here and what is missing", [&status](CLI::App& command) {
    command.footer(
        "Example:\n"
        "  commfuse-validate doctor\n\n"
        "Exit codes: 0 done; 1 failed.");
    command.callback([&status] {
      print_diagnosis();
      status = exit_code::done;
    });
  });
}

}  // namespace commfuse::validate
