// SPDX-License-Identifier: Apache-2.0
// Prints how many layers a model has, using only the installed headers and libraries.
#include <iostream>

#include "model/config/catalogue.h"

int main() {
  std::cout << commfuse::load_model("llama-3.1-70b").layers << "\n";
  return 0;
}
