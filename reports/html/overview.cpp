// SPDX-License-Identifier: Apache-2.0
#include "reports/html/overview.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "model/analysis/memory.h"
#include "reports/comparison.h"
#include "reports/figure/wording.h"
#include "reports/html/points.h"
#include "reports/point_rows.h"

namespace commfuse::reports {

namespace {

class Walk {
 public:
  Walk(const RowTable& rows, const VerdictRule& rule) : rows_(rows), rule_(rule) {}

  Overview walk() {
    overview_.front.reserve(rows_.size());
    const RowTable::Groups points = rows_.runs(rows_.point_columns());
    const RowTable::Groups settings = rows_.runs(rows_.setting_columns());
    auto setting = settings.begin();
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const RowRange range{points[i], points[i + 1] - points[i]};
      read(range);
      if (range.first == *setting) {
        finish_setting();
        const std::size_t first = *setting++;
        overview_.settings.push_back({setting_title(buffer_.front()), {first, *setting - first}});
      }
      ++overview_.settings.back().points;
      ++overview_.points;
      add(range);
    }
    finish();
    return std::move(overview_);
  }

 private:
  void read(const RowRange& range) {
    buffer_.resize(std::max(buffer_.size(), range.count));  // The capacity of a row's strings is reused.
    for (std::size_t i = 0; i < range.count; ++i) {
      rows_.read(range.first + i, buffer_[i]);
    }
  }

  void add(const RowRange& range) {
    const Rows rows = std::span<const ResultRow>(buffer_).first(range.count);
    const PointView point = view_of(rows, rule_);
    const auto row_of = [&](const ResultRow* row) { return range.first + static_cast<std::size_t>(row - rows.data()); };
    count_results(rows, point);
    compare_with_serial(rows);
    for (const ResultRow& row : rows) {
      overview_.front.push_back(!point.in_front(row) ? 0 : point.front.size() == 1 ? 1 : 2);
    }
    if (point.ranking.empty()) {
      return;
    }
    const ResultRow& fastest = *point.ranking.front();
    if (point.front.size() == 1) {
      ++wins_[fastest.strategy];
    }
    add_savings(range, point);
    for (const ResultRow* row : point.ranking) {
      if (!overview_.highest_mfu || row->mfu > highest_mfu_) {
        overview_.highest_mfu = row_of(row);
        highest_mfu_ = row->mfu;
      }
    }
    add_size(range, fastest, row_of(&fastest));
  }

  /// Counts the verdicts over rows with a result, as summary() does.
  void count_results(Rows rows, const PointView& point) {
    const auto results = std::ranges::count_if(rows, has_result);
    if (results == 0) {
      return;
    }
    ++points_with_results_;
    add_needs(rows, need_);
    std::vector<std::string> names;
    const auto add_names = [&](const std::vector<const ResultRow*>& front) {
      for (const ResultRow* row : front) {
        names.push_back(row->strategy);
      }
    };
    if (static_cast<std::size_t>(results) == rows.size()) {
      add_names(point.front);
    } else {
      std::vector<ResultRow> copies;
      std::copy_if(rows.begin(), rows.end(), std::back_inserter(copies), has_result);
      add_names(point_verdict(copies, rule_).front);
    }
    verdicts_.add(std::move(names));
  }

  static void add_needs(Rows rows, LargestNeed& need) {
    for (const ResultRow& row : rows) {
      if (has_result(row)) {
        add_need(row, need);
      }
    }
  }

  void compare_with_serial(Rows rows) {
    const ResultRow* serial = serial_of(rows);
    for (const ResultRow& row : rows) {
      const std::optional<double> share = has_result(row) ? reports::against_serial(row, serial) : std::nullopt;
      overview_.against_serial.push_back(share ? std::bit_cast<std::int64_t>(*share) : no_number);
    }
  }

  /// Adds the savings of a point. Each strategy counts once, with its fastest schedule.
  void add_savings(const RowRange& range, const PointView& point) {
    const std::optional<PayVerdict> recommended = pay_verdict(point.ranking, rule_);
    if (!recommended) {
      const ResultRow* next = point.next_strategy();
      if (next != nullptr && point.front.size() == 1) {
        keep_larger(1.0 - 1.0 / times_slower(*next, *point.front.front()), range, ahead_);
      }
      return;
    }
    setting_.add(recommended->saved, recommended->pays);
    total_.add(recommended->saved, recommended->pays);
    keep_larger(recommended->saved, range, best_);
    if (recommended->pays == Pays::yes) {
      keep_larger(recommended->saved, range, pays_);
    } else if (recommended->pays == Pays::no) {
      keep_larger(-recommended->saved, range, loses_);
    }
    for (auto row = point.ranking.begin(); row != point.ranking.end(); ++row) {
      const auto is_same = [&](const ResultRow* other) { return other->strategy == (*row)->strategy; };
      if (*row != recommended->serial && (*row)->strategy != "serial" && !overlaps_nothing(**row) &&
          std::none_of(point.ranking.begin(), row, is_same)) {
        const PayVerdict verdict = pay_verdict(**row, *recommended->serial, *point.ranking.front(), rule_);
        auto& [tally, is_implementation] = strategies_[(*row)->strategy];
        tally.add(verdict.saved, verdict.pays);
        is_implementation = !(*row)->implements.empty();
      }
    }
  }

  /// A share, and its point.
  struct Extreme {
    double share = 0.0;
    std::optional<RowRange> point{};
  };
  static void keep_larger(double share, const RowRange& point, Extreme& extreme) {
    if (!extreme.point || share > extreme.share) {
      extreme = {share, point};
    }
  }

  void finish_setting() {
    if (!overview_.settings.empty()) {
      overview_.settings.back().savings = setting_.count();
      setting_ = {};
    }
  }

  void add_size(const RowRange& range, const ResultRow& fastest, std::size_t row) {
    const std::pair size(fastest.batch * fastest.seq, fastest.ranks);
    if (!overview_.smallest || size < smallest_size_) {
      overview_.smallest = range;
      smallest_size_ = size;
    }
    if (!overview_.largest || size > largest_size_) {
      overview_.largest = range;
      largest_size_ = size;
      fastest_of_largest_ = row;
      mfu_of_largest_ = fastest.mfu;
    }
  }

  void finish() {
    finish_setting();
    overview_.savings = total_.count();
    for (auto& [strategy, tally] : strategies_) {
      overview_.strategies.push_back({strategy, tally.second, tally.first.count()});
    }
    std::ranges::stable_sort(overview_.strategies, std::ranges::greater{},
                             [](const StrategySavings& strategy) { return strategy.count.median; });
    overview_.decisive = pays_.point ? pays_.point : loses_.point ? loses_.point : ahead_.point;
    overview_.best = best_.point;
    overview_.loss = loses_.point;
    overview_.memory = need_.sentence();
    if (points_with_results_ > 1) {
      overview_.wins_words = summary_in_words(points_with_results_, verdicts_, rule_);
    }
    for (const auto& [strategy, points] : wins_) {
      overview_.wins.push_back({strategy, points});
    }
    std::ranges::stable_sort(overview_.wins, std::ranges::greater{}, &Wins::points);
    if (overview_.highest_mfu && mfu_of_largest_ >= highest_mfu_) {
      overview_.highest_mfu = fastest_of_largest_;
    }
  }

  const RowTable& rows_;
  VerdictRule rule_;
  Overview overview_;
  std::vector<ResultRow> buffer_;
  LargestNeed need_;
  VerdictCount verdicts_;
  std::map<std::string, std::size_t> wins_;
  SavingTally total_;
  SavingTally setting_;
  std::map<std::string, std::pair<SavingTally, bool>> strategies_;
  Extreme pays_;
  Extreme loses_;
  Extreme best_;
  Extreme ahead_;
  std::size_t points_with_results_ = 0;
  std::pair<std::int64_t, std::int64_t> smallest_size_;
  std::pair<std::int64_t, std::int64_t> largest_size_;
  std::size_t fastest_of_largest_ = 0;
  double mfu_of_largest_ = 0.0;
  double highest_mfu_ = 0.0;
};

}  // namespace

Overview overview_of(const RowTable& rows, const VerdictRule& rule) { return Walk(rows, rule).walk(); }

}  // namespace commfuse::reports
