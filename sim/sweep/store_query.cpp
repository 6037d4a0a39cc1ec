// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstring>
#include <memory>
#include <unordered_map>
#include <utility>

#include "model/config/field.h"
#include "model/config_error.h"
#include "model/record/columns.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "sim/parallel/parallel.h"
#include "sim/sweep/row_check.h"
#include "sim/sweep/rows_in_memory.h"
#include "sim/sweep/rows_of_json.h"
#include "sim/sweep/store_schema.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;

/// A column of table() whose name no column of results can have.
constexpr std::string_view number_of_row = "#row";

/// The time of layers and whole models in one unit, for both kinds of rows.
constexpr std::string_view time_of_both = "time_us";
constexpr std::string_view time_of_layers = "makespan_us";
constexpr std::string_view time_of_models = "time_ms";

fs::path store_in(const fs::path& file_or_folder) {
  std::error_code error;
  return fs::is_directory(file_or_folder, error) ? file_or_folder / "results.sqlite" : file_or_folder;
}

/// With Verify::rows, reads every row first, so that a damaged store is refused before it is queried.
StoreTables tables_of(const fs::path& path, Verify verify) {
  StoreReader reader(path);
  while (verify == Verify::rows && reader.next()) {
  }
  return {reader.identity().kind, reader.columns()};
}

std::string in_double_quotes(std::string_view name) { return fmt::format("\"{}\"", name); }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + in_double_quotes(name);
  }
  return text;
}

/// Refuses control characters, which a terminal would obey and no sweep writes.
std::string plain(std::string_view text, const fs::path& store) {
  if (has_control_character(text, "\t\n")) {
    throw ConfigError(
        fmt::format("{}: {} has control characters; run the sweep again", store.string(), in_quotes(text)));
  }
  if (!is_utf8(text)) {
    throw ConfigError(fmt::format("{}: {} is not UTF-8; run the sweep again", store.string(), in_quotes(text)));
  }
  return std::string(text);
}

Value plain_value(const Statement::Cell& cell, const fs::path& store) {
  switch (cell.type()) {
    case Statement::Type::nothing: return {};
    case Statement::Type::whole: return cell.whole();
    case Statement::Type::number: return cell.number();
    case Statement::Type::text: break;
  }
  return plain(cell.text(), store);
}

/// Returns the condition that excludes these strategies.
std::string others_than(const std::vector<std::string>& strategies) {
  return strategies.empty() ? "" : fmt::format(" AND strategy NOT IN ('{}')", fmt::join(strategies, "', '"));
}

/// Orders values as SQLite does: absent values, then numbers, then strings.
std::partial_ordering order_of_values(const Value& a, const Value& b) {
  const auto rank = [](const Value& value) {
    return std::holds_alternative<std::monostate>(value) ? 0 : std::holds_alternative<std::string>(value) ? 2 : 1;
  };
  if (rank(a) != rank(b) || rank(a) == 0) {
    return rank(a) <=> rank(b);
  }
  if (rank(a) == 2) {
    return std::get<std::string>(a) <=> std::get<std::string>(b);
  }
  const auto* whole_a = std::get_if<std::int64_t>(&a);
  const auto* whole_b = std::get_if<std::int64_t>(&b);
  if (whole_a != nullptr && whole_b != nullptr) {
    return *whole_a <=> *whole_b;
  }
  const auto number = [](const Value& value) {
    const auto* whole = std::get_if<std::int64_t>(&value);
    return whole != nullptr ? static_cast<double>(*whole) : std::get<double>(value);
  };
  return number(a) <=> number(b);
}

/// Appends bytes that are unique to the value. 1 and 1.0 are the same value, as in SQL.
void append_key(const Statement::Cell& cell, std::string& key) {
  const auto append = [&key](char tag, auto bits) {
    const std::size_t end = key.size();
    key.resize(end + 1 + sizeof(bits));
    key[end] = tag;
    std::memcpy(key.data() + end + 1, &bits, sizeof(bits));
  };
  const auto append_whole = [&](std::int64_t number) {
    // Most columns hold small numbers that stand for strings. They take one byte, above the letters of the other forms.
    constexpr std::int64_t small = 128;
    number >= 0 && number < small ? key.push_back(static_cast<char>(small + number)) : append('w', number);
  };
  switch (cell.type()) {
    case Statement::Type::nothing: key += 'n'; return;
    case Statement::Type::whole: append_whole(cell.whole()); return;
    case Statement::Type::number: {
      constexpr double beyond = 9.0e18;
      const double number = cell.number();
      const bool is_whole = number == std::trunc(number) && std::abs(number) < beyond;
      is_whole ? append_whole(static_cast<std::int64_t>(number)) : append('d', number);
      return;
    }
    case Statement::Type::text: append('t', cell.text().size()); key += cell.text();
  }
}

/// Keeps one row per group: the row with the smallest or largest value, the first on ties.
class Winners {
 public:
  struct Row {
    std::int64_t id = 0;
    Value by;
  };

  explicit Winners(bool largest) : largest_(largest) {}

  /// The rows of each group must come in ascending order of id.
  void add(const std::string& group, std::int64_t id, Value by) {
    if (last_ == nullptr || group != *last_group_) {
      const auto [entry, is_new] = rows_.try_emplace(group, Row{id, by});
      last_ = &entry->second;
      last_group_ = &entry->first;
      if (is_new) {
        return;
      }
    }
    const auto order = order_of_values(by, last_->by);
    if (largest_ ? order > 0 : order < 0) {
      *last_ = {id, std::move(by)};
    }
  }

  /// Moves the rows of `later` into this object. The rows of `later` must have larger ids.
  void add(Winners&& later) {
    rows_.merge(later.rows_);
    for (auto& [group, row] : later.rows_) {  // the groups that both have
      add(group, row.id, std::move(row.by));
    }
  }

  /// Returns the ids of the kept rows, ascending.
  [[nodiscard]] std::vector<std::int64_t> ids() const {
    std::vector<std::int64_t> ids;
    ids.reserve(rows_.size());
    for (const auto& [group, row] : rows_) {
      ids.push_back(row.id);
    }
    std::sort(ids.begin(), ids.end());
    return ids;
  }

 private:
  bool largest_;
  std::unordered_map<std::string, Row> rows_;
  Row* last_ = nullptr;
  const std::string* last_group_ = nullptr;
};

/// Adds rows of a statement with the columns id, value and `keys` columns of the group.
void keep_winners(Statement& statement, const fs::path& store, std::size_t keys, Winners& winners) {
  std::string group;
  while (statement.step()) {
    group.clear();
    for (std::size_t i = 0; i < keys; ++i) {
      append_key(statement.cell(static_cast<int>(i) + 2), group);
    }
    winners.add(group, statement.whole(0), plain_value(statement.cell(1), store));
  }
}

bool is_after_strategy(const std::string& name) { return find_column(name) > find_column("strategy"); }

/// Returns true for settings, including those that do not distinguish points (seed) and those whose column is an
/// outcome (dropout).
bool is_setting(const Column& column) {
  return column.role != ColumnRole::outcome || column.plan_words == PlanWords::setting;
}

/// Returns the value of a setting as a string. A row without a value has the default, as rows of older versions do.
std::string text_of_setting(const std::string& name, const Value& value) {
  const Field* const field = find_field(name);
  const std::string_view preset = field == nullptr ? std::string_view{} : field->preset;
  if (const auto* text = std::get_if<std::string>(&value)) {
    return *text;
  }
  if (const auto* whole = std::get_if<std::int64_t>(&value)) {
    return fmt::format("{}", *whole);
  }
  if (const auto* number = std::get_if<double>(&value)) {
    return fmt::format("{}", *number);
  }
  return preset.empty() ? "-" : std::string(preset);
}

/// Splits "-mfu" into "mfu" and true, which means largest first.
std::pair<std::string, bool> direction_of(const std::string& word) {
  const bool is_descending = word.starts_with('-');
  return {word.substr(is_descending ? 1 : 0), is_descending};
}

}  // namespace

struct StoreQuery::Source {
  static Source of(const fs::path& file, Verify verify) {
    if (begins_like_json(file)) {
      RowsInMemory rows = rows_in_memory(file);
      return {std::move(rows.database),
              {StoreKind::layers, std::move(rows.table_columns)},
              std::move(rows.shown_columns),
              rows.has_layers,
              rows.has_models,
              false};
    }
    Database database(store_in(file), Database::Access::read);
    StoreTables tables = tables_of(store_in(file), verify);
    const bool is_of_layers = tables.kind == StoreKind::layers;
    return {std::move(database), std::move(tables), {}, is_of_layers, !is_of_layers};
  }

  Database database;
  StoreTables tables;
  std::vector<std::string> shown_columns;  ///< Columns of the JSON; empty for a store.
  bool has_layers = false;
  bool has_models = false;
  bool is_store = true;
};

StoreQuery::StoreQuery(const fs::path& file, Verify verify) : StoreQuery(Source::of(file, verify)) {}

StoreQuery::StoreQuery(Source source)
    : database_(std::move(source.database)),
      is_store_(source.is_store),
      has_cells_(source.tables.kind == StoreKind::models),
      has_layers_(source.has_layers),
      has_models_(source.has_models),
      held_(std::move(source.tables.columns)) {
  database_.run("BEGIN");  // one view of the store, and one lock for all statements
  if (is_store_) {
    columns_ = {"point", "place"};
  } else if (has_layers_ && has_models_) {
    columns_ = {std::string(time_of_both)};
  }
  if (has_cells_) {
    read_columns_of_cells();
    return;
  }
  for (const HeldColumn& column : held_) {
    if (is_store_ && column.name != causes_column) {
      columns_.push_back(column.name);
    }
    if (column.type == StoreType::word) {
      words_.insert(column.name);
    }
  }
  columns_.insert(columns_.end(), source.shown_columns.begin(), source.shown_columns.end());
  read_texts();
}

void StoreQuery::read_columns_of_cells() {
  Statement keys(database_,
                 "SELECT key FROM (SELECT cell.key AS key, min(rows.id * 1000 + cell.id) AS first FROM rows, "
                 "json_each(rows.cells) AS cell GROUP BY cell.key) ORDER BY first");
  while (keys.step()) {
    if (!may_name_column(keys.text(0))) {
      throw ConfigError(fmt::format("{}: a row was not written by a sweep ({} names no column); run the sweep again",
                                    database_.path().string(), in_quotes(keys.text(0))));
    }
    columns_.emplace_back(keys.text(0));
  }
}

void StoreQuery::read_texts() {
  Statement texts(database_, "SELECT id, text FROM texts");
  while (texts.step()) {
    texts_.emplace(texts.whole(0), texts.text(1));
  }
}

std::vector<std::string> StoreQuery::asked() const {
  std::vector<std::string> names = point_columns();
  std::erase_if(names, is_after_strategy);
  return names;
}

std::vector<std::string> StoreQuery::point_columns() const {
  std::vector<std::string> names;
  for (const Column& column : all_columns()) {
    if (column.is_asked && holds_column(column.name)) {
      names.emplace_back(column.name);
    }
  }
  return names;
}

std::string StoreQuery::time_column() const { return time_column(*this); }

std::string StoreQuery::time_column(const StoreQuery& other) const {
  const bool layers = has_layers_ || other.has_layers_;
  const bool models = has_models_ || other.has_models_;
  const std::string of_kind(layers && models ? time_of_both : layers ? time_of_layers : time_of_models);
  // Whole models have no column of times if none of them can run.
  return holds_column(of_kind) && other.holds_column(of_kind) ? of_kind : std::string(time_of_both);
}

bool StoreQuery::holds_column(std::string_view name) const {
  return name == time_of_both || std::find(columns_.begin(), columns_.end(), name) != columns_.end();
}

std::vector<std::string_view> StoreQuery::empty_columns() const {
  std::vector<std::string_view> names;
  for (const Column& column : all_columns()) {
    const bool applies = (column.of_layers && has_layers_) || (column.of_models && has_models_);
    if (applies && !holds_column(column.name)) {
      names.push_back(column.name);
    }
  }
  return names;
}

bool StoreQuery::has_column(std::string_view name) const {
  const std::vector<std::string_view> empty = empty_columns();
  return holds_column(name) || std::ranges::find(empty, name) != empty.end();
}

std::string StoreQuery::table(const std::string& schema) const {
  std::string sql = fmt::format("SELECT id AS \"{}\"", number_of_row);
  if (is_store_) {
    sql += fmt::format(", id / {0} AS point, id % {0} AS place", rows_a_point);
  }
  for (const std::string& name : columns_) {
    if (name == time_of_both || (is_store_ && (name == "point" || name == "place"))) {
      continue;
    }
    if (has_cells_) {
      sql += fmt::format(", json_extract(cells, '$.\"{0}\"') AS \"{0}\"", name);
    } else if (words_.contains(name)) {
      sql += fmt::format(", (SELECT text FROM {1}.texts WHERE texts.id = rows.\"{0}\") AS \"{0}\", \"{0}\" AS \"{2}\"",
                         name, schema, stored_name(name));
    } else {
      sql += fmt::format(", \"{}\"", name);
    }
  }
  for (const std::string_view name : empty_columns()) {
    sql += fmt::format(", NULL AS \"{}\"", name);
    const std::string stored = stored_name(std::string(name));
    sql += stored == name ? "" : fmt::format(", NULL AS \"{}\"", stored);
  }
  return fmt::format("({}, {} AS {} FROM {}.rows)", sql, time_of_both_in_sql(), time_of_both, schema);
}

std::string StoreQuery::time_of_both_in_sql() const {
  if (has_cells_) {
    return fmt::format("json_extract(cells, '$.{}') * 1000.0", time_of_models);
  }
  return is_store_ ? std::string(time_of_layers)
                   : fmt::format("coalesce({}, {} * 1000.0)", time_of_layers, time_of_models);
}

std::string StoreQuery::stored_name(const std::string& name) const { return words_.contains(name) ? "#" + name : name; }

std::string StoreQuery::stored_names(const std::vector<std::string>& names) const {
  std::string text;
  for (const std::string& name : names) {
    text += (text.empty() ? "" : ", ") + in_double_quotes(stored_name(name));
  }
  return text;
}

Value StoreQuery::value_of(const Statement::Cell& cell, bool is_word) const {
  if (!is_word || cell.type() != Statement::Type::whole) {
    return plain_value(cell, database_.path());
  }
  const auto word = texts_.find(cell.whole());
  if (word == texts_.end()) {
    throw DamagedDatabase(fmt::format("{} is damaged (it lacks text {}); run the sweep again into another folder",
                                      database_.path().string(), cell.whole()));
  }
  return plain(word->second, database_.path());
}

void StoreQuery::require_column(std::string_view flag, const std::string& name) const {
  if (!has_column(name)) {
    const std::vector<std::string_view> known(columns_.begin(), columns_.end());
    throw ConfigError(
        fmt::format("{}: unknown column {}; {}", flag, in_quotes(name), remedy_for(name, known, "columns")));
  }
}

std::string StoreQuery::order_of(const std::vector<std::string>& sort_by) const {
  std::string order;
  for (const std::string& word : sort_by) {
    const auto [name, is_descending] = direction_of(word);
    require_column("--sort-by", name);
    order += fmt::format("{}{}, ", in_double_quotes(name), is_descending ? " DESC" : "");
  }
  return order + in_double_quotes(number_of_row);
}

/// Tests the expression as a column of a SELECT: there it cannot close a parenthesis that it did not open, as it could
/// within parentheses.
void StoreQuery::require_expression(const std::string& where) const {
  if (!where.empty()) {
    const Statement tested(database_, fmt::format("SELECT {}\n FROM {}", where, table("main")));
  }
}

std::string StoreQuery::example_expression() const {
  return fmt::format("\"{} = 8 AND strategy = 'commfuse'\"", has_layers_ ? "ranks" : "tensor");
}

template <class Ask>
void StoreQuery::within_limits(const Ask& ask) const {
  try {
    database_.allow_queries_only();
    ask();
  } catch (const DatabaseError& error) {
    if (error.kind() == DatabaseError::Kind::endless) {
      throw ConfigError(
          fmt::format("--where: it produces a value of more than 64 MiB, or takes too many steps for the rows; write a "
                      "simpler expression, as in {}",
                      example_expression()));
    }
    if (error.kind() != DatabaseError::Kind::statement && error.kind() != DatabaseError::Kind::read_only) {
      throw;
    }
    throw ConfigError(fmt::format("--where: {}; write an expression of SQL over columns, as in {}", error.what(),
                                  example_expression()));
  }
}

StoreQuery::Selected::Selected(const StoreQuery& query, const std::vector<std::string>& names)
    : query_(query), values_(names.size()), is_word_(names.size()) {
  std::transform(names.begin(), names.end(), is_word_.begin(),
                 [&](const std::string& name) { return query.words_.contains(name); });
}

std::span<const Value> StoreQuery::Selected::row(const Statement& statement) {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    values_[i] = query_.value_of(statement.cell(static_cast<int>(i)), is_word_[i]);
  }
  return values_;
}

void StoreQuery::take_all(Statement& statement, const std::vector<std::string>& names, const TakeRow& take) const {
  Selected selected(*this, names);
  while (statement.step()) {
    take(selected.row(statement));
  }
}

/// SQL expressions may contain subqueries, which may take forever.
void StoreQuery::allow_steps_for(const std::string& where, const Database& database) const {
  constexpr std::int64_t base_steps = 100'000'000;  // a second or two
  constexpr std::int64_t steps_per_row = 20'000;
  if (!where.empty()) {
    Statement count(database, "SELECT count(*) FROM main.rows");
    count.step();
    database.allow_steps(base_steps + steps_per_row * count.whole(0));
  }
}

std::vector<std::string> StoreQuery::run(const Query& query, const TakeRow& take) const {
  allow_steps_for(query.where, database_);
  for (const std::string& name : query.columns) {
    require_column("--columns", name);
  }
  const std::vector<std::string>& columns = query.columns.empty() ? columns_ : query.columns;
  const std::string order = order_of(query.sort_by);
  within_limits([&] {
    Statement statement(database_,
                        fmt::format("SELECT {} FROM {} WHERE ({}\n) ORDER BY {} LIMIT {}", stored_names(columns),
                                    table("main"), query.where.empty() ? "1" : query.where, order, query.limit));
    require_expression(query.where);
    take_all(statement, columns, take);
  });
  return columns;
}

std::string StoreQuery::candidates_in(const StorePart& part, const BestQuery& query) const {
  return fmt::format(
      "SELECT \"{0}\", \"{1}\"{2}{3} FROM {4} WHERE ({5}\n){6}{7} AND \"{1}\" IS NOT NULL "
      "AND \"{0}\" BETWEEN {8} AND {9} ORDER BY \"{0}\"",
      number_of_row, direction_of(query.by).first, query.per.empty() ? "" : ", ", stored_names(query.per),
      table("main"), query.query.where.empty() ? "1" : query.query.where, others_than(query.without),
      query.without_bounds ? " AND \"bound\" IS NULL" : "", part.first, part.last);
}

std::vector<std::int64_t> StoreQuery::winners(const BestQuery& query) const {
  const std::vector<StorePart> parts = is_store_ ? parts_of(database_, threads_at_most()) : std::vector<StorePart>(1);
  std::vector<Winners> best(parts.size(), Winners(direction_of(query.by).second));
  for_each_index_to_the_end(parts.size(), [&](std::size_t i) {
    const std::string sql = candidates_in(parts[i], query);
    if (i == 0) {
      Statement statement(database_, sql);
      require_expression(query.query.where);
      keep_winners(statement, database_.path(), query.per.size(), best[i]);
    } else {
      const Database database(database_.path(), Database::Access::read);
      allow_steps_for(query.query.where, database);
      database.allow_queries_only();
      Statement statement(database, sql);
      keep_winners(statement, database_.path(), query.per.size(), best[i]);
    }
  });
  for (std::size_t i = 1; i < best.size(); ++i) {
    best.front().add(std::move(best[i]));
  }
  return best.front().ids();
}

void StoreQuery::sort(std::vector<std::int64_t>& ids, const std::vector<std::string>& sort_by) const {
  if (sort_by.empty()) {
    return;
  }
  std::vector<std::string> names;
  std::vector<bool> is_descending;
  for (const std::string& word : sort_by) {
    const auto [name, largest_first] = direction_of(word);
    names.push_back(name);
    is_descending.push_back(largest_first);
  }
  struct Row {
    std::int64_t id;
    std::vector<Value> keys;
  };
  std::vector<Row> rows;
  for_each_of(ids, names, [&](std::int64_t id, std::span<const Value> keys) {
    rows.push_back({id, {keys.begin(), keys.end()}});
  });
  std::stable_sort(rows.begin(), rows.end(), [&](const Row& a, const Row& b) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (const auto order = order_of_values(a.keys[i], b.keys[i]); order != 0) {
        return is_descending[i] ? order > 0 : order < 0;
      }
    }
    return false;
  });
  std::transform(rows.begin(), rows.end(), ids.begin(), [](const Row& row) { return row.id; });
}

/// Reads rows by number through one connection.
class StoreQuery::RowReader {
 public:
  RowReader(const StoreQuery& query, const Database& database, const std::vector<std::string>& names)
      : statement_(database, fmt::format("SELECT {} FROM {} WHERE \"{}\" = ?", query.stored_names(names),
                                         query.table("main"), number_of_row)),
        selected_(query, names) {}

  /// Calls take(id, values) for each of these rows.
  template <class Take>
  void read(std::span<const std::int64_t> ids, const Take& take) {
    for (const std::int64_t id : ids) {
      statement_.bind(1, id);
      if (statement_.step()) {
        take(id, selected_.row(statement_));
      }
      statement_.reset();
    }
  }

 private:
  Statement statement_;
  Selected selected_;
};

/// Reads blocks of rows on all cores, and calls back on this thread, in order.
template <class Take>
void StoreQuery::for_each_of(std::span<const std::int64_t> ids, const std::vector<std::string>& names,
                             const Take& take) const {
  constexpr std::size_t block_rows = 2'048;
  const std::size_t threads = std::min(threads_at_most(), ids.size() / block_rows);
  RowReader reader(*this, database_, names);
  if (!is_store_ || threads < 2) {
    reader.read(ids, take);
    return;
  }
  struct Block {
    std::unique_ptr<Database> database;
    std::unique_ptr<RowReader> own_reader;
    std::vector<std::int64_t> ids;
    std::vector<Value> values;
  };
  std::vector<Block> blocks(threads);
  for (Block& block : std::span(blocks).subspan(1)) {
    block.database = std::make_unique<Database>(database_.path(), Database::Access::read);
    block.own_reader = std::make_unique<RowReader>(*this, *block.database, names);
  }
  for (; !ids.empty(); ids = ids.subspan(std::min(ids.size(), threads * block_rows))) {
    for_each_index_to_the_end(threads, [&](std::size_t i) {
      Block& block = blocks[i];
      block.ids.clear();
      block.values.clear();
      const std::span<const std::int64_t> rest = ids.subspan(std::min(ids.size(), i * block_rows));
      (i == 0 ? reader : *block.own_reader)
          .read(rest.first(std::min(rest.size(), block_rows)), [&](std::int64_t id, std::span<const Value> values) {
            block.ids.push_back(id);
            block.values.insert(block.values.end(), values.begin(), values.end());
          });
    });
    for (const Block& block : blocks) {
      for (std::size_t row = 0; row < block.ids.size(); ++row) {
        take(block.ids[row], std::span(block.values).subspan(row * names.size(), names.size()));
      }
    }
  }
}

std::vector<std::string> StoreQuery::run(const BestQuery& query, const TakeRow& take) const {
  allow_steps_for(query.query.where, database_);
  require_column("--by", direction_of(query.by).first);
  for (const std::string& name : query.per) {
    require_column("--per", name);
  }
  for (const std::string& name : query.query.columns) {
    require_column("--columns", name);
  }
  for (const std::string& word : query.query.sort_by) {
    require_column("--sort-by", direction_of(word).first);
  }
  const std::vector<std::string>& columns = query.query.columns.empty() ? columns_ : query.query.columns;
  within_limits([&] {
    std::vector<std::int64_t> ids = winners(query);
    sort(ids, query.query.sort_by);
    if (query.query.limit >= 0 && static_cast<std::size_t>(query.query.limit) < ids.size()) {
      ids.resize(static_cast<std::size_t>(query.query.limit));
    }
    for_each_of(ids, columns, [&](std::int64_t, std::span<const Value> values) { take(values); });
  });
  return columns;
}

std::vector<StoreQuery::Values> StoreQuery::values_of(const std::vector<std::string>& names) const {
  std::string sql = "SELECT count(*)";
  for (const std::string& name : names) {
    const std::string stored = in_double_quotes(stored_name(name));
    sql += fmt::format(", min({0}), max({0}), count({0})", stored);
  }
  Statement statement(database_, fmt::format("{} FROM {}", sql, table("main")));
  statement.step();
  std::vector<Values> values;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int at = 1 + 3 * static_cast<int>(i);
    const bool is_word = words_.contains(names[i]);
    Values entry{.least = value_of(statement.cell(at), is_word), .greatest = value_of(statement.cell(at + 1), is_word)};
    const std::int64_t rows = statement.whole(0);
    const std::int64_t present = statement.whole(at + 2);
    // Rows of the other kind have no value of a setting that does not apply to them.
    const bool is_absent_in_some = present != 0 && present != rows && !(has_layers_ && has_models_);
    entry.has_rows = rows > 0;
    entry.are_equal = entry.least == entry.greatest && !is_absent_in_some;
    values.push_back(std::move(entry));
  }
  return values;
}

StoreQuery::OtherSettings StoreQuery::other_settings(const StoreQuery& other) const {
  std::vector<std::string> names;
  for (const Column& column : all_columns()) {
    const std::string name(column.name);
    const bool is_held = holds_column(name) || other.holds_column(name);
    const bool is_matched =
        column.is_asked && !is_after_strategy(name) && holds_column(name) && other.holds_column(name);
    if (is_setting(column) && is_held && !is_matched && has_column(name) && other.has_column(name)) {
      names.push_back(name);
    }
  }
  const std::vector<Values> before = values_of(names);
  const std::vector<Values> after = other.values_of(names);
  OtherSettings settings;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!before[i].are_equal || !after[i].are_equal) {
      settings.varied.push_back(names[i]);
      continue;
    }
    ChangedSetting change{names[i], text_of_setting(names[i], before[i].least),
                          text_of_setting(names[i], after[i].least)};
    if (before[i].has_rows && after[i].has_rows && change.before != change.after) {
      settings.changed.push_back(std::move(change));
    }
  }
  return settings;
}

std::vector<ChangedSetting> StoreQuery::changed_settings(const StoreQuery& other) const {
  return other_settings(other).changed;
}

std::vector<std::string> StoreQuery::difference_columns(const StoreQuery& other) const {
  std::vector<std::string> names = asked();
  std::erase_if(names, [&](const std::string& name) { return !other.holds_column(name); });
  const std::vector<std::string> varied = other_settings(other).varied;
  names.insert(names.end(), varied.begin(), varied.end());
  names.insert(names.end(), {"strategy", "before", "after", "ratio"});
  return names;
}

/// Copies the rows of `other`, a database in memory without a path to attach, to temporary tables, which any connection
/// may write.
void StoreQuery::copy_rows(const StoreQuery& other) {
  database_.run("PRAGMA temp_store = MEMORY");
  for (const char* name : {"texts", "rows"}) {
    Statement columns(other.database_, fmt::format("SELECT * FROM main.{} ORDER BY id", name));
    std::string names;
    std::string placeholders;
    for (int i = 0; i < columns.columns(); ++i) {
      names += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", columns.name(i));
      placeholders += i == 0 ? "?" : ", ?";
    }
    database_.run(fmt::format("CREATE TEMP TABLE {}({})", name, names));
    Statement insertion(database_, fmt::format("INSERT INTO temp.{} VALUES({})", name, placeholders));
    while (columns.step()) {
      for (int i = 0; i < columns.columns(); ++i) {
        switch (columns.type(i)) {
          case Statement::Type::nothing: insertion.bind_nothing(i + 1); break;
          case Statement::Type::whole: insertion.bind(i + 1, columns.whole(i)); break;
          case Statement::Type::number: insertion.bind(i + 1, columns.number(i)); break;
          case Statement::Type::text: insertion.bind(i + 1, columns.text(i)); break;
        }
      }
      insertion.finish();
    }
  }
  database_.run("CREATE INDEX temp.by_text ON texts(id)");
}

std::string StoreQuery::attach(const StoreQuery& other) {
  database_.run("COMMIT");  // a transaction cannot attach anything
  if (!other.is_store_) {
    copy_rows(other);
    return "temp";
  }
  Statement attach(database_, "ATTACH ? AS other");
  const std::string path = other.database_.path().string();
  attach.bind(1, std::string_view(path));
  attach.finish();
  return "other";
}

void StoreQuery::differences(const StoreQuery& other, const std::string& by, const TakeRow& take) {
  require_column("--by", by);
  if (!(has_layers_ && other.has_layers_) && !(has_models_ && other.has_models_)) {
    throw ConfigError(fmt::format("one of {} and {} holds layers, the other whole models; compare stores of one kind",
                                  database_.path().string(), other.database_.path().string()));
  }
  if (!other.holds_column(by)) {
    throw ConfigError(
        fmt::format("--by: {} has no column '{}'; choose another column", other.database_.path().string(), by));
  }
  const std::vector<std::string> names = difference_columns(other);
  const std::vector<std::string> key(names.begin(), names.end() - 3);
  const std::string schema = attach(other);
  // Several rows of one strategy at a point are distinguished by their order.
  const auto side = [&](const std::string& table) {
    return fmt::format(
        "(SELECT {0}, \"{1}\" AS value, row_number() OVER (PARTITION BY {0} ORDER BY \"{3}\") AS turn FROM {2})",
        joined(key), by, table, number_of_row);
  };
  std::string join_condition = "a.turn = b.turn";
  for (const std::string& name : key) {
    join_condition += fmt::format(" AND a.\"{0}\" IS b.\"{0}\"", name);
  }
  const auto key_columns = [&](const char* letter) {
    std::string columns;
    for (const std::string& name : key) {
      columns += fmt::format("{}.\"{}\", ", letter, name);
    }
    return columns;
  };
  within_limits([&] {
    Statement statement(
        database_,
        fmt::format("SELECT * FROM (SELECT {0}a.value AS before, b.value AS after, b.value * 1.0 / a.value AS ratio"
                    " FROM {2} AS a LEFT JOIN {3} AS b ON {4} WHERE a.value IS NOT b.value OR b.turn IS NULL"
                    " UNION ALL SELECT {1}NULL, b.value, NULL FROM {3} AS b LEFT JOIN {2} AS a ON {4}"
                    " WHERE a.turn IS NULL) ORDER BY abs(ratio - 1) DESC",
                    key_columns("a"), key_columns("b"), side(table("main")), side(other.table(schema)),
                    join_condition));
    take_all(statement, names, take);
  });
}

}  // namespace commfuse
