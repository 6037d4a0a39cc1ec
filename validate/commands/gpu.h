// SPDX-License-Identifier: Apache-2.0
// The flags of executors on a GPU, and an open one.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "model/record/run_record.h"
#include "validate/cuda/counting_driver.h"
#include "validate/cuda/device.h"
#include "validate/cuda/load.h"
#include "validate/cuda/nccl_executor.h"
#include "validate/cuda/peer_executor.h"
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
  std::string multiprocessors = "auto";
  std::string partition = "none";
  std::string attention = "auto";
  std::string nvls = "on";
  std::string cta_policy = "default";
  std::string nccl_ctas = "auto";
  std::string nccl_p2p_channels = "auto";
  std::string nccl_register = "off";
  bool dry_run = false;
};

/// --device alone, and those that say how times are taken. The arguments must outlive the parsing.
void add_device_flag(CLI::App& command, GpuArguments& arguments, const std::string& group);
void add_gpu_flags(CLI::App& command, GpuArguments& arguments, const std::string& group);
/// Throws ConfigError when one of them was given, but the executor has no GPU.
void require_fitting_gpu_flags(const CLI::App& command, const std::string& executor);
/// All of them: "--device".
std::span<const char* const> gpu_flags();

/// The plugin, which finds a GPU. Throws HardwareAbsent with what is missing.
CudaPlugin usable_plugin();

/// One GPU, its module loaded; for a dry run a device that only counts. Executors are on it in turns; it outlives them.
class Gpu {
 public:
  /// The device of --device, else the first. Throws HardwareAbsent with what is missing, ConfigError for flags that
  /// make no sense.
  explicit Gpu(const GpuArguments& arguments, const std::optional<Pace>& pace = {});
  /// The same with a plugin that was loaded before; `device` unless --device says another one.
  Gpu(const GpuArguments& arguments, CudaPlugin plugin, int device);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() = default;

  /// All ranks share the GPU, and every value counts; `one_stream`: what they have to come to.
  [[nodiscard]] MakeExecutor all_ranks(bool one_stream = false);
  /// As --view says, with values of its own: for times.
  [[nodiscard]] MakeExecutor timed();
  /// Whether nothing runs and calls are only counted.
  [[nodiscard]] bool is_dry() const { return counting_ != nullptr; }
  /// "dry run: 1234 launches, 0.5 s on the device, 0.1 s on the host". The host's time is that since it was opened.
  [[nodiscard]] std::string dry_run_in_words() const;
  /// Clocks, power and temperature now. `when`: "before" or "after".
  [[nodiscard]] DeviceReading reading(const std::string& when, int rank = 0) const;
  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] CudaModule& module() { return *plugin_.module; }
  [[nodiscard]] Driver& driver() { return *driver_; }
  [[nodiscard]] const VirtualOptions& options() const { return options_; }
  /// "copied", "paced" or "bounced".
  [[nodiscard]] std::string links() const;
  [[nodiscard]] std::string in_words() const;
  /// Whether it is no hardware, so that its times are not a GPU's.
  [[nodiscard]] bool is_software() const { return driver_->facts().is_software(); }
  /// A line on stderr where it is no hardware.
  void say_software() const;
  /// What computed attention, once something did.
  [[nodiscard]] std::string attention_by() const;
  /// A line on stderr: what computed attention; none where nothing did.
  void say_attention() const;

 private:
  void open(const GpuArguments& arguments, int device);
  void leave_sms_to_copies(const GpuArguments& arguments);

  CudaPlugin plugin_;
  std::unique_ptr<Driver> driver_;
  const CountingDriver* counting_ = nullptr;  // the driver, in a dry run
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::unique_ptr<Device> device_;
  VirtualOptions options_;
  bool middle_ = true;
};

class Crew;

/// What processes with a GPU each communicate by.
enum class CrewLinks : std::uint8_t {
  nccl,
  peers,  ///< Copies into each other's memory: all on one machine.
};
/// Of --executor nccl and cuda-peer; nothing: of any other, whose ranks have no GPU each.
std::optional<CrewLinks> crew_links_of(std::string_view executor);

/// One GPU of each process, and NCCL or their memory between them: rank r is process r. Executors are on it in turns.
class GpuCrew {
 public:
  /// The first `ranks` processes make one; others have no part in it. Of the visible GPUs of its machine a process
  /// takes the one that --device says, else its own by its place among the processes there. Throws HardwareAbsent, and
  /// ConfigError for flags that make no sense, two processes with the same GPU, or peers on several machines.
  GpuCrew(const GpuArguments& arguments, Crew& crew, int ranks, CrewLinks links);

  [[nodiscard]] MakeExecutor checked();
  [[nodiscard]] MakeExecutor timed();
  /// All ranks on this process's GPU, one op after another: the bits that every rank has to come to (T1).
  [[nodiscard]] MakeExecutor oracle() { return gpu_->all_ranks(true); }
  /// Those of all ranks, on the leader.
  [[nodiscard]] std::vector<DeviceReading> readings(const std::string& when) const;
  /// Whether sums of collectives have an order of their own.
  [[nodiscard]] bool library_sums() const { return network_ != nullptr; }
  /// "nccl" or "peers", as records have it.
  [[nodiscard]] std::string links() const { return network_ != nullptr ? "nccl" : "peers"; }
  /// "nccl" or "cuda-peer".
  [[nodiscard]] std::string executor() const { return network_ != nullptr ? "nccl" : "cuda-peer"; }
  /// "NVIDIA H200, ...; 8 GPUs; NVLS on"
  [[nodiscard]] std::string in_words() const;
  [[nodiscard]] std::string attention_by() const { return gpu_->attention_by(); }
  void say_attention() const { gpu_->say_attention(); }

 private:
  void connect_by_nccl();
  void open_peers();
  [[nodiscard]] MakeExecutor executor_of(LaunchMode mode, bool random_data);
  template <class Options>
  [[nodiscard]] Options options(LaunchMode mode, bool random_data) const;

  Crew& crew_;
  int ranks_;
  std::unique_ptr<Gpu> gpu_;
  NetworkOptions network_options_;
  std::unique_ptr<Network> network_;  // none: peers
  std::unique_ptr<Communicators> communicators_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<PeerWindows> windows_;
};

/// NCCL_*, CUDA_* and NVIDIA_* variables of the environment as they are now, by name.
Words gpu_variables();

/// "NVIDIA H200, 132 SMs, 139.8 GiB, driver 13.0, CUDA 13.0, cuBLASLt 13.1.0"
std::string in_words(const DeviceFacts& facts);

}  // namespace commfuse::validate
