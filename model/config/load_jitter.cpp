// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config/yaml_reader.h"
#include "model/config_error.h"
#include "model/text/files.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"

namespace commfuse {

namespace {

constexpr Range<double> sigma_range{0.0, highest_sigma};
constexpr Range<double> probability_range{0.0, highest_stall_probability};
constexpr Range<double> shape_range{least_stall_shape, 100.0};
constexpr Range<double> ratio_range{0.01, 1000.0};
constexpr std::string_view jitter_schema = "commfuse.jitter/1";

/// Returns the text of the number in a line, and the column where the text begins; empty text if there is no number.
std::pair<std::string_view, std::size_t> entry_in(std::string_view line) {
  line = line.substr(0, line.find('#'));
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) {
    return {"", 1};
  }
  return {line.substr(begin, line.find_last_not_of(" \t\r") + 1 - begin), begin + 1};
}

double ratio_of(std::string_view text, const std::string& place) {
  const std::optional<double> ratio = parse_number(text);
  if (!ratio) {
    throw ConfigError(
        fmt::format("{}: {} is not a number; write one ratio of measured to nominal time per line, such as 1.02", place,
                    in_quotes(text)));
  }
  if (*ratio < ratio_range.least || *ratio > ratio_range.most) {
    throw ConfigError(fmt::format("{}: {} is not a plausible ratio of times; choose {} to {}", place, in_quotes(text),
                                  ratio_range.least, ratio_range.most));
  }
  return *ratio;
}

/// Returns the ratios in ascending order.
std::vector<double> read_ratios(const std::string& path) {
  const std::string text = read_small_file(path);
  std::vector<double> ratios;
  std::size_t number = 1;
  for (std::size_t begin = 0; begin < text.size(); ++number) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const auto [entry, column] = entry_in(std::string_view(text).substr(begin, end - begin));
    if (!entry.empty()) {
      ratios.push_back(ratio_of(entry, fmt::format("{}:{}:{}", path, number, column)));
    }
    begin = end + 1;
  }
  if (ratios.empty()) {
    throw ConfigError(
        fmt::format("{}:1:1: the sample is empty; write one ratio of measured to nominal time per line", path));
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios;
}

struct Spread {
  Parameter<double> sigma;
  std::string sample;  // a path; empty for lognormal
};

Spread read_spread(const YamlFile& file, YamlMap map) {
  const bool has_sample = map.has("sample");
  if (!has_sample) {
    map.optional_value("sample");
    return {.sigma = map.number_parameter("sigma", sigma_range)};
  }
  if (map.optional_value("sigma")) {
    map.mistake("sigma", "sigma and sample exclude each other; remove one");
  }
  const Parameter<std::string> sample = map.text_parameter("sample");
  const std::filesystem::path folder = std::filesystem::absolute(file.path()).parent_path();
  if (!sample.value.empty() && leaves(folder, folder / sample.value)) {
    map.map("sample").mistake(
        "value", fmt::format("{} is not below the folder of this file; put it there", in_quotes(sample.value)));
  }
  return {.sigma = {.standard_error = sample.standard_error, .provenance = sample.provenance, .source = sample.source},
          .sample = (std::filesystem::path(file.path()).parent_path() / sample.value).string()};
}

void read_stalls(const YamlFile& file, YamlMap map, Jitter& jitter) {
  jitter.stall_probability = map.number_parameter("probability", probability_range);
  jitter.stall_scale = map.duration_parameter("scale");
  jitter.stall_shape = map.number_parameter("shape", shape_range);
  if (!file.has_mistakes() && jitter.stall_scale.value == Duration::zero()) {
    map.mistake("scale", "the shortest stall must be above 0; write it, as in \"5 us\"");
  }
}

}  // namespace

Jitter load_jitter(std::string_view name_or_path) {
  YamlFile file(find_config(Catalogue::jitter, name_or_path));
  YamlMap root = file.root();
  root.schema(jitter_schema);
  Jitter jitter;
  jitter.name = root.text("name");
  const Spread compute = read_spread(file, root.map("compute"));
  const Spread communication = read_spread(file, root.map("communication"));
  jitter.compute_sigma = compute.sigma;
  jitter.communication_sigma = communication.sigma;
  jitter.rank_sigma = root.map("rank").number_parameter("sigma", sigma_range);
  if (std::optional<YamlMap> stall = root.optional_map("stall")) {
    read_stalls(file, *stall, jitter);
  }
  file.finish();
  for (const auto& [spread, ratios] :
       {std::pair{&compute, &jitter.compute_ratios}, std::pair{&communication, &jitter.communication_ratios}}) {
    if (!spread->sample.empty()) {
      *ratios = read_ratios(spread->sample);
    }
  }
  return jitter;
}

}  // namespace commfuse
