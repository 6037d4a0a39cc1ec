// SPDX-License-Identifier: Apache-2.0
// Models, machines, schedules and jitter by name: `llama-3.1-70b` means models/llama-3.1-70b.yaml in the config folder;
// a path is a path. A machine is one node (hardware/) or several (clusters/).
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/jitter.h"
#include "model/hardware/machine.h"
#include "model/workload/transformer.h"

namespace commfuse {

enum class Catalogue : std::uint8_t {
  models,
  hardware,  ///< Looked up in hardware/, then in clusters/.
  nodes,     ///< In hardware/ alone.
  schedules,
  jitter,
  faults,
  plans,
  sweeps,
  implementations,
  frameworks,
};

/// $COMMFUSE_CONFIG_DIR; else, in the Python module, the folder configs beside it; else ../share/commfuse/configs from
/// the program (installed); else ../../../configs (build tree). Throws ConfigError when none of them is a folder.
std::filesystem::path config_directory();

/// The names in a catalogue, sorted. Throws ConfigError when there is no config folder.
std::vector<std::string> known_names(Catalogue catalogue);

/// The file a user's choice means: a path when it holds '/' or ends in .yaml, .yml or (a model) .json, else a name.
/// Throws ConfigError for an unknown name, with the nearest and all known ones. A path is not looked at.
std::filesystem::path find_config(Catalogue catalogue, std::string_view name_or_path);

/// A file of a user's, or one of the catalogue where he names that and has no file so called: "train-70b". All else as
/// it is.
std::string file_or_known(Catalogue catalogue, const std::string& name_or_path);

/// A cluster of the catalogue with another number of nodes: "dgx-h100-x8" is dgx-h100-x2 of eight.
struct SizedCluster {
  std::string name;  ///< Of the catalogue.
  int nodes = 0;
};
/// Nothing for other names, for names of the catalogue, and for fewer nodes than two.
std::optional<SizedCluster> sized_cluster(std::string_view name);

/// For a file that may be read from another folder: a path to a file that is there made absolute, all else as it is.
std::string from_anywhere(Catalogue catalogue, const std::string& name_or_path);

/// A path that ends in .json is a Hugging Face config.json; what it leaves open is said on stderr, once a file. Throws
/// ConfigError with every mistake of the file.
Transformer load_model(std::string_view name_or_path);
/// Throws ConfigError with every mistake of the file.
Machine load_machine(std::string_view name_or_path);
/// With its samples, which are files below its own folder: one number a line, comments from # to the end of a line.
/// Throws ConfigError with every mistake of the file, or the first of a sample.
Jitter load_jitter(std::string_view name_or_path);

}  // namespace commfuse
