// SPDX-License-Identifier: Apache-2.0
// Finds configuration files (models, machines, schedules and so on) by name: `llama-3.1-70b` means
// models/llama-3.1-70b.yaml in the config folder, and a path means that file. A machine is one node (hardware/) or
// several (clusters/).
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "model/cost/jitter.h"
#include "model/describe/setting.h"
#include "model/hardware/machine.h"
#include "model/workload/transformer.h"

namespace commfuse {

/// Returns $COMMFUSE_CONFIG_DIR; else, in the Python module, the folder configs next to the module; else
/// ../share/commfuse/configs relative to the program (installed); else ../../../configs (build tree). Throws
/// ConfigError when the variable names no folder, or when it is not set and no other place is a folder.
std::filesystem::path config_directory();

/// Returns the sorted names of a catalogue. Throws ConfigError when there is no config folder.
std::vector<std::string> known_names(Catalogue catalogue);

/// Returns the names or paths in a user's list such as "flux,te": the whole catalogue for "all", and nothing for "none"
/// or an empty text. Throws ConfigError for "all" when there is no config folder.
std::vector<std::string> listed_names(Catalogue catalogue, std::string_view list);

/// Returns the file that a user's choice means. A choice that contains '/' or ends in .yaml, .yml or, for models and
/// schedules, .json is a path; any other choice is a name in the catalogue or, for hardware, a cluster's name with
/// another number of nodes (sized_cluster). Throws ConfigError for an empty or unknown name, with all known names. Does
/// not check that a path exists.
std::filesystem::path find_config(Catalogue catalogue, std::string_view name_or_path);

/// Returns an existing file, any path and an empty string unchanged, and for a name ("train-70b") the file of the
/// catalogue. Throws ConfigError for an unknown name, like find_config.
std::string file_or_known(Catalogue catalogue, const std::string& name_or_path);

/// Cluster of the catalogue with another number of nodes: "dgx-h100-x8" is dgx-h100-x2 with eight nodes.
struct SizedCluster {
  std::string name;  ///< name in the catalogue
  int nodes = 0;
};
/// Returns nullopt for names of another form, for names of the catalogue, for clusters that the catalogue lacks with
/// two nodes, and for fewer than 2 or more than 100,000 nodes.
std::optional<SizedCluster> sized_cluster(std::string_view name);

/// Makes the path of an existing file absolute, so that a file in another folder can name it; returns every other
/// string unchanged.
std::string from_anywhere(Catalogue catalogue, const std::string& name_or_path);

/// Returns the path that a name or path written in `file` means: a relative path starts at the folder of `file`.
/// Returns a name (even an unknown one) and an absolute path unchanged.
std::string beside_file(const std::filesystem::path& file, Catalogue catalogue, std::string_view name_or_path);

/// Loads a model, or makes an MLP from its shape, such as "8192x28672". A path that ends in .json is a Hugging Face
/// config.json; each call then lists on stderr the properties that the file leaves open, notes on the shape, and unused
/// keys. Throws ConfigError with every mistake in the file.
Transformer load_model(std::string_view name_or_path);
/// Loads a machine. Throws ConfigError with every mistake in the file.
Machine load_machine(std::string_view name_or_path);
/// Loads a jitter file and its samples. Samples are files below the folder of the jitter file, with one number per line
/// and comments from # to the end of a line. Throws ConfigError with every mistake in the file, or with the first
/// mistake in a sample.
Jitter load_jitter(std::string_view name_or_path);

}  // namespace commfuse
