// SPDX-License-Identifier: Apache-2.0
// One fuzzer for all targets: FUZZ_TARGET names the target. libFuzzer provides main() and all flags.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "tests/fuzz/targets.h"

namespace {

const commfuse::fuzz::Target& chosen() {
  static const commfuse::fuzz::Target* const target = [] {
    const char* const name = std::getenv("FUZZ_TARGET");
    const commfuse::fuzz::Target* const named = commfuse::fuzz::find_target(name == nullptr ? "" : name);
    if (named == nullptr) {
      fmt::print(stderr, "FUZZ_TARGET names no target; targets:");
      for (const commfuse::fuzz::Target& known : commfuse::fuzz::targets()) {
        fmt::print(stderr, " {}", known.name);
      }
      fmt::print(stderr, "\n");
      std::_Exit(2);
    }
    return named;
  }();
  return *target;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // NOLINTNEXTLINE(*-reinterpret-cast): bytes as characters
  chosen().read({reinterpret_cast<const char*>(data), size});
  return 0;
}
