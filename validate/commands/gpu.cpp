// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/gpu.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <stdexcept>
#include <utility>

#include "model/config/quantity.h"
#include "model/config/suggest.h"
#include "model/config_error.h"
#include "sim/commands/setting_flags.h"
#include "validate/mpi/crew.h"
#include "validate/mpi/rank_run.h"

namespace commfuse::validate {

namespace {

constexpr std::array<std::string_view, 2> views{"middle-rank", "all-ranks"};
constexpr std::array<std::pair<std::string_view, LaunchMode>, 3> launches{
    {{"gated", LaunchMode::gated}, {"stream", LaunchMode::stream}, {"graph", LaunchMode::graph}}};
constexpr std::array<std::pair<std::string_view, LinkKind>, 2> links{
    {{"copy", LinkKind::copy}, {"bounce", LinkKind::bounce}}};
constexpr std::array<std::string_view, 2> switches{"on", "off"};
constexpr std::array<std::pair<std::string_view, int>, 3> cta_policies{
    {{"default", 0}, {"efficiency", 1}, {"zero", 2}}};
constexpr std::array<std::pair<std::string_view, AttentionKernel>, 3> attention_kernels{
    {{"auto", AttentionKernel::any}, {"cudnn", AttentionKernel::cudnn}, {"cublaslt", AttentionKernel::cublaslt}}};
constexpr std::array all_flags{
    "--device",       "--view",         "--issue", "--link",       "--link-ctas", "--multiprocessors",
    "--partition",    "--attention-by", "--nvls",  "--cta-policy", "--nccl-ctas", "--nccl-p2p-channels",
    "--nccl-register"};

template <class Value, std::size_t count>
Value chosen(std::string_view flag, const std::string& word,
             const std::array<std::pair<std::string_view, Value>, count>& known, std::string_view what) {
  std::array<std::string_view, count> names;
  std::ranges::transform(known, names.begin(), [](const auto& one) { return one.first; });
  sim::require_word(flag, word, names, what);
  return std::ranges::find(known, word, [](const auto& one) { return one.first; })->second;
}

int whole_number(std::string_view flag, const std::string& text, std::int64_t least, std::int64_t most) {
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number < least || *number > most) {
    throw ConfigError(fmt::format("{}: {} is no whole number from {} to {}; write one, as in {} {}", flag,
                                  in_quotes(text), least, most, flag, least));
  }
  return static_cast<int>(*number);
}

NetworkOptions network_options_of(const GpuArguments& arguments) {
  sim::require_word("--nvls", arguments.nvls, switches, "value");
  NetworkOptions options{.nvls = arguments.nvls == "on",
                         .cta_policy = chosen("--cta-policy", arguments.cta_policy, cta_policies, "value")};
  if (arguments.nccl_ctas != "auto") {
    options.most_ctas = whole_number("--nccl-ctas", arguments.nccl_ctas, 1, 64);
  }
  if (arguments.nccl_p2p_channels != "auto") {
    options.least_p2p_channels = whole_number("--nccl-p2p-channels", arguments.nccl_p2p_channels, 1, 64);
  }
  sim::require_word("--nccl-register", arguments.nccl_register, switches, "value");
  options.registered = arguments.nccl_register == "on";
  return options;
}

/// Those of nccl are checked too, before anything is loaded.
VirtualOptions options_of(const GpuArguments& arguments, const std::optional<Pace>& pace) {
  static_cast<void>(network_options_of(arguments));
  VirtualOptions options{.mode = chosen("--issue", arguments.issue, launches, "mode"),
                         .attention = chosen("--attention-by", arguments.attention, attention_kernels, "kernel")};
  options.link = {.kind = chosen("--link", arguments.link, links, "link"),
                  .ctas = whole_number("--link-ctas", arguments.ctas, 1, 64)};
  if (pace) {
    if (options.link.kind != LinkKind::copy) {
      throw ConfigError(
          "--link bounce has the bandwidth of the host's bus; leave out --link-bandwidth and "
          "--link-latency, or --link");
    }
    options.link.kind = LinkKind::paced;
    options.link.pace = *pace;
  }
  if (arguments.multiprocessors != "all") {
    options.multiprocessors = whole_number("--multiprocessors", arguments.multiprocessors, 1, 1024);
  }
  if (arguments.partition != "none") {
    options.partition = whole_number("--partition", arguments.partition, 1, 1024);
  }
  sim::require_word("--view", arguments.view, views, "view");
  return options;
}

}  // namespace

void add_device_flag(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command.add_option("--device", arguments.device, "Which GPU, counted from 0; of nccl by itself each process its own")
      ->group(group)
      ->capture_default_str()
      ->type_name("NUMBER");
}

namespace {

void add_order_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command
      .add_option("--view", arguments.view,
                  "middle-rank: one rank has the whole GPU, its peers do what it does; all-ranks: they share it")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--issue", arguments.issue,
                  "gated: all is issued before the first kernel runs; stream: while they run; graph: as one")
      ->group(group)
      ->capture_default_str();
}

void add_link_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command
      .add_option("--link", arguments.link,
                  "copy: by a kernel inside the GPU, at the pace of --link-bandwidth if that is given; bounce: through "
                  "the host's memory by copy engines")
      ->group(group)
      ->capture_default_str();
  command.add_option("--link-ctas", arguments.ctas, "Blocks of threads that a copying kernel has")
      ->group(group)
      ->capture_default_str();
}

void add_compute_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command.add_option("--multiprocessors", arguments.multiprocessors, "So many products make do with")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--partition", arguments.partition,
                  "Of cuda-virtual: all but communication runs on so many multiprocessors, set apart by green contexts")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--attention-by", arguments.attention,
                  "Who computes it: cudnn, by one fused kernel; cublaslt, by two products and a softmax between them; "
                  "auto: cudnn where it is found and takes the shape")
      ->group(group)
      ->capture_default_str();
}

void add_nccl_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command.add_option("--nvls", arguments.nvls, "Of nccl: on, off; whether collectives may add up in the switch")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--cta-policy", arguments.cta_policy,
                  "Of nccl: default, efficiency, zero; how many multiprocessors collectives ask for")
      ->group(group)
      ->capture_default_str();
  command.add_option("--nccl-ctas", arguments.nccl_ctas, "Of nccl: at most so many blocks of threads a collective")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--nccl-p2p-channels", arguments.nccl_p2p_channels,
                  "Of nccl: at least so many channels for messages (NCCL_MIN_P2P_NCHANNELS); a message gets a share of "
                  "them, so more make a ring faster")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--nccl-register", arguments.nccl_register,
                  "Of nccl: on, off; whether buffers are made known to it, so that it need not copy (from 2.19)")
      ->group(group)
      ->capture_default_str();
}

}  // namespace

void add_gpu_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  add_device_flag(command, arguments, group);
  add_order_flags(command, arguments, group);
  add_link_flags(command, arguments, group);
  add_compute_flags(command, arguments, group);
  add_nccl_flags(command, arguments, group);
}

std::span<const char* const> gpu_flags() { return all_flags; }

void require_fitting_gpu_flags(const CLI::App& command, const std::string& executor) {
  if (executor == "cuda-virtual" || executor == "nccl") {
    return;
  }
  for (const char* flag : all_flags) {
    if (command.get_option_no_throw(flag) != nullptr && command.count(flag) > 0) {
      throw ConfigError(
          fmt::format("{} is of a GPU; add --executor cuda-virtual or --executor nccl, or leave it out", flag));
    }
  }
}

Gpu::Gpu(const GpuArguments& arguments, const std::optional<Pace>& pace)
    : options_(options_of(arguments, pace)), middle_(arguments.view == "middle-rank") {
  const int device = arguments.device == "auto" ? 0 : whole_number("--device", arguments.device, 0, 1023);
  plugin_ = load_cuda_plugin();
  if (!plugin_.usable()) {
    throw HardwareAbsent(fmt::format("nothing can run on a GPU here: {}", plugin_.missing));
  }
  if (device >= plugin_.module->devices()) {
    throw HardwareAbsent(
        fmt::format("--device {}: there are {} GPUs here; choose one from 0 on", device, plugin_.module->devices()));
  }
  driver_ = plugin_.module->open(device);
  device_ = std::make_unique<Device>(*driver_);
}

MakeExecutor Gpu::all_ranks(bool one_stream) {
  return [this, one_stream](Lowered lowered, Sizes sizes) {
    return std::make_unique<VirtualExecutor>(std::move(lowered), std::move(sizes), *device_,
                                             VirtualOptions{.one_stream = one_stream});
  };
}

MakeExecutor Gpu::timed() {
  return [this](Lowered lowered, Sizes sizes) {
    VirtualOptions options = options_;
    options.random_data = true;
    if (middle_) {
      options.middle = lowered.program->mesh.ranks() / 2;
    }
    return std::make_unique<VirtualExecutor>(std::move(lowered), std::move(sizes), *device_, options);
  };
}

std::string Gpu::links() const {
  switch (options_.link.kind) {
    case LinkKind::copy: return "copied";
    case LinkKind::paced: return "paced";
    case LinkKind::plain: return "copied plainly";
    case LinkKind::bounce: return "bounced";
  }
  return "copied";
}

std::string Gpu::in_words() const { return validate::in_words(driver_->facts()); }

std::string Gpu::attention_by() const { return driver_->attention_by(); }

void Gpu::say_attention() const {
  if (const std::string by = driver_->attention_by(); !by.empty()) {
    fmt::print(stderr, "attention by {}\n", by);
  }
}

namespace {

/// The leader tells all others the key.
class TellKey final : public Activity {
 public:
  TellKey(Crew& crew, std::optional<NetworkKey> key) : crew_(crew), key_(key) {}
  void begin() override {
    for (int other = 1; crew_.leads() && other < crew_.processes(); ++other) {
      crew_.send(other, {.kind = Note::Kind::data, .body = Payload(key_->begin(), key_->end())});
    }
  }
  void take(int from, const Note& note) override {
    if (crew_.leads() || from != 0 || note.body.size() != sizeof(NetworkKey)) {
      throw std::runtime_error(
          fmt::format("process {} tells of a key that is not of this program; run the same program everywhere", from));
    }
    key_.emplace();
    std::ranges::copy(note.body, key_->begin());
  }
  [[nodiscard]] bool done() const override { return key_.has_value(); }
  [[nodiscard]] const NetworkKey& key() const { return *key_; }

 private:
  Crew& crew_;
  std::optional<NetworkKey> key_;
};

/// Unless somebody said which, the local-th GPU.
GpuArguments with_device(GpuArguments arguments, int local) {
  if (arguments.partition != "none") {
    throw ConfigError(
        "--partition is of cuda-virtual; under nccl --multiprocessors leaves room for communication, so write that");
  }
  if (arguments.device == "auto") {
    arguments.device = fmt::format("{}", local);
  }
  return arguments;
}

}  // namespace

GpuCrew::GpuCrew(const GpuArguments& arguments, Crew& crew, int local)
    : gpu_(with_device(arguments, local)), crew_(crew), network_options_(network_options_of(arguments)) {
  if (!gpu_.module().has_nccl()) {
    throw HardwareAbsent("--executor nccl cannot run here: this build has no NCCL; install it and build again");
  }
  TellKey tell(crew, crew.leads() ? std::optional(gpu_.module().make_key()) : std::nullopt);
  crew.play(crew.processes(), tell);
  network_ = gpu_.module().connect(gpu_.driver(), tell.key(), crew.process(), crew.processes(), network_options_);
  communicators_ = std::make_unique<Communicators>(*network_);
}

NcclOptions GpuCrew::options() const {
  const auto report = [crew = &crew_](const Payload& mine) { return crew->gather(crew->processes(), mine); };
  return {.mode = gpu_.options().mode,
          .multiprocessors = gpu_.options().multiprocessors,
          .attention = gpu_.options().attention,
          .meet = [report] { report({}); },
          .together = [report](const Execution& mine) { return reported_in(report(report_of(mine))); }};
}

/// Streamed: the first messages of a program connect, which nothing behind a gate can.
MakeExecutor GpuCrew::checked() {
  return [this](Lowered lowered, Sizes sizes) {
    NcclOptions streamed = options();
    streamed.mode = LaunchMode::stream;
    return std::make_unique<NcclExecutor>(std::move(lowered), std::move(sizes), gpu_.device(), *communicators_,
                                          streamed);
  };
}

MakeExecutor GpuCrew::timed() {
  return [this](Lowered lowered, Sizes sizes) {
    NcclOptions timed = options();
    timed.random_data = true;
    return std::make_unique<NcclExecutor>(std::move(lowered), std::move(sizes), gpu_.device(), *communicators_, timed);
  };
}

std::string GpuCrew::in_words() const {
  std::string text = fmt::format("{}; {} GPUs, NVLS {}, NCCL {} at run time", gpu_.in_words(), crew_.processes(),
                                 network_options_.nvls ? "on" : "off", network_->version());
  if (network_options_.least_p2p_channels > 0) {
    text += fmt::format(", at least {} P2P channels", network_options_.least_p2p_channels);
  }
  return text + (network_options_.registered ? ", buffers registered" : "");
}

std::string in_words(const DeviceFacts& facts) {
  constexpr double gibibyte = 1 << 30;
  std::string text =
      fmt::format("{}, {} SMs, {:.1f} GiB, driver {}, CUDA {}, cuBLASLt {}", facts.name, facts.multiprocessors,
                  static_cast<double>(facts.memory.count) / gibibyte, facts.driver, facts.runtime, facts.cublaslt);
  return facts.nccl.empty() ? text : fmt::format("{}, NCCL {}", text, facts.nccl);
}

}  // namespace commfuse::validate
