// SPDX-License-Identifier: Apache-2.0
#include "model/schedule/stage.h"

namespace commfuse {

BufferId Stage::scratch(const std::string& what, std::int32_t tokens, BufferId like) const {
  const Buffer shape = builder.buffer_of(like);  // a copy: adding a buffer moves the others
  return builder.buffer(name + "." + what, BufferRole::scratch, {shape.rows.dimension, tokens}, shape.columns,
                        shape.dtype);
}

}  // namespace commfuse
