// SPDX-License-Identifier: Apache-2.0
// Facts about the symbols that the plugin uses, from our headers and, if they are installed, from NVIDIA's.
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
// These are defined if NVIDIA's header was found.
HeaderFacts their_runtime();
HeaderFacts their_cublaslt();
HeaderFacts their_nccl();
HeaderFacts their_cupti();
HeaderFacts their_fp8();

}  // namespace software_gpu
