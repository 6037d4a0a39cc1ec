// SPDX-License-Identifier: Apache-2.0
// Words of settings whose kinds have no list of their own.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "model/check.h"
#include "model/config/evaluator.h"
#include "model/config/field.h"
#include "model/cost/price.h"
#include "model/strategies/strategies.h"
#include "model/workload/transformer.h"

namespace commfuse {

template <class T>
using Choice = std::pair<std::string_view, T>;

inline constexpr std::array interference_choices{Choice<Interference>{"static", Interference::constant},
                                                 Choice<Interference>{"dynamic", Interference::dynamic},
                                                 Choice<Interference>{"none", Interference::none}};
inline constexpr std::array launch_choices{Choice<Launch>{"stream", Launch::stream},
                                           Choice<Launch>{"graph", Launch::graph}};
inline constexpr std::array attention_choices{Choice<AttentionKernel>{"fused", AttentionKernel::fused},
                                              Choice<AttentionKernel>{"unfused", AttentionKernel::unfused}};
inline constexpr std::array latent_decode_choices{Choice<LatentDecode>{"absorb", LatentDecode::absorb},
                                                  Choice<LatentDecode>{"naive", LatentDecode::naive}};
inline constexpr std::array evaluator_choices{Choice<Evaluator>{"auto", Evaluator::automatic},
                                              Choice<Evaluator>{"replay", Evaluator::replay},
                                              Choice<Evaluator>{"engine", Evaluator::engine}};
inline constexpr std::array switch_choices{Choice<bool>{"on", true}, Choice<bool>{"off", false}};
/// best: one row a strategy; all: one row a schedule.
inline constexpr std::array variants_choices{Choice<bool>{"best", false}, Choice<bool>{"all", true}};

/// Scopes that are no program but composed of them (sim/step), beside all_scopes.
inline constexpr std::array whole_model_scopes{Choice<Use>{"step", Use::step}, Choice<Use>{"prefill", Use::prefill},
                                               Choice<Use>{"decode", Use::decode}};

/// Settings are checked where they are written, so the word is one of the table.
template <class Table>
auto chosen(const Table& table, std::string_view word) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& choice) { return choice.first == word; });
  check(found != table.end(), "a setting is a word of its table");
  return found->second;
}

/// The word that stands for a value of the table.
template <class Table, class T>
std::string_view word_of(const Table& table, T value) {
  const auto found =
      std::find_if(table.begin(), table.end(), [&](const auto& choice) { return choice.second == value; });
  check(found != table.end(), "every value has its word");
  return found->first;
}

}  // namespace commfuse
