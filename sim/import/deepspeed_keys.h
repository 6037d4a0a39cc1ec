// SPDX-License-Identifier: Apache-2.0
// Keys of DeepSpeed's configuration that are not read.
#pragma once

#include "sim/import/key_lists.h"

namespace commfuse::import {

KeyLists deepspeed_keys();

}  // namespace commfuse::import
