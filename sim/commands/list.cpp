// SPDX-License-Identifier: Apache-2.0
// commfuse-sim list: lists the names to choose from, one per line.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config_error.h"
#include "model/wrapped.h"
#include "reports/rows.h"
#include "sim/commands/commands.h"
#include "sim/commands/listing.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

namespace {

std::vector<std::string> names_of(const Listing& listing) {
  std::vector<std::string> names;
  for (const ListColumn& column : listing.columns) {
    names.push_back(column.name);
  }
  return names;
}

/// The text column at the end of a list. Its lines are wrapped at the width of the terminal: next to the other
/// columns or, if these leave too little space, below them.
class LastColumn {
 public:
  LastColumn(const Listing& listing, std::span<const std::size_t> widths) {
    for (const std::size_t width : widths.first(widths.size() - 1)) {
      start_ += width + 2;
    }
    is_too_wide_ = listing.columns.back().is_text && start_ + widths.back() > terminal_width();
  }

  [[nodiscard]] bool is_too_wide() const { return is_too_wide_; }

  /// Returns a row: the line `other_cells` and the wrapped text of the last column.
  [[nodiscard]] std::string wrapped_row(std::string other_cells, const std::string& text) const {
    constexpr std::size_t min_width = 24;
    if (text.empty()) {
      return other_cells;
    }
    if (start_ + min_width > terminal_width()) {
      return other_cells + wrapped(text, "    ", "    ");
    }
    other_cells.pop_back();  // Removes the line break.
    other_cells.resize(start_, ' ');
    return wrapped(text, other_cells, std::string(start_, ' '));
  }

 private:
  std::size_t start_ = 0;
  bool is_too_wide_ = false;
};

std::string table_of(const Listing& listing) {
  std::vector<std::size_t> widths;
  for (std::size_t column = 0; column < listing.columns.size(); ++column) {
    widths.push_back(listing.columns[column].name.size());
    for (const std::vector<std::string>& row : listing.rows) {
      widths.back() = std::max(widths.back(), row[column].size());
    }
  }
  const std::size_t width_with_wide_gaps = std::accumulate(widths.begin(), widths.end(), 2 * (widths.size() - 1));
  const std::string gap(width_with_wide_gaps > terminal_width() && !listing.columns.back().is_text ? 1 : 2, ' ');
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t column = 0; column < cells.size(); ++column) {
      text += column == 0 ? "" : gap;
      text += listing.columns[column].is_text ? fmt::format("{:<{}}", cells[column], widths[column])
                                              : fmt::format("{:>{}}", cells[column], widths[column]);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    return text + "\n";
  };
  const LastColumn last(listing, widths);
  std::string text = line(names_of(listing));
  for (const std::vector<std::string>& row : listing.rows) {
    text += last.is_too_wide() ? last.wrapped_row(line({row.begin(), row.end() - 1}), row.back()) : line(row);
  }
  return text;
}

std::string markdown_of(const Listing& listing) {
  std::string text = fmt::format("| {} |\n|", fmt::join(names_of(listing), " | "));
  for (const ListColumn& column : listing.columns) {
    text += column.is_text ? "---|" : "---:|";
  }
  text += "\n";
  for (const std::vector<std::string>& row : listing.rows) {
    text += fmt::format("| {} |\n", fmt::join(row, " | "));
  }
  return text;
}

std::string csv_of(const Listing& listing) {
  const auto line = [](const std::vector<std::string>& cells) {
    const std::vector<Value> values(cells.begin(), cells.end());
    return reports::csv_line(std::span<const Value>(values));
  };
  std::string text = line(names_of(listing));
  for (const std::vector<std::string>& row : listing.rows) {
    text += line(row);
  }
  return text;
}

struct ListRequest {
  std::string kind;
  std::string folder;
  std::string format = "table";
};

Listing listing_of(const ListRequest& request) {
  constexpr std::array<std::string_view, 7> kinds{"models",          "hardware",   "clusters", "strategies",
                                                  "implementations", "frameworks", "scopes"};
  const bool names_hardware = request.kind == "gpus" || request.kind == "machines";
  if (!names_hardware) {
    require_word("WHAT", request.kind, kinds, "list");
  }
  if (!request.folder.empty() && request.kind != "models") {
    throw ConfigError("FOLDER: only models can be listed from a folder; remove FOLDER, or list models");
  }
  return request.kind == "models" ? request.folder.empty() ? listed_models() : listed_models_in(request.folder)
         : names_hardware || request.kind == "hardware" ? listed_machines(Catalogue::nodes, false)
         : request.kind == "clusters"                   ? listed_machines(Catalogue::hardware, true)
         : request.kind == "scopes"                     ? listed_scopes()
         : request.kind == "implementations"            ? listed_implementations()
         : request.kind == "frameworks"                 ? listed_frameworks()
                                                        : listed_strategies();
}

}  // namespace

void add_list(CLI::App& app, int& status) {
  add_verb(app, "list", "List models, hardware, strategies, frameworks and more", [&status](CLI::App& command) {
    const auto request = std::make_shared<ListRequest>();
    offers_words(command.add_option("WHAT", request->kind,
                                    "models, hardware, clusters, strategies, implementations, frameworks or scopes"),
                 {"models", "hardware", "clusters", "strategies", "implementations", "frameworks", "scopes"});
    command.add_option("FOLDER", request->folder, "For models: a folder of config.json files to list");
    offers_words(command.add_option("-o,--output", request->format, "Format: table, markdown or csv")
                     ->type_name("FORMAT")
                     ->capture_default_str(),
                 {"table", "markdown", "csv"});
    command.footer(
        "Examples:\n"
        "  commfuse-sim list hardware\n"
        "  commfuse-sim list models -o csv");
    command.callback([request, &status] {
      constexpr std::array<std::string_view, 3> formats{"table", "markdown", "csv"};
      require_word("--output", request->format, formats, "format");
      if (request->kind.empty()) {
        fmt::print("models\nhardware\nclusters\nstrategies\nimplementations\nframeworks\nscopes\n");
        status = exit_code::done;
        return;
      }
      const Listing listing = listing_of(*request);
      fmt::print("{}", request->format == "table"      ? table_of(listing)
                       : request->format == "markdown" ? markdown_of(listing)
                                                       : csv_of(listing));
      status = exit_code::done;
    });
  });
}

}  // namespace commfuse::sim
