// SPDX-License-Identifier: Apache-2.0
// Keys of torchtitan that are not read.
#pragma once

#include "sim/import/key_lists.h"

namespace commfuse::import {

KeyLists torchtitan_keys();

}  // namespace commfuse::import
