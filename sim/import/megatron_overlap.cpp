// SPDX-License-Identifier: Apache-2.0
// tp_comm_overlap_cfg: NVIDIA/TransformerEngine, transformer_engine/pytorch/module/base.py (initialize_ub).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "model/config/overlap_keys.h"
#include "model/config/yaml_reader.h"
#include "model/text/counted.h"
#include "model/text/suggest.h"
#include "sim/import/key_lists.h"
#include "sim/import/megatron.h"

namespace commfuse::import {

namespace {

/// The GEMMs of an overlap file, by the way in which the step prices them.
struct Overlap {
  std::vector<std::string> ring;                  ///< GEMMs that are priced with the method ring_exchange.
  std::vector<std::string> bulk;                  ///< GEMMs that are priced with the method bulk.
  std::vector<std::string> by_default;            ///< GEMMs that the file lacks.
  std::vector<std::string> gathers_off;           ///< GEMMs whose all-gather is not overlapped.
  std::vector<std::string> scatters_off;          ///< GEMMs whose reduce-scatter is not overlapped.
  std::vector<std::string> sites;                 ///< Sites of the GEMMs that te runs: "qkv", "down_backward".
  std::map<std::string, std::string> not_priced;  ///< By assumed method: "proj_fprop ('pipeline', 4 splits)" and more.
  std::string with_ideal_kernels;                 ///< Flags that price the first pipeline with ideal kernels.
};

/// A GEMM of an overlap file with its method.
struct OverlapGemm {
  std::string name;         ///< "qkv_fprop"
  std::string method;       ///< from the file, or TransformerEngine's default if the file has none
  std::int64_t splits = 0;  ///< number of parts for the method pipeline
  Scope scope{};

  [[nodiscard]] bool is_forward() const { return name.ends_with("_fprop"); }
  /// Returns whether the GEMM computes an input's gradient after an all-gather.
  [[nodiscard]] bool is_gathered_gradient() const { return name == "proj_dgrad" || name == "fc2_dgrad"; }
  /// Returns whether the GEMM of a forward pass precedes a reduce-scatter.
  [[nodiscard]] bool is_scattered() const { return name == "proj_fprop" || name == "fc2_fprop"; }
  /// Returns whether the GEMM computes a weight's gradient from the result of the dgrad's all-gather.
  [[nodiscard]] bool is_gathered_weight() const { return name == "proj_wgrad" || name == "fc2_wgrad"; }
};

void add_not_priced(const OverlapGemm& gemm, const std::string& assumed, Overlap& overlap) {
  std::string& gemms = overlap.not_priced[assumed];
  const std::string splits = gemm.method == "pipeline" ? fmt::format(", {}", counted(gemm.splits, "split")) : "";
  gemms += fmt::format("{}{} ({}{})", gemms.empty() ? "" : ", ", gemm.name, in_quotes(gemm.method), splits);
  if (gemm.method == "pipeline" && gemm.is_forward() && overlap.with_ideal_kernels.empty()) {
    overlap.with_ideal_kernels =
        fmt::format("--scope {} --strategy sliced --slices {}", name_of(gemm.scope), gemm.splits);
  }
}

/// Decides how the step prices a GEMM. Prices of ring_exchange exist at every all-gather, and at the reduce-scatters of
/// forward passes. Where a method has no price, the most similar one is assumed: ring_exchange for pipeline in a
/// forward pass, which also overlaps a GEMM with its own collective; serial for other methods of forward passes, and
/// for gradients of inputs after an all-gather; external for gradients of weights that use such an all-gather; bulk for
/// both gradients of a column-parallel GEMM.
void take_gemm(const OverlapGemm& gemm, Overlap& overlap) {
  if (gemm.is_gathered_weight()) {
    add_not_priced(gemm, "external", overlap);
  } else if (gemm.is_forward() || gemm.is_gathered_gradient()) {
    const bool is_ring = gemm.method == "ring_exchange";
    const bool is_pipeline = gemm.is_forward() && gemm.method == "pipeline";
    if (is_ring) {
      overlap.ring.push_back(gemm.name);
    } else {
      add_not_priced(gemm, is_pipeline ? "ring_exchange" : "serial", overlap);
    }
    if (is_ring || is_pipeline) {
      overlap.sites.emplace_back(name_of(gemm.scope));
    }
  } else if (gemm.method == "bulk") {
    overlap.bulk.push_back(gemm.name);
  } else {
    add_not_priced(gemm, "bulk", overlap);
  }
}

/// Returns whether the switches turn off the overlap of the GEMM, and adds such a GEMM to `overlap`.
bool is_switched_off(const OverlapGemm& gemm, OverlapSwitches switches, Overlap& overlap) {
  const bool gathers = (gemm.is_forward() && !gemm.is_scattered()) || gemm.is_gathered_gradient();
  if (gathers && !switches.gathers) {
    overlap.gathers_off.push_back(gemm.name);
    return true;
  }
  if (gemm.is_scattered() && !switches.scatters) {
    overlap.scatters_off.push_back(gemm.name);
    return true;
  }
  return false;
}

/// Returns the GEMMs of an overlap file, or without a file those of TransformerEngine, with their methods. Omits GEMMs
/// that the switches turn off; gradients of row-parallel weights with the method external, because only MXFP8 needs the
/// second gather of that method, while other dtypes have the gathered operand at hand; and gradients of weights that
/// the file lacks if the dgrad of their layer overlaps its own reduce-scatter.
std::vector<OverlapGemm> overlap_gemms(YamlMap* root, OverlapSwitches switches, Overlap& overlap) {
  static const std::vector<OverlapKey> keys = load_overlap_keys("te");
  std::vector<OverlapGemm> gemms;
  std::set<std::string, std::less<>> scattered;  // column-parallel dgrads whose own reduce-scatter replaces bulk
  for (const OverlapKey& key : keys) {
    std::optional<YamlMap> map = root == nullptr ? std::nullopt : root->optional_map(key.key);
    OverlapGemm gemm{.name = key.key, .method = key.method, .scope = key.scope};
    if (map && map->has("method")) {
      gemm.method = map->text("method");
    }
    if (gemm.method == "pipeline") {
      gemm.splits = map && map->has("num_splits") ? map->count("num_splits") : 4;
    }
    const std::string layer = key.key.substr(0, key.key.find('_'));
    const bool is_wgrad = key.key.ends_with("_wgrad");
    if (key.key.ends_with("_dgrad") && key.method == "bulk" && gemm.method != "bulk") {
      scattered.insert(layer);
    }
    const bool is_at_hand = gemm.is_gathered_weight() && gemm.method == "external";
    if (is_at_hand || (is_wgrad && !map && scattered.contains(layer)) || is_switched_off(gemm, switches, overlap)) {
      continue;
    }
    if (!map && root != nullptr) {
      overlap.by_default.push_back(key.key);
    }
    gemms.push_back(std::move(gemm));
  }
  return gemms;
}

/// Returns, in quotes, the GEMM names that userbuffers does not recognize.
std::vector<std::string> unknown_gemms(const YamlValue& value) {
  constexpr std::array<std::string_view, 4> layers{"qkv", "proj", "fc1", "fc2"};
  constexpr std::array<std::string_view, 3> passes{"fprop", "dgrad", "wgrad"};
  std::vector<std::string> unknown;
  for (const YamlValue::Field& field : value.fields()) {
    const std::string_view name = field.key;
    const std::size_t split = std::min(name.find('_'), name.size());
    if (std::ranges::find(layers, name.substr(0, split)) == layers.end() || split == name.size() ||
        std::ranges::find(passes, name.substr(split + 1)) == passes.end()) {
      unknown.push_back(in_quotes(name));
    }
  }
  return unknown;
}

/// Adds sentences about the methods that the step prices, about GEMMs that are switched off, about defaults, and about
/// methods that the step does not price.
void note_overlap(std::string_view path, const Overlap& overlap, std::vector<std::string>& notes) {
  std::vector<std::string> priced;
  for (const auto& [method, gemms] : {std::pair("ring_exchange", &overlap.ring), std::pair("bulk", &overlap.bulk)}) {
    if (!gemms->empty()) {
      priced.push_back(fmt::format("{} at {}", method, fmt::join(*gemms, ", ")));
    }
  }
  notes.push_back(priced.empty() ? fmt::format("{}: the step prices none of its methods", path)
                                 : fmt::format("{}: the step prices {}", path, fmt::join(priced, "; ")));
  for (const auto& [flag, gemms] : {std::pair("--disable-tp-comm-overlap-ag", &overlap.gathers_off),
                                    std::pair("--disable-tp-comm-overlap-rs", &overlap.scatters_off)}) {
    if (!gemms->empty()) {
      notes.push_back(fmt::format("{}: the collectives of {} are exposed", flag, fmt::join(*gemms, ", ")));
    }
  }
  if (!overlap.by_default.empty()) {
    notes.push_back(fmt::format("{} lacks {}: TransformerEngine's defaults are assumed", path,
                                fmt::join(overlap.by_default, ", ")));
  }
  for (const auto& [assumed, gemms] : overlap.not_priced) {
    const std::string remedy = assumed == "ring_exchange"
                                   ? fmt::format("; {} prices pipeline with ideal kernels", overlap.with_ideal_kernels)
                                   : std::string{};
    notes.push_back(fmt::format("{}: {} is assumed where the method has no price: {}{}", path, assumed, gemms, remedy));
  }
}

/// Marks the keys of all GEMMs as read, so that keys without a counterpart are not reported as mistakes.
void mark_as_read(const YamlValue& value, YamlMap& root) {
  for (const YamlValue::Field& field : value.fields()) {
    if (std::optional<YamlMap> map = root.optional_map(field.key)) {
      for (const std::string& key : map->keys()) {
        map->optional_value(key);
      }
    }
  }
}

/// Makes the step run these GEMMs as `overlap` says, if the step can overlap any GEMM. `origin` is a file or a flag,
/// for notes.
void price_gemms(std::string_view origin, std::span<const OverlapGemm> gemms, Overlap overlap, Imported& import) {
  if (!import.step.sequence_parallel || import.step.tensor == 1) {
    import.notes.push_back(fmt::format(
        "{}: without --sequence-parallel and several tensor ranks, no GEMM overlaps its collective", origin));
    return;
  }
  for (const OverlapGemm& gemm : gemms) {
    take_gemm(gemm, overlap);
  }
  import.step.framework = "megatron-core-2024";
  import.step.implementation_sites = overlap.sites;
  note_overlap(origin, overlap, import.notes);
}

}  // namespace

void add_overlap(const std::string& path, Imported& import, OverlapSwitches switches) {
  YamlFile file(path);
  YamlMap root = file.root();
  mark_as_read(file.top(), root);
  Overlap overlap;
  const std::vector<OverlapGemm> gemms = overlap_gemms(&root, switches, overlap);
  file.finish();
  note_unknown(unknown_gemms(file.top()), import.notes);
  price_gemms(path, gemms, std::move(overlap), import);
}

void add_default_overlap(Imported& import, OverlapSwitches switches) {
  Overlap overlap;
  const std::vector<OverlapGemm> gemms = overlap_gemms(nullptr, switches, overlap);
  price_gemms("--tp-comm-overlap with TransformerEngine's default methods", gemms, std::move(overlap), import);
}

}  // namespace commfuse::import
