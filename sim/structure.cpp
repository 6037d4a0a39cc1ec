// SPDX-License-Identifier: Apache-2.0
#include "sim/structure.h"

#include <utility>

#include "model/check.h"
#include "model/schedule/check_program.h"
#include "model/schedule/text.h"

namespace commfuse {

Structure structure_of(Program program) {
  check(check_program(program).ok(), "a generated program passes its proof");
  Structure structure;
  structure.digest = digest_of(program);
  structure.meetings = meetings_of(program, Order(program, 0));
  structure.plan = plan_of(lower(std::make_shared<const Program>(std::move(program))));
  return structure;
}

const Structure& StructureCache::get(const StructureKey& key) {
  const Place place{key.scope, key.gated_mlp, key.ranks, key.strategy->name, key.options};
  const std::lock_guard lock(mutex_);
  std::unique_ptr<const Structure>& slot = structures_[place];
  if (!slot) {
    slot = std::make_unique<const Structure>(
        structure_of(generate(operation_of(key.scope, key.gated_mlp), key.ranks, *key.strategy, key.options)));
  }
  return *slot;
}

}  // namespace commfuse
