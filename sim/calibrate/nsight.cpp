// SPDX-License-Identifier: Apache-2.0
// Tables and columns: NVIDIA, "Nsight Systems: SQLite Export Schema Reference" (2021.5 to 2026); columns differ between
// versions, so the reader looks up each of them. Texts of ranges: pytorch/pytorch, torch/csrc/profiler/util.cpp
// (getNvtxStr).
//
// Everything else in a database is ignored: CPUs, other APIs and metrics.
#include "sim/calibrate/nsight.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "sim/calibrate/call_times.h"
#include "sim/calibrate/host_ranges.h"
#include "sim/calibrate/operators.h"
#include "sim/score/table.h"
#include "sim/sweep/database.h"

namespace commfuse::calibrate {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view remedy = "profile under torch.autograd.profiler.emit_nvtx(record_shapes=True)";

bool has(std::string_view text, std::string_view word) { return text.find(word) != std::string_view::npos; }

/// Returns, as a plural noun, the reason why no fit can use a kernel outside every operator's range.
std::string without_operator(std::string_view kernel) {
  if (is_collective_kernel(kernel)) {
    return "NCCL kernels, whose sizes and ranks are not read: use nccl-tests or a trace of PyTorch's profiler";
  }
  constexpr std::array gemm_words{"gemm", "Gemm", "GEMM", "nvjet", "Cijk_", "cutlass"};
  if (std::any_of(gemm_words.begin(), gemm_words.end(), [&](const char* word) { return has(kernel, word); })) {
    return fmt::format("kernels of GEMMs without sizes: {}", remedy);
  }
  constexpr std::array attention_words{"flash", "fmha", "Flash", "Fmha"};
  if (std::any_of(attention_words.begin(), attention_words.end(),
                  [&](const char* word) { return has(kernel, word); })) {
    return fmt::format("kernels of attention without sizes: {}", remedy);
  }
  return fmt::format("other kernels without sizes: {}", remedy);
}

/// Reads "aten::mm, seq = 5, op_id = 12, sizes = [[4096, 8192], [8192, 1024]], input_op_ids = [(3,0)]".
OperatorCall call_in_range(std::string_view text) {
  constexpr std::string_view key = ", sizes = ";
  constexpr std::size_t longest_name = 200;
  OperatorCall call{.name = std::string(text.substr(0, std::min(text.find(", "), longest_name)))};
  const std::size_t at = text.find(key);
  if (at != std::string_view::npos) {
    if (std::optional<std::vector<std::vector<std::int64_t>>> dims = dims_in_text(text.substr(at + key.size()))) {
      call.dims = std::move(*dims);
      call.has_dims = true;
    }
  }
  return call;
}

/// The columns of one table of the database, which differ between versions.
class Columns {
 public:
  Columns(const Database& database, std::string table) : table_(std::move(table)) {
    Statement count(database, "SELECT count(*) FROM sqlite_master WHERE type = 'table' AND name = ?");
    count.bind(1, std::string_view(table_));
    count.step();
    if (count.whole(0) == 0) {
      return;
    }
    const Statement empty(database, fmt::format("SELECT * FROM {} LIMIT 0", table_));
    for (int column = 0; column < empty.columns(); ++column) {
      columns_.insert(empty.name(column));
    }
  }
  [[nodiscard]] bool exist() const { return !columns_.empty(); }
  [[nodiscard]] bool have(const char* column) const { return columns_.contains(column); }
  /// Returns the first of `names` that exists, qualified with the table alias t, or else `otherwise`.
  [[nodiscard]] std::string first(std::initializer_list<const char*> names, const char* otherwise) const {
    for (const char* name : names) {
      if (have(name)) {
        return fmt::format("t.\"{}\"", name);
      }
    }
    return otherwise;
  }
  /// Throws ConfigError if a column is missing.
  void require(const fs::path& path, std::initializer_list<const char*> names) const {
    for (const char* name : names) {
      if (!have(name)) {
        throw ConfigError(
            fmt::format("{}: its table {} has no column {}; export the report again with nsys export "
                        "--type sqlite",
                        path.string(), table_, name));
      }
    }
  }

 private:
  std::string table_;
  std::set<std::string> columns_;
};

class DatabaseReader {
 public:
  explicit DatabaseReader(const fs::path& path) : path_(path), database_(path, Database::Access::read) {
    constexpr std::int64_t min_steps = 10'000'000;
    constexpr std::int64_t steps_per_byte = 20;
    std::error_code ignored;
    const std::uintmax_t size = fs::file_size(path, ignored);
    database_.allow_queries_only();
    database_.allow_steps(min_steps +
                          steps_per_byte * static_cast<std::int64_t>(std::min<std::uintmax_t>(size, 1ULL << 40U)));
  }

  Profile profile() && {
    const Columns kernels(database_, "CUPTI_ACTIVITY_KIND_KERNEL");
    if (!kernels.exist()) {
      throw ConfigError(
          fmt::format("{}: a database without Nsight's table of kernels (CUPTI_ACTIVITY_KIND_KERNEL); give the output "
                      "of nsys export --type sqlite for a run with --trace=cuda,nvtx",
                      path_.string()));
    }
    kernels.require(path_, {"start", "end", "deviceId", "correlationId"});
    has_strings_ = Columns(database_, "StringIds").exist();
    read_ranges();
    read_launches();
    read_kernels(kernels);
    return place();
  }

 private:
  static constexpr std::size_t none = HostRanges::none;
  static constexpr std::size_t max_kept = std::size_t{1} << 22U;  // about a gigabyte

  struct Launch {
    std::int64_t process = 0;
    std::int64_t correlation = 0;
    double time = 0.0;
    std::uint32_t thread = 0;
    bool is_graph = false;
    [[nodiscard]] auto key() const { return std::pair(process, correlation); }
  };
  struct Kernel {
    std::size_t range = none;
    KernelSpan span;
    std::optional<DType> type{};
  };

  void count_row() {
    if (++rows_ > max_kept) {
      throw ConfigError(
          fmt::format("{}: more than {} ranges, launches and kernels; profile fewer steps", path_.string(), max_kept));
    }
  }

  /// A globalTid holds the process, and in its lowest 24 bits the thread.
  static std::int64_t process_of(std::int64_t global_tid) { return global_tid / 0x1000000 * 0x1000000; }
  static double microseconds(const Statement& row, int column) {
    return static_cast<double>(row.whole(column)) / 1000.0;
  }

  /// Returns the SQL join and value that yield the text for a column of ids.
  [[nodiscard]] std::pair<std::string, std::string> string_of(const std::string& id) const {
    return has_strings_ && id != "NULL"
               ? std::pair(fmt::format(" LEFT JOIN StringIds s ON s.id = {}", id), std::string("s.value"))
               : std::pair(std::string(), std::string("NULL"));
  }

  void read_ranges() {
    const Columns table(database_, "NVTX_EVENTS");
    if (!table.exist()) {
      return ranges_.finish();
    }
    table.require(path_, {"start", "end"});
    const auto [join, value] = string_of(table.first({"textId"}, "NULL"));
    constexpr int push_and_pop = 59;
    const std::string kind = table.have("eventType") ? fmt::format(" AND t.eventType = {}", push_and_pop) : "";
    Statement row(database_,
                  fmt::format("SELECT t.start, t.\"end\", {}, coalesce({}, {}, '') FROM NVTX_EVENTS t{} "
                              "WHERE t.\"end\" IS NOT NULL{}",
                              table.first({"globalTid"}, "0"), table.first({"text"}, "NULL"), value, join, kind));
    while (row.step()) {
      const std::string_view text = row.text(3);
      if (!has(text.substr(0, text.find(", ")), "::")) {
        continue;  // a range that the user marked, not an operator
      }
      count_row();
      ranges_.add(ranges_.thread(std::to_string(row.whole(2))), microseconds(row, 0), microseconds(row, 1));
      calls_.push_back(call_in_range(text));
      if (!is_known_operator(calls_.back().name)) {
        calls_.back().dims.clear();
      }
    }
    ranges_.finish();
  }

  void read_launches() {
    const Columns table(database_, "CUPTI_ACTIVITY_KIND_RUNTIME");
    if (!table.exist()) {
      return;
    }
    table.require(path_, {"start", "correlationId"});
    const auto [join, value] = string_of(table.first({"nameId"}, "NULL"));
    Statement row(database_, fmt::format("SELECT t.start, t.correlationId, {}, coalesce({}, '') FROM "
                                         "CUPTI_ACTIVITY_KIND_RUNTIME t{}",
                                         table.first({"globalTid"}, "0"), value, join));
    while (row.step()) {
      count_row();
      launches_.push_back({.process = process_of(row.whole(2)),
                           .correlation = row.whole(1),
                           .time = microseconds(row, 0),
                           .thread = ranges_.thread(std::to_string(row.whole(2))),
                           .is_graph = has(row.text(3), "GraphLaunch")});
    }
    std::stable_sort(launches_.begin(), launches_.end(),
                     [](const Launch& a, const Launch& b) { return a.key() < b.key(); });
    for (const Launch& launch : launches_) {
      processes_.insert(launch.process);
    }
    constexpr std::size_t max_processes = 1000;  // each process is searched for kernels that do not name their process
    if (processes_.size() > max_processes) {
      throw ConfigError(fmt::format("{}: more than {} processes; profile fewer", path_.string(), max_processes));
    }
  }

  void read_kernels(const Columns& table) {
    const auto [join, value] = string_of(table.first({"demangledName", "shortName", "name"}, "NULL"));
    Statement row(database_, fmt::format("SELECT t.start, t.\"end\", t.deviceId, t.correlationId, {}, coalesce({}, '') "
                                         "FROM CUPTI_ACTIVITY_KIND_KERNEL t{}",
                                         table.first({"globalPid"}, "NULL"), value, join));
    while (row.step()) {
      count_row();
      const double begin = microseconds(row, 0);
      const KernelSpan span{static_cast<std::uint32_t>(row.whole(2)), begin, microseconds(row, 1) - begin};
      if (span.duration > 0.0) {
        const bool has_process = row.type(4) != Statement::Type::nothing;
        take_kernel(span, row.text(5),
                    launch_of(has_process ? std::optional(row.whole(4)) : std::nullopt, row.whole(3)));
      }
    }
  }

  /// Correlation ids are unique only within a process, which old versions do not record. Throws ConfigError if the id
  /// may belong to several processes.
  [[nodiscard]] const Launch* launch_of(std::optional<std::int64_t> process, std::int64_t correlation) const {
    if (process) {
      return launch_in(*process, correlation);
    }
    const Launch* only = nullptr;
    for (const std::int64_t candidate : processes_) {
      const Launch* const launch = launch_in(candidate, correlation);
      if (launch != nullptr && only != nullptr) {
        throw ConfigError(
            fmt::format("{}: correlation {} belongs to launches of two processes, and the kernel does not name its "
                        "process (globalPid); profile one process, or export the report with a newer nsys",
                        path_.string(), correlation));
      }
      only = launch != nullptr ? launch : only;
    }
    return only;
  }

  [[nodiscard]] const Launch* launch_in(std::int64_t process, std::int64_t correlation) const {
    const std::pair key(process, correlation);
    const auto match = std::lower_bound(launches_.begin(), launches_.end(), key,
                                        [](const Launch& a, const auto& wanted) { return a.key() < wanted; });
    return match == launches_.end() || match->key() != key ? nullptr : &*match;
  }

  void take_kernel(const KernelSpan& span, std::string_view name, const Launch* launch) {
    if (is_collective_kernel(name)) {
      return times_.add_unusable_communication(span, without_operator(name));
    }
    if (launch != nullptr && launch->is_graph) {
      return times_.add_unusable_kernel(span, "kernels of CUDA graphs, which no operator launches");
    }
    std::size_t range = none;
    if (launch != nullptr) {
      range =
          ranges_.innermost(launch->thread, launch->time, [&](std::size_t number) { return calls_[number].has_dims; });
      range = range != none ? range : ranges_.innermost(launch->thread, launch->time, [](std::size_t) { return true; });
    }
    if (range == none) {
      times_.add_unusable_kernel(span, without_operator(name));
    } else if (is_known_operator(calls_[range].name)) {
      kernels_.push_back({range, span, type_in_kernel_name(name)});
    } else {
      times_.add_other_kernel(span, calls_[range].name);
    }
  }

  /// Ranges record no types, but the names of their kernels may contain one.
  Profile place() {
    std::stable_sort(kernels_.begin(), kernels_.end(),
                     [](const Kernel& a, const Kernel& b) { return a.range < b.range; });
    auto kernel = kernels_.begin();
    for (std::size_t range = 0; range < calls_.size(); ++range) {
      const auto first = kernel;
      std::optional<DType> type;
      for (; kernel != kernels_.end() && kernel->range == range; ++kernel) {
        type = type ? type : kernel->type;
      }
      if (!is_known_operator(calls_[range].name)) {
        continue;
      }
      const std::size_t call = times_.add_call(work_of(calls_[range], type), runs_kernels(calls_[range].name));
      std::for_each(first, kernel, [&](const Kernel& launched) { times_.add_kernel(call, launched.span); });
    }
    return std::move(times_).profile();
  }

  fs::path path_;
  Database database_;
  bool has_strings_ = false;
  HostRanges ranges_;
  std::vector<OperatorCall> calls_;  // by range
  std::vector<Launch> launches_;
  std::set<std::int64_t> processes_;  // processes in launches_
  std::vector<Kernel> kernels_;
  CallTimes times_;
  std::size_t rows_ = 0;
};

std::string beginning_of(const fs::path& path, std::size_t limit) {
  std::ifstream in(path, std::ios::binary);
  std::string head(limit, '\0');
  in.read(head.data(), static_cast<std::streamsize>(limit));
  head.resize(static_cast<std::size_t>(std::max<std::streamsize>(in.gcount(), 0)));
  return head;
}

bool is_trace_header(std::string_view line) {
  return has(line, "Start") && has(line, "Duration") && has(line, "CorrId") && has(line, "Name");
}
bool is_summary_header(std::string_view line) {
  return line.starts_with("Time") && has(line, "(%)") && has(line, "Instances") && has(line, "Name");
}

/// Returns the start of the header line of a table of `nsys stats`; npos if the text has none.
std::size_t header_in(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = text.substr(at, end - at);
    if (is_trace_header(line) || is_summary_header(line)) {
      return at;
    }
    at = end + 1;
  }
  return std::string_view::npos;
}

/// `before` is the number of lines in the file before the table.
void take_rows(const score::Table& table, const fs::path& path, std::int64_t before, CallTimes& times) {
  const auto column_like = [&](std::string_view word) {
    return static_cast<int>(std::find_if(table.header().begin(), table.header().end(),
                                         [&](std::string_view name) { return name.starts_with(word); }) -
                            table.header().begin());
  };
  const score::Column duration{.index = column_like("Duration"), .name = "Duration"};
  const score::Column name{.index = column_like("Name"), .name = "Name"};
  const auto columns = static_cast<int>(table.header().size());
  if (duration.index >= columns || name.index >= columns) {
    throw ConfigError(
        fmt::format("{}: the header has no columns Duration and Name; export the table again", path.string()));
  }
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto refuse = [&](std::string_view reason) {
      return ConfigError(
          fmt::format("{}:{}: {}; export the table again", path.string(), table.line_of(row) + before, reason));
    };
    if (table.cells_of(row) != table.header().size()) {
      throw refuse("the row and the header have different numbers of cells");
    }
    const std::optional<double> time = parse_number(table.cell(row, duration));
    if (!time || !std::isfinite(*time) || *time < 0.0) {
      throw refuse("the duration is not a number");
    }
    const std::string_view kernel = table.cell(row, name);
    times.add_unusable_kernel({.duration = *time}, kernel.starts_with("[CUDA mem")
                                                       ? "copies and fills of memory, which no fit uses"
                                                       : without_operator(kernel));
  }
}

ConfigError damaged(const fs::path& path) {
  return ConfigError(
      fmt::format("{}: is damaged; export the report again with nsys export --type sqlite", path.string()));
}

constexpr std::size_t longest_beginning = 1 << 14;

}  // namespace

bool is_sqlite(const fs::path& path) { return beginning_of(path, 16) == std::string_view("SQLite format 3\0", 16); }

bool is_nsight_table(const fs::path& path) {
  return header_in(beginning_of(path, longest_beginning)) != std::string_view::npos;
}

Profile read_nsight_database(const fs::path& path) {
  try {
    return DatabaseReader(path).profile();
  } catch (const DamagedDatabase&) {
    throw damaged(path);
  } catch (const ForeignDatabase&) {
    throw damaged(path);
  } catch (const DatabaseError& error) {
    if (error.kind() == DatabaseError::Kind::busy) {
      throw ConfigError(fmt::format("{}: another process is writing it; wait until that process ends", path.string()));
    }
    throw ConfigError(
        fmt::format("{}: cannot be read as a Nsight Systems export ({}); export the report again with "
                    "nsys export --type sqlite",
                    path.string(), error.what()));
  }
}

Profile read_nsight_table(const fs::path& path) {
  constexpr std::size_t limit = std::size_t{256} << 20U;
  const std::string text = read_file(path.string(), limit);
  if (text.size() > limit) {
    throw ConfigError(fmt::format("{}: is larger than 256 MiB; give the SQLite export", path.string()));
  }
  const std::size_t header = header_in(text);
  if (header == std::string::npos) {
    throw ConfigError(fmt::format("{}: not a table of nsys stats; give the SQLite export (nsys export --type sqlite)",
                                  path.string()));
  }
  const std::size_t rows = std::min(text.find('\n', header), text.size() - 1) + 1;
  if (is_summary_header(std::string_view(text).substr(header, rows - header))) {
    throw ConfigError(fmt::format(
        "{}: a summary of nsys stats, which has no single calls; give the SQLite export (nsys export --type "
        "sqlite)",
        path.string()));
  }
  auto before = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(header), '\n');
  CallTimes times;
  constexpr std::size_t piece = std::size_t{4} << 20U;  // bytes; a whole trace may exceed score::Table's limit on cells
  for (std::size_t at = rows; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', std::min(at + piece, text.size())), text.size() - 1) + 1;
    const score::Table table(text.substr(header, rows - header) + text.substr(at, end - at));
    take_rows(table, path, before, times);
    before += std::count(text.begin() + static_cast<std::ptrdiff_t>(at),
                         text.begin() + static_cast<std::ptrdiff_t>(end), '\n');
    at = end;
  }
  return std::move(times).profile();
}

}  // namespace commfuse::calibrate
