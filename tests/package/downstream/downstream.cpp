// SPDX-License-Identifier: Apache-2.0
// Says how many layers a model has, with the installed headers and libraries alone.
#include <iostream>

#include "model/config/catalogue.h"

int main() {
  std::cout << commfuse::load_model("llama-3.1-70b").layers << "\n";
  return 0;
}
