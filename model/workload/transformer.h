// SPDX-License-Identifier: Apache-2.0
// The shape of a dense decoder-only transformer.
#pragma once

#include <cstdint>
#include <string>

namespace commfuse {

/// Valid for ever after `load_model`: all sizes positive, heads a multiple of kv_heads.
struct Transformer {
  std::string name;
  std::int64_t layers = 0;
  std::int64_t hidden = 0;
  std::int64_t ffn = 0;  ///< Columns of the up projection; a gated MLP has as many again for the gate.
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t vocab = 0;
  bool gated_mlp = false;
};

}  // namespace commfuse
