// SPDX-License-Identifier: Apache-2.0
// A Program as canonical YAML text, and back. The text is what people read, write by hand and compare; its SHA-256
// stands in every result, predicted or measured.
//
//   extent   tokens*4            four blocks of the dimension tokens
//   index    (tp+3)%4            also 8*node+tp, 2*((tp+1)%4)+1, 3-((-tp+2)%4), 0; at most one term an axis
//   region   y[2*tp +: 2, 0]     block rows from 2*tp, two of them; block column 0. One block where the count is left
//                                out, all columns where only rows are given, the whole buffer where only its name is
//   operand  "y[0]; y[4]"        regions stacked by rows, top to bottom
//   product  transpose_a: true   the first factor lies transposed in memory; transpose_b likewise; of tensors and gemms
//   where    "tp < 3"            ranks on which an op takes part; also =, !=, >=
//
// An attention's in: [queries, keys]; its positions: ["2*tp"] are the block rows of the sequence at which the regions
// of its queries begin, left out where the queries are block rows 0, 1, 2 and so on, as the keys always are.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse {

/// Equal programs give equal text, byte for byte, and parse_program(to_text(p)) == p.
std::string to_text(const Program& program);

/// Lower-case hexadecimal SHA-256 of to_text(program).
std::string digest_of(const Program& program);

/// Reads what to_text writes; spacing, comments and key order are free. By hand these may be left out where they are
/// the usual ones: waits, purpose, lane and wire of an op; the axis where the mesh has one; dtype, which is bf16; the
/// role of a buffer, which is scratch; row and column of a content, which are 0; the positions of queries. `path` is
/// for messages only. Throws ConfigError with one line a mistake, `path:line:col: sentence; remedy`. The result still
/// has to pass check_program.
Program parse_program(const std::string& text, const std::string& path);

}  // namespace commfuse
