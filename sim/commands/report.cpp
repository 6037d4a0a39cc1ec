// SPDX-License-Identifier: Apache-2.0
// commfuse-sim report: writes results as a single, self-contained HTML page.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "model/text/plain_text.h"
#include "model/text/shell_word.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "reports/html/report.h"
#include "sim/commands/commands.h"
#include "sim/commands/read_rows.h"
#include "sim/commands/report_input.h"

namespace commfuse::sim {

namespace {

struct ReportRequest {
  std::string file;
  std::string out = "report.html";
  std::string title;
  std::string page;
  ReportExtras extras;
  std::vector<std::pair<const Field*, std::string>> rule;
};

/// Adds the flags for the two settings of the verdict rule.
void add_rule_flags(CLI::App& command, ReportRequest& request) {
  for (const char* key : {"verdict.difference", "verdict.probability"}) {
    const Field& field = *find_field(key);
    command
        .add_option_function<std::string>(
            fmt::format("--{}", field.flag),
            [&request, &field](const std::string& text) { request.rule.emplace_back(&field, text); },
            std::string(field.doc))
        ->type_name("PERCENT")
        ->default_str(std::string(field.preset));
  }
}

VerdictRule rule_of(const ReportRequest& request) {
  Resolver resolver;
  for (const auto& [field, text] : request.rule) {
    resolver.read_flag(*field, text);
  }
  return verdict_rule_of(resolver.finish());
}

/// Throws ConfigError unless the address is a web address or a path, because people will click the link.
void require_plain_address(const std::string& address) {
  const std::size_t scheme = address.find(':');
  const bool is_web =
      address.starts_with("https://") || address.starts_with("http://") || address.starts_with("file://");
  if (!is_utf8(address) || address.find('#') != std::string::npos || (scheme != std::string::npos && !is_web)) {
    throw ConfigError(
        fmt::format("--page: {} is not the address of a page; write one such as https://example.org/commfuse.html or "
                    "commfuse.html, without #",
                    in_quotes(address)));
  }
}

int write_report(ReportRequest request) {
  if (!is_utf8(request.title)) {
    throw ConfigError("--title: the text is not UTF-8; encode it in UTF-8");
  }
  require_plain_address(request.page);
  request.extras.rule = rule_of(request);
  reports::require_no_input(request.out, files_read(request.file, request.extras));
  reports::AtomicFile file(request.out);
  ReadRows results = read_rows(request.file);
  std::string command = std::move(results.command);
  if (!request.extras.measured.empty()) {
    command += fmt::format(" --measured {}", shell_word(request.extras.measured));
  }
  for (const std::string& fit : request.extras.fits) {
    command += fmt::format(" --fit {}", shell_word(fit));
  }
  if (request.extras.jitter) {
    command += fmt::format(" --jitter {}", shell_word(*request.extras.jitter));
  }
  for (const auto& [field, text] : request.rule) {
    command += fmt::format(" --{} {}", field->flag, shell_word(text));
  }
  reports::ReportInput input =
      report_input(request.title.empty() ? results.title : request.title, std::move(results.rows), std::move(command),
                   request.extras, std::move(results.models));
  input.page = request.page;
  reports::write_html_report(input, [&](std::string_view bytes) { file.write(bytes); });
  file.commit();
  fmt::print("{}\n", request.out);
  return exit_code::done;
}

}  // namespace

void add_report(CLI::App& app, int& status) {
  add_verb(app, "report", "Write results as one HTML page", [&status](CLI::App& command) {
    const auto request = std::make_shared<ReportRequest>();
    command
        .add_option("RESULTS", request->file,
                    "Folder of a sweep, its store, JSON or JSON Lines; -: JSON Lines from stdin")
        ->required();
    command.add_option("--out", request->out, "HTML file to write")->type_name("FILE")->capture_default_str();
    command.add_option("--title", request->title, "Heading of the report; default: the sweep's")->type_name("TEXT");
    command.add_option("--page", request->page, "Address of the page (./dev page) that timelines link to")
        ->type_name("ADDRESS");
    command.add_option("--measured", request->extras.measured, "Record of commfuse-validate run at one of the points")
        ->type_name("FILE");
    command
        .add_option("--fit", request->extras.fits,
                    "Measurements in any format that calibrate reads: shows how well the machine's formulas fit")
        ->type_name("FILE");
    offers_names(command
                     .add_option_function<std::string>(
                         "--jitter", [request](const std::string& name) { request->extras.jitter = name; },
                         "Jitter for the point shown in detail, even if the results have none; for example default")
                     ->type_name("NAME"),
                 Catalogue::jitter);
    add_rule_flags(command, *request);
    command.footer(
        "Writes one self-contained file: what overlap saves, where it pays, timelines,\n"
        "where the time goes, all rows. It opens from disk in any current browser, loads\n"
        "nothing from a network, and can be read and printed without scripts.\n"
        "\n"
        "Examples:\n"
        "  commfuse-sim report out/demo --jitter default --out report.html\n"
        "  commfuse-sim run --axis seq=1K..64K -o jsonl | \\\n"
        "    commfuse-sim report - --out r.html\n"
        "  commfuse-sim report out/demo --measured record.json --out measured.html");
    command.callback([request, &status] { status = write_report(*request); });
  });
}

}  // namespace commfuse::sim
