// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/result_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>

#include "model/check.h"
#include "model/config_error.h"
#include "model/text/quantity.h"
#include "sim/sweep/store_schema.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;
using Type = Statement::Type;
using Kind = DatabaseError::Kind;

std::int64_t number_of(const Database& database, std::string_view sql) {
  Statement statement(database, sql);
  return statement.step() ? statement.whole(0) : 0;
}

[[noreturn]] void damaged(const fs::path& path, const std::string& what) {
  throw DamagedDatabase(fmt::format("{} is damaged ({}); restore a copy, or remove the file and run the sweep again",
                                    path.string(), what));
}

[[noreturn]] void refuse_tables(const Database& database) {
  throw ConfigError(fmt::format(
      "{} has unexpected tables or views and was not written by this program; restore a copy, or remove the "
      "file and run the sweep again",
      database.path().string()));
}

/// Returns the version of a store's tables; 0 for an empty file. Throws ConfigError for a file that is not a commfuse
/// store.
int version_of(const Database& database) {
  const std::string path = database.path().string();
  const auto id = number_of(database, "PRAGMA application_id");
  const auto version = number_of(database, "PRAGMA user_version");
  const auto tables = number_of(database, "SELECT count(*) FROM sqlite_master");
  if (id == 0 && version == 0 && tables == 0) {
    return 0;
  }
  if (id != store_application) {
    throw ConfigError(
        fmt::format("{} is a database, but not a commfuse result store; choose another file or folder", path));
  }
  if (version > store_version) {
    throw ConfigError(
        fmt::format("{} is a store of version {}, written by a newer commfuse; this version reads up to {}", path,
                    version, store_version));
  }
  if (version < 1) {
    refuse_tables(database);
  }
  return static_cast<int>(version);
}

constexpr std::string_view word_of(StoreKind kind) { return kind == StoreKind::layers ? "layers" : "models"; }

using Meta = std::map<std::string, std::string, std::less<>>;

Meta meta_of(const StoreIdentity& identity) {
  return {{"kind", std::string(word_of(identity.kind))},
          {"settings", identity.settings},
          {"config_sha256", identity.digest},
          {"model_version", std::to_string(identity.model_version)},
          {"points", std::to_string(identity.points)},
          {"shard", std::to_string(identity.shard.part)},
          {"shards", std::to_string(identity.shard.parts)}};
}

Meta read_meta(const Database& database) {
  Meta meta;
  Statement statement(database, "SELECT name, value FROM meta");
  while (statement.step()) {
    meta.emplace(statement.text(0), statement.text(1));
  }
  return meta;
}

/// Throws ConfigError, before anything else is read, where the tables do not match the version.
StoreTables tables_of(const Database& database, int version) {
  std::optional<StoreTables> tables = tables_in(database, version);
  if (!tables) {
    refuse_tables(database);
  }
  return *std::move(tables);
}

StoreIdentity identity_in(const Database& database, StoreKind kind) {
  const Meta meta = read_meta(database);
  const auto text = [&](std::string_view name) -> const std::string& {
    const auto entry = meta.find(name);
    if (entry == meta.end()) {
      damaged(database.path(), fmt::format("its {} is missing", name));
    }
    return entry->second;
  };
  const auto count = [&](std::string_view name, std::int64_t least, std::int64_t limit) {
    const std::optional<std::int64_t> value = parse_integer(text(name));
    if (!value || *value < least || *value > limit) {
      damaged(database.path(), fmt::format("its {} is not a number from {} to {}", name, least, limit));
    }
    return *value;
  };
  if (text("kind") != word_of(kind)) {
    damaged(database.path(), fmt::format("its tables hold {}, which contradicts its metadata", word_of(kind)));
  }
  const std::int64_t shards = count("shards", 1, max_shards);
  return {
      .kind = kind,
      .settings = text("settings"),
      .digest = text("config_sha256"),
      .model_version = static_cast<int>(count("model_version", 0, std::numeric_limits<int>::max())),
      .points = static_cast<std::size_t>(count("points", 0, std::numeric_limits<std::int64_t>::max() / rows_a_point)),
      .shard = {static_cast<int>(count("shard", 1, shards)), static_cast<int>(shards)}};
}

void write_meta(const Database& database, const StoreIdentity& identity) {
  Statement statement(database, "INSERT INTO meta(name, value) VALUES(?, ?)");
  for (const auto& [name, value] : meta_of(identity)) {
    statement.bind(1, std::string_view(name));
    statement.bind(2, std::string_view(value));
    statement.finish();
  }
}

/// Throws ConfigError unless the store holds the wanted results.
void require_same(const fs::path& path, const StoreIdentity& existing, const StoreIdentity& wanted) {
  const auto refuse = [&](const std::string& what) {
    throw ConfigError(
        fmt::format("{} holds {}; choose another folder, or add --force to replace them", path.string(), what));
  };
  if (existing.model_version != wanted.model_version) {
    refuse(fmt::format("results of model version {}, and this program has {}", existing.model_version,
                       wanted.model_version));
  }
  if (existing.settings != wanted.settings || existing.kind != wanted.kind || existing.points != wanted.points) {
    refuse("the results of another sweep");
  }
  if (existing.digest != wanted.digest) {
    refuse(
        "results of other input: a model, machine or other file of the sweep has changed, or its 'all' now selects "
        "other names");
  }
  if (!(existing.shard == wanted.shard)) {
    refuse(fmt::format("shard {} of this sweep", name_of(existing.shard)));
  }
}

/// Rows of two versions of the program must not be mixed in one store.
void require_own_columns(const fs::path& path, const StoreTables& tables) {
  if (tables.columns != own_columns(tables.kind)) {
    throw ConfigError(
        fmt::format("{} has the columns of another version of commfuse; choose another folder, or add --force to "
                    "replace its results",
                    path.string()));
  }
}

/// Returns the strings that rows reference by number.
std::map<std::int64_t, std::string> texts_in(const Database& database) {
  std::map<std::int64_t, std::string> texts;
  Statement statement(database, "SELECT id, text FROM texts ORDER BY id");
  while (statement.step()) {
    texts.emplace(statement.whole(0), statement.text(1));
  }
  return texts;
}

std::string selection_of(const std::vector<HeldColumn>& columns) {
  std::string sql = "SELECT id, checksum";
  for (const HeldColumn& column : columns) {
    sql += fmt::format(", \"{}\"", column.name);
  }
  return sql + " FROM rows WHERE id BETWEEN ? AND ? ORDER BY id";
}

/// Calls visit(point, whether the row has a result) for each row, in order.
template <class Visit>
void for_each_row(const Database& database, const Visit& visit) {
  Statement statement(database, "SELECT id, reason IS NULL FROM rows ORDER BY id");
  while (statement.step()) {
    visit(static_cast<std::size_t>(statement.whole(0) / rows_a_point), statement.whole(1) != 0);
  }
}

void count(StoreCounts& counts, bool is_new_point, bool has_result) {
  counts.points += is_new_point ? 1 : 0;
  counts.rows += 1;
  counts.infeasible_rows += has_result ? 0 : 1;
}

/// Refuses rows of points that are not in the sweep and its shard.
void require_known(const Database& database, const StoreIdentity& identity, std::size_t point) {
  if (point >= identity.points || !belongs_to(identity.shard, point, identity.points)) {
    damaged(database.path(), fmt::format("it has a row of point {}, which is not part of its sweep or shard", point));
  }
}

/// Opens a store exclusively. Throws ConfigError if another process has the store open: the remedy is another folder,
/// so this is not an internal error.
Database taken(const fs::path& path) {
  try {
    return {path, Database::Access::take};
  } catch (const DatabaseError& error) {
    if (error.kind() == Kind::busy) {
      throw ConfigError(error.what());
    }
    throw;
  }
}

}  // namespace

std::vector<StorePart> parts_of(const Database& database, std::size_t count) {
  check(count >= 1, "rows are divided into at least one part");
  constexpr std::int64_t least_points = 256;  // A part costs a connection and a thread.
  const std::int64_t first = number_of(database, "SELECT min(id) FROM rows") / rows_a_point;
  const std::int64_t points = number_of(database, "SELECT max(id) FROM rows") / rows_a_point - first + 1;
  std::vector<StorePart> parts(1);
  if (first < 0) {
    return parts;  // The store is damaged; the reader refuses its rows.
  }
  const auto wanted = static_cast<std::int64_t>(count);
  const std::int64_t points_per_part = std::max((points + wanted - 1) / wanted, least_points);
  for (std::int64_t begin = points_per_part; begin < points; begin += points_per_part) {
    const std::int64_t id = (first + begin) * rows_a_point;
    parts.back().last = id - 1;
    parts.push_back({.first = id});
  }
  return parts;
}

struct StoreReader::State {
  explicit State(const fs::path& path) : database(path, Database::Access::read) {
    database.run("BEGIN");  // one view of the store, whatever other processes write meanwhile
    const int version = version_of(database);
    if (version == 0) {
      throw ConfigError(fmt::format("{} contains no rows; run the sweep that fills it", path.string()));
    }
    StoreTables tables = tables_of(database, version);
    columns = std::move(tables.columns);
    identity = identity_in(database, tables.kind);
    index_in_file = indices_of(columns, identity.kind);
    has_own_columns = columns == own_columns(identity.kind);
    texts = texts_in(database);
    rows.emplace(database, selection_of(columns));
    start({});
  }

  void start(const StorePart& part) {
    rows->reset();
    rows->bind(1, part.first);
    rows->bind(2, part.last);
    has_row = rows->step();
  }

  /// Returns, for each column of this program, its index in the file; nothing if the file lacks the column.
  static std::vector<std::optional<std::size_t>> indices_of(const std::vector<HeldColumn>& columns, StoreKind kind) {
    std::vector<std::optional<std::size_t>> indices;
    for (const StoreColumn& own_column : store_columns(kind)) {
      const auto in_file = std::find_if(columns.begin(), columns.end(),
                                        [&](const HeldColumn& column) { return column.name == own_column.name; });
      indices.push_back(in_file == columns.end() ? std::nullopt
                                                 : std::optional(static_cast<std::size_t>(in_file - columns.begin())));
    }
    return indices;
  }

  /// Returns the next row, with a value for each own column; columns that the file lacks are absent. The row is valid
  /// until the next call. Requires `has_row` to be true.
  const StoreRow& row() {
    read_held();
    if (has_own_columns) {
      return file_row;
    }
    own_row.resize(index_in_file.size());
    for (std::size_t i = 0; i < index_in_file.size(); ++i) {
      own_row[i] = index_in_file[i] ? file_row[*index_in_file[i]] : Value{};
    }
    return own_row;
  }

  void read_held() {
    file_row.resize(columns.size());
    held_words.resize(columns.size());
    for (std::size_t i = 0; i < columns.size(); ++i) {
      read_value(static_cast<int>(i) + 2, columns[i].type, file_row[i], held_words[i]);
    }
    if (static_cast<std::int64_t>(checksum.of(rows->whole(0), file_row)) != rows->whole(1)) {
      damaged(database.path(),
              fmt::format("the row of point {} has changed since it was written", rows->whole(0) / rows_a_point));
    }
  }

  /// Reads a value. If the file stores the value as the number of a string, `word` becomes that number. Most rows have
  /// the same text as the previous row, so the text is copied only if the number changes.
  void read_value(int column, StoreType type, Value& value, std::optional<std::int64_t>& word) const {
    const Type held_type = rows->type(column);
    if (held_type == Type::whole && type == StoreType::word) {
      const std::int64_t number = rows->whole(column);
      if (word != number) {
        value = text_of(number);
        word = number;
      }
      return;
    }
    word.reset();
    switch (held_type) {
      case Type::nothing: value = std::monostate{}; return;
      case Type::number: value = rows->number(column); return;
      case Type::text: value = std::string(rows->text(column)); return;
      case Type::whole: value = rows->whole(column);
    }
  }

  [[nodiscard]] const std::string& text_of(std::int64_t number) const {
    const auto text = texts.find(number);
    if (text == texts.end()) {
      damaged(database.path(), fmt::format("it lacks text {}", number));
    }
    return text->second;
  }

  [[nodiscard]] StoreCounts counted() const {
    StoreCounts total;
    std::optional<std::size_t> last;
    for_each_row(database, [&](std::size_t point, bool has_result) {
      count(total, last != point, has_result);
      last = point;
    });
    return total;
  }

  Database database;
  StoreIdentity identity;
  std::vector<HeldColumn> columns;
  std::vector<std::optional<std::size_t>> index_in_file;  // by own column
  bool has_own_columns = false;
  StoreRow file_row;  // in the columns of the file
  RowChecksum checksum;
  std::vector<std::optional<std::int64_t>> held_words;
  StoreRow own_row;
  std::map<std::int64_t, std::string> texts;  // by number
  std::optional<Statement> rows;
  std::optional<StoreCounts> counts;
  bool has_row = false;
};

StoreReader::StoreReader(const fs::path& path, std::optional<StoreCounts> counts)
    : state_(std::make_unique<State>(path)) {
  state_->counts = counts;
}
StoreReader::~StoreReader() = default;

const StoreIdentity& StoreReader::identity() const { return state_->identity; }
const std::vector<HeldColumn>& StoreReader::columns() const { return state_->columns; }
const fs::path& StoreReader::path() const { return state_->database.path(); }

const StoreCounts& StoreReader::counts() const {
  if (!state_->counts) {
    state_->counts = state_->counted();
  }
  return *state_->counts;
}

std::size_t StoreReader::points_wanted() const { return points_of(state_->identity.shard, state_->identity.points); }

bool StoreReader::next_point(const std::function<void(std::size_t point, const StoreRow& row)>& take) {
  if (!state_->has_row) {
    return false;
  }
  const auto point = static_cast<std::size_t>(state_->rows->whole(0) / rows_a_point);
  require_known(state_->database, state_->identity, point);
  const std::int64_t first = static_cast<std::int64_t>(point) * rows_a_point;
  for (std::int64_t id = first; state_->has_row && state_->rows->whole(0) < first + rows_a_point; ++id) {
    if (state_->rows->whole(0) != id) {
      damaged(state_->database.path(), fmt::format("a row of point {} is missing", point));
    }
    take(point, state_->row());
    state_->has_row = state_->rows->step();
  }
  return true;
}

std::optional<StoredPoint> StoreReader::next() {
  StoredPoint stored;
  const bool is_there = next_point([&](std::size_t point, const StoreRow& row) {
    stored.point = point;
    stored.rows.push_back(row);
  });
  return is_there ? std::optional(std::move(stored)) : std::nullopt;
}

void StoreReader::rewind() {
  state_->rows->reset();
  state_->has_row = state_->rows->step();
}

std::vector<StorePart> StoreReader::parts(std::size_t count) const { return parts_of(state_->database, count); }

void StoreReader::restrict_to(const StorePart& part) { state_->start(part); }

struct StoreWriter::State {
  State(const fs::path& path, const StoreIdentity& wanted) : database(path, Database::Access::write), identity(wanted) {
    const int version = version_of(database);
    database.run("BEGIN IMMEDIATE");
    if (version == 0) {
      migrate(database, own_columns(identity.kind), version);
      write_meta(database, identity);
    } else {
      const StoreTables tables = tables_of(database, version);
      require_same(path, identity_in(database, tables.kind), identity);
      require_own_columns(path, tables);
      migrate(database, tables.columns, version);
      require_sound();
    }
    for (const auto& [id, text] : texts_in(database)) {
      words.emplace(text, id);
    }
    bound.resize(store_columns(identity.kind).size());
    find_held();
    insert.emplace(database, insertion_of(identity.kind));
    insert_word.emplace(database, "INSERT INTO texts(id, text) VALUES(?, ?)");
    open_session();
    database.run("COMMIT");
  }

  void require_sound() const {
    Statement statement(database, "PRAGMA quick_check(1)");
    if (statement.step() && statement.text(0) != "ok") {
      damaged(database.path(), std::string(statement.text(0)));
    }
  }

  void find_held() {
    stored.assign(identity.points, false);
    for_each_row(database, [&](std::size_t point, bool has_result) {
      require_known(database, identity, point);
      count(counts, !stored[point], has_result);
      stored[point] = true;
    });
  }

  /// Records the wall-clock time for human readers. No result depends on it.
  void open_session() {
    const auto now =
        std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch());
    Statement statement(database, "INSERT INTO sessions(started, points) VALUES(?, 0)");
    statement.bind(1, static_cast<std::int64_t>(now.count()));
    statement.finish();
    session = number_of(database, "SELECT max(id) FROM sessions");
  }

  void close_session() {
    Statement statement(database, "UPDATE sessions SET points = points + ?, seconds = ? WHERE id = ?");
    statement.bind(1, added);
    statement.bind(2, std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count());
    statement.bind(3, session);
    statement.finish();
    added = 0;
  }

  std::int64_t number_of_word(const std::string& word) {
    if (const auto known = words.find(word); known != words.end()) {
      return known->second;
    }
    const auto number = static_cast<std::int64_t>(words.size()) + 1;
    insert_word->bind(1, number);
    insert_word->bind(2, std::string_view(word));
    insert_word->finish();
    words.emplace(word, number);
    return number;
  }

  /// SQLite keeps a statement's values from row to row, so only values that differ from the last row are bound. A text
  /// is bound from its copy in `bound`, which outlives the statement's steps.
  void bind(std::size_t column, StoreType type, const Value& value) {
    if (value == bound[column]) {
      return;
    }
    bound[column] = value;
    const auto parameter = static_cast<int>(column) + 3;
    if (const auto* text = std::get_if<std::string>(&bound[column])) {
      type == StoreType::word ? insert->bind(parameter, number_of_word(*text))
                              : insert->bind(parameter, std::string_view(*text));
    } else if (const auto* count = std::get_if<std::int64_t>(&value)) {
      insert->bind(parameter, *count);
    } else if (const auto* number = std::get_if<double>(&value)) {
      insert->bind(parameter, *number);
    } else {
      insert->bind_nothing(parameter);
    }
  }

  void add(std::int64_t id, const StoreRow& row) {
    const std::span<const StoreColumn> columns = store_columns(identity.kind);
    check(row.size() == columns.size(), "a stored row has a value for every column");
    insert->bind(1, id);
    insert->bind(2, std::int64_t{checksum.of(id, row)});
    for (std::size_t i = 0; i < columns.size(); ++i) {
      bind(i, columns[i].type, row[i]);
    }
    insert->finish();
  }

  Database database;
  StoreIdentity identity;
  std::vector<bool> stored;  // by point
  StoreCounts counts;
  std::unordered_map<std::string, std::int64_t> words;
  StoreRow bound;  // values of `insert`, whose strings must outlive each step; empty at first
  RowChecksum checksum;
  std::optional<Statement> insert;
  std::optional<Statement> insert_word;
  bool is_open = false;  // a transaction is open
  std::int64_t session = 0;
  std::int64_t added = 0;
  std::chrono::steady_clock::time_point begun = std::chrono::steady_clock::now();
};

StoreWriter::StoreWriter(const fs::path& path, const StoreIdentity& identity)
    : state_(std::make_unique<State>(path, identity)) {}
StoreWriter::~StoreWriter() = default;

const std::vector<bool>& StoreWriter::held() const { return state_->stored; }
const StoreCounts& StoreWriter::counts() const { return state_->counts; }

void StoreWriter::add(std::size_t point, const std::vector<StoreRow>& rows) {
  check(rows.size() <= static_cast<std::size_t>(rows_a_point), "a point has no more rows than have numbers");
  if (!state_->is_open) {
    state_->database.run("BEGIN IMMEDIATE");
    state_->is_open = true;
  }
  std::int64_t id = static_cast<std::int64_t>(point) * rows_a_point;
  for (const StoreRow& row : rows) {
    state_->add(id++, row);
    count(state_->counts, !state_->stored[point], is_feasible(state_->identity.kind, row));
    state_->stored[point] = true;
  }
  ++state_->added;
}

void StoreWriter::commit() {
  if (state_->is_open) {
    state_->close_session();
    state_->database.run("COMMIT");
    state_->is_open = false;
  }
}

std::uint64_t StoreWriter::size() const {
  return static_cast<std::uint64_t>(number_of(state_->database, "PRAGMA page_count") *
                                    number_of(state_->database, "PRAGMA page_size"));
}

bool StoreWriter::is_in_place() const { return state_->database.is_in_place(); }

TakenStore::TakenStore(const fs::path& path) : database_(taken(path)) {
  if (const int version = version_of(database_); version != 0) {
    identity_in(database_, tables_of(database_, version).kind);
  }
}

void TakenStore::remove() { fs::remove(database_.path()); }

}  // namespace commfuse
