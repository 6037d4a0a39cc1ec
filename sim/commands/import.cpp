// SPDX-License-Identifier: Apache-2.0
// commfuse-sim import: what other programs were told, as files of ours.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>

#include "model/config/catalogue.h"
#include "model/config/command_line.h"
#include "model/config/resolver.h"
#include "model/config/settings.h"
#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/plain_text.h"
#include "model/text/suggest.h"
#include "reports/atomic_file.h"
#include "sim/commands/commands.h"
#include "sim/commands/write_new.h"
#include "sim/import/megatron.h"

namespace commfuse::sim {

namespace {

namespace fs = std::filesystem;

struct ImportRequest {
  std::string file;
  std::string overlap;
  std::string name = "megatron";
  std::string out = ".";
};

/// A name of files that stay in the folder they are put into.
void require_plain(const std::string& name) {
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos ||
      has_control_character(name) || !is_utf8(name)) {
    throw ConfigError(fmt::format(
        "--name: {} is not a plain file name; write one such as mine, and its folder with --out", in_quotes(name)));
  }
}

/// What was written is read as `run` will read it. Throws ConfigError that names its source, and leaves none of it.
void require_loadable(const fs::path& model, const fs::path& run, const std::string& source) {
  try {
    load_model(model.string());
    Resolver resolver;
    resolver.read_file(run.string());
    resolver.finish();
  } catch (const ConfigError& error) {
    std::error_code ignored;
    fs::remove(model, ignored);
    fs::remove(run, ignored);
    throw ConfigError(
        fmt::format("{}: these flags make files that cannot be loaded, so none is written; {}", source, error.what()));
  }
}

int import_megatron(const ImportRequest& request) {
  require_plain(request.name);
  import::MegatronImport read = import::read_megatron(read_small_file(request.file), request.file, request.name);
  if (!request.overlap.empty()) {
    import::add_overlap(request.overlap, read);
  }
  const fs::path folder(request.out);
  const std::string model = request.name + ".model.yaml";
  const std::string run = request.name + ".run.yaml";
  require_new(folder, {model, run});
  reports::atomic_write(folder / model, read.model);
  reports::atomic_write(folder / run, fmt::format("{}model: {}\n", read.run, yaml_scalar(fmt::format("./{}", model))));
  require_loadable(folder / model, folder / run, request.file);
  for (const std::string& note : read.notes) {
    fmt::print(stderr, "note: {}\n", note);
  }
  fmt::print("{} and {}\ntry: commfuse-sim run --config {} --hardware dgx-h100-x2\n", (folder / model).string(),
             (folder / run).string(), (folder / run).string());
  return exit_code::done;
}

void add_megatron(CLI::App& import, int& status) {
  add_verb(import, "megatron", "A model and a training step from Megatron-LM's arguments",
           [&status](CLI::App& command) {
             const auto request = std::make_shared<ImportRequest>();
             command.add_option("FILE", request->file, "A command line, or the shell script that holds it")->required();
             command.add_option("--overlap", request->overlap, "The file of --tp-comm-overlap-cfg")->type_name("FILE");
             command.add_option("--name", request->name, "Of the model and of both files")
                 ->type_name("NAME")
                 ->capture_default_str();
             command.add_option("--out", request->out, "Folder for NAME.model.yaml and NAME.run.yaml")
                 ->type_name("FOLDER")
                 ->capture_default_str();
             command.footer(
                 "The script is read, not run: arrays, quotes, NAME=value and ${NAME} are known.\n"
                 "What was assumed, or has no counterpart, is said on stderr.\n\n"
                 "Example:\n"
                 "  commfuse-sim import megatron train_gpt3_175b.sh --name mine\n"
                 "  commfuse-sim run --config mine.run.yaml --hardware dgx-h100-x2");
             command.callback([request, &status] { status = import_megatron(*request); });
           });
}

}  // namespace

void add_import(CLI::App& app, int& status) {
  add_verb(app, "import", "Convert other tools' launch arguments: megatron", [&status](CLI::App& import) {
    import.require_subcommand(1);
    import.footer(
        "Others are read where they are wanted: a Hugging Face config.json is a --model,\n"
        "NCCL's topology XML and `nvidia-smi topo -m` stand in hardware files\n"
        "(docs/machines.md), and calibrate takes nccl-tests' output and PyTorch's traces.");
    add_megatron(import, status);
  });
}

}  // namespace commfuse::sim
