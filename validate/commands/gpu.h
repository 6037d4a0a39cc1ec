// SPDX-License-Identifier: Apache-2.0
// The flags of executors on a GPU, and an open one.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "model/record/run_record.h"
#include "validate/cuda/device.h"
#include "validate/cuda/load.h"
#include "validate/cuda/nccl_executor.h"
#include "validate/cuda/virtual_executor.h"
#include "validate/executor.h"
#include "validate/pace.h"

namespace CLI {
class App;
}

namespace commfuse::validate {

/// As written on the command line.
struct GpuArguments {
  std::string device = "auto";
  std::string view = "middle-rank";
  std::string issue = "gated";
  std::string link = "copy";
  std::string ctas = "4";
  std::string multiprocessors = "all";
  std::string partition = "none";
  std::string attention = "auto";
  std::string nvls = "on";
  std::string cta_policy = "default";
  std::string nccl_ctas = "auto";
  std::string nccl_p2p_channels = "auto";
  std::string nccl_register = "off";
};

/// --device alone, and those that say how times are taken. The arguments must outlive the parsing.
void add_device_flag(CLI::App& command, GpuArguments& arguments, const std::string& group);
void add_gpu_flags(CLI::App& command, GpuArguments& arguments, const std::string& group);
/// Throws ConfigError when one of them was given, but the executor has no GPU.
void require_fitting_gpu_flags(const CLI::App& command, const std::string& executor);
/// All of them: "--device".
std::span<const char* const> gpu_flags();

/// One GPU, its module loaded. Executors are on it in turns; it outlives them.
class Gpu {
 public:
  /// Throws HardwareAbsent with what is missing, ConfigError for flags that make no sense.
  explicit Gpu(const GpuArguments& arguments, const std::optional<Pace>& pace = {});
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() = default;

  /// All ranks share the GPU, and every value counts; `one_stream`: what they have to come to.
  [[nodiscard]] MakeExecutor all_ranks(bool one_stream = false);
  /// As --view says, with values of its own: for times.
  [[nodiscard]] MakeExecutor timed();
  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] CudaModule& module() { return *plugin_.module; }
  [[nodiscard]] Driver& driver() { return *driver_; }
  [[nodiscard]] const VirtualOptions& options() const { return options_; }
  /// "copied", "paced" or "bounced".
  [[nodiscard]] std::string links() const;
  [[nodiscard]] std::string in_words() const;
  /// What computed attention, once something did.
  [[nodiscard]] std::string attention_by() const;
  /// A line on stderr: what computed attention; none where nothing did.
  void say_attention() const;

 private:
  CudaPlugin plugin_;
  std::unique_ptr<Driver> driver_;
  std::unique_ptr<Device> device_;
  VirtualOptions options_;
  bool middle_ = true;
};

class Crew;

/// One GPU of each process, and NCCL between them: rank r is process r. Executors are on it in turns.
class GpuCrew {
 public:
  /// All processes make one. `local`: which of the processes on its machine this is, and so which GPU it takes unless
  /// --device says. Throws HardwareAbsent, ConfigError.
  GpuCrew(const GpuArguments& arguments, Crew& crew, int local);

  [[nodiscard]] MakeExecutor checked();
  [[nodiscard]] MakeExecutor timed();
  /// "NVIDIA H200, ...; 8 GPUs; NVLS on"
  [[nodiscard]] std::string in_words() const;
  [[nodiscard]] std::string attention_by() const { return gpu_.attention_by(); }
  void say_attention() const { gpu_.say_attention(); }

 private:
  [[nodiscard]] NcclOptions options() const;

  Gpu gpu_;
  Crew& crew_;
  NetworkOptions network_options_;
  std::unique_ptr<Network> network_;
  std::unique_ptr<Communicators> communicators_;
};

/// "NVIDIA H200, 132 SMs, 139.8 GiB, driver 13.0, CUDA 13.0, cuBLASLt 13.1.0"
std::string in_words(const DeviceFacts& facts);

}  // namespace commfuse::validate
