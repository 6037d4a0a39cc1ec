// SPDX-License-Identifier: Apache-2.0
// Represents a packaged program. Catches an exception from a module, then throws and catches its own exception, then
// catches one from the module again.
#include <dlfcn.h>

#include <cstdio>
#include <stdexcept>
#include <string>

namespace {

bool catches(void (*throw_from)(int), int depth) {
  try {
    throw_from(depth);
  } catch (const std::exception& error) {
    return std::string(error.what()) == "thrown by the module";
  }
  return false;
}

}  // namespace

int main(int count, char** arguments) {
  void* module = count == 2 ? ::dlopen(arguments[1], RTLD_NOW | RTLD_GLOBAL) : nullptr;
  if (module == nullptr) {
    std::puts("the module does not load");
    return 1;
  }
  // NOLINTNEXTLINE(*-reinterpret-cast): dlsym() returns void*
  const auto throw_from = reinterpret_cast<void (*)(int)>(::dlsym(module, "throw_from"));
  const bool caught_before = catches(throw_from, 3);
  try {
    throw std::invalid_argument("of the program");
  } catch (const std::invalid_argument&) {
  }
  const bool caught_after = catches(throw_from, 0);
  return caught_before && caught_after ? 0 : 1;
}
