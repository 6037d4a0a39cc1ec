// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store_row.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <stdexcept>

#include "model/check.h"
#include "model/config_error.h"
#include "model/json_budget.h"
#include "sim/sweep/json_values.h"
#include "sim/sweep/row_check.h"

namespace commfuse {

namespace {

using nlohmann::ordered_json;

constexpr std::array model_columns{StoreColumn{"status", StoreType::word}, StoreColumn{"reason", StoreType::text},
                                   StoreColumn{"cells", StoreType::text}};
constexpr std::size_t cells_index = 2;

std::vector<StoreColumn> layer_columns() {
  std::vector<StoreColumn> columns;
  for (const ResultColumn& column : result_columns()) {
    columns.push_back({column.name, store_type_of(column.name, column.type)});
  }
  columns.push_back({causes_column, StoreType::text});
  return columns;
}

constexpr std::array breakdown_parts{
    &Breakdown::makespan, &Breakdown::compute, &Breakdown::slicing, &Breakdown::stretch, &Breakdown::local,
    &Breakdown::exposed,  &Breakdown::head,    &Breakdown::bubble,  &Breakdown::tail,    &Breakdown::busy};

template <class Durations>
std::vector<std::int64_t> counts_of(const Durations& durations) {
  std::vector<std::int64_t> counts;
  for (const Duration duration : durations) {
    counts.push_back(duration.count());
  }
  return counts;
}

std::string causes_text(const P99Causes& causes) {
  std::vector<std::int64_t> mean;
  for (const auto part : breakdown_parts) {
    mean.push_back((causes.mean.*part).count());
  }
  return ordered_json{
      {"samples", causes.samples},           {"mean_ps", mean},
      {"on_path", causes.on_path},           {"time_on_path_ps", counts_of(causes.time_on_path)},
      {"rank_on_path", causes.rank_on_path}, {"rank_time_on_path_ps", counts_of(causes.rank_time_on_path)}}
      .dump();
}

[[noreturn]] void refuse(std::string_view store, std::string_view why) {
  throw ConfigError(fmt::format("{}: a row was not written by a sweep ({}); run the sweep again", store, why));
}

/// Returns the result of `make`, which converts values to a row. Throws ConfigError for values that are not a row.
template <class Make>
decltype(auto) fitting(std::string_view store, const Make& make) {
  try {
    return make();
  } catch (const RowMisfit& misfit) {
    refuse(store, misfit.what());
  }
}

/// Thrown for a cell that lacks a required whole number.
class NoWholeNumber : public std::exception {};

std::int64_t whole_in(const ordered_json& value) {
  if (const std::optional<std::int64_t> whole = whole_number(value)) {
    return *whole;
  }
  throw NoWholeNumber();
}

/// Returns the result of `make` for the JSON in a cell. Throws ConfigError for a cell without such JSON.
template <class Make>
auto from_json(const Value& cell, std::string_view store, const Make& make) {
  try {
    return make(parse_json<ordered_json>(std::get<std::string>(cell), std::string(store)));
  } catch (const ordered_json::exception&) {
    refuse(store, "a cell does not contain a row in JSON");
  } catch (const NoWholeNumber&) {
    refuse(store, "a cell must hold a whole number");
  } catch (const std::bad_variant_access&) {
    refuse(store, "a cell is not text");
  }
}

P99Causes causes_of(const ordered_json& json) {
  P99Causes causes{.samples = static_cast<std::size_t>(whole_in(json.at("samples")))};
  for (std::size_t i = 0; i < breakdown_parts.size(); ++i) {
    causes.mean.*breakdown_parts[i] = Duration{whole_in(json.at("mean_ps").at(i))};
  }
  causes.on_path = json.at("on_path").get<std::array<double, path_kinds>>();
  for (std::size_t i = 0; i < path_kinds; ++i) {
    causes.time_on_path[i] = Duration{whole_in(json.at("time_on_path_ps").at(i))};
  }
  causes.rank_on_path = json.at("rank_on_path").get<std::vector<double>>();
  for (const ordered_json& time : json.at("rank_time_on_path_ps")) {
    causes.rank_time_on_path.emplace_back(whole_in(time));
  }
  return causes;
}

/// Throws ConfigError unless the lists have one entry per rank and the sum of the times cannot overflow.
void require_whole(const P99Causes& causes, std::string_view store) {
  const std::size_t ranks = causes.rank_time_on_path.size();
  if (ranks == 0 || causes.rank_on_path.size() != ranks) {
    refuse(store, fmt::format("{} lacks some ranks", causes_column));
  }
  const auto limit = Duration::max() / static_cast<Duration::rep>(ranks);
  for (const Duration time : causes.rank_time_on_path) {
    if (time < Duration{} || time > limit) {
      refuse(store, fmt::format("a time of {} is out of range", causes_column));
    }
  }
}

enum class Tag : char { nothing, text, count, number };

/// Returns an upper bound on the number of bytes that a row takes.
std::size_t packed_size(const StoreRow& row) {
  std::size_t size = 4 + 9 * row.size();
  for (const Value& value : row) {
    const auto* text = std::get_if<std::string>(&value);
    size += text != nullptr ? text->size() : 0;
  }
  return size;
}

/// Writes bytes to memory that has room for them, because asking for room before each value would take longer than
/// writing it.
class Packer {
 public:
  explicit Packer(char* to) : to_(to) {}

  [[nodiscard]] char* end() const { return to_; }

  template <std::size_t bytes>
  void put_number(std::uint64_t bits) {
    for (std::size_t i = 0; i < bytes; ++i) {
      to_[i] = static_cast<char>(bits >> (8 * i) & 0xff);
    }
    to_ += bytes;
  }

  void put(const Value& value) {
    if (const auto* text = std::get_if<std::string>(&value)) {
      put_tag(Tag::text);
      put_number<4>(text->size());
      to_ = std::copy(text->begin(), text->end(), to_);
    } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
      put_tag(Tag::count);
      put_number<8>(static_cast<std::uint64_t>(*count));
    } else if (const auto* number = std::get_if<double>(&value)) {
      put_tag(Tag::number);
      put_number<8>(std::bit_cast<std::uint64_t>(*number + 0.0));  // SQLite stores -0 as 0
    } else {
      put_tag(Tag::nothing);
    }
  }

  void put(const StoreRow& row) {
    put_number<4>(row.size());
    for (const Value& value : row) {
      put(value);
    }
  }

 private:
  void put_tag(Tag tag) { *to_++ = static_cast<char>(tag); }

  char* to_;
};

class Unpacker {
 public:
  explicit Unpacker(std::string_view bytes) : bytes_(bytes) {}

  std::uint64_t number(std::size_t bytes) {
    std::uint64_t bits = 0;
    const std::string_view taken = take(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
      bits |= std::uint64_t{static_cast<unsigned char>(taken[i])} << (8 * i);
    }
    return bits;
  }

  /// Reads the length of a row, each of whose values takes at least one byte.
  std::size_t length() {
    const std::uint64_t values = number(4);
    if (values > bytes_.size()) {
      throw std::runtime_error("a row of results ends too early");
    }
    return values;
  }

  Value value() {
    switch (static_cast<Tag>(take(1).front())) {
      case Tag::nothing: return {};
      case Tag::text: return std::string(take(number(4)));
      case Tag::count: return static_cast<std::int64_t>(number(8));
      case Tag::number: return std::bit_cast<double>(number(8));
    }
    throw std::runtime_error("the bytes are not a row of results");
  }

  [[nodiscard]] bool empty() const { return bytes_.empty(); }

 private:
  std::string_view take(std::size_t bytes) {
    if (bytes > bytes_.size()) {
      throw std::runtime_error("a row of results ends too early");
    }
    const std::string_view taken = bytes_.substr(0, bytes);
    bytes_.remove_prefix(bytes);
    return taken;
  }
  std::string_view bytes_;
};

std::size_t column_index(StoreKind kind, std::string_view name) {
  const std::span<const StoreColumn> columns = store_columns(kind);
  const auto match =
      std::find_if(columns.begin(), columns.end(), [&](const StoreColumn& column) { return column.name == name; });
  return static_cast<std::size_t>(match - columns.begin());
}

}  // namespace

StoreType store_type_of(std::string_view column, ColumnType type) {
  switch (type) {
    case ColumnType::count:
    case ColumnType::flag: return StoreType::count;
    case ColumnType::number: return StoreType::number;
    case ColumnType::text: break;
  }
  return column == "reason" || column == "warnings" ? StoreType::text : StoreType::word;
}

std::span<const StoreColumn> store_columns(StoreKind kind) {
  static const std::vector<StoreColumn> columns_of_layers = layer_columns();
  return kind == StoreKind::layers ? std::span<const StoreColumn>(columns_of_layers)
                                   : std::span<const StoreColumn>(model_columns);
}

StoreRow stored(const ResultRow& row) {
  StoreRow values;
  values.reserve(store_columns(StoreKind::layers).size());
  append_values_of(row, values);
  Value& causes = values.emplace_back();
  if (row.tails) {
    causes = causes_text(row.tails->causes);
  }
  return values;
}

StoreRow stored(const StepRow& row) {
  ordered_json cells = ordered_json::object();
  for (const auto& [name, value] : row.cells) {
    std::visit([&, key = std::string(name)](const auto& content) { cells[key] = content; }, value);
  }
  return {Value{std::string(row.feasible() ? "ok" : "infeasible")},
          row.feasible() ? Value{} : Value{row.text("reason")},
          Value{cells.dump(-1, ' ', false, ordered_json::error_handler_t::replace)}};
}

std::span<const Value> result_values(const StoreRow& row) { return std::span(row).first(result_columns().size()); }

const ResultRow& LayerRowReader::read(const StoreRow& row, std::string_view store) {
  check(row.size() == store_columns(StoreKind::layers).size(), "a row of layers has a value for every column");
  const ResultRow& result = fitting(store, [&]() -> const ResultRow& { return reader_.read(result_values(row)); });
  if (!result.tails || std::holds_alternative<std::monostate>(row.back())) {
    return result;
  }
  with_causes_ = result;
  with_causes_.tails->causes = from_json(row.back(), store, causes_of);
  require_whole(with_causes_.tails->causes, store);
  return with_causes_;
}

ResultRow layer_row(const StoreRow& row, std::string_view store) { return LayerRowReader().read(row, store); }

bool is_feasible(StoreKind kind, const StoreRow& row) {
  static const std::size_t reason_of_layers = column_index(StoreKind::layers, "reason");
  return std::holds_alternative<std::monostate>(row[kind == StoreKind::layers ? reason_of_layers : 1]);
}

StepRow model_row(const StoreRow& row, std::string_view store) {
  return from_json(row[cells_index], store, [&](ordered_json cells) {
    cells["schema"] = result_schema;
    return fitting(store, [&] { return step_row_of(cells); });
  });
}

std::string packed(std::span<const StoreRow> rows) {
  std::size_t size = 0;
  for (const StoreRow& row : rows) {
    size += packed_size(row);
  }
  std::string bytes(size, '\0');
  Packer packer(bytes.data());
  for (const StoreRow& row : rows) {
    packer.put(row);
  }
  bytes.resize(static_cast<std::size_t>(packer.end() - bytes.data()));
  return bytes;
}

std::vector<StoreRow> unpacked(std::string_view bytes) {
  std::vector<StoreRow> rows;
  for (Unpacker unpacker(bytes); !unpacker.empty();) {
    StoreRow& row = rows.emplace_back(unpacker.length());
    for (Value& value : row) {
      value = unpacker.value();
    }
  }
  return rows;
}

std::uint32_t checksum_of(std::int64_t id, const StoreRow& row) { return RowChecksum().of(id, row); }

std::uint32_t RowChecksum::of(std::int64_t id, const StoreRow& row) {
  memory_.resize(std::max(memory_.size(), 8 + packed_size(row)));
  Packer packer(memory_.data());
  packer.put_number<8>(static_cast<std::uint64_t>(id));
  packer.put(row);
  // NOLINTNEXTLINE(*-reinterpret-cast): crc32() takes unsigned bytes
  return static_cast<std::uint32_t>(
      ::crc32(0, reinterpret_cast<const Bytef*>(memory_.data()), static_cast<uInt>(packer.end() - memory_.data())));
}

}  // namespace commfuse
