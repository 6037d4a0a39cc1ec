// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/store_query.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "sim/sweep/row_check.h"
#include "sim/sweep/store_schema.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;

constexpr std::array asked_of_layers{"model", "hardware", "link_bandwidth", "network_bandwidth", "scope", "ranks",
                                     "batch", "seq",      "dtype"};
constexpr std::array asked_of_models{"model",       "hardware", "link_bandwidth", "network_bandwidth", "scope", "gpus",
                                     "tensor",      "pipeline", "data",           "context",           "batch", "seq",
                                     "micro_batch", "dtype"};

fs::path store_in(const fs::path& file_or_folder) {
  std::error_code error;
  return fs::is_directory(file_or_folder, error) ? file_or_folder / "results.sqlite" : file_or_folder;
}

/// Reads every row once, so that a damaged store is refused before anything is said about it.
StoreTables tables_of_sound(const fs::path& path) {
  StoreReader reader(path);
  while (reader.next()) {
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

/// What a terminal would obey, no sweep wrote.
std::string plain(std::string_view text, const fs::path& store) {
  if (has_control_character(text, "\t\n")) {
    throw ConfigError(
        fmt::format("{}: {} has control characters; run the sweep anew", store.string(), in_quotes(text)));
  }
  if (!is_utf8(text)) {
    throw ConfigError(fmt::format("{}: {} is not UTF-8; run the sweep anew", store.string(), in_quotes(text)));
  }
  return std::string(text);
}

Value value_in(const Statement& statement, int column, const fs::path& store) {
  switch (statement.type(column)) {
    case Statement::Type::nothing: return {};
    case Statement::Type::whole: return statement.whole(column);
    case Statement::Type::number: return statement.number(column);
    case Statement::Type::text: return plain(statement.text(column), store);
  }
  return {};
}

/// A condition beside another one.
std::string others_than(const std::vector<std::string>& strategies) {
  return strategies.empty() ? "" : fmt::format(" AND strategy NOT IN ('{}')", fmt::join(strategies, "', '"));
}

/// "-mfu": mfu, the largest first.
std::pair<std::string, bool> direction_of(const std::string& word) {
  const bool falls = word.starts_with('-');
  return {word.substr(falls ? 1 : 0), falls};
}

}  // namespace

StoreQuery::StoreQuery(const fs::path& file_or_folder) : database_(store_in(file_or_folder), Database::Access::read) {
  const StoreTables tables = tables_of_sound(store_in(file_or_folder));
  kind_ = tables.kind;
  columns_ = {"point", "place"};
  if (kind_ == StoreKind::layers) {
    for (const HeldColumn& column : tables.columns) {
      if (column.name != causes_column) {
        columns_.push_back(column.name);
      }
    }
    return;
  }
  Statement keys(database_,
                 "SELECT key FROM (SELECT cell.key AS key, min(rows.id * 1000 + cell.id) AS first FROM rows, "
                 "json_each(rows.cells) AS cell GROUP BY cell.key) ORDER BY first");
  while (keys.step()) {
    if (!may_name_column(keys.text(0))) {
      throw ConfigError(fmt::format("{}: a row is not as a sweep writes it ({} names no column); run the sweep anew",
                                    database_.path().string(), in_quotes(keys.text(0))));
    }
    columns_.emplace_back(keys.text(0));
  }
}

std::vector<std::string> StoreQuery::asked() const {
  const auto known = [&](const char* name) {
    return std::find(columns_.begin(), columns_.end(), name) != columns_.end();
  };
  std::vector<std::string> names;
  const std::span<const char* const> wanted = kind_ == StoreKind::layers
                                                  ? std::span<const char* const>(asked_of_layers)
                                                  : std::span<const char* const>(asked_of_models);
  std::copy_if(wanted.begin(), wanted.end(), std::back_inserter(names), known);
  return names;
}

std::string StoreQuery::time_column() const { return kind_ == StoreKind::layers ? "makespan_us" : "time_ms"; }

std::string StoreQuery::table(const std::string& schema) const {
  if (kind_ == StoreKind::layers) {
    return fmt::format("{}.results", schema);
  }
  std::string sql = "SELECT point, place";
  for (std::size_t i = 2; i < columns_.size(); ++i) {
    sql += fmt::format(", json_extract(cells, '$.\"{0}\"') AS \"{0}\"", columns_[i]);
  }
  return fmt::format("({} FROM {}.results)", sql, schema);
}

void StoreQuery::require_column(std::string_view flag, const std::string& name) const {
  if (std::find(columns_.begin(), columns_.end(), name) == columns_.end()) {
    const std::vector<std::string_view> known(columns_.begin(), columns_.end());
    throw ConfigError(
        fmt::format("{}: {} is no column; {}", flag, in_quotes(name), remedy_for(name, known, "columns")));
  }
}

std::string StoreQuery::order_of(const std::vector<std::string>& sort_by) const {
  std::string order;
  for (const std::string& word : sort_by) {
    const auto [name, falls] = direction_of(word);
    require_column("--sort-by", name);
    order += fmt::format("{}{}, ", in_double_quotes(name), falls ? " DESC" : "");
  }
  return order + "point, place";
}

/// A list of columns cannot close a parenthesis that it did not open, as an expression within parentheses can.
void StoreQuery::require_expression(const std::string& where) const {
  if (!where.empty()) {
    const Statement alone(database_, fmt::format("SELECT {}\n FROM {}", where, table("main")));
  }
}

std::vector<std::string> StoreQuery::ask(const std::string& sql, const std::string& where, const TakeRow& take) const {
  try {
    database_.allow_queries_only();
    Statement statement(database_, sql);
    require_expression(where);
    std::vector<std::string> names;
    for (int column = 0; column < statement.columns(); ++column) {
      names.push_back(statement.name(column));
    }
    std::vector<Value> values(names.size());
    while (statement.step()) {
      for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = value_in(statement, static_cast<int>(i), database_.path());
      }
      take(values);
    }
    return names;
  } catch (const DatabaseError& error) {
    if (error.kind() == DatabaseError::Kind::endless) {
      throw ConfigError(
          "--where: it makes a value of more than 64 MiB, or takes more steps than rows account for; "
          "write a simpler expression, as in \"ranks = 8 AND strategy = 'commfuse'\"");
    }
    if (error.kind() != DatabaseError::Kind::statement && error.kind() != DatabaseError::Kind::read_only) {
      throw;
    }
    throw ConfigError(fmt::format(
        "--where: {}; write an expression of SQL over columns, as in \"ranks = 8 AND strategy = 'commfuse'\"",
        error.what()));
  }
}

/// Expressions of SQL may hold questions of their own, which need not end.
void StoreQuery::allow_steps_for(const std::string& where) const {
  constexpr std::int64_t for_a_question = 100'000'000;  // a second or two
  constexpr std::int64_t for_a_row = 20'000;
  if (!where.empty()) {
    Statement count(database_, "SELECT count(*) FROM rows");
    count.step();
    database_.allow_steps(for_a_question + for_a_row * count.whole(0));
  }
}

std::vector<std::string> StoreQuery::run(const Query& query, const TakeRow& take) const {
  allow_steps_for(query.where);
  for (const std::string& name : query.columns) {
    require_column("--columns", name);
  }
  const std::vector<std::string>& columns = query.columns.empty() ? columns_ : query.columns;
  return ask(fmt::format("SELECT {} FROM {} WHERE ({}\n) ORDER BY {} LIMIT {}", joined(columns), table("main"),
                         query.where.empty() ? "1" : query.where, order_of(query.sort_by), query.limit),
             query.where, take);
}

std::vector<std::string> StoreQuery::run(const BestQuery& query, const TakeRow& take) const {
  allow_steps_for(query.query.where);
  const auto [by, falls] = direction_of(query.by);
  require_column("--by", by);
  for (const std::string& name : query.per) {
    require_column("--per", name);
  }
  for (const std::string& name : query.query.columns) {
    require_column("--columns", name);
  }
  const std::string groups = query.per.empty() ? "" : fmt::format("PARTITION BY {} ", joined(query.per));
  const std::vector<std::string>& columns = query.query.columns.empty() ? columns_ : query.query.columns;
  return ask(
      fmt::format("SELECT {0} FROM (SELECT *, row_number() OVER ({1}ORDER BY \"{2}\"{3}, point, place) AS rank_in_group"
                  " FROM {4} WHERE ({5}\n){8} AND \"{2}\" IS NOT NULL) WHERE rank_in_group = 1 ORDER BY {6} LIMIT {7}",
                  joined(columns), groups, by, falls ? " DESC" : "", table("main"),
                  query.query.where.empty() ? "1" : query.query.where, order_of(query.query.sort_by), query.query.limit,
                  others_than(query.without)),
      query.query.where, take);
}

std::vector<std::string> StoreQuery::differences(const fs::path& other, const std::string& by, const TakeRow& take) {
  require_column("--by", by);
  const StoreTables others = tables_of_sound(store_in(other));
  if (others.kind != kind_) {
    throw ConfigError(
        fmt::format("{} holds layers and {} whole models, or the other way round; compare stores of one kind",
                    database_.path().string(), store_in(other).string()));
  }
  Statement attach(database_, "ATTACH ? AS other");
  const std::string path = store_in(other).string();
  attach.bind(1, std::string_view(path));
  attach.finish();
  const auto other_has = [&](const std::string& name) {
    return kind_ == StoreKind::models ||
           std::ranges::find(others.columns, name, &HeldColumn::name) != others.columns.end();
  };
  if (!other_has(by)) {
    throw ConfigError(fmt::format("--by: {} has no column '{}'; choose another column", path, by));
  }
  std::vector<std::string> key = asked();
  std::erase_if(key, [&](const std::string& name) { return !other_has(name); });
  key.emplace_back("strategy");
  // Several rows of one strategy at a point are told apart by their order.
  const auto side = [&](const char* schema) {
    return fmt::format(
        "(SELECT {0}, \"{1}\" AS value, row_number() OVER (PARTITION BY {0} ORDER BY point, place) AS turn"
        " FROM {2})",
        joined(key), by, table(schema));
  };
  std::string same = "a.turn = b.turn";
  for (const std::string& name : key) {
    same += fmt::format(" AND a.\"{0}\" IS b.\"{0}\"", name);
  }
  const auto with = [&](const char* letter) {
    std::string names;
    for (const std::string& name : key) {
      names += fmt::format("{}.\"{}\", ", letter, name);
    }
    return names;
  };
  return ask(
      fmt::format("SELECT * FROM (SELECT {0}a.value AS before, b.value AS after, b.value * 1.0 / a.value AS ratio"
                  " FROM {2} AS a LEFT JOIN {3} AS b ON {4} WHERE a.value IS NOT b.value"
                  " UNION ALL SELECT {1}NULL, b.value, NULL FROM {3} AS b LEFT JOIN {2} AS a ON {4}"
                  " WHERE a.turn IS NULL) ORDER BY abs(ratio - 1) DESC",
                  with("a"), with("b"), side("main"), side("other"), same),
      "", take);
}

}  // namespace commfuse
