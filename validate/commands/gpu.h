// SPDX-License-Identifier: Apache-2.0
// The flags of executors on GPUs, and open GPUs: one, or one per process.
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

/// The flags as written on the command line.
struct GpuArguments {
  std::string device = "auto";
  std::string view = "middle-rank";
  std::string issue = "gated";
  std::string link = "copy";
  std::string ctas = "4";
  std::string multiprocessors = "auto";
  std::string partition = "none";
  std::string attention = "auto";
  std::string level2 = "cold";
  std::string nvls = "on";
  std::string cta_policy = "default";
  std::string nccl_ctas = "auto";
  std::string nccl_p2p_channels = "auto";
  std::string nccl_register = "off";
  std::string nccl_exchange = "messages";
  bool dry_run = false;
};

/// Adds --device and --dry-run. add_gpu_flags() adds all flags of GPU executors. The arguments must outlive the
/// parsing.
void add_device_flag(CLI::App& command, GpuArguments& arguments, const std::string& group);
/// Adds --nccl-register and --nccl-exchange, which change how data moves and therefore what is checked.
void add_nccl_buffer_flags(CLI::App& command, GpuArguments& arguments, const std::string& group);
void add_gpu_flags(CLI::App& command, GpuArguments& arguments, const std::string& group);
/// Throws ConfigError if one of these flags was given and the executor does not use it, because it has no GPU, its
/// ranks do not communicate by NCCL, or they are not virtual.
void require_fitting_gpu_flags(const CLI::App& command, const std::string& executor);
/// Returns the names of all flags of GPU executors, such as "--device".
std::span<const char* const> gpu_flags();

/// Returns the plugin if it finds a GPU. Throws HardwareAbsent with what is missing.
CudaPlugin usable_plugin();

/// One GPU with its module loaded; in a dry run, a device that only counts calls. Only one executor at a time may use
/// the GPU, which must outlive all executors.
class Gpu {
 public:
  /// Opens the device that --device names, by default the first one. Throws HardwareAbsent with what is missing, and
  /// ConfigError for invalid flags.
  explicit Gpu(const GpuArguments& arguments, const std::optional<Pace>& pace = {});
  /// Opens `device`, unless --device names another device, with a plugin that is already loaded.
  Gpu(const GpuArguments& arguments, CudaPlugin plugin, int device);
  Gpu(const Gpu&) = delete;
  Gpu& operator=(const Gpu&) = delete;
  ~Gpu() = default;

  /// Makes executors whose ranks all share the GPU and whose values are checked. With `one_stream` they compute the
  /// values that other executors have to match. They give up if the device does not finish within `patience`.
  [[nodiscard]] MakeExecutor all_ranks(bool one_stream = false, Duration patience = VirtualOptions{}.patience);
  /// Makes executors for timing, which follow --view and fill their memory themselves.
  [[nodiscard]] MakeExecutor timed();
  /// Returns true if nothing runs and calls are only counted.
  [[nodiscard]] bool is_dry() const { return counting_ != nullptr; }
  /// Returns "dry run: 1234 launches, 0.5 s on the device, 0.1 s on the host". The host's time starts when the GPU is
  /// opened.
  [[nodiscard]] std::string dry_run_in_words() const;
  /// Reads clocks, power and temperature now. `when` is "before" or "after".
  [[nodiscard]] DeviceReading reading(const std::string& when, int rank = 0) const;
  [[nodiscard]] Device& device() { return *device_; }
  [[nodiscard]] CudaModule& module() { return *plugin_.module; }
  [[nodiscard]] Driver& driver() { return *driver_; }
  [[nodiscard]] const VirtualOptions& options() const { return options_; }
  /// Returns "copied", "copied plainly", "paced" or "bounced".
  [[nodiscard]] std::string links() const;
  [[nodiscard]] std::string in_words() const;
  /// Returns true if the GPU is software, so that its times are not those of a GPU.
  [[nodiscard]] bool is_software() const { return driver_->facts().is_software(); }
  /// Prints a line on stderr if the GPU is software.
  void note_software() const;
  /// Returns the libraries that have computed attention so far; empty if none has.
  [[nodiscard]] std::string attention_by() const;
  /// Prints on stderr which library computed attention, if the program has attention.
  void note_attention() const;

 private:
  void open(const GpuArguments& arguments, int device);
  void leave_sms_to_copies(const GpuArguments& arguments);

  CudaPlugin plugin_;
  std::unique_ptr<Driver> driver_;
  const CountingDriver* counting_ = nullptr;  // The driver, in a dry run.
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now();
  std::unique_ptr<Device> device_;
  VirtualOptions options_;
  bool middle_ = true;
};

class Crew;

/// Links between processes that have one GPU each.
enum class CrewLinks : std::uint8_t {
  nccl,
  peers,  ///< Copies into each other's memory, for processes on one machine.
};
/// Returns the links of --executor nccl and cuda-peer; nothing for other executors, whose ranks do not have a GPU each.
std::optional<CrewLinks> crew_links_of(std::string_view executor);

/// The GPUs of several processes, one per process, connected by NCCL or by shared memory: rank r is process r. Only one
/// executor at a time may use them.
class GpuCrew {
 public:
  /// The first `ranks` processes form the crew; other processes take no part. A process takes the GPU that --device
  /// names; by default, the n-th process of a machine takes its n-th visible GPU. Throws HardwareAbsent if there is no
  /// usable GPU, and ConfigError for invalid flags, for two processes with the same GPU, and for peers on several
  /// machines.
  GpuCrew(const GpuArguments& arguments, Crew& crew, int ranks, CrewLinks links);

  [[nodiscard]] MakeExecutor checked();
  [[nodiscard]] MakeExecutor timed();
  /// Makes executors with all ranks on this process's GPU, one op after another. Their results have the bits that every
  /// rank has to match (T1).
  [[nodiscard]] MakeExecutor oracle() { return gpu_->all_ranks(true); }
  /// Returns the readings of all ranks, on the leader.
  [[nodiscard]] std::vector<DeviceReading> readings(const std::string& when) const;
  /// Returns whether collectives sum in an order that NCCL chooses.
  [[nodiscard]] bool library_sums() const { return network_ != nullptr; }
  /// Returns "nccl" or "peers", as records write it.
  [[nodiscard]] std::string links() const { return network_ != nullptr ? "nccl" : "peers"; }
  /// Returns "nccl" or "cuda-peer".
  [[nodiscard]] std::string executor() const { return network_ != nullptr ? "nccl" : "cuda-peer"; }
  /// Returns "NVIDIA H200, ...; 8 GPUs, NVLS on, NCCL 2.29.3 at run time", followed by a note on each option that
  /// NCCL's version or the environment overrides.
  [[nodiscard]] std::string in_words() const;
  [[nodiscard]] std::string attention_by() const { return gpu_->attention_by(); }
  void note_attention() const { gpu_->note_attention(); }

 private:
  void connect_by_nccl();
  void open_peers();
  [[nodiscard]] MakeExecutor executor_of(LaunchMode mode, bool timed);
  [[nodiscard]] RankOptions options(LaunchMode mode, bool timed) const;

  Crew& crew_;
  int ranks_;
  std::unique_ptr<Gpu> gpu_;
  NetworkOptions network_options_;
  std::unique_ptr<Network> network_;  // Null if the ranks are linked by `peers_`.
  std::unique_ptr<Communicators> communicators_;
  std::unique_ptr<Peers> peers_;
  std::unique_ptr<PeerWindows> windows_;
};

/// Returns clocks, power and temperature of the GPU with this UUID, now.
DeviceReading device_reading(const std::string& uuid, const std::string& when, int rank);
/// Prints on stderr that the measured times are not those of a GPU.
void note_software_gpu();

/// Returns the NCCL_*, CUDA_* and NVIDIA_* variables of the environment as they are now, sorted by name.
Words gpu_variables();

/// Returns "NVIDIA H200, 132 SMs, 139.8 GiB, driver 13.0, CUDA 13.0, cuBLASLt 13.1.0", followed by the version of NCCL
/// if the facts have it.
std::string in_words(const DeviceFacts& facts);

}  // namespace commfuse::validate
