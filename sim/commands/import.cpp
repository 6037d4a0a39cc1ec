// SPDX-License-Identifier: Apache-2.0
// commfuse-sim import: converts arguments and configurations of other programs to commfuse files.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/framework.h"
#include "model/config/resolver.h"
#include "model/config/settings.h"
#include "model/config_error.h"
#include "model/stderr_text.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/text/shell_word.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "sim/commands/commands.h"
#include "sim/commands/write_new.h"
#include "sim/import/formats.h"
#include "sim/step/predict_steps.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

struct ImportRequest {
  std::string file;
  std::string name;
  std::string out = ".";
  /// Values by flag, in the order of the format's options.
  std::vector<std::pair<std::string, std::vector<std::string>>> options{};
};

/// Throws ConfigError for a name that is not a plain file name, so that files stay in their folder.
void require_plain(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      has_control_character(name) || !is_utf8(name)) {
    throw ConfigError(fmt::format(
        "--name: {} is not a plain file name; write one such as mine, and its folder with --out", in_quotes(name)));
  }
}

/// Reads the written files as `run` does, and checks, without a machine, that the step is possible. The last file has
/// the settings. After a mistake, removes the files and throws a ConfigError that names their source.
void require_runnable(const std::string& model, const std::vector<fs::path>& written, const std::string& source) {
  const char* problem = "files that cannot be loaded";
  try {
    const Transformer loaded = load_model(model);
    Resolver resolver;
    resolver.read_file(written.back().string());
    const Settings settings = resolver.finish();
    load_framework(settings.text("framework"));
    problem = "a step that cannot be run";
    require_possible(loaded, training_plan_of(settings));
  } catch (const ConfigError& error) {
    for (const fs::path& file : written) {
      std::error_code ignored;
      fs::remove(file, ignored);
    }
    throw ConfigError(
        fmt::format("{}: the file describes {}, so nothing is written; {}", source, problem, error.what()));
  }
}

/// Writes the files of an import and returns their paths; the run file is last.
std::vector<fs::path> write(import::Imported imported, const ImportRequest& request) {
  const fs::path folder(request.out);
  std::vector<std::pair<std::string, std::string>> texts;  // by name of the file
  std::string model = imported.model_name;
  if (model.empty()) {
    texts.emplace_back(request.name + ".model.yaml", imported.model);
    model = fmt::format("./{}", texts.back().first);
  }
  if (imported.step.implementation_sites) {
    texts.emplace_back(request.name + ".framework.yaml", framework_text(imported.step, imported.origin, request.name));
    imported.step.framework = fmt::format("./{}", texts.back().first);
  }
  texts.emplace_back(request.name + ".run.yaml", fmt::format("{}model: {}\n", run_text(imported), yaml_scalar(model)));
  std::vector<std::string> names;
  std::ranges::transform(texts, std::back_inserter(names), &std::pair<std::string, std::string>::first);
  require_new(folder, names);
  std::vector<fs::path> written;
  for (const auto& [name, text] : texts) {
    reports::atomic_write(folder / name, text);
    written.push_back(folder / name);
  }
  require_runnable(imported.model_name.empty() ? written.front().string() : imported.model_name, written, request.file);
  return written;
}

/// Returns the name of a machine with at least two nodes and enough GPUs, for an example command. Returns nothing if no
/// machine may have so many GPUs.
std::optional<std::string> machine_for(std::int64_t gpus) {
  constexpr std::int64_t gpus_in_node = 8;
  constexpr std::int64_t max_gpus = 32768;
  if (gpus > max_gpus) {
    return std::nullopt;
  }
  return fmt::format("dgx-h100-x{}", std::max<std::int64_t>((gpus + gpus_in_node - 1) / gpus_in_node, 2));
}

int import_file(const import::Format& format, const ImportRequest& request) {
  require_plain(request.name);
  import::Source source{request.file, request.name};
  for (const auto& [flag, values] : request.options) {
    if (!values.empty()) {
      source.options.set(flag, values);
    }
  }
  const import::Imported imported = format.read(source);
  const std::vector<fs::path> files = write(imported, request);
  for (const std::string& note : imported.notes) {
    fmt::print(stderr, "{}", for_stderr(fmt::format("note: {}\n", with_escapes(note))));
  }
  const std::string run = files.back().string();
  std::string others;
  for (std::size_t i = 0; i + 1 < files.size(); ++i) {
    others += fmt::format("{}{}", files[i].string(), i + 2 < files.size() ? ", " : " and ");
  }
  fmt::print("wrote {}{}\n", others, run);
  if (const std::optional<std::string> machine = machine_for(gpus_of(imported.step))) {
    fmt::print("try: commfuse-sim run --config {} --hardware {}\n", shell_word(run), *machine);
  } else {
    fmt::print(stderr, "note: no known machine has {} GPUs, so the step cannot be run unchanged\n",
               gpus_of(imported.step));
  }
  return exit_code::done;
}

void add_common(CLI::App& command, ImportRequest& request) {
  command.add_option("--name", request.name, "Name of the model and of the files")->type_name("NAME");
  command.add_option("--out", request.out, "Folder for NAME.run.yaml and the files that it names")
      ->type_name("FOLDER")
      ->capture_default_str();
}

/// Returns the flags of all formats, each once, for files whose format is detected from their content.
std::vector<std::string> all_flags() {
  std::vector<std::string> flags;
  for (const import::Format& format : import::formats()) {
    for (const import::FormatOption& option : format.options) {
      if (option.flag.starts_with("--") && std::ranges::find(flags, option.flag) == flags.end()) {
        flags.emplace_back(option.flag);
      }
    }
  }
  return flags;
}

/// Throws ConfigError for a flag before the name of the format, because the flag would be ignored.
void refuse_before(const CLI::App& import, std::string_view format) {
  std::vector<std::string> flags{"--name", "--out"};
  std::ranges::copy(all_flags(), std::back_inserter(flags));
  for (const std::string& flag : flags) {
    if (import.count(flag) > 0) {
      throw ConfigError(fmt::format("{} comes before the format; write it after: commfuse-sim import {} FILE {} ...",
                                    flag, format, flag));
    }
  }
}

void add_format(CLI::App& import, const import::Format& format, int& status) {
  add_verb(import, std::string(format.name), std::string(format.summary),
           [&import, &format, &status](CLI::App& command) {
             const auto request = std::make_shared<ImportRequest>();
             request->name = format.name;
             command.add_option("FILE", request->file, std::string(format.file))->required();
             request->options.reserve(format.options.size());
             for (const import::FormatOption& option : format.options) {
               auto& values = request->options.emplace_back(option.flag, std::vector<std::string>()).second;
               CLI::Option* const added = command.add_option(std::string(option.flag), values, std::string(option.doc))
                                              ->type_name(std::string(option.type));
               if (option.flag.starts_with("--")) {
                 added->expected(1)->take_last()->allow_extra_args(false);  // Overrides may follow.
               }
             }
             add_common(command, *request);
             command.get_option("--name")->capture_default_str();
             command.footer(
                 fmt::format("{}\nAssumptions, and keys without a counterpart, are listed on stderr.\n\nExample:\n{}",
                             format.about, format.example));
             command.callback([&import, &format, request, &status] {
               refuse_before(import, format.name);
               status = import_file(format, *request);
             });
           });
}

/// Throws ConfigError for flags and words that the detected format does not have.
void refuse_flags_of_other_formats(const import::Format& format, const ImportRequest& request) {
  for (const auto& [flag, values] : request.options) {
    if (!values.empty() &&
        std::ranges::find(format.options, flag, &import::FormatOption::flag) == format.options.end()) {
      throw ConfigError(fmt::format("{} is read as {}, which has no {}; see commfuse-sim import {} --help",
                                    request.file, format.name,
                                    flag.starts_with("--") ? flag : in_quotes(values.front()), format.name));
    }
  }
}

/// Imports a file whose format is detected from its content; further words override its keys. If the second word is not
/// an override, the first is an unknown format and the second its file.
int import_words(const std::vector<std::string>& words, ImportRequest request) {
  std::vector<std::string_view> names;
  std::ranges::transform(import::formats(), std::back_inserter(names), &import::Format::name);
  if (words.empty()) {
    throw ConfigError(fmt::format("no file was given; write commfuse-sim import FILE, or a format before the file: {}",
                                  import::format_names()));
  }
  std::error_code ignored;  // A path may be too long, or in a folder that the user may not read.
  const bool has_file = fs::exists(words.front(), ignored);
  const bool has_overrides = words.size() > 1 && words[1].find('=') != std::string::npos;
  if (words.size() > 1 && !(has_overrides && has_file)) {
    throw ConfigError(
        fmt::format("unknown format {}; {}", in_quotes(words.front()), remedy_for(words.front(), names, "formats")));
  }
  if (!has_file) {
    throw ConfigError(fmt::format("{} is neither a file nor a format; {}", in_quotes(words.front()),
                                  remedy_for(words.front(), names, "formats")));
  }
  request.file = words.front();
  const import::Format& format = import::format_of(read_small_file(request.file), request.file);
  if (request.name.empty()) {
    request.name = format.name;
  }
  request.options.emplace_back("OVERRIDES", std::vector<std::string>(words.begin() + 1, words.end()));
  refuse_flags_of_other_formats(format, request);
  fmt::print(stderr, "note: {} is read as {}\n", with_escapes(request.file), format.name);
  return import_file(format, request);
}

}  // namespace

void add_import(CLI::App& app, int& status) {
  const std::string summary = fmt::format("Convert other tools' launch arguments: {}", import::format_names());
  add_verb(app, "import", summary, [&status](CLI::App& verb) {
    verb.require_subcommand(0, 1);
    const auto request = std::make_shared<ImportRequest>();
    const auto words = std::make_shared<std::vector<std::string>>();
    verb.add_option("FILE", *words, "File whose format is detected from its content")->type_name("");
    add_common(verb, *request);
    const std::vector<std::string> flags = all_flags();
    request->options.reserve(flags.size() + 1);
    for (const std::string& flag : flags) {
      auto& values = request->options.emplace_back(flag, std::vector<std::string>()).second;
      verb.add_option(flag, values)->group("")->expected(1)->take_last()->allow_extra_args(false);
    }
    verb.footer(
        "Other formats need no import: --model takes a Hugging Face config.json, hardware\n"
        "files take NCCL's topology XML, `nvidia-smi topo -m` and `rocm-smi --showtopo`\n"
        "(docs/machines.md), and calibrate takes profiles and the output of nccl-tests.");
    for (const import::Format& format : import::formats()) {
      add_format(verb, format, status);
    }
    verb.callback([&verb, request, words, &status] {
      if (verb.get_subcommands().empty()) {
        status = import_words(*words, *request);
      }
    });
  });
}

}  // namespace commfuse::sim
