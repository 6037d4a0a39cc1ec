// SPDX-License-Identifier: Apache-2.0
// Facts of headers about the symbols that the plugin uses: our headers, and NVIDIA's if they are installed.
#pragma once

#include <string>
#include <vector>

namespace software_gpu {

/// A name, and its value or signature.
struct HeaderFact {
  std::string name;
  std::string value;
  friend bool operator==(const HeaderFact&, const HeaderFact&) = default;
};
using HeaderFacts = std::vector<HeaderFact>;

HeaderFacts our_runtime();
HeaderFacts our_cublaslt();
HeaderFacts our_nccl();
HeaderFacts our_cupti();
HeaderFacts our_fp8();
// Defined if the header was found.
HeaderFacts their_runtime();
HeaderFacts their_cublaslt();
HeaderFacts their_nccl();
HeaderFacts their_cupti();
HeaderFacts their_fp8();

}  // namespace software_gpu
