// SPDX-License-Identifier: Apache-2.0
#include "sim/score/machine_column.h"

#include <algorithm>
#include <array>

namespace commfuse::score {

FoundMachine machine_of_table(const Table& table, const Context& context) {
  FoundMachine found = context.machines.in_prose(table.comment("hardware"));
  if (found.machine == nullptr && table.comment("hardware").empty()) {
    found = context.machines.in_prose(context.file_name);
  }
  return found;
}

std::optional<DType> dtype_in_table(std::string_view word) {
  struct Alias {
    std::string_view word;
    DType dtype;
  };
  constexpr std::array aliases{Alias{"bfloat16", DType::bf16},     Alias{"float16", DType::fp16},
                               Alias{"half", DType::fp16},         Alias{"float8", DType::fp8},
                               Alias{"fp8_e4m3", DType::fp8},      Alias{"e4m3", DType::fp8},
                               Alias{"float8_e4m3fn", DType::fp8}, Alias{"float32", DType::fp32}};
  const auto found =
      std::find_if(aliases.begin(), aliases.end(), [&](const Alias& alias) { return alias.word == word; });
  return found == aliases.end() ? dtype_named(word) : found->dtype;
}

}  // namespace commfuse::score
