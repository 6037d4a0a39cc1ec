// SPDX-License-Identifier: Apache-2.0
// commfuse-sim plot: draws one figure of results to a file or the terminal, or lists the figures.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config_error.h"
#include "model/wrapped.h"
#include "reports/atomic_file.h"
#include "reports/figure/figure_json.h"
#include "reports/figure/svg.h"
#include "sim/commands/commands.h"
#include "sim/commands/plot_text.h"
#include "sim/commands/png.h"
#include "sim/commands/read_rows.h"
#include "sim/commands/report_input.h"

namespace commfuse::sim {

namespace {

struct PlotRequest {
  std::string file;
  std::string figure;
  std::string out;
  ReportExtras extras;
};

using reports::Figure;

std::string list_of(const std::vector<Figure>& figures) {
  std::string text;
  for (const Figure& figure : figures) {
    text += wrapped(figure.title, fmt::format("{:<16} ", figure.id), std::string(17, ' '));
  }
  return text;
}

/// Returns what the figures do not show, and how to see it; empty if they show everything.
std::string left_out_in_words(const std::vector<std::string>& clauses) {
  std::string text;
  for (const std::string& clause : clauses) {
    text += (text.empty() ? "\n" : "") + wrapped(clause + ".", "", "");
  }
  return text.empty() ? text
                      : text +
                            "To draw others, select their rows:\n"
                            "  commfuse-sim results RESULTS --where EXPRESSION -o jsonl | commfuse-sim plot -\n";
}

/// Returns the figure named `name`. Throws ConfigError for an unknown name.
const Figure& figure_named(const std::vector<Figure>& figures, const std::string& name) {
  const auto match =
      std::find_if(figures.begin(), figures.end(), [&](const Figure& candidate) { return candidate.id == name; });
  if (match != figures.end()) {
    return *match;
  }
  std::string names;
  for (const Figure& figure : figures) {
    names += (names.empty() ? "" : ", ") + figure.id;
  }
  throw ConfigError(fmt::format("FIGURE: unknown figure '{}'; known figures: {}", name, names));
}

/// Returns the figure in the format that the extension of the file name states.
std::string figure_file(const Figure& figure, const std::string& out) {
  const std::string ending = std::filesystem::path(out).extension().string();
  if (ending == ".svg") {
    return reports::svg(figure);
  }
  if (ending == ".png") {
    return png_of(reports::svg(figure));
  }
  if (ending == ".csv") {
    return reports::figure_csv(figure);
  }
  if (ending == ".json") {
    return reports::figure_json(figure) + "\n";
  }
  throw ConfigError(fmt::format("--out: '{}' must end in .svg, .png, .csv or .json; choose one", out));
}

int plot(const PlotRequest& request) {
  reports::require_no_input(request.out, files_read(request.file, request.extras));
  ReadRows results = read_rows(request.file);
  const auto [figures, left_out] =
      reports::report_figures(report_input(std::move(results.title), std::move(results.rows),
                                           std::move(results.command), request.extras, std::move(results.models)));
  if (figures.empty()) {
    throw ConfigError(
        "these results have no figure; run more points or strategies, or run them again with this version");
  }
  if (request.figure.empty()) {
    if (!request.out.empty()) {
      throw ConfigError(fmt::format("FIGURE is missing; choose one of these:\n{}", list_of(figures)));
    }
    fmt::print("{}{}", list_of(figures), left_out_in_words(left_out));
    return exit_code::done;
  }
  const Figure& figure = figure_named(figures, request.figure);
  if (request.out.empty()) {
    fmt::print("{}", plots_in_words({&figure, 1}));
  } else {
    reports::atomic_write(request.out, figure_file(figure, request.out));
  }
  return exit_code::done;
}

}  // namespace

void add_plot(CLI::App& app, int& status) {
  add_verb(app, "plot", "Draw one figure of a report", [&status](CLI::App& command) {
    const auto request = std::make_shared<PlotRequest>();
    command
        .add_option("RESULTS", request->file,
                    "Folder of a sweep, its store, JSON or JSON Lines; -: JSON Lines from stdin")
        ->required();
    command.add_option("FIGURE", request->figure, "Figure to draw; without it, the available figures are listed");
    command
        .add_option("--out", request->out,
                    "File to write: .svg, .png (needs rsvg-convert), .csv or .json; default: the terminal")
        ->type_name("FILE");
    command.add_option("--measured", request->extras.measured, "Record of commfuse-validate run at one of the points")
        ->type_name("FILE");
    command.add_option("--fit", request->extras.fits, "Measurements in any format that calibrate reads")
        ->type_name("FILE");
    command.footer(
        "Draws the figures of commfuse-sim report, and some that only this command has.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim plot out/demo\n"
        "  commfuse-sim plot out/demo breakdown\n"
        "  commfuse-sim plot out/demo winners-map-1 --out winners.svg");
    command.callback([request, &status] { status = plot(*request); });
  });
}

}  // namespace commfuse::sim
