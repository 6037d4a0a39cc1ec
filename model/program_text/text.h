// SPDX-License-Identifier: Apache-2.0
// A Program as canonical YAML text, and back. People read, write and compare this text; every result, predicted or
// measured, contains its SHA-256.
//
//   extent   tokens*4            four blocks of the dimension tokens
//   index    (tp+3)%4            also 8*node+tp, 2*((tp+1)%4)+1, 3-((-tp+2)%4), 0; at most one term per axis
//   region   y[2*tp +: 2, 0]     block rows from 2*tp, two of them; block column 0. One block if the count is omitted,
//                                all columns if only rows are given, the whole buffer if only its name is given
//   operand  "y[0]; y[4]"        regions stacked by rows, top to bottom
//   product  transpose_a: true   the first factor is stored transposed; transpose_b likewise; for tensors and gemms
//   where    "tp < 3"            ranks on which an op takes part; also =, !=, >=
//
// An attention has in: [queries, keys]; its positions: ["2*tp"] are the block rows of the sequence at which the regions
// of its queries begin, omitted if the queries are block rows 0, 1, 2 and so on, as the keys always are.
#pragma once

#include <string>

#include "model/program/program.h"

namespace commfuse {

/// Returns the text. Equal programs give equal text, byte for byte, and parse_program(to_text(p)) == p.
std::string to_text(const Program& program);

/// Returns the lower-case hexadecimal SHA-256 of to_text(program).
std::string digest_of(const Program& program);

/// Reads the output of to_text; spacing, comments and key order do not matter. These keys may be omitted if they have
/// their default values: waits, where, purpose, lane, wire, protocol, kernel_m and kernel_n of an op; the axis if the
/// mesh has only one; rows, columns and dtype that a tensor's definition determines; any other dtype, which is bf16;
/// accumulator, which is fp32; accumulate, transpose_a and transpose_b, which are false; the role of a buffer, which is
/// scratch; row and column of a content, which are 0; the positions of queries. `path` is for messages only. Throws
/// ConfigError with one line per mistake, `path:line:col: sentence; remedy`. The result still has to pass
/// check_program.
Program parse_program(const std::string& text, const std::string& path);

}  // namespace commfuse
