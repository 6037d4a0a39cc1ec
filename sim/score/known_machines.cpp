// SPDX-License-Identifier: Apache-2.0
#include "sim/score/known_machines.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <span>

#include "model/config/catalogue.h"
#include "model/hardware/link_rates.h"
#include "model/text/suggest.h"

namespace commfuse::score {

namespace {

using Words = std::vector<std::string>;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Returns "H100" for "8xH100", because the count is not part of the name.
std::string_view without_count(std::string_view word) {
  const auto first = static_cast<std::size_t>(std::find_if_not(word.begin(), word.end(), is_digit) - word.begin());
  return first > 0 && first < word.size() && word[first] == 'x' ? word.substr(first + 1) : word;
}

Words words_of(std::string_view text) {
  Words words;
  std::string word;
  const auto end_word = [&] {
    if (const std::string_view bare = without_count(word); !bare.empty()) {
      words.emplace_back(bare);
    }
    word.clear();
  };
  for (const char c : text) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else {
      end_word();
    }
  }
  end_word();
  return words;
}

/// Returns the memory in a word such as "80gb", in whole GB.
std::optional<std::int64_t> memory_in(std::string_view word) {
  const bool has_unit = word.size() > 2 && word.substr(word.size() - 2) == "gb";
  if (!has_unit || !std::all_of(word.begin(), word.end() - 2, is_digit) || word.size() > 8) {
    return std::nullopt;
  }
  return std::stoll(std::string(word.substr(0, word.size() - 2)));
}

bool is_own_memory(const Machine& machine, std::string_view word) {
  return memory_in(word) == machine.accelerator.hbm_capacity.count / 1'000'000'000;
}

/// Returns whether a word after the name shows that another machine is meant.
bool excludes_machine(const Machine& machine, std::string_view word) {
  constexpr std::array<std::string_view, 5> forms{"pcie", "nvl", "pairwise", "nvl72", "nvl4"};
  return std::find(forms.begin(), forms.end(), word) != forms.end() ||
         (memory_in(word) && !is_own_memory(machine, word));
}

bool is_neutral(std::string_view word) {
  constexpr std::array<std::string_view, 9> neutral{"nvidia", "amd",  "huawei", "ascend", "dgx",
                                                    "hgx",    "gpus", "gpu",    "tensor"};
  return std::find(neutral.begin(), neutral.end(), word) != neutral.end();
}

/// Returns whether a word is the model number of an accelerator, such as gb200 or l40s: letters, two to four digits,
/// and optionally one more letter.
bool is_model_number(std::string_view word) {
  constexpr std::array<std::string_view, 8> series{"a", "b", "h", "v", "l", "gb", "gh", "mi"};
  for (const std::string_view letters : series) {
    if (word.substr(0, letters.size()) != letters) {
      continue;
    }
    const std::string_view rest = word.substr(letters.size());
    const auto digits = static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), is_digit) - rest.begin());
    if (digits >= 2 && digits <= 4 && rest.size() - digits <= 1) {
      return true;
    }
  }
  return false;
}

/// Returns all names of a machine, including those of its file and its accelerator.
std::vector<Words> names_of(const Machine& machine) {
  std::vector<Words> names{words_of(machine.name), words_of(machine.accelerator.name)};
  for (const std::string& name : machine.known_as) {
    names.push_back(words_of(name));
  }
  return names;
}

std::size_t letters_in(const Words& words) {
  std::size_t letters = 0;
  for (const std::string& word : words) {
    letters += word.size();
  }
  return letters;
}

bool is_at(const Words& text, std::size_t position, const Words& name) {
  return !name.empty() && position + name.size() <= text.size() &&
         std::equal(name.begin(), name.end(), text.begin() + static_cast<std::ptrdiff_t>(position));
}

/// A machine's name found in a string.
struct Hit {
  const Machine* machine = nullptr;
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t letters = 0;
};

std::vector<Hit> hits_in(const Words& text, std::span<const Machine> machines) {
  std::vector<Hit> hits;
  for (const Machine& machine : machines) {
    for (const Words& name : names_of(machine)) {
      for (std::size_t position = 0; position < text.size(); ++position) {
        const std::size_t end = position + name.size();
        if (!is_at(text, position, name)) {
          continue;
        }
        const auto following = std::span(text).subspan(end, std::min<std::size_t>(2, text.size() - end));
        if (std::none_of(following.begin(), following.end(),
                         [&](const auto& word) { return excludes_machine(machine, word); })) {
          hits.push_back({&machine, position, end, letters_in(name)});
        }
      }
    }
  }
  return hits;
}

bool all_else_is_neutral(const Words& text, const Hit& hit) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_in_name = i >= hit.begin && i < hit.end;
    if (!is_in_name && !is_neutral(text[i]) && !is_own_memory(*hit.machine, text[i])) {
      return false;
    }
  }
  return true;
}

/// Sorts longer names first, and equally long names by the order of the machines.
void sort_by_length(std::vector<Hit>& hits) {
  std::stable_sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.letters > b.letters; });
}

std::vector<Machine> whole_catalogue() {
  std::vector<Machine> machines;
  for (const std::string& name : known_names(Catalogue::hardware)) {
    machines.push_back(load_machine(name));
  }
  return machines;
}

/// Returns whether the nodes of the cluster may be this machine.
bool are_nodes_of(const Machine& cluster, const Machine& node) {
  return cluster.accelerator.name == node.accelerator.name && cluster.gpus_per_node == node.gpus_per_node;
}

}  // namespace

KnownMachines::KnownMachines() : KnownMachines(whole_catalogue()) {}

KnownMachines::KnownMachines(std::vector<Machine> machines) {
  for (Machine& machine : machines) {
    (machine.nodes > 1 ? clusters_ : machines_).push_back(std::move(machine));
  }
}

FoundMachine KnownMachines::unless_left_out(const Machine& machine) const {
  const auto is_named = [&](const std::string& name) { return std::ranges::find(kept_, name) != kept_.end(); };
  const bool is_kept =
      kept_.empty() || is_named(machine.name) || std::ranges::any_of(machines_, [&](const Machine& node) {
        return machine.nodes > 1 && is_named(node.name) && are_nodes_of(machine, node);
      });
  return is_kept ? FoundMachine{.machine = &machine, .why_not = {}}
                 : FoundMachine{.why_not = "measured on hardware that --hardware does not name", .is_left_out = true};
}

FoundMachine KnownMachines::by_name(std::string_view cell) const {
  const Words text = words_of(cell);
  std::vector<Hit> hits = hits_in(text, machines_);
  sort_by_length(hits);
  for (const Hit& hit : hits) {
    if (all_else_is_neutral(text, hit)) {
      return unless_left_out(*hit.machine);
    }
  }
  return {nullptr, fmt::format("no hardware file is known as {}", in_quotes(cell))};
}

FoundMachine KnownMachines::in_prose(std::string_view prose) const {
  const Words text = words_of(prose);
  std::vector<Hit> hits = hits_in(text, machines_);
  sort_by_length(hits);
  std::vector<bool> is_taken(text.size(), false);
  std::vector<const Machine*> matches;
  std::set<std::string> names;
  for (const Hit& hit : hits) {
    if (!is_taken[hit.begin]) {
      std::fill(is_taken.begin() + static_cast<std::ptrdiff_t>(hit.begin),
                is_taken.begin() + static_cast<std::ptrdiff_t>(hit.end), true);
      matches.push_back(hit.machine);
      names.insert(hit.machine->name);
    }
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (!is_taken[i] && is_model_number(text[i])) {
      names.insert(text[i]);
    }
  }
  if (names.size() == 1 && !matches.empty()) {
    return unless_left_out(*matches.front());
  }
  return {nullptr, names.empty()     ? "no hardware file matches the table's description of its machine"
                   : matches.empty() ? fmt::format("no hardware file is known as {}", in_quotes(*names.begin()))
                                     : fmt::format("the table names several machines, {}, and no column states which",
                                                   fmt::join(names, " and "))};
}

FoundMachine KnownMachines::over_nodes(const Machine& node, int nodes, std::string_view prose) {
  if (nodes == 1) {
    return {&node, {}};
  }
  const Words text = words_of(prose);
  const auto named = [&](const Words& name) {
    for (std::size_t position = 0; position < text.size(); ++position) {
      if (is_at(text, position, name)) {
        return true;
      }
    }
    return false;
  };
  const Machine* best = nullptr;
  int best_rank = -1;
  for (const Machine& cluster : clusters_) {
    if (!are_nodes_of(cluster, node)) {
      continue;
    }
    const bool is_meant = std::any_of(cluster.known_as.begin(), cluster.known_as.end(),
                                      [&](const std::string& name) { return named(words_of(name)); });
    const int rank = 2 * (is_meant ? 2 : cluster.known_as.empty() ? 1 : 0) + (cluster.nodes == nodes ? 1 : 0);
    if (rank >= 2 && rank > best_rank) {
      best = &cluster;
      best_rank = rank;
    }
  }
  if (best == nullptr) {
    return {nullptr, fmt::format("no cluster file has several nodes of {}", node.name)};
  }
  const auto [entry, added] = resized_.try_emplace({best->name, nodes}, *best);
  if (added) {
    entry->second.nodes = nodes;
  }
  return {&entry->second, {}};
}

FoundMachine KnownMachines::with_all_reduce(const Machine& node, AllReduceKernel kernel) {
  const auto entry = with_kernel_.find({node.name, kernel});
  if (entry != with_kernel_.end()) {
    return {&entry->second, {}};
  }
  std::optional<Machine> machine = with_all_reduce_kernel(node, kernel);
  if (!machine) {
    return {nullptr, fmt::format("{} has no fitted times of the all-reduce kernels of {}", node.name, name_of(kernel))};
  }
  return {&with_kernel_.emplace(std::tuple(node.name, kernel), *std::move(machine)).first->second, {}};
}

}  // namespace commfuse::score
