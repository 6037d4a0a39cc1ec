// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <memory>
#include <string>
#include <string_view>

#include "model/config/command_line.h"
#include "model/config/option_marks.h"
#include "model/record/versions.h"
#include "sim/commands/commands.h"
#include "sim/commands/setting_flags.h"

namespace commfuse::sim {

void add_version(CLI::App& app, int&) {
  add_verb(app, "version", "Show versions, compiler and detected libraries", [](CLI::App& command) {
    const auto format = std::make_shared<std::string>("text");
    offers_words(command.add_option("-o,--output", *format, "text, json")->type_name("FORMAT")->capture_default_str(),
                 {"text", "json"});
    command.callback([format] {
      constexpr std::array<std::string_view, 2> formats{"text", "json"};
      require_word("--output", *format, formats, "format");
      const bool is_json = *format == "json";
      fmt::print("{}", is_json ? versions_as_json("commfuse-sim") : versions_as_text("commfuse-sim"));
    });
  });
}

}  // namespace commfuse::sim
