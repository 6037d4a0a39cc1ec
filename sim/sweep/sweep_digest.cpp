// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/sweep_digest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "model/config/catalogue.h"
#include "model/config/yaml_reader.h"
#include "model/sha256.h"
#include "model/text/files.h"

namespace commfuse {

namespace {

namespace fs = std::filesystem;

/// Size limit of an input file, in bytes: that of a model's config.json, the largest file that is read. A longer file
/// is not an input.
constexpr std::size_t max_bytes = std::size_t{16} << 20U;

/// Identifies files by their contents, whatever folder holds them on this machine. Their order counts, because two
/// names may exchange their contents.
class FileDigests {
 public:
  void add(const fs::path& path) {
    const auto [known, is_new] = known_.try_emplace(fs::weakly_canonical(path));
    if (is_new) {
      known->second = sha256_of(read_file(path.string(), max_bytes));
    }
    digests_ += known->second + "\n";
    if (is_new && (path.extension() == ".yaml" || path.extension() == ".yml")) {
      add_named_in(YamlFile(path).top(), path.parent_path());
    }
  }

  [[nodiscard]] const std::string& together() const { return digests_; }

 private:
  /// Adds a file for any text that is a file's name: an unneeded file does no harm.
  void add_named_in(const YamlValue& value, const fs::path& folder) {
    if (value.kind() == YamlKind::map) {
      for (const YamlValue::Field& field : value.fields()) {
        add_named_in(field.value, folder);
      }
    } else if (value.kind() == YamlKind::list) {
      for (const YamlValue& item : value.items()) {
        add_named_in(item, folder);
      }
    } else if (value.kind() == YamlKind::scalar && !value.text().empty()) {
      add_named_by(value.text(), folder);
      // "as: h100-sxm/bf16" and "as: ./mine.yaml/bf16" name a file and a dtype in it.
      if (const std::size_t slash = value.text().rfind('/'); slash != std::string::npos && slash > 0) {
        add_named_by(value.text().substr(0, slash), folder);
      }
    }
  }

  void add_named_by(const std::string& text, const fs::path& folder) {
    add_if_file(folder / text);
    add_if_known(text);
  }

  void add_if_file(const fs::path& path) {
    std::error_code error;
    if (fs::is_regular_file(path, error)) {
      add(path);
    }
  }

  /// Adds files of catalogues named in values such as "extends: h100-sxm", "extends: megatron-lm" and "implementation:
  /// te".
  void add_if_known(const std::string& name) {
    for (const auto& [catalogue, names] : names_) {
      if (std::binary_search(names.begin(), names.end(), name)) {
        add(find_config(catalogue, name));
      }
    }
  }

  const std::map<Catalogue, std::vector<std::string>> names_{
      {Catalogue::hardware, known_names(Catalogue::hardware)},
      {Catalogue::implementations, known_names(Catalogue::implementations)},
      {Catalogue::frameworks, known_names(Catalogue::frameworks)}};
  std::map<fs::path, std::string> known_;
  std::string digests_;
};

/// Collects the digests of the files that settings name, and the values that "all" means in this version.
class Meanings {
 public:
  void add(const Field& field, const std::string& text) {
    if (field.type == FieldType::choices && text == "all") {
      words_ += fmt::format("{}: {}\n", field.key, fmt::join(field.choices(), ","));
    } else if (field.type == FieldType::name && names_config(field, text)) {
      add_file(field, text);
    } else if (field.type == FieldType::names) {
      for (const std::string& name : listed_names(field.catalogue, text)) {
        add_file(field, name);
      }
    }
  }

  [[nodiscard]] std::string together() const { return words_ + files_.together(); }

 private:
  void add_file(const Field& field, std::string_view name) {
    if (!name.empty()) {
      files_.add(find_config(field.catalogue, name));
    }
  }

  std::string words_;
  FileDigests files_;
};

}  // namespace

std::string digest_of(const std::string& sweep_in_full, const Grid& grid) {
  Meanings meanings;
  for (const Field& field : run_fields()) {
    meanings.add(field, grid.settings.at(field).text);
  }
  for (const GridAxis& axis : grid.axes) {
    for (const std::vector<Setting>& step : axis.steps) {
      for (std::size_t f = 0; f < axis.fields.size(); ++f) {
        meanings.add(*axis.fields[f], step[f].text);
      }
    }
  }
  return sha256_of(sweep_in_full + "\n" + meanings.together());
}

}  // namespace commfuse
