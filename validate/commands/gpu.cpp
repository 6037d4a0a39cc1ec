// SPDX-License-Identifier: Apache-2.0
#include "validate/commands/gpu.h"

#include <fmt/format.h>

#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <utility>

#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/text/counted.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/commands/setting_flags.h"
#include "validate/cuda/nvml.h"
#include "validate/mpi/crew.h"
#include "validate/mpi/rank_run.h"

namespace commfuse::validate {

namespace {

constexpr std::array<std::string_view, 2> views{"middle-rank", "all-ranks"};
constexpr std::array<std::pair<std::string_view, LaunchMode>, 3> launches{
    {{"gated", LaunchMode::gated}, {"stream", LaunchMode::stream}, {"graph", LaunchMode::graph}}};
constexpr std::array<std::pair<std::string_view, LinkKind>, 2> link_kinds{
    {{"copy", LinkKind::copy}, {"bounce", LinkKind::bounce}}};
constexpr std::array<std::string_view, 2> switches{"on", "off"};
constexpr std::array<std::string_view, 3> registrations{"on", "off", "windows"};
constexpr std::array<std::string_view, 2> exchanges{"messages", "put"};
constexpr std::array<std::string_view, 2> cache_states{"cold", "warm"};
constexpr std::array<std::pair<std::string_view, int>, 3> cta_policies{
    {{"default", 0}, {"efficiency", 1}, {"zero", 2}}};
constexpr std::array<std::pair<std::string_view, AttentionKernel>, 3> attention_kernels{
    {{"auto", AttentionKernel::any}, {"cudnn", AttentionKernel::cudnn}, {"cublaslt", AttentionKernel::cublaslt}}};
constexpr std::array all_flags{"--device",
                               "--view",
                               "--issue",
                               "--link",
                               "--link-ctas",
                               "--multiprocessors",
                               "--l2",
                               "--partition",
                               "--attention-by",
                               "--nvls",
                               "--cta-policy",
                               "--nccl-ctas",
                               "--nccl-p2p-channels",
                               "--nccl-register",
                               "--nccl-exchange",
                               "--dry-run"};
constexpr std::array nccl_flags{"--nvls",          "--cta-policy",   "--nccl-ctas", "--nccl-p2p-channels",
                                "--nccl-register", "--nccl-exchange"};
constexpr std::array virtual_flags{"--view", "--link", "--link-ctas"};

template <class Value, std::size_t count>
Value chosen(std::string_view flag, const std::string& word,
             const std::array<std::pair<std::string_view, Value>, count>& known, std::string_view what) {
  std::array<std::string_view, count> names;
  std::ranges::transform(known, names.begin(), [](const auto& entry) { return entry.first; });
  sim::require_word(flag, word, names, what);
  return std::ranges::find(known, word, [](const auto& entry) { return entry.first; })->second;
}

int whole_number(std::string_view flag, const std::string& text, std::int64_t least, std::int64_t largest) {
  const std::optional<std::int64_t> number = parse_integer(text);
  if (!number || *number < least || *number > largest) {
    throw ConfigError(fmt::format("{}: {} is not a whole number from {} to {}; write one, as in {} {}", flag,
                                  in_quotes(text), least, largest, flag, least));
  }
  return static_cast<int>(*number);
}

NetworkOptions network_options_of(const GpuArguments& arguments) {
  sim::require_word("--nvls", arguments.nvls, switches, "value");
  NetworkOptions options{.nvls = arguments.nvls == "on",
                         .cta_policy = chosen("--cta-policy", arguments.cta_policy, cta_policies, "value")};
  if (arguments.nccl_ctas != "auto") {
    options.max_ctas = whole_number("--nccl-ctas", arguments.nccl_ctas, 1, 64);
  }
  if (arguments.nccl_p2p_channels != "auto") {
    options.least_p2p_channels = whole_number("--nccl-p2p-channels", arguments.nccl_p2p_channels, 1, 64);
  }
  sim::require_word("--nccl-register", arguments.nccl_register, registrations, "value");
  sim::require_word("--nccl-exchange", arguments.nccl_exchange, exchanges, "value");
  options.windows = arguments.nccl_register == "windows";
  options.registered = arguments.nccl_register != "off";
  options.puts = arguments.nccl_exchange == "put";
  if (options.puts && arguments.issue == "graph") {
    throw ConfigError(
        "--nccl-exchange put cannot be combined with --issue graph, which cannot count signals; use --issue gated or "
        "stream, or --nccl-exchange messages");
  }
  return options;
}

/// Returns the options. Also checks the NCCL options, before any library is loaded.
VirtualOptions options_of(const GpuArguments& arguments, const std::optional<Pace>& pace) {
  static_cast<void>(network_options_of(arguments));
  VirtualOptions options{.mode = chosen("--issue", arguments.issue, launches, "mode"),
                         .attention = chosen("--attention-by", arguments.attention, attention_kernels, "kernel")};
  options.link = {.kind = chosen("--link", arguments.link, link_kinds, "link"),
                  .ctas = whole_number("--link-ctas", arguments.ctas, 1, 64)};
  if (pace) {
    if (options.link.kind != LinkKind::copy) {
      throw ConfigError(
          "--link bounce has the bandwidth of the host's bus; remove --link-bandwidth and --link-latency, or --link");
    }
    options.link.kind = LinkKind::paced;
    options.link.pace = *pace;
  }
  if (arguments.multiprocessors != "all" && arguments.multiprocessors != "auto") {
    options.multiprocessors = whole_number("--multiprocessors", arguments.multiprocessors, 1, 1024);
  }
  if (arguments.partition != "none") {
    options.partition = whole_number("--partition", arguments.partition, 1, 1024);
  }
  sim::require_word("--view", arguments.view, views, "view");
  sim::require_word("--l2", arguments.level2, cache_states, "state");
  options.cold_level2 = arguments.level2 == "cold";
  return options;
}

}  // namespace

void add_device_flag(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command
      .add_option("--device", arguments.device,
                  "GPU, counted from 0; with nccl and cuda-peer each process uses its own")
      ->group(group)
      ->capture_default_str()
      ->type_name("NUMBER");
  command
      .add_flag("--dry-run", arguments.dry_run,
                "Print the launches and their estimated time, and run nothing; needs no GPU")
      ->group(group);
}

namespace {

void add_order_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  offers_words(
      command
          .add_option("--view", arguments.view,
                      "middle-rank: one rank has the whole GPU and represents its peers; all-ranks: ranks share it")
          ->group(group)
          ->capture_default_str(),
      {"middle-rank", "all-ranks"});
  offers_words(
      command
          .add_option(
              "--issue", arguments.issue,
              "gated: issue everything before the first kernel runs; stream: while kernels run; graph: as one graph")
          ->group(group)
          ->capture_default_str(),
      {"gated", "stream", "graph"});
  offers_words(
      command
          .add_option("--l2", arguments.level2,
                      "L2 cache before each timed run: cold (overwritten) or warm (as the previous run left it)")
          ->group(group)
          ->capture_default_str(),
      {"cold", "warm"});
}

void add_link_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  offers_words(command
                   .add_option("--link", arguments.link,
                               "copy: a kernel copies inside the GPU, paced by --link-bandwidth if given; bounce: copy "
                               "engines copy through host memory")
                   ->group(group)
                   ->capture_default_str(),
               {"copy", "bounce"});
  command.add_option("--link-ctas", arguments.ctas, "CTAs of a copy kernel")->group(group)->capture_default_str();
}

void add_compute_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  command
      .add_option("--multiprocessors", arguments.multiprocessors,
                  "SMs available to GEMMs; auto leaves --link-ctas of them to copies between virtual ranks")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--partition", arguments.partition,
                  "cuda-virtual: SMs for everything but communication, reserved by green contexts")
      ->group(group)
      ->capture_default_str();
  offers_words(command
                   .add_option("--attention-by", arguments.attention,
                               "Library for attention: cudnn (one fused kernel); cublaslt (two GEMMs and a softmax); "
                               "auto: cudnn if it is found and supports the shape")
                   ->group(group)
                   ->capture_default_str(),
               {"auto", "cudnn", "cublaslt"});
}

void add_nccl_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  offers_words(command.add_option("--nvls", arguments.nvls, "nccl: whether collectives may sum in the switch: on, off")
                   ->group(group)
                   ->capture_default_str(),
               {"on", "off"});
  offers_words(command
                   .add_option("--cta-policy", arguments.cta_policy,
                               "nccl: policy for the SMs of collectives: default, efficiency, zero (copy engines where "
                               "NCCL has them, from 2.28; registers buffers as symmetric windows)")
                   ->group(group)
                   ->capture_default_str(),
               {"default", "efficiency", "zero"});
  command.add_option("--nccl-ctas", arguments.nccl_ctas, "nccl: maximum CTAs per collective")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--nccl-p2p-channels", arguments.nccl_p2p_channels,
                  "nccl: minimum channels for messages (NCCL_MIN_P2P_NCHANNELS); a message uses only part of the "
                  "channels, so raising the minimum speeds up a ring")
      ->group(group)
      ->capture_default_str();
}

}  // namespace

void add_nccl_buffer_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  offers_words(command
                   .add_option("--nccl-register", arguments.nccl_register,
                               "nccl: register buffers, so that NCCL need not copy: off; on (from 2.19); windows, as "
                               "symmetric windows (from 2.27)")
                   ->group(group)
                   ->capture_default_str(),
               {"on", "off", "windows"});
  offers_words(command
                   .add_option("--nccl-exchange", arguments.nccl_exchange,
                               "nccl: exchange by messages (ncclSend, ncclRecv) or put (ncclPutSignal into symmetric "
                               "windows, from 2.29), which needs no SMs between GPUs of one machine")
                   ->group(group)
                   ->capture_default_str(),
               {"messages", "put"});
}

void add_gpu_flags(CLI::App& command, GpuArguments& arguments, const std::string& group) {
  add_device_flag(command, arguments, group);
  add_order_flags(command, arguments, group);
  add_link_flags(command, arguments, group);
  add_compute_flags(command, arguments, group);
  add_nccl_flags(command, arguments, group);
  add_nccl_buffer_flags(command, arguments, group);
}

std::span<const char* const> gpu_flags() { return all_flags; }

namespace {

/// Returns the first of these flags that the command was given; nullptr if there is none.
const char* first_given(const CLI::App& command, std::span<const char* const> flags) {
  const auto first_set = std::ranges::find_if(
      flags, [&](const char* flag) { return command.get_option_no_throw(flag) != nullptr && command.count(flag) > 0; });
  return first_set == flags.end() ? nullptr : *first_set;
}

}  // namespace

void require_fitting_gpu_flags(const CLI::App& command, const std::string& executor) {
  const bool is_virtual = executor == "cuda-virtual";
  if (!is_virtual && !crew_links_of(executor)) {
    if (const char* flag = first_given(command, all_flags)) {
      throw ConfigError(
          fmt::format("{0} needs a GPU; add --executor cuda-virtual, cuda-peer or nccl, or remove {0}", flag));
    }
    return;
  }
  if (const char* flag = first_given(command, nccl_flags); flag != nullptr && executor != "nccl") {
    throw ConfigError(
        fmt::format("{0} configures NCCL, which {1} does not use; add --executor nccl, or remove {0}", flag, executor));
  }
  if (const char* flag = first_given(command, virtual_flags); flag != nullptr && !is_virtual) {
    throw ConfigError(
        fmt::format("{0} is for virtual ranks on one GPU; add --executor cuda-virtual, or remove {0}", flag));
  }
}

CudaPlugin usable_plugin() {
  CudaPlugin plugin = load_cuda_plugin();
  if (!plugin.usable()) {
    throw HardwareAbsent(fmt::format("no usable GPU: {}", plugin.missing));
  }
  return plugin;
}

Gpu::Gpu(const GpuArguments& arguments, const std::optional<Pace>& pace)
    : options_(options_of(arguments, pace)), middle_(arguments.view == "middle-rank") {
  const int device = arguments.device == "auto" ? 0 : whole_number("--device", arguments.device, 0, 1023);
  if (!arguments.dry_run) {
    plugin_ = usable_plugin();
  }
  open(arguments, device);
  leave_sms_to_copies(arguments);
  note_software();
}

Gpu::Gpu(const GpuArguments& arguments, CudaPlugin plugin, int device)
    : plugin_(std::move(plugin)), options_(options_of(arguments, {})), middle_(arguments.view == "middle-rank") {
  open(arguments, arguments.device == "auto" ? device : whole_number("--device", arguments.device, 0, 1023));
}

void Gpu::open(const GpuArguments& arguments, int device) {
  if (arguments.dry_run) {
    auto counting = std::make_unique<CountingDriver>();
    counting_ = counting.get();
    driver_ = std::move(counting);
  } else {
    if (device >= plugin_.module->devices()) {
      const int devices = plugin_.module->devices();
      throw HardwareAbsent(fmt::format("--device {}: this machine has {}, counted from 0; choose one of them", device,
                                       counted(devices, "GPU")));
    }
    driver_ = plugin_.module->open(device);
  }
  device_ = std::make_unique<Device>(*driver_);
}

/// Leaves SMs free for the copy kernel, which would otherwise wait for the last wave of a GEMM on all SMs.
void Gpu::leave_sms_to_copies(const GpuArguments& arguments) {
  const bool copies_take_sms = options_.link.kind == LinkKind::copy || options_.link.kind == LinkKind::paced;
  if (arguments.multiprocessors == "auto" && copies_take_sms && options_.partition == 0) {
    options_.multiprocessors = std::max(1, driver_->facts().multiprocessors - options_.link.ctas);
  }
}

std::string Gpu::dry_run_in_words() const {
  const std::chrono::duration<double> host = std::chrono::steady_clock::now() - opened_;
  return fmt::format("dry run: {} launches, {:.1f} s on the device, {:.1f} s on the host", counting_->launches(),
                     to_seconds(counting_->device_time()), host.count());
}

DeviceReading Gpu::reading(const std::string& when, int rank) const {
  return device_reading(driver_->facts().uuid, when, rank);
}

DeviceReading device_reading(const std::string& uuid, const std::string& when, int rank) {
  DeviceReading reading{.when = when, .rank = rank, .gpu = uuid};
  if (const std::optional<DeviceState> state = device_state(reading.gpu)) {
    reading.clock_mhz = state->clock_mhz;
    reading.memory_clock_mhz = state->memory_clock_mhz;
    reading.power_w = state->watts;
    reading.temperature_c = state->celsius;
    reading.throttle_reasons = state->throttled_by ? reasons_in_words(*state->throttled_by) : "";
  }
  return reading;
}

MakeExecutor Gpu::all_ranks(bool one_stream, Duration patience) {
  return [this, one_stream, patience](Lowered lowered, Sizes sizes) {
    return std::make_unique<VirtualExecutor>(std::move(lowered), std::move(sizes), *device_,
                                             VirtualOptions{.one_stream = one_stream, .patience = patience});
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

void Gpu::note_software() const {
  if (is_software()) {
    note_software_gpu();
  }
}

void note_software_gpu() {
  fmt::print(stderr, "software GPU: emulated on this machine's processor; times are not those of a GPU\n");
}

void Gpu::note_attention() const {
  if (const std::string by = driver_->attention_by(); !by.empty()) {
    fmt::print(stderr, "attention by {}\n", by);
  }
}

namespace {

void refuse_flags_that_crews_lack(const GpuArguments& arguments, CrewLinks links) {
  if (arguments.partition != "none") {
    throw ConfigError("--partition requires cuda-virtual; with nccl, use --multiprocessors to leave SMs free");
  }
  if (arguments.dry_run) {
    throw ConfigError("--dry-run requires cuda-virtual: it counts the launches of one GPU");
  }
  if (links == CrewLinks::peers && arguments.issue == "graph") {
    throw ConfigError(
        "--issue graph is not available with cuda-peer, whose flags count iterations; use gated or stream");
  }
}

/// Throws ConfigError on all ranks if they are on several machines, because memory can only be shared on one machine.
void require_one_host(Crew& crew, int ranks) {
  const std::vector<Payload> hosts = crew.gather(ranks, text_payload(crew.world().host()));
  std::string other_host;  // empty if all ranks are on this machine
  for (const Payload& host : hosts) {
    const std::string name = PayloadReader(host).get_text();
    other_host = name == crew.world().host() || !other_host.empty() ? other_host : name;
  }
  const std::vector<Payload> to_all(hosts.size(), text_payload(other_host));
  if (const std::string host = PayloadReader(crew.scatter(ranks, to_all)).get_text(); !host.empty()) {
    throw ConfigError(fmt::format("cuda-peer shares memory on one machine, but a rank is on {}; use nccl", host));
  }
}

/// Returns the keys of all ranks. Every rank must call it, and gets the whole list.
std::vector<MemoryKey> all_keys(Crew& crew, int ranks, const MemoryKey& mine) {
  PayloadWriter writer;
  writer.put(mine);
  Payload together;
  for (const Payload& key : crew.gather(ranks, writer.take())) {
    together.insert(together.end(), key.begin(), key.end());
  }
  std::vector<Payload> to_all;
  if (crew.leads()) {
    to_all.assign(static_cast<std::size_t>(ranks), together);
  }
  const Payload received = crew.scatter(ranks, std::move(to_all));
  PayloadReader reader(received);
  std::vector<MemoryKey> keys;
  while (!reader.empty()) {
    keys.push_back(reader.get<MemoryKey>());
  }
  return keys;
}

/// Returns the index of this process among the processes of its machine.
int index_on_host(Crew& crew, int ranks) {
  std::map<std::string, int> next;
  std::vector<Payload> indices;
  for (const Payload& host : crew.gather(ranks, text_payload(crew.world().host()))) {
    PayloadWriter writer;
    writer.put(next[PayloadReader(host).get_text()]++);
    indices.push_back(writer.take());
  }
  return PayloadReader(crew.scatter(ranks, std::move(indices))).get<int>();
}

/// Throws ConfigError on all ranks if two of them share a GPU, which `who` does not support. The message names the
/// first two.
void require_own_gpus(Crew& crew, int ranks, const std::string& gpu, std::string_view who) {
  std::map<std::string, std::size_t> owners;
  std::string sentence;
  const std::vector<Payload> gpus = crew.gather(ranks, text_payload(crew.world().host() + ", " + gpu));
  for (std::size_t rank = 0; rank < gpus.size() && sentence.empty(); ++rank) {
    const std::string host_and_gpu = PayloadReader(gpus[rank]).get_text();
    const auto [owner, is_new] = owners.emplace(host_and_gpu, rank);
    if (!is_new) {
      sentence = fmt::format(
          "ranks {} and {} both have the GPU {}, but {} needs one GPU per rank; start at most one process per GPU, or "
          "give each its own GPU with CUDA_VISIBLE_DEVICES",
          owner->second, rank, host_and_gpu, who);
    }
  }
  const std::vector<Payload> to_all(gpus.size(), text_payload(sentence));
  const std::string refusal = PayloadReader(crew.scatter(ranks, to_all)).get_text();
  if (!refusal.empty()) {
    throw ConfigError(refusal);
  }
}

/// Returns the leader's key on all ranks.
NetworkKey shared_key(Crew& crew, int ranks, const CudaModule& module) {
  std::vector<Payload> keys;
  if (crew.leads()) {
    const NetworkKey key = module.make_key();
    keys.assign(static_cast<std::size_t>(ranks), Payload(key.begin(), key.end()));
  }
  return PayloadReader(crew.scatter(ranks, std::move(keys))).get<NetworkKey>();
}

/// Returns "on" if collectives may sum in the switch, otherwise "off". If the user sets NCCL_ALGO, --nvls has no
/// effect, and the text says so.
std::string nvls_in_words(const NetworkOptions& options) {
  if (std::getenv("NCCL_ALGO") != nullptr) {  // NOLINT(concurrency-mt-unsafe): nobody changes it meanwhile
    return "set by NCCL_ALGO";
  }
  return options.nvls ? "on" : "off";
}

}  // namespace

std::optional<CrewLinks> crew_links_of(std::string_view executor) {
  return executor == "nccl"        ? std::optional(CrewLinks::nccl)
         : executor == "cuda-peer" ? std::optional(CrewLinks::peers)
                                   : std::nullopt;
}

GpuCrew::GpuCrew(const GpuArguments& arguments, Crew& crew, int ranks, CrewLinks links)
    : crew_(crew), ranks_(ranks), network_options_(network_options_of(arguments)) {
  network_options_.patience = crew.patience();
  refuse_flags_that_crews_lack(arguments, links);
  CudaPlugin plugin = usable_plugin();
  if (links == CrewLinks::nccl && !plugin.module->has_nccl()) {
    throw HardwareAbsent(fmt::format("--executor nccl cannot run here: {}", plugin.module->nccl_absence()));
  }
  if (links == CrewLinks::peers) {
    require_one_host(crew, ranks);
  }
  const int local_index = index_on_host(crew, ranks);
  const int visible = plugin.module->devices();
  gpu_ = std::make_unique<Gpu>(arguments, std::move(plugin), local_index % visible);
  require_own_gpus(crew, ranks, gpu_->driver().facts().uuid, links == CrewLinks::nccl ? "NCCL" : "cuda-peer");
  network_options_.graphs = gpu_->options().mode == LaunchMode::graph;
  links == CrewLinks::nccl ? connect_by_nccl() : open_peers();
  if (crew.leads()) {
    gpu_->note_software();
  }
}

void GpuCrew::connect_by_nccl() {
  network_ = gpu_->module().connect(gpu_->driver(), shared_key(crew_, ranks_, gpu_->module()), crew_.process(), ranks_,
                                    network_options_);
  communicators_ = std::make_unique<Communicators>(*network_);
  if (crew_.leads()) {
    for (const std::string& note : network_->notes()) {
      fmt::print(stderr, "note: {}\n", note);
    }
  }
}

void GpuCrew::open_peers() {
  peers_ = gpu_->module().peers(gpu_->driver());
  windows_ = std::make_unique<PeerWindows>(
      *peers_, crew_.process(), ranks_,
      [crew = &crew_, ranks = ranks_](const MemoryKey& mine) { return all_keys(*crew, ranks, mine); });
}

std::vector<DeviceReading> GpuCrew::readings(const std::string& when) const {
  const DeviceReading mine = gpu_->reading(when, crew_.process());
  PayloadWriter writer;
  writer.put_text(mine.gpu);
  writer.put_text(mine.throttle_reasons);
  writer.put(mine.clock_mhz.value_or(-1));
  writer.put(mine.memory_clock_mhz.value_or(-1));
  writer.put(mine.temperature_c.value_or(-1));
  writer.put(mine.power_w.value_or(-1.0));
  std::vector<DeviceReading> readings_by_rank;
  for (const Payload& report : crew_.gather(ranks_, writer.take())) {
    PayloadReader reader(report);
    DeviceReading reading{
        .when = when, .rank = static_cast<std::int64_t>(readings_by_rank.size()), .gpu = reader.get_text()};
    reading.throttle_reasons = reader.get_text();
    const auto if_known = [](auto value) { return value < 0 ? std::nullopt : std::optional(value); };
    reading.clock_mhz = if_known(reader.get<std::int64_t>());
    reading.memory_clock_mhz = if_known(reader.get<std::int64_t>());
    reading.temperature_c = if_known(reader.get<std::int64_t>());
    reading.power_w = if_known(reader.get<double>());
    readings_by_rank.push_back(std::move(reading));
  }
  return readings_by_rank;
}

Words gpu_variables() {
  constexpr std::array<std::string_view, 3> prefixes{"NCCL_", "CUDA_", "NVIDIA_"};
  Words variables;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::size_t equals = text.find('=');
    const bool has_prefix =
        std::ranges::any_of(prefixes, [&](std::string_view prefix) { return text.starts_with(prefix); });
    if (has_prefix && equals != std::string_view::npos) {
      variables.emplace_back(text.substr(0, equals), text.substr(equals + 1));
    }
  }
  std::ranges::sort(variables);
  return variables;
}

RankOptions GpuCrew::options(LaunchMode mode, bool timed) const {
  const auto report = [crew = &crew_, ranks = ranks_](const Payload& mine) { return crew->gather(ranks, mine); };
  return {.mode = mode,
          .multiprocessors = gpu_->options().multiprocessors,
          .attention = gpu_->options().attention,
          .random_data = timed,
          .cold_level2 = timed && gpu_->options().cold_level2,
          .patience = crew_.patience(),
          .meet = [report] { report({}); },
          .together = [report](const Execution& mine) { return reported_in(report(report_of(mine))); }};
}

MakeExecutor GpuCrew::executor_of(LaunchMode mode, bool timed) {
  return [this, mode, timed](Lowered lowered, Sizes sizes) -> std::unique_ptr<Executor> {
    if (network_ != nullptr) {
      return std::make_unique<NcclExecutor>(std::move(lowered), std::move(sizes), gpu_->device(), *communicators_,
                                            options(mode, timed));
    }
    return std::make_unique<PeerExecutor>(std::move(lowered), std::move(sizes), gpu_->device(), *windows_,
                                          options(mode, timed));
  };
}

/// Uses streams, because the first messages of a program make connections, which is impossible behind a gate.
MakeExecutor GpuCrew::checked() { return executor_of(LaunchMode::stream, false); }

MakeExecutor GpuCrew::timed() { return executor_of(gpu_->options().mode, true); }

std::string GpuCrew::in_words() const {
  std::string text = fmt::format("{}; {}, ", gpu_->in_words(), counted(ranks_, "GPU"));
  if (network_ == nullptr) {
    return text + "copies into peers' memory";
  }
  text += fmt::format("NVLS {}, NCCL {} at run time", nvls_in_words(network_options_), network_->version());
  if (network_options_.cta_policy != 0) {
    const int policy = network_options_.cta_policy;
    const auto policy_of = [](const auto& entry) { return entry.second; };
    text += fmt::format(", CTA policy {}", std::ranges::find(cta_policies, policy, policy_of)->first);
  }
  if (network_options_.least_p2p_channels > 0) {
    text += fmt::format(", at least {} P2P channels", network_options_.least_p2p_channels);
  }
  if (network_->has_windows()) {
    text += network_->has_puts() ? ", messages put into windows" : ", buffers registered as windows";
  } else if (network_options_.registered) {
    text += ", buffers registered";
  }
  for (const std::string& note : network_->notes()) {
    text += "; " + note;
  }
  return text;
}

std::string in_words(const DeviceFacts& facts) {
  constexpr double gibibyte = 1 << 30;
  std::string text =
      fmt::format("{}, {} SMs, {:.1f} GiB, driver {}, CUDA {}, cuBLASLt {}", facts.name, facts.multiprocessors,
                  static_cast<double>(facts.memory.count) / gibibyte, facts.driver, facts.runtime, facts.cublaslt);
  return facts.nccl.empty() ? text : fmt::format("{}, NCCL {}", text, facts.nccl);
}

}  // namespace commfuse::validate
