// SPDX-License-Identifier: Apache-2.0
#include "sim/calibrate/observations.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "model/config_error.h"
#include "model/expect/message.h"
#include "model/fit/parameter_yaml.h"
#include "model/formats/nccl_tests.h"
#include "model/text/counted.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "model/traces/kineto_events.h"
#include "sim/calibrate/chakra.h"
#include "sim/calibrate/kineto.h"
#include "sim/calibrate/nsight.h"
#include "sim/score/all_reduce_column.h"
#include "sim/score/kinds.h"
#include "sim/score/layer_columns.h"
#include "sim/score/row.h"
#include "sim/score/sizes.h"
#include "sim/score/table.h"

namespace commfuse::calibrate {

namespace {

namespace fs = std::filesystem;
using score::Column;
using score::Row;
using score::Table;

/// Clocks may rise a little above the clock for which a peak is stated.
constexpr double max_share_of_peak = 1.05;
/// A sender may finish while buffers on the way are still being emptied, and timers have errors.
constexpr double max_share_of_link_rate = 1.25;

/// Returns the columns of a kind of table as the header of a CSV.
std::string header_of_kind(std::string_view name) {
  const auto kind = std::ranges::find(score::kinds(), name, &score::Kind::name);
  return kind == score::kinds().end() ? std::string() : fmt::format("{}", fmt::join(kind->columns, ","));
}

/// The kinds of tables that ObservationReader reads.
constexpr std::array<std::string_view, 10> read_kinds{
    "gemm",     "attention",  "decode_attention", "latent_decode",        "expert_layer",
    "quantize", "gemm_layer", "collective",       "framework_all_reduce", "p2p"};

/// Returns whether the table has a time, or at least two columns of one of the read kinds.
bool resembles_measurements(const Table& table) {
  return table.column("time_us").exists() || std::ranges::any_of(score::kinds(), [&](const score::Kind& kind) {
           return std::ranges::find(read_kinds, kind.name) != read_kinds.end() &&
                  std::ranges::count_if(kind.columns,
                                        [&](std::string_view column) { return table.column(column).exists(); }) >= 2;
         });
}

class ObservationReader {
 public:
  ObservationReader(const std::optional<std::string>& machine, const Machine* base) : chosen_(machine), base_(base) {
    seen_.machine = machine.value_or("");
  }

  void read(const fs::path& path) {
    path_ = path;
    name_ = path.filename().string();
    refuse_pipe(path);
    if (is_run_record(path)) {
      merge(observations_of(load_run_record(path.string()), name_));
      return;
    }
    if (is_kineto_trace(path)) {
      read_profile(read_kineto(path));
      return;
    }
    if (is_sqlite(path)) {
      read_profile(read_nsight_database(path));
      return;
    }
    if (is_nsight_table(path)) {
      read_profile(read_nsight_table(path));
      return;
    }
    if (is_chakra_trace(path) || is_chakra_json(path)) {
      read_profile(read_chakra(path));
      return;
    }
    const Table table = score::read_table(path);
    const score::Kind* kind = score::kind_of(table);
    if (const std::string mistake = score::repeated_column(table); kind != nullptr && !mistake.empty()) {
      throw ConfigError(fmt::format("{}:{}: {}", path.string(), table.header_line(), mistake));
    }
    if (kind == nullptr) {
      read_runs(table);
    } else if (kind->name == "gemm") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_gemm(row, whole); });
    } else if (kind->name == "attention") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_attention(row, whole); });
    } else if (kind->name == "decode_attention") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_decode_attention(row, whole); });
    } else if (kind->name == "latent_decode") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_latent_decode(row, whole); });
    } else if (kind->name == "expert_layer") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_experts(row, whole); });
    } else if (kind->name == "quantize") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_quantization(row, whole); });
    } else if (kind->name == "gemm_layer") {
      const std::map<std::int64_t, score::LayerWidths> widths = score::layer_widths_in(table);
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_kernel(row, whole, widths); });
    } else if (kind->name == "collective") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_collective(row, whole); });
    } else if (kind->name == "framework_all_reduce") {
      read_rows(table, "hw", [&](Row& row, const Table& whole) { read_custom_all_reduce(row, whole); });
    } else if (kind->name == "p2p") {
      read_rows(table, "device", [&](Row& row, const Table& whole) { read_exchange(row, whole); });
    } else {
      throw ConfigError(
          fmt::format("{}: not a table of GEMMs, attention, experts, quantization, layers, messages or all-reduces "
                      "of frameworks; do not pass this file",
                      path.string()));
    }
  }

  Observations observations() && {
    for (const auto& [sentence, count] : skipped_) {
      seen_.skipped.push_back(fmt::format("{} ({})", sentence, counted(count, "row")));
    }
    require_likely_base();
    return std::move(seen_);
  }

 private:
  /// The beginning of a file shows its kind, but bytes read from a pipe cannot be read again.
  static void refuse_pipe(const fs::path& path) {
    std::error_code error;
    if (fs::is_fifo(path, error)) {
      throw ConfigError(fmt::format(
          "{}: pipes are not supported, because the input is read more than once; give a file", path.string()));
    }
  }

  /// Logs of many programs, interleaved with NCCL's messages, may be longer than the limit for config files.
  static std::string read_log(const std::string& path) {
    constexpr std::size_t limit = std::size_t{64} << 20U;
    std::string text = read_file(path, limit);
    if (text.size() > limit) {
      throw ConfigError(fmt::format("{}: is larger than 64 MiB; remove everything but output of nccl-tests", path));
    }
    return text;
  }

  /// Reads a file that is neither a profile, a record nor a known table: output of nccl-tests, or an unknown file.
  void read_runs(const Table& table) {
    try {
      for (const NcclTestsRun& run :
           read_nccl_tests(read_log(path_.string()), path_.string(), nccl_program_in(name_))) {
        read_run(run);
      }
    } catch (const NoNcclTests&) {
      const bool is_table = resembles_measurements(table);
      if (const std::string mistake = score::mistake_in_header(table); is_table && !mistake.empty()) {
        throw ConfigError(fmt::format("{}:{}: {}", path_.string(), table.header_line(), mistake));
      }
      throw ConfigError(fmt::format(
          "{}: {}; give output of nccl-tests, a CSV of GEMMs ({}), attention ({}), layers ({}), messages ({}) or "
          "another table of docs/machines.md (attention of decoding, latent attention, experts, quantization, "
          "all-reduces of frameworks, exchanges), a record of commfuse-validate bench, a trace of PyTorch's profiler, "
          "a Nsight Systems export, or a Chakra trace",
          path_.string(),
          table.header().empty() ? "it is empty"
          : is_table             ? "its columns match no known table"
                                 : "its format is not recognized",
          header_of_kind("gemm"), header_of_kind("attention"), header_of_kind("gemm_layer"),
          header_of_kind("collective")));
    }
  }

  /// Returns whether the file begins like the records that model/record/run_record.h writes.
  static bool is_run_record(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    std::string head(64, '\0');
    in.read(head.data(), static_cast<std::streamsize>(head.size()));
    return without_byte_order_mark(head).starts_with('{') && head.find(run_record_schema) != std::string::npos;
  }

  /// All records must be of one machine, whatever the tables call it. Each delay (next_op, wake_up) comes from the last
  /// record that has it.
  void merge(Observations record) {
    if (!recorded_on_.empty() && record.machine != recorded_on_) {
      throw ConfigError(fmt::format("{}: measured on {}, but the previous record on {}; give records of one machine",
                                    path_.string(), in_quotes(record.machine), in_quotes(recorded_on_)));
    }
    recorded_on_ = record.machine;
    for (std::size_t dtype = 0; dtype < seen_.gemm.size(); ++dtype) {
      append(record.gemm[dtype], seen_.gemm[dtype]);
    }
    append(record.traffic, seen_.traffic);
    append(record.collectives, seen_.collectives);
    append(record.peers, seen_.peers);
    seen_.next_op = record.next_op ? record.next_op : seen_.next_op;
    seen_.wake_up = record.wake_up ? record.wake_up : seen_.wake_up;
    seen_.measured_on_cpus = record.measured_on_cpus;
    seen_.machine = seen_.machine.empty() ? record.machine : seen_.machine;
    seen_.skipped.insert(seen_.skipped.end(), record.skipped.begin(), record.skipped.end());
  }
  template <class Measured>
  static void append(const Measurements<Measured>& from, Measurements<Measured>& to) {
    to.source += (to.source.empty() || from.source.empty() ? "" : ", ") + from.source;
    to.rows.insert(to.rows.end(), from.rows.begin(), from.rows.end());
  }

  template <class Read>
  void read_rows(const Table& table, std::string_view machine_column, const Read& read) {
    const Column machine = table.column(machine_column);
    for (std::size_t i = 0; i < table.rows(); ++i) {
      Row row(table, i);
      const std::string row_machine(row.text(machine));
      if (chosen_ && !row_machine.empty() && row_machine != *chosen_) {
        skip(fmt::format("{}: rows of another machine", name_));
        continue;
      }
      if (seen_.machine.empty()) {
        seen_.machine = row_machine;
      } else if (!row_machine.empty() && row_machine != seen_.machine) {
        throw ConfigError(fmt::format("{}:{}: a row of {} after rows of {}; choose one with --machine", path_.string(),
                                      row.line(), in_quotes(row_machine), in_quotes(seen_.machine)));
      }
      read(row, table);
      if (!row.is_sound()) {
        seen_.faults.push_back(fmt::format("{}:{}: {}", path_.string(), row.line(), row.fault()));
      }
    }
  }

  void read_gemm(Row& row, const Table& table) {
    const score::ProductColumns columns(table);
    const GemmSize size = columns.size(row);
    const double time = row.microseconds(table.column("time_us"));
    if (row.is_sound() && !score::dtype_in_table(row.text(columns.dtype))) {
      skip(fmt::format("{}: GEMMs in {}, which the model does not support", name_, row.text(columns.dtype)));
    } else if (row.is_sound()) {
      add_gemm({size, from_seconds(1e-6 * time)}, fmt::format("{}:{}", path_.string(), row.line()));
    }
  }

  /// A GEMM that is faster than the base allows is a fault: either its time or the choice of the base is wrong.
  void add_gemm(const MeasuredGemm& gemm, const std::string& place) {
    const auto index = index_of(gemm.size.dtype);
    const double rate = flops_of(gemm.size).count / to_seconds(gemm.time);
    if (base_ != nullptr && base_->accelerator.matrix_units[index]) {
      const FlopsPerSecond peak = base_->accelerator.matrix_units[index]->dense_peak.value;
      if (rate > max_share_of_peak * peak.value) {
        seen_.faults.push_back(fmt::format(
            "{}: a GEMM of {} x {} x {} ran at {}, above the peak of {} in {}, {}; check its time, or name another "
            "--base",
            place, gemm.size.m, gemm.size.n, gemm.size.k, parameter_text(FlopsPerSecond{rate}), base_->name,
            name_of(gemm.size.dtype), parameter_text(peak)));
        return;
      }
    }
    add(seen_.gemm[index], gemm);
  }

  void read_attention(Row& row, const Table& table) {
    const AttentionSize size = score::AttentionColumns(table).size(row);
    const double time = row.microseconds(table.column("time_us"));
    if (row.is_sound()) {
      add(seen_.attention, MeasuredAttention{size, from_seconds(1e-6 * time)});
    }
  }

  void read_decode_attention(Row& row, const Table& table) {
    const score::DecodeColumns columns(table);
    const AttentionSize size = columns.size(row);
    const double time = row.microseconds(table.column("time_us"));
    if (!row.is_sound()) {
      return;
    }
    const std::string_view cache = row.text(columns.cache);
    if (row.has(columns.cache) && !score::dtype_in_table(cache)) {
      skip(fmt::format("{}: a cache in {}, a dtype that no setting can select", name_, with_escapes(cache)));
      return;
    }
    add(size.dtype == DType::fp8 ? seen_.decode_attention_fp8 : seen_.decode_attention,
        MeasuredAttention{size, from_seconds(1e-6 * time)});
  }

  void read_latent_decode(Row& row, const Table& table) {
    const score::LatentDecodeColumns columns(table);
    const LatentDecodeSize size = columns.size(row);
    const double time = row.microseconds(table.column("time_us"));
    if (!row.is_sound()) {
      return;
    }
    const std::string_view cache = row.text(columns.cache);
    if (!score::dtype_in_table(cache)) {
      skip(fmt::format("{}: a cache in {}, a dtype that no setting can select", name_, with_escapes(cache)));
      return;
    }
    add(size.dtype == DType::fp8 ? seen_.latent_decode_fp8 : seen_.latent_decode,
        MeasuredLatentDecode{size, from_seconds(1e-6 * time)});
  }

  /// Reads a call. Skips it if Columns::why_not() returns a reason; otherwise calls add_call(size, time).
  template <class Columns, class AddCall>
  void read_call(Row& row, const Table& table, const AddCall& add_call) {
    const Columns columns(table);
    const auto size = columns.size(row);
    const double time = row.microseconds(table.column("time_us"));
    if (!row.is_sound()) {
      return;
    }
    if (const std::string why_not = columns.why_not(row); !why_not.empty()) {
      skip(fmt::format("{}: {}", name_, why_not));
      return;
    }
    add_call(size, from_seconds(1e-6 * time));
  }

  void read_experts(Row& row, const Table& table) {
    read_call<score::ExpertColumns>(row, table, [&](const ExpertLayerSize& size, Duration time) {
      add(size.dtype == DType::fp8 ? seen_.experts_fp8 : seen_.experts, MeasuredExpertLayer{size, time});
    });
  }

  void read_quantization(Row& row, const Table& table) {
    read_call<score::QuantizationColumns>(row, table, [&](const QuantizationSize& size, Duration time) {
      add(seen_.quantization, MeasuredQuantization{size, time});
    });
  }

  /// Reads one kernel of a layer. Skips GEMMs, which may be from an older library than the GEMMs in other tables.
  void read_kernel(Row& row, const Table& table, const std::map<std::int64_t, score::LayerWidths>& widths) {
    const score::LayerColumns columns(table);
    const std::string op(row.text(columns.op));
    const std::int64_t rows = row.count(columns.m);
    const double time = row.microseconds(columns.time);
    const auto known = widths.find(row.count(columns.tp));
    if (!row.is_sound() || row.has(columns.n) || row.has(columns.k)) {
      return;
    }
    const std::optional<FrameworkKernelSize> size =
        known == widths.end() ? std::nullopt
                              : score::framework_kernel_of(op, rows, known->second, score::dtype_of_layer(table));
    if (!size) {
      skip(fmt::format("{}: {}, whose traffic the table does not state", name_, op));
    } else {
      add(seen_.kernels, MeasuredFrameworkKernel{op, *size, from_seconds(1e-6 * time)});
    }
  }

  void read_collective(Row& row, const Table& table) {
    const Column nodes = table.column("nodes");
    const Message message{.op = std::string(row.text(table.column("op"))),
                          .ranks = row.count(table.column("ngpus"), score::max_gpus),
                          .nodes = row.has(nodes) ? row.count(nodes, score::max_gpus) : 1,
                          .bytes = row.size(table.column("bytes")),
                          .time_us = row.microseconds(table.column("time_us")),
                          .place = fmt::format("{}:{}", path_.string(), row.line()),
                          .of_base = !table.column("hw").exists()};
    if (row.is_sound()) {
      add(message);
    }
  }

  void read_custom_all_reduce(Row& row, const Table& table) {
    const std::string kernel(row.text(table.column("kernel")));
    const std::optional<AllReduceKernel> framework = score::framework_named(kernel);
    const Message message{.op = std::string(name_of(LinkOp::all_reduce)),
                          .ranks = row.count(table.column("ngpus"), score::max_gpus),
                          .bytes = row.size(table.column("bytes")),
                          .time_us = row.microseconds(table.column("time_us")),
                          .place = fmt::format("{}:{}", path_.string(), row.line())};
    if (row.is_sound() && !framework) {
      skip(fmt::format("{}: {}: {}", name_, kernel, score::why_not_a_framework));
    } else if (row.is_sound()) {
      add(message, kernel, *framework);
    }
  }

  void read_exchange(Row& row, const Table& table) {
    const std::int64_t ranks = row.count(table.column("ngpus"), score::max_gpus);
    const std::int64_t devices_per_node = row.count(table.column("devices_per_node"), score::max_gpus);
    const Message message{.op = std::string(row.text(table.column("op"))),
                          .ranks = ranks,
                          .nodes = (ranks + devices_per_node - 1) / devices_per_node,
                          .bytes = row.size(table.column("bytes")),
                          .time_us = row.microseconds(table.column("median_us")),
                          .place = fmt::format("{}:{}", path_.string(), row.line())};
    if (row.is_sound()) {
      add(message);
    }
  }

  void read_run(const NcclTestsRun& run) {
    const auto where = [&](const std::string& place) {
      return fmt::format("{}:{}", path_.string(), place.starts_with("line ") ? place.substr(5) : place);
    };
    for (const NcclTestsMistake& mistake : run.mistakes) {
      seen_.faults.push_back(fmt::format("{}: {}", where(mistake.place), mistake.reason));
    }
    for (const std::string& note : run.notes) {
      seen_.skipped.push_back(fmt::format("{}: {}", name_, note));
    }
    for (const NcclTestsRow& row : run.rows) {
      add(Message{.op = run.op,
                  .ranks = run.ranks,
                  .nodes = run.nodes,
                  .bytes = row.bytes,
                  .time_us = row.time_us,
                  .place = where(row.place)});
    }
  }

  void read_profile(const Profile& profile) {
    for (const MeasuredGemm& gemm : profile.gemms) {
      add_gemm(gemm, path_.string());
    }
    for (const MeasuredAttention& attention : profile.attention) {
      if (base_ == nullptr || base_->accelerator.matrix_units[index_of(attention.size.dtype)]) {
        add(seen_.attention, attention);
      } else {
        skip(fmt::format("{}: attention in {}, for which the base has no peak rate", name_,
                         name_of(attention.size.dtype)));
      }
    }
    for (const MeasuredFrameworkKernel& kernel : profile.kernels) {
      add(seen_.kernels, kernel);
    }
    for (const TracedCollective& collective : profile.collectives) {
      add_traced(collective);
    }
    for (const auto& [sentence, count] : profile.skipped) {
      skipped_[with_escapes(fmt::format("{}: {}", name_, sentence))] += count;
    }
  }

  /// A group with unknown ranks may be anywhere in a job of several nodes.
  void add_traced(const TracedCollective& collective) {
    if (collective.members.empty() && base_ != nullptr &&
        (collective.world == 0 || collective.world > base_->gpus_per_node)) {
      skip(
          fmt::format("{}: {} of {} GPUs whose ranks the profile does not name, so they may be on any nodes "
                      "(PyTorch 2.4 and later name them)",
                      name_, collective.op, collective.ranks));
      return;
    }
    add(Message{.op = collective.op,
                .ranks = collective.ranks,
                .nodes = nodes_of(collective.members),
                .bytes = collective.bytes,
                .time_us = collective.time_us,
                .place = path_.string()});
  }

  /// One message of a table, of nccl-tests or of a profile; `op` is the name used in that source.
  struct Message {
    std::string op;
    std::int64_t ranks = 1;
    std::int64_t nodes = 1;
    std::int64_t bytes = 0;
    double time_us = 1.0;
    std::string place{};   // for faults
    bool of_base = false;  // ObservedCollective has the same member
  };

  /// Returns whether a message is so much faster than the base's links that its time or the choice of the base must be
  /// wrong. Records such a message as a fault. A rank sends or receives at least all data except its own share; in an
  /// exchange, all data.
  bool is_faster_than_links(const Message& message) {
    if (base_ == nullptr) {
      return false;
    }
    const bool is_exchange = link_op_named(message.op) == LinkOp::send_recv;
    const auto ranks = static_cast<double>(message.ranks);
    const auto nodes = static_cast<double>(message.nodes);
    const double moved = static_cast<double>(message.bytes) * (is_exchange ? 1.0 : (ranks - 1.0) / ranks);
    const bool is_too_fast_inside = is_too_fast(message, moved, base_->link.nominal_rate.value, 1, "the links of");
    // In a collective, the data that a node's GPUs lack arrive through all of its NICs. A ring of exchanges enters each
    // node at one GPU, through a single NIC.
    const bool has_network = message.nodes > 1 && base_->network.has_value();
    return is_too_fast_inside ||
           (has_network &&
            is_too_fast(message, static_cast<double>(message.bytes) * (is_exchange ? 1.0 : (nodes - 1.0) / nodes),
                        base_->network->nominal_rate.value, is_exchange ? 1 : base_->nics_per_node,
                        "the NICs of a node of"));
  }

  /// Throws ConfigError if so many messages are too fast that the base cannot be the measured machine.
  void require_likely_base() const {
    constexpr std::int64_t one_in = 4;
    constexpr std::int64_t many = 8;  // fewer are treated as mistakes in their rows
    if (too_fast_ >= many && too_fast_ * one_in > messages_) {
      throw ConfigError(fmt::format(
          "the measurements cannot be of {}: {} of {} messages are faster than its links; name the --base that was "
          "measured, or a file of your own that extends {} and sets the nominal_rate of its link\n"
          "{}",
          base_->name, too_fast_, messages_, base_->name, seen_.faults[first_too_fast_]));
    }
  }

  bool is_too_fast(const Message& message, double moved, BytesPerSecond nominal, int links,
                   std::string_view limit_name) {
    const BytesPerSecond rate{moved / (1e-6 * message.time_us)};
    const BytesPerSecond bandwidth_limit{nominal.value * links};
    if (rate.value <= max_share_of_link_rate * bandwidth_limit.value) {
      return false;
    }
    if (too_fast_++ == 0) {
      first_too_fast_ = seen_.faults.size();
    }
    seen_.faults.push_back(
        fmt::format("{}: {} of {} bytes on {} GPUs ran at {}, above {:g} times the {} of {} {}; check its time, or "
                    "name another --base",
                    message.place, message.op, message.bytes, message.ranks, parameter_text(rate),
                    max_share_of_link_rate, parameter_text(bandwidth_limit), limit_name, base_->name));
    return true;
  }

  /// Returns the number of nodes that hold these ranks, assuming that ranks fill one node after another.
  [[nodiscard]] std::int64_t nodes_of(const std::vector<std::int64_t>& members) const {
    std::set<std::int64_t> nodes;
    for (const std::int64_t member : members) {
      nodes.insert(base_ == nullptr ? 0 : member / base_->gpus_per_node);
    }
    return std::max<std::int64_t>(1, std::ssize(nodes));
  }

  /// Returns the number of nodes of a message. A rack whose GPUs share one switch is a single node with many hosts.
  [[nodiscard]] std::int64_t nodes_of(const Message& message) const {
    constexpr int max_gpus_per_host = 16;
    return base_ != nullptr && base_->gpus_per_node > max_gpus_per_host
               ? (message.ranks + base_->gpus_per_node - 1) / base_->gpus_per_node
               : message.nodes;
  }

  /// Returns whether every GPU sends to the next one and receives from the previous one without sharing wires, which is
  /// as fast as a single pair.
  [[nodiscard]] bool is_ring_of_pairs(const Message& message) const {
    return message.ranks > 2 && base_ != nullptr && base_->pair_peers == nullptr && base_->plan != nullptr &&
           base_->plan->kind == NodeKind::nvswitch && !base_->plan->wires && message.ranks <= base_->gpus_per_node;
  }

  void add(Message message) {
    const std::optional<LinkOp> op = link_op_named(message.op);
    message.nodes = nodes_of(message);
    if (!op) {
      skip(fmt::format("{}: {}, which the model does not support", name_, message.op));
    } else if (message.bytes == 0 || message.ranks == 1) {
      skip(fmt::format("{}: nothing is sent", name_));
    } else if (++messages_; is_faster_than_links(message)) {
      return;
    } else if (base_ != nullptr && message.ranks > message.nodes * base_->gpus_per_node) {
      skip(fmt::format("{}: {} GPUs on {}, where the base has {} (do several hosts have the same name?)", name_,
                       message.ranks, counted(message.nodes, "node"), message.nodes * base_->gpus_per_node));
    } else if (message.nodes > 1) {
      add_to_network(message, *op);
    } else if (const std::optional<CollectiveKind> kind = collective_kind(*op)) {
      add(seen_.collectives, observed(message, *kind));
    } else if (message.ranks != 2 && !is_ring_of_pairs(message)) {
      skip(fmt::format("{}: exchanges of {} GPUs that share wires; a fit needs exchanges between two GPUs", name_,
                       message.ranks));
    } else {
      add(seen_.peers, ObservedExchange{message.op, {.bytes = Bytes{message.bytes}, .time_us = message.time_us}});
    }
  }

  /// Adds an all-reduce by the kernels of a framework, which sum inside one node.
  void add(const Message& message, const std::string& kernel, AllReduceKernel framework) {
    const Bytes up_to = largest_sum(base_, framework).value;
    if (message.bytes == 0 || message.ranks == 1) {
      skip(fmt::format("{}: nothing is sent", name_));
    } else if (message.bytes > up_to.count) {
      skip(fmt::format("{}: {}: tensors above {}, which NCCL sums", name_, kernel, format_size(up_to)));
    } else if (++messages_; is_faster_than_links(message)) {
      return;
    } else if (base_ != nullptr && message.ranks > base_->gpus_per_node) {
      skip(fmt::format("{}: {} GPUs, where a node of the base has {}", name_, message.ranks, base_->gpus_per_node));
    } else {
      add(seen_.custom_all_reduces[static_cast<std::size_t>(framework)],
          ObservedCustomAllReduce{
              kernel,
              {.ranks = static_cast<int>(message.ranks), .total = Bytes{message.bytes}, .time_us = message.time_us}});
    }
  }

  static ObservedCollective observed(const Message& message, CollectiveKind kind) {
    return {message.op,
            {.kind = kind,
             .ranks = static_cast<int>(message.ranks),
             .nodes = static_cast<int>(message.nodes),
             .total = Bytes{message.bytes},
             .time_us = message.time_us},
            message.of_base};
  }

  void add_to_network(const Message& message, LinkOp op) {
    const std::optional<CollectiveKind> kind = collective_kind(op);
    const bool has_network = base_ != nullptr && base_->network.has_value();
    if (!has_network) {
      skip(
          fmt::format("{}: {} on {} nodes, but the base is a single node (name a cluster as --base, such as "
                      "dgx-h100-x2)",
                      name_, message.op, message.nodes));
    } else if (kind == CollectiveKind::all_to_all) {
      skip(fmt::format(
          "{}: all-to-alls on several nodes, whose price follows from the rates of the nodes' NICs; no fit uses them",
          name_));
    } else if (kind && message.ranks != message.nodes * base_->gpus_per_node) {
      skip(fmt::format("{}: {} of {} GPUs on {} nodes; a fit needs whole nodes of {}", name_, message.op, message.ranks,
                       message.nodes, base_->gpus_per_node));
    } else if (kind) {
      add(seen_.network_collectives, observed(message, *kind));
    } else if (message.ranks != 2) {
      skip(fmt::format("{}: exchanges of {} GPUs on {} nodes; a fit needs one GPU on each of two nodes", name_,
                       message.ranks, message.nodes));
    } else {
      add(seen_.network_peers,
          ObservedExchange{message.op, {.bytes = Bytes{message.bytes}, .time_us = message.time_us}});
    }
  }

  template <class Measured>
  void add(Measurements<Measured>& into, const Measured& row) {
    if (into.rows.empty() || last_source_[&into.source] != name_) {
      into.source += (into.source.empty() ? "" : ", ") + name_;
      last_source_[&into.source] = name_;
    }
    into.rows.push_back(row);
  }

  void skip(const std::string& sentence) { ++skipped_[with_escapes(sentence)]; }

  std::optional<std::string> chosen_;
  const Machine* base_;
  std::string recorded_on_;  // the machine of records; empty without records
  std::int64_t messages_ = 0;
  std::int64_t too_fast_ = 0;  ///< number of messages faster than the base's links
  std::size_t first_too_fast_ = 0;
  Observations seen_;
  fs::path path_;
  std::string name_;
  /// The file that added the last rows, by the address of the `source` that lists it.
  std::map<std::string*, std::string> last_source_;
  std::map<std::string, std::size_t> skipped_;
};

}  // namespace

Parameter<Bytes> largest_sum(const Machine* base, AllReduceKernel framework) {
  const CustomAllReduces* const by_framework =
      base == nullptr ? nullptr : base->link.collective.custom_all_reduce.get();
  const CustomAllReduce* const kernels = by_framework == nullptr ? nullptr : kernels_of(*by_framework, framework);
  return kernels != nullptr ? kernels->up_to
                            : Parameter<Bytes>{.value = Bytes{std::int64_t{8} << 20},
                                               .provenance = Provenance::published,
                                               .source = "largest size of vLLM's and SGLang's buffers"};
}

Observations read_observations(const std::vector<fs::path>& files, const std::optional<std::string>& machine,
                               const Machine* base) {
  refuse_repeated_files(files);
  ObservationReader reader(machine, base);
  for (const fs::path& file : files) {
    reader.read(file);
  }
  return std::move(reader).observations();
}

}  // namespace commfuse::calibrate
