// SPDX-License-Identifier: Apache-2.0
#include "sim/score/all_reduce_column.h"

namespace commfuse::score {

std::optional<AllReduceKernel> framework_named(std::string_view cell) {
  if (cell == "TRTLLM") {
    return AllReduceKernel::trtllm;
  }
  if (!cell.ends_with("_graph")) {
    return std::nullopt;
  }
  return cell.starts_with("vLLM")     ? std::optional(AllReduceKernel::vllm)
         : cell.starts_with("SGLang") ? std::optional(AllReduceKernel::sglang)
                                      : std::nullopt;
}

}  // namespace commfuse::score
