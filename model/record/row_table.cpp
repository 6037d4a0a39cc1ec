// SPDX-License-Identifier: Apache-2.0
#include "model/record/row_table.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "model/check.h"

namespace commfuse {

namespace {

std::int64_t stored(std::int64_t value) { return value; }
std::int64_t stored(std::uint64_t value) { return static_cast<std::int64_t>(value); }
std::int64_t stored(std::int32_t value) { return value; }
std::int64_t stored(bool value) { return value ? 1 : 0; }
std::int64_t stored(Bytes value) { return value.count; }
std::int64_t stored(Duration value) { return value.count(); }
std::int64_t stored(double value) { return std::bit_cast<std::int64_t>(value); }
std::int64_t stored(const std::optional<double>& value) { return value ? stored(*value) : no_number; }

void restore(std::int64_t stored, std::int64_t& value) { value = stored; }
void restore(std::int64_t stored, std::uint64_t& value) { value = static_cast<std::uint64_t>(stored); }
void restore(std::int64_t stored, std::int32_t& value) { value = static_cast<std::int32_t>(stored); }
void restore(std::int64_t stored, bool& value) { value = stored != 0; }
void restore(std::int64_t stored, Bytes& value) { value.count = stored; }
void restore(std::int64_t stored, Duration& value) { value = Duration{stored}; }
void restore(std::int64_t stored, double& value) { value = std::bit_cast<double>(stored); }
void restore(std::int64_t stored, std::optional<double>& value) {
  value = stored == no_number ? std::nullopt : std::optional(std::bit_cast<double>(stored));
}

/// Calls visit(column, member) for each setting of the point and of the simulation.
template <class Columns, class Row, class Visit>
void for_each_setting(Columns& columns, Row& row, const Visit& visit) {
  visit(columns.model, row.model);
  visit(columns.hardware, row.hardware);
  visit(columns.link_bandwidth, row.link_bandwidth);
  visit(columns.network_bandwidth, row.network_bandwidth);
  visit(columns.all_reduce_kernel, row.all_reduce_kernel);
  visit(columns.scope, row.scope);
  visit(columns.dtype, row.dtype);
  visit(columns.evaluator, row.evaluator);
  for (std::size_t index = 0; index < repeated_settings.size(); ++index) {
    visit(columns.repeated[index], row.*repeated_settings[index].member);
  }
  for (std::size_t index = 0; index < price_settings.size(); ++index) {
    visit(columns.priced_as[index], row.*price_settings[index].member);
  }
  visit(columns.ranks, row.ranks);
  visit(columns.batch, row.batch);
  visit(columns.seq, row.seq);
  visit(columns.seed, row.seed);
}

template <class Columns, class Row, class Visit>
void for_each_outcome(Columns& columns, Row& row, const Visit& visit) {
  [&]<std::size_t... index>(std::index_sequence<index...>) {
    (visit(columns.outcome[index], row.*std::get<outcome_columns[index].member.index()>(outcome_columns[index].member)),
     ...);
  }
  (std::make_index_sequence<outcome_columns.size()>{});
}

/// Calls visit(column, member) for every member except options and tails.
template <class Columns, class Row, class Visit>
void for_each_member(Columns& columns, Row& row, const Visit& visit) {
  for_each_setting(columns, row, visit);
  visit(columns.link_rate, row.link_rate);
  visit(columns.network_rate, row.network_rate);
  visit(columns.strategy, row.strategy);
  visit(columns.implements, row.implements);
  visit(columns.held_back, row.held_back);
  visit(columns.unmeasured_on, row.unmeasured_on);
  visit(columns.parameters, row.parameters);
  visit(columns.schedule_sha256, row.schedule_sha256);
  visit(columns.reason, row.reason);
  visit(columns.warnings, row.warnings);
  visit(columns.provenances, row.provenances);
  visit(columns.bound, row.bound);
  visit(columns.buffers, row.buffers);
  visit(columns.makespan_error, row.makespan_error);
  visit(columns.win_probability, row.win_probability);
  visit(columns.beats_serial, row.beats_serial);
  visit(columns.saving_error, row.saving_error);
  for_each_outcome(columns, row, visit);
  visit(columns.critical_rank, row.analysis.critical_rank);
  visit(columns.mean_exposed, row.analysis.mean_exposed);
  visit(columns.max_exposed, row.analysis.max_exposed);
  auto& critical = row.analysis.critical;
  visit(columns.makespan, critical.makespan);
  visit(columns.compute, critical.compute);
  visit(columns.slicing, critical.slicing);
  visit(columns.stretch, critical.stretch);
  visit(columns.local, critical.local);
  visit(columns.exposed, critical.exposed);
  visit(columns.head, critical.head);
  visit(columns.bubble, critical.bubble);
  visit(columns.tail, critical.tail);
  visit(columns.busy, critical.busy);
}

/// Adds members to columns.
struct Add {
  void operator()(WordColumn& column, const std::string& word) const { column.push_back(word); }
  template <class T>
  void operator()(NarrowColumn& column, const T& value) const {
    column.push_back(stored(value));
  }
};

/// Reads members from row `place` of the columns.
struct Read {
  void operator()(const WordColumn& column, std::string& word) const { word = column[place]; }
  template <class T>
  void operator()(const NarrowColumn& column, T& value) const {
    restore(column[place], value);
  }
  std::size_t place;
};

/// The columns of for_each_member(), in its order.
struct AllColumns {
  explicit AllColumns(RowColumns& columns) {
    ResultRow unused;
    for_each_member(columns, unused, [&](auto& column, const auto& /*member*/) { add(column); });
  }
  void add(WordColumn& column) { words.push_back(&column); }
  void add(NarrowColumn& column) { numbers.push_back(&column); }

  std::vector<WordColumn*> words;
  std::vector<NarrowColumn*> numbers;
};

std::vector<bool> flags_of(OptionSet relevant) {
  std::vector<bool> flags;
  for (const Option option : all_options()) {
    flags.push_back(relevant.has(option));
  }
  return flags;
}

/// Changes one setting of `changed` at a time, and collects the columns of the settings whose change `differ` notices.
struct FindColumns {
  void operator()(const WordColumn& column, std::string& word) const {
    const std::string before = word;
    word += '+';
    add(column.numbers());
    word = before;
  }
  template <class T>
  void operator()(const NarrowColumn& column, T& value) const {
    ++value;
    add(column);
    --value;
  }
  void add(const NarrowColumn& column) const {
    if (differ(ResultRow{}, changed)) {
      result.push_back(&column);
    }
  }
  bool (*differ)(const ResultRow&, const ResultRow&);
  const ResultRow& changed;
  RowTable::Columns& result;
};

RowTable::Columns columns_that_distinguish(const RowColumns& columns,
                                           bool (*differ)(const ResultRow&, const ResultRow&)) {
  ResultRow changed;
  RowTable::Columns distinguishing_columns;
  for_each_setting(columns, changed, FindColumns{differ, changed, distinguishing_columns});
  return distinguishing_columns;
}

}  // namespace

double number_of_bits(std::int64_t bits) {
  return bits == no_number ? std::numeric_limits<double>::quiet_NaN() : std::bit_cast<double>(bits);
}

RowTable::RowTable(std::span<const ResultRow> rows) {
  for (const ResultRow& row : rows) {
    push_back(row);
  }
}

void RowTable::push_back(const ResultRow& row) {
  check(order_.empty(), "rows are added before they are ordered");
  check(size_ < std::numeric_limits<std::uint32_t>::max(), "a table has fewer than 2^32 rows");
  for_each_member(columns_, row, Add{});
  const bool is_like_last = !options_.empty() && size_ > 0 && [&] {
    const auto& [options, relevant] = options_[static_cast<std::size_t>(columns_.options[size_ - 1])];
    return options == row.options && relevant == row.relevant;
  }();
  if (is_like_last) {
    columns_.options.push_back(columns_.options[size_ - 1]);
  } else {
    columns_.options.push_back(number_of(row.options, row.relevant));
  }
  columns_.tails.push_back(row.tails ? static_cast<std::int64_t>(tails_.size()) : no_number);
  if (row.tails) {
    tails_.push_back(*row.tails);
  }
  ++size_;
}

std::int64_t RowTable::number_of(const StrategyOptions& options, OptionSet relevant) {
  const auto [known, is_new] =
      known_options_.try_emplace(Schedule{options, flags_of(relevant)}, static_cast<std::int64_t>(options_.size()));
  if (is_new) {
    options_.emplace_back(options, relevant);
  }
  return known->second;
}

void RowTable::append(RowTable&& other) {
  check(order_.empty() && other.order_.empty(), "tables are joined before they are ordered");
  check(other.size_ < std::numeric_limits<std::uint32_t>::max() - size_, "a table has fewer than 2^32 rows");
  const AllColumns from(other.columns_);
  const AllColumns to(columns_);
  for (std::size_t i = 0; i < to.words.size(); ++i) {
    to.words[i]->append(std::move(*from.words[i]));
  }
  for (std::size_t i = 0; i < to.numbers.size(); ++i) {
    to.numbers[i]->append(std::move(*from.numbers[i]));
  }
  std::vector<std::int64_t> numbers;
  for (const auto& [options, relevant] : other.options_) {
    numbers.push_back(number_of(options, relevant));
  }
  const auto tails_before = static_cast<std::int64_t>(tails_.size());
  for (std::size_t row = 0; row < other.size_; ++row) {
    columns_.options.push_back(numbers[static_cast<std::size_t>(other.columns_.options[row])]);
    const std::int64_t number = other.columns_.tails[row];
    columns_.tails.push_back(number == no_number ? no_number : tails_before + number);
  }
  tails_.insert(tails_.end(), std::make_move_iterator(other.tails_.begin()),
                std::make_move_iterator(other.tails_.end()));
  size_ += other.size_;
  other = RowTable();
}

void RowTable::read(std::size_t row, ResultRow& into) const {
  const std::size_t place = place_of(row);
  for_each_member(columns_, into, Read{place});
  const auto& [options, relevant] = options_[static_cast<std::size_t>(columns_.options[place])];
  into.options = options;
  into.relevant = relevant;
  if (const Tails* row_tails = tails(row)) {
    into.tails = *row_tails;
  } else {
    into.tails.reset();
  }
}

const Tails* RowTable::tails(std::size_t row) const {
  const std::int64_t number = columns_.tails[place_of(row)];
  return number == no_number ? nullptr : &tails_[static_cast<std::size_t>(number)];
}

ResultRow RowTable::operator[](std::size_t row) const {
  ResultRow result;
  read(row, result);
  return result;
}

std::vector<ResultRow> RowTable::rows(std::size_t first, std::size_t count) const {
  std::vector<ResultRow> results(count);
  for (std::size_t i = 0; i < count; ++i) {
    read(first + i, results[i]);
  }
  return results;
}

RowTable::Columns RowTable::point_columns() const {
  return columns_that_distinguish(columns_,
                                  [](const ResultRow& a, const ResultRow& b) { return compare_points(a, b) != 0; });
}

RowTable::Columns RowTable::setting_columns() const {
  return columns_that_distinguish(columns_,
                                  [](const ResultRow& a, const ResultRow& b) { return !same_but_for_axes(a, b); });
}

RowTable::Groups RowTable::groups(const Columns& columns) const {
  using Key = std::pair<std::uint32_t, std::int64_t>;  // the group by previous columns, and the value in this one
  const auto hash = [](const Key& key) {
    constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
    return static_cast<std::size_t>((static_cast<std::uint64_t>(key.second) * odd) ^ (key.first * (odd >> 7U)));
  };
  Groups groups(size_, 0);
  for (const NarrowColumn* column : columns) {
    if (column->is_constant()) {
      continue;
    }
    std::unordered_map<Key, std::uint32_t, decltype(hash)> known(0, hash);
    Key last{};
    std::uint32_t number = 0;
    for (std::size_t row = 0; row < size_; ++row) {
      const Key key{groups[row], (*column)[place_of(row)]};
      if (row == 0 || key != last) {
        number = known.try_emplace(key, static_cast<std::uint32_t>(known.size())).first->second;
        last = key;
      }
      groups[row] = number;
    }
  }
  return groups;
}

RowTable::Groups RowTable::runs(const Columns& columns) const {
  std::vector<bool> is_first(size_, false);
  for (const NarrowColumn* column : columns) {
    if (column->is_constant()) {
      continue;
    }
    std::int64_t last = size_ == 0 ? 0 : (*column)[place_of(0)];
    for (std::size_t row = 1; row < size_; ++row) {
      const std::int64_t value = (*column)[place_of(row)];
      if (value != last) {
        is_first[row] = true;
        last = value;
      }
    }
  }
  Groups begins;
  for (std::size_t row = 0; row < size_; ++row) {
    if (row == 0 || is_first[row]) {
      begins.push_back(static_cast<std::uint32_t>(row));
    }
  }
  begins.push_back(static_cast<std::uint32_t>(size_));
  return begins;
}

void RowTable::order_by_point() { order_by(groups(point_columns())); }
void RowTable::order_by_setting() { order_by(groups(setting_columns())); }

void RowTable::order_by(const Groups& groups) {
  if (std::is_sorted(groups.begin(), groups.end())) {
    return;
  }
  // Counts the rows of each group, then moves the rows to their places: groups are numbered in the order in which they
  // first occur.
  Groups next(*std::max_element(groups.begin(), groups.end()) + 2, 0);
  for (const std::uint32_t group : groups) {
    ++next[group + 1];
  }
  std::partial_sum(next.begin(), next.end(), next.begin());
  std::vector<std::uint32_t> order(size_);
  for (std::size_t row = 0; row < size_; ++row) {
    order[next[groups[row]]++] = static_cast<std::uint32_t>(place_of(row));
  }
  order_ = std::move(order);
}

}  // namespace commfuse
