// SPDX-License-Identifier: Apache-2.0
#include "sim/score/overlap_pairs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "model/workload/bare_mlp.h"
#include "sim/point/request.h"
#include "sim/score/sizes.h"

namespace commfuse::score {

namespace {

bool is_in(std::string_view word, std::span<const std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

/// Removes the unit, and "_total" before it: returns "flux" for "flux_total_ms".
std::string_view stem_of(std::string_view column) {
  for (const std::string_view end : {"_us", "_ms", "_total"}) {
    column = column.ends_with(end) ? column.substr(0, column.size() - end.size()) : column;
  }
  return column;
}

bool is_time(std::string_view column) { return column.ends_with("_us") || column.ends_with("_ms"); }

/// Returns whether a column has times of the GEMM alone, of the communication alone, or of both without overlap.
bool is_part(std::string_view stem) {
  const auto ends = [&](std::string_view end) { return stem.ends_with(end); };
  constexpr std::array<std::string_view, 4> parts{"_gemm", "_mm", "_comm", "_no_overlap"};
  return stem == "gemm" || stem == "comm" || std::ranges::any_of(parts, ends);
}

bool is_serial(std::string_view stem) {
  constexpr std::array<std::string_view, 7> words{
      "serial", "torch", "nccl", "nccl_ring", "baseline", "unfused", "serial_cublas_nccl"};
  return is_in(stem, words);
}

/// Returns whether the word is generic: a table may use it for any kernel that it measures.
bool is_any_kernel(std::string_view stem) {
  constexpr std::array<std::string_view, 8> words{"fused",   "overlap", "overlapped", "triton",
                                                  "gemm_rs", "gemm_ar", "ag_gemm",    "ours"};
  return is_in(stem, words);
}

std::vector<std::string_view> names_of(const Implementation& implementation) {
  std::vector<std::string_view> names(implementation.known_as.begin(), implementation.known_as.end());
  names.emplace_back(implementation.name);
  return names;
}

/// Returns the implementation that the column names. For a generic word such as "fused", returns the implementation
/// whose name the file name contains.
std::shared_ptr<const Implementation> meant_by(std::string_view stem, std::string_view file_name,
                                               const KnownImplementations& known) {
  const auto of_file = [&](std::string_view name) { return file_name.find(name) != std::string_view::npos; };
  const auto match = std::ranges::find_if(known, [&](const auto& implementation) {
    const std::vector<std::string_view> names = names_of(*implementation);
    return is_any_kernel(stem) ? std::ranges::any_of(names, of_file) : is_in(stem, names);
  });
  return match == known.end() ? nullptr : *match;
}

constexpr std::int64_t most_experts = 1024;
constexpr std::string_view stated_width = "K=N=";

std::optional<std::int64_t> leading_number(std::string_view text) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc{} && end != text.data() && number > 0 && number <= max_extent ? std::optional(number)
                                                                                          : std::nullopt;
}

/// Returns the number that follows the first `label` of the text; nullopt if there is none.
std::optional<std::int64_t> number_after(std::string_view text, std::string_view label) {
  const std::size_t at = text.find(label);
  return at == std::string_view::npos ? std::nullopt : leading_number(text.substr(at + label.size()));
}

/// Reads the ranks and experts of a row and, from the column `config`, also m (tokens), n and k.
void read_experts(Row& row, const OverlapColumns& columns, OverlapRow& into) {
  std::int64_t tensor = 1;
  BareExperts experts;
  if (columns.config.exists()) {
    const std::string_view config = row.text(columns.config);
    const auto number = [&](std::string_view label) {
      const std::optional<std::int64_t> found_number = number_after(config, label);
      if (!found_number) {
        row.fault(fmt::format("config is {}; write it as tp8ep1_e32_top4_M8192", in_quotes(config)));
      }
      return found_number.value_or(1);
    };
    tensor = number("tp");
    experts = {.count = number("_e"), .active = number("_top"), .ranks = number("ep")};
    into.m = number("_M");
    into.n = into.k = std::max<std::int64_t>(1, columns.width);
  } else {
    tensor = row.count(columns.ranks, max_gpus);
    experts = {.count = row.count(columns.experts, most_experts),
               .active = row.count(columns.topk, most_experts),
               .ranks = row.count(columns.ep, max_gpus)};
  }
  if (experts.count > most_experts || experts.active > experts.count || experts.count % experts.ranks != 0) {
    row.fault(fmt::format("{} of {} experts on {} ranks; choose up to {} experts, a multiple of their ranks",
                          experts.active, experts.count, experts.ranks, most_experts));
  }
  if (tensor > max_gpus / experts.ranks) {
    row.fault(fmt::format("{} x {} ranks are too many; the limit is {}", tensor, experts.ranks, max_gpus));
    return;
  }
  into.ranks = static_cast<std::int32_t>(tensor * experts.ranks);
  into.experts = experts;
}

/// Reads the operator: whether a reduce-scatter or an all-reduce follows the GEMM.
void read_operator(Row& row, const OverlapColumns& columns, OverlapRow& into) {
  if (columns.layer.exists()) {
    const std::string_view layer = row.text(columns.layer);
    into.scatters = layer == "1";
    if (layer != "0" && layer != "1") {
      row.fault(fmt::format("moe_layer is {}; it must be 0 or 1", in_quotes(layer)));
    }
    return;
  }
  const std::string_view op = row.text(columns.op);
  into.scatters = columns.op.exists() ? op == "rs" || op == "GEMM+RS" || op == "gemm_rs" : columns.scatters;
  into.reduces_all = columns.op.exists() ? op == "ar" || op == "GEMM+AR" || op == "gemm_ar" : columns.reduces_all;
  if (columns.op.exists() && !into.scatters && !into.reduces_all && op != "ag" && op != "AG+GEMM" && op != "ag_gemm") {
    row.fault(fmt::format("op is {}; it must be ag, rs or ar", in_quotes(op)));
  }
}

/// Returns whether a name has `part` between underscores, as "overlap_tritondist166_gemm_rs_h100" has "rs".
bool has_part(std::string_view name, std::string_view part) {
  for (std::size_t at = name.find(part); at != std::string_view::npos; at = name.find(part, at + 1)) {
    const bool begins = at == 0 || name[at - 1] == '_';
    const bool ends = at + part.size() == name.size() || name[at + part.size()] == '_';
    if (begins && ends) {
      return true;
    }
  }
  return false;
}

}  // namespace

OverlapColumns overlap_columns(const Table& table, std::string_view file_name, const KnownImplementations& known) {
  const bool has_both_degrees = table.column("experts").exists();  // tp and ep; ngpus would be their product
  const bool counts_gpus = table.column("ngpus").exists() && !has_both_degrees;
  OverlapColumns columns{.op = table.column("op"),
                         .hw = table.column("hw"),
                         .m = table.column("M"),
                         .n = table.column("N"),
                         .n_of_rank = table.column("N_per_gpu"),
                         .k = table.column("K"),
                         .k_of_rank = table.column("K_per_gpu"),
                         .ranks = table.column(counts_gpus ? "ngpus" : "tp"),
                         .dtype = table.column("dtype"),
                         .experts = table.column("experts"),
                         .topk = table.column("topk"),
                         .ep = table.column("ep"),
                         .layer = table.column("moe_layer")};
  columns.config = columns.layer.exists() ? table.column("config") : Column{};
  columns.width = number_after(table.comment("software"), stated_width).value_or(0);
  columns.scatters = has_part(file_name, "rs");
  columns.reduces_all = !columns.scatters && has_part(file_name, "ar");
  columns.says_operator = columns.op.exists() || columns.layer.exists() || columns.scatters || columns.reduces_all ||
                          has_part(file_name, "ag");
  columns.launch = table.comments_say("eager")        ? Launch::eager
                   : table.comments_say("CUDA graph") ? Launch::graph
                                                      : Launch::stream;
  columns.usual = table.comments_say("fp16") ? DType::fp16 : DType::bf16;
  for (const std::string_view name : table.header()) {
    const std::string_view stem = stem_of(name);
    if (!is_time(name) || is_part(stem) || (stem.starts_with("nccl_") && !is_serial(stem))) {
      continue;
    }
    if (is_serial(stem) && columns.config.exists()) {
      columns.unscored_serial = table.column(name);
    } else if (is_serial(stem)) {
      columns.other_serials += columns.serial.exists() ? 1 : 0;
      columns.serial = columns.serial.exists() ? columns.serial : table.column(name);
    } else {
      columns.implemented.push_back({table.column(name), meant_by(stem, file_name, known)});
    }
  }
  return columns;
}

std::string thread_of(const Table& table, std::string_view file_name) {
  std::string_view source = table.comment("source");
  constexpr std::string_view host = "https://github.com/";
  source.remove_prefix(std::min(source.find_first_not_of(' '), source.size()));
  if (source.starts_with(host)) {
    source.remove_prefix(host.size());
  }
  const std::string_view thread = source.substr(0, source.find_first_of(" ,;("));
  return std::string(thread.empty() ? file_name : thread);
}

OverlapMachines::OverlapMachines(const Table& table, std::string_view file_name, KnownMachines& machines)
    : by_cell_(machines), of_table_(machines.in_prose(table.comment("source"))) {
  if (!of_table_.was_named()) {
    of_table_ = machine_of_table(table, file_name, machines);
  }
}

FoundMachine OverlapMachines::of(std::string_view hw) const { return hw.empty() ? of_table_ : by_cell_.of(hw); }

OverlapRow overlap_row(Row& row, const OverlapColumns& columns) {
  OverlapRow parsed;
  read_operator(row, columns, parsed);
  if (!columns.config.exists()) {
    parsed.ranks = static_cast<std::int32_t>(row.count(columns.ranks, max_gpus));
    parsed.m = row.count(columns.m);
    parsed.n = columns.n_of_rank.exists() ? row.count(columns.n_of_rank) * parsed.ranks : row.count(columns.n);
    parsed.k = columns.k_of_rank.exists() ? row.count(columns.k_of_rank) * parsed.ranks : row.count(columns.k);
  }
  if (columns.config.exists() || columns.experts.exists()) {
    read_experts(row, columns, parsed);
  }
  const std::string_view dtype = row.text(columns.dtype);
  if (!dtype.empty() && !dtype_in_table(dtype)) {
    row.fault(fmt::format("dtype is {}; it must be bf16, fp16, fp32 or fp8", in_quotes(dtype)));
  }
  parsed.dtype = dtype_in_table(dtype).value_or(columns.usual);
  // The unit may differ from column to column.
  const auto us = [&](const Column& time) { return (time.name.ends_with("_ms") ? 1e3 : 1.0) * row.amount(time); };
  if (row.has(columns.serial)) {
    parsed.serial_us = us(columns.serial);
  }
  for (std::size_t i = 0; i < columns.implemented.size(); ++i) {
    if (row.has(columns.implemented[i].time)) {
      parsed.implemented.emplace_back(i, us(columns.implemented[i].time));
    }
  }
  return parsed;
}

Point point_of(const OverlapRow& row, const Machine& machine, Launch launch) {
  const bool has_sums = row.scatters || row.reduces_all;
  const MlpWidths widths{.hidden = has_sums ? row.n : row.k, .ffn = has_sums ? row.k : row.n};
  Point point{.model = row.experts ? bare_mixture(widths, *row.experts) : bare_mlp(widths), .machine = machine};
  point.scope = row.reduces_all ? Scope::down_ar : row.scatters ? Scope::down : Scope::gate_up;
  point.price.experts = experts_of(point.scope, point.model);
  point.ranks = row.ranks;
  point.seq = row.m;
  point.dtype = row.dtype;
  point.price.launch = launch;
  return point;
}

std::string command_of(const Point& point, std::string_view implementation) {
  const std::string launch = point.price.launch == Launch::stream
                                 ? std::string{}
                                 : fmt::format(" --launch {}", word_of(launch_choices, point.price.launch));
  return fmt::format("commfuse-sim run --model {} --scope {} --hardware {} --ranks {} --seq {} --dtype {}{} --as {}",
                     point.model.name, name_of(point.scope), point.machine.name, point.ranks, point.seq,
                     name_of(point.dtype), launch, implementation);
}

}  // namespace commfuse::score
