// SPDX-License-Identifier: Apache-2.0
// Tests every mistake that a schedule file can contain, with the whole message: its place, a sentence and the remedy.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"
#include "model/program_text/text.h"
#include "tests/refusal.h"
#include "tests/texts.h"

namespace commfuse {
namespace {

using test::replaced;

/// A handwritten schedule without its optional parts; most tests below break it in one way.
const std::string ring_text = R"(schema: commfuse.schedule/1
name: two-step ring
mesh: {tp: 4}
dimensions: {tokens: 4, hidden: 1, ffn: 4}
tensors:
  x: {rows: tokens*4, columns: hidden*1, dtype: bf16}
  w: {rows: hidden*1, columns: ffn*4, dtype: bf16}
  y: {product: [x, w]}
buffers:
  shard: {role: input, rows: tokens*1, columns: hidden*1, dtype: bf16}
  weight: {role: weight, rows: hidden*1, columns: ffn*1, dtype: bf16}
  inbox: {role: scratch, rows: tokens*4, columns: hidden*1, dtype: bf16}
  out: {role: output, rows: tokens*4, columns: ffn*1, dtype: bf16}
  wide: {role: scratch, rows: tokens*4, columns: ffn*2, dtype: bf16}
initial:
  - {here: shard, tensor: x, row: tp}
  - {here: weight, tensor: w, column: tp}
final:
  - {here: out, tensor: y, column: tp}
unfused:
  - gemm: {m: tokens*4, n: ffn*1, k: hidden*1, dtype: bf16}
ops:
  - {id: 0, op: exchange, axis: tp, shift: 1, send: shard, receive: "inbox[0]"}
  - {id: 1, op: gemm, a: shard, b: weight, out: "out[tp]"}
  - {id: 2, op: gemm, a: "inbox[0]", b: weight, out: "out[(tp-1)%4]", waits: [0]}
  - {id: 3, op: elementwise, function: add, in: ["inbox[0]", "inbox[1]"], out: "inbox[2]"}
  - {id: 4, op: collective, kind: all_gather, axis: tp, in: shard, out: inbox}
)";

std::string text_refusal(const std::string& text) {
  return test::refusal_of([&] { parse_program(text, "ring.yaml"); });
}

struct Mistake {
  std::string_view right;  // Its first occurrence in the base text is replaced.
  std::string_view wrong;  // The text that replaces it.
  std::string_view message;
};

void expect_messages(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(text_refusal(replaced(ring_text, mistake.right, mistake.wrong)), mistake.message) << mistake.wrong;
  }
}

TEST(ScheduleTextMistakes, AreAbsentFromTheBaseText) { EXPECT_EQ(text_refusal(ring_text), "accepted"); }

/// One rank that attends to two blocks of tokens.
constexpr std::string_view attending = R"(schema: commfuse.schedule/1
name: attending
mesh: {tp: 1}
dimensions: {tokens: 2, batch: 1, qkv: 1, heads: 1, head: 1}
tensors:
  qkv: {rows: tokens*2, columns: qkv*1, dtype: bf16}
  y: {attention: qkv, columns: heads*1, causal: true}
  z: {residual: [y, y]}
buffers:
  in: {role: input, rows: tokens*2, columns: qkv*1, dtype: bf16}
  out: {role: output, rows: tokens*2, columns: heads*1, dtype: bf16}
initial:
  - {here: "in", tensor: qkv}
final:
  - {here: "out", tensor: y}
unfused:
  - {attention: {queries: tokens*2, keys: tokens*2, columns: heads*1, qkv: qkv*1, batch: batch, head: head, causal: true, dtype: bf16}}
ops:
  - {id: 0, op: attention, batch: batch, head: head, causal: true, in: ["in", "in"], out: "out"}
)";

TEST(ScheduleTextMistakes, AreFoundInAttentionAndResiduals) {
  EXPECT_EQ(text_refusal(std::string{attending}), "accepted");
  const std::vector<Mistake> mistakes{
      {"in: [\"in\", \"in\"]", "in: [\"in\"]",
       "ring.yaml:19:72: attention takes two inputs, the rows of the queries and the rows of the keys, not 1; write "
       "in: "
       "[\"qkv\", \"qkv\"]"},
      {"op: attention, batch: batch", "op: attention, batch: batches",
       "ring.yaml:19:35: 'batches' is not one of the dimensions; did you mean 'batch'?"},
      {"op: attention, batch: batch", "op: attention, batch: tokens",
       "ring.yaml:19:35: attention needs a dimension of one block, but 'tokens' is cut into 2; use a dimension of one "
       "block"},
      {"batch: batch, head: head, causal: true, dtype", "batch: batch, head: tokens, causal: true, dtype",
       "ring.yaml:17:103: attention needs a dimension of one block, but 'tokens' is cut into 2; use a dimension of one "
       "block"},
      {"out: \"out\"", "out: \"out[0]\"",
       "ring.yaml:19:91: the rows of out are tokens*1, but the rows of the queries are tokens*2; make them equal"},
      {"causal: true, in: [", "causal: true, positions: [\"0\", \"1\"], in: [",
       "ring.yaml:19:79: there are 2 positions, but the queries have 1 region; write one position for each region, as "
       "in positions: [\"2*tp\"], or remove positions"},
      {"causal: true, in: [\"in\", ", "causal: true, positions: [\"0\"], in: [\"in[0]; in[1]\", ",
       "ring.yaml:19:79: there is 1 position, but the queries have 2 regions; write one position for each region, as "
       "in positions: [\"2*tp\"], or remove positions"},
      {"causal: true, in: [", "causal: true, positions: 0, in: [",
       "ring.yaml:19:79: expected a list, got a single value; write [a, b] or lines that begin with '-'"},
      {"causal: true, in: [", "causal: true, positions: [\"1\"], in: [",
       "ring.yaml:19:80: the keys are block rows 0 to 1, but these queries are at 1 to 2; choose a position within "
       "the keys"},
      {"causal: true, in: [", "causal: true, positions: [\"-1\"], in: [",
       "ring.yaml:19:80: the keys are block rows 0 to 1, but these queries are at -1 to 0; choose a position within "
       "the keys"},
      {"causal: true, in: [", "causal: true, positions: [\"pt\"], in: [",
       "ring.yaml:19:81: unknown axis 'pt'; did you mean 'tp'?"},
      {"in: [\"in\", \"in\"]", "in: [\"in\", \"in[0]\"]",
       "ring.yaml:19:73: the rows of the queries are tokens*2, but the rows of the keys are only tokens*1; give all "
       "keys that "
       "the queries see"},
      {"z: {residual: [y, y]}", "z: {residual: [y]}",
       "ring.yaml:8:17: a residual adds two tensors, not 1; write residual: [x, y]"},
      {"z: {residual: [y, y]}", "z: {residual: [y, y], causal: true}",
       "ring.yaml:8:33: only attention can be causal; remove causal"},
      {"columns: qkv*1, dtype: bf16}", "columns: qkv*1, causal: maybe}",
       "ring.yaml:6:49: only attention can be causal; remove causal"},
      {"z: {residual: [y, y]}", "z: {residual: [y, qkv]}",
       "ring.yaml:8:21: 'y' and 'qkv' have different extents; make them equal"},
      {"y: {attention: qkv, columns: heads*1", "y: {attention: qkv, columns: tokens*2",
       "ring.yaml:7:32: the columns of attention are tokens*2, but the columns of its input 'qkv' are qkv*1; make "
       "the numbers of blocks equal"},
  };
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(text_refusal(replaced(std::string{attending}, mistake.right, mistake.wrong)), mistake.message)
        << mistake.wrong;
  }
}

TEST(ScheduleTextMistakes, AreFoundInTheHeader) {
  expect_messages({
      {"schema: commfuse.schedule/1", "schema: commfuse.schedule/2",
       "ring.yaml:1:9: this version cannot read schema 'commfuse.schedule/2'; write commfuse.schedule/1"},
      {"name: two-step ring", "nmae: two-step ring",
       "ring.yaml:1:1: key 'name' is missing; add it, as in name: \"my ring\"\n"
       "ring.yaml:2:1: unknown key 'nmae'; did you mean 'name'?"},
      {"name: two-step ring", "name: \"two\\tsteps\"",
       "ring.yaml:2:7: a name is one line of plain text; remove control characters"},
      {"name: two-step ring", "name: Jos\xe9", "ring.yaml:2:7: a name is not UTF-8; save the file as UTF-8"},
      {"name: two-step ring", "name: \"\"", "ring.yaml:2:7: a name has 1 to 200 bytes, not 0; write a longer one"},
      {"name: two-step ring",
       "name:", "ring.yaml:2:1: expected a single value, got nothing; write one word, number or text"},
      {"name: two-step ring", "name: a\nname: b",
       "ring.yaml:3:1: key 'name' was already given on line 2; keep one of them"},
      {"name: two-step ring", "name: &a x",
       "ring.yaml:2:7: anchors and aliases are not supported; write the value in full"},
      {"name: two-step ring", "name: *a",
       "ring.yaml:2:7: not valid YAML (the referenced anchor is not defined); correct the mistake there or before it"},
      {"name: two-step ring", "name: !!str x", "ring.yaml:2:7: tags such as !!int are not supported; remove the tag"},
      {"name: two-step ring", "name: [a",
       "ring.yaml:3:5: not valid YAML (end of sequence flow not found); correct the mistake there or before it"},
      {"name: two-step ring", "name: a\n---\nb: c",
       "ring.yaml:4:1: a second document begins; keep one document per file"},
      {"mesh: {tp: 4}", "mesh: {}", "ring.yaml:3:7: a mesh has 1 to 3 axes, not 0; write them as in {node: 2, tp: 8}"},
      {"mesh: {tp: 4}", "mesh: 4",
       "ring.yaml:3:7: expected a map, got a single value; write key: value, or {} for none"},
      {"mesh: {tp: 4}", "mesh: {a: 1, b: 1, c: 1, d: 1}",
       "ring.yaml:3:7: a mesh has 1 to 3 axes, not 4; write them as in {node: 2, tp: 8}"},
      {"mesh: {tp: 4}", "mesh: {tp: 0}", "ring.yaml:3:12: '0' is not a whole number from 1 to 1048576; write one"},
      {"mesh: {tp: 4}", "mesh: {tp: 1048577}",
       "ring.yaml:3:12: '1048577' is not a whole number from 1 to 1048576; write one"},
      {"mesh: {tp: 4}", "mesh: {node: 2048, tp: 1024}",
       "ring.yaml:3:7: the mesh has 2097152 ranks; choose at most 1048576"},
      {"mesh: {tp: 4}", "mesh: {t-p: 4}",
       "ring.yaml:3:8: 't-p' is not a valid name; write at most 100 letters, digits, '_' and '.', beginning with a "
       "letter or '_'"},
      {"mesh: {tp: 4}", "mesh: {tp: 04}", "ring.yaml:3:12: '04' is not a whole number from 1 to 1048576; write one"},
      {"schema: commfuse.schedule/1", "name: x",
       "ring.yaml:2:1: key 'name' was already given on line 1; keep one of them"},
      {"final:", "fnal:",
       "ring.yaml:1:1: key 'final' is missing; add it, as in final: []\n"
       "ring.yaml:18:1: unknown key 'fnal'; did you mean 'final'?"},
      {"unfused:", "more: 1\nunfused:",
       "ring.yaml:20:1: unknown key 'more'; known keys: schema, name, mesh, dimensions, tensors, buffers, initial, "
       "final, unfused, ops"},
      {"ops:", "waits: 1\nops:",
       "ring.yaml:22:1: unknown key 'waits'; known keys: schema, name, mesh, dimensions, tensors, buffers, initial, "
       "final, unfused, ops"},
      {"initial:", "initial: {}\nfinall:", "ring.yaml:16:1: unknown key 'finall'; did you mean 'final'?"},
      {"tensors:", "x: [1, {a: b}]\ntensors:",
       "ring.yaml:5:1: unknown key 'x'; known keys: schema, name, mesh, dimensions, tensors, buffers, initial, final, "
       "unfused, ops"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInDimensionsTensorsAndBuffers) {
  expect_messages({
      {"tokens: 4,", "tokens: 0,", "ring.yaml:4:22: '0' is not a whole number from 1 to 16777216; write one"},
      {"tokens: 4,", "tokens: 16777217,",
       "ring.yaml:4:22: '16777217' is not a whole number from 1 to 16777216; write one"},
      {"tokens: 4,", "tokens: 4.5,", "ring.yaml:4:22: '4.5' is not a whole number from 1 to 16777216; write one"},
      {"tokens: 4,", "tokens: 4, tokens: 4,",
       "ring.yaml:4:25: key 'tokens' was already given on line 4; keep one of them"},
      {"tokens: 4,", "token: 4,",
       "ring.yaml:6:13: unknown dimension 'tokens'; did you mean 'token'?\n"
       "ring.yaml:10:30: unknown dimension 'tokens'; did you mean 'token'?\n"
       "ring.yaml:12:32: unknown dimension 'tokens'; did you mean 'token'?\n"
       "ring.yaml:13:29: unknown dimension 'tokens'; did you mean 'token'?\n"
       "ring.yaml:14:31: unknown dimension 'tokens'; did you mean 'token'?"},
      {"x: {rows: tokens*4,", "x: {rows: tokens*0,",
       "ring.yaml:6:20: this is not a number of blocks; write a number from 1 to 16777216"},
      {"x: {rows: tokens*4,", "x: {rows: tokens,",
       "ring.yaml:6:19: expected '*', got the end of the text; write the number of blocks, as in tokens*4"},
      {"x: {rows: tokens*4,", "x: {rows: token*4,",
       "ring.yaml:6:13: unknown dimension 'token'; did you mean 'tokens'?"},
      {"x: {rows: tokens*4,", "x: {rows: 4*tokens,",
       "ring.yaml:6:13: expected a dimension, got '4'; write an extent as in tokens*4"},
      {"x: {rows: tokens*4,", "x: {rows: tokens*4*2,",
       "ring.yaml:6:21: expected the end, got '*'; write an extent as in tokens*4"},
      {"x: {rows: tokens*4,", "x: {", "ring.yaml:6:6: key 'rows' is missing; add it, as in rows: tokens*4"},
      {"x: {rows: tokens*4,", "x: {row: tokens*4,",
       "ring.yaml:6:6: key 'rows' is missing; add it, as in rows: tokens*4\n"
       "ring.yaml:6:7: unknown key 'row'; did you mean 'rows'?"},
      {"hidden*1, dtype: bf16}", "hidden*1, dtype: bf8}",
       "ring.yaml:6:49: 'bf8' is not one of the dtypes; known dtypes: bf16, fp16, fp32, fp8"},
      {"y: {product: [x, w]}", "y: {product: [w, x]}",
       "ring.yaml:8:20: 'x' has rows tokens*4, but 'w' has columns ffn*4; make them equal"},
      {"y: {product: [x, w]}", "y: {product: [x]}",
       "ring.yaml:8:16: a product has two factors, not 1; write product: [x, w]"},
      {"y: {product: [x, w]}", "y: {product: [x, v]}",
       "ring.yaml:8:20: 'v' is not one of the tensors above; known tensors above: w, x"},
      {"y: {product: [x, w]}", "y: {swiglu: x}",
       "ring.yaml:8:15: swiglu pairs column blocks, but 'x' has hidden*1; give it an even number"},
      {"y: {product: [x, w]}", "y: {product: [x, w], gelu: x}",
       "ring.yaml:8:24: a tensor needs exactly one definition; keep one of product, attention, add, copy, swiglu, "
       "gelu, norm, "
       "residual"},
      {"y: {product: [x, w]}", "y: {product: [x, w], rows: tokens*2}",
       "ring.yaml:8:30: the tensor's definition gives rows tokens*4; write rows: tokens*4 or remove rows"},
      {"y: {product: [x, w]}", "y: {product: [x, w], transpose_a: true}",
       "ring.yaml:8:20: 'w' has rows hidden*1, but 'x' has rows tokens*4; make them equal"},
      {"y: {product: [x, w]}", "y: {product: [x, w], transpose_b: true}",
       "ring.yaml:8:20: 'w' has columns ffn*4, but 'x' has columns hidden*1; make them equal"},
      {"y: {product: [x, w]}", "y: {gelu: x, transpose_b: true}",
       "ring.yaml:8:29: only a product can transpose its factors; remove transpose_b"},
      {"y: {product: [x, w]}", "y: {product: [x, w], dtype: fp16}",
       "ring.yaml:8:31: the tensor's definition gives dtype bf16; write dtype: bf16 or remove dtype"},
      {"y: {product: [x, w]}", "y: {product: [y, w]}",
       "ring.yaml:8:17: 'y' is not one of the tensors above; known tensors above: w, x"},
      {"role: input", "role: inptu", "ring.yaml:10:17: 'inptu' is not one of the roles; did you mean 'input'?"},
      {"inbox: {role: scratch, rows: tokens*4", "inbox: {role: scratch, rows: tokens*16777216",
       "ring.yaml:12:3: this buffer brings a rank to 16777218 blocks; the limit is 16777216\n"
       "ring.yaml:13:3: this buffer brings a rank to 16777222 blocks; the limit is 16777216\n"
       "ring.yaml:14:3: this buffer brings a rank to 16777230 blocks; the limit is 16777216"},
      {"out: {role: output, rows: tokens*4, columns: ffn*1",
       "out: {role: output, rows: tokens*16777216, columns: ffn*16777216",
       "ring.yaml:13:3: this buffer brings a rank to 281474976710662 blocks; the limit is 16777216\n"
       "ring.yaml:14:3: this buffer brings a rank to 281474976710670 blocks; the limit is 16777216"},
      {"y: {product: [x, w]}", "y: {product: [x, w]}\n  z: {gelu: v}\n  v: {copy: z}",
       "ring.yaml:9:13: 'v' is not one of the tensors above; known tensors above: w, x, y"},
      {"inbox: {role: scratch, rows: tokens*4", "inbox: {role: scratch, rows: tokens*16777202",
       "ring.yaml:27:73: the rows of out are tokens*16777202, but the rows of in are tokens*1; the first must be 4 "
       "times the second"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInContentsAndUnfusedWork) {
  expect_messages({
      {"here: shard", "here: shrad", "ring.yaml:16:12: unknown buffer 'shrad'; did you mean 'shard'?"},
      {"here: shard", "here: weight",
       "ring.yaml:16:12: 'weight' and tensor 'x' are cut from different dimensions; use the same dimensions for both"},
      {"here: out", "here: \"out[0 +: 5]\"",
       "ring.yaml:19:22: 'out' has 4 block rows, not 5; write a number from 1 to 4"},
      {"here: out, tensor: y", "here: out, tensor: z",
       "ring.yaml:19:25: 'z' is not one of the tensors; known tensors: w, x, y"},
      {"tensor: x, row: tp", "tensor: x, row: 4",
       "ring.yaml:16:35: tensor 'x' has block rows 0 to 3, but this content begins at 4 and takes 1; stay inside the "
       "tensor"},
      {"tensor: x, row: tp", "tensor: x, row: pt", "ring.yaml:16:35: unknown axis 'pt'; did you mean 'tp'?"},
      {"- gemm: {m", "- gem: {m",
       "ring.yaml:21:5: 'gem' is not one of the kinds of unfused work; did you mean 'gemm'?"},
      {"- gemm: {m: tokens*4,", "- {gemm: {m: tokens*4, n: ffn*1, k: hidden*1, dtype: bf16}, add: {}}\n  - gemm: {",
       "ring.yaml:21:5: an item of unfused work has exactly one kind, not 2; write gemm: {...} or swiglu: {...}\n"
       "ring.yaml:22:11: key 'm' is missing; add it, as in m: tokens*4"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInIdsAndKindsOfOps) {
  expect_messages({
      {"id: 1,", "id: 2,", "ring.yaml:24:10: op ids must be 0, 1, 2 and so on; write id: 1"},
      {"id: 1,", "", "ring.yaml:24:5: key 'id' is missing; add it, as in id: 1"},
      {"op: exchange", "op: exchagne",
       "ring.yaml:23:17: 'exchagne' is not one of the op kinds; did you mean 'exchange'?"},
      {"op: exchange", "op: broadcast",
       "ring.yaml:23:17: 'broadcast' is not one of the op kinds; known op kinds: gemm, attention, elementwise, "
       "exchange, "
       "collective"},
      {"op: exchange,", "", "ring.yaml:23:5: key 'op' is missing; add it, as in op: gemm"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInExchanges) {
  expect_messages({
      {"send: shard,", "sends: shard,", "ring.yaml:23:47: unknown key 'sends'; did you mean 'send'?"},
      {"send: shard, receive: \"inbox[0]\"", "wire: bf16",
       "ring.yaml:23:5: this exchange neither sends nor receives; add send, receive or both"},
      {"shift: 1,", "shift: 1, protocol: shove,",
       "ring.yaml:23:57: 'shove' is not one of the protocols; known protocols: rendezvous, push, pull"},
      {"shift: 1,", "shift: 1, credit: both,", "ring.yaml:23:67: a credit is a push without data; remove send"},
      {"send: shard, receive: \"inbox[0]\"", "protocol: push, credit: send",
       "ring.yaml:23:57: a credit is a push without data; remove protocol"},
      {"send: shard, receive: \"inbox[0]\"", "credit: neither",
       "ring.yaml:23:55: 'neither' is not one of the halves; known halves: send, receive, both"},
      {"receive: \"inbox[0]\"", "receive: \"inbox[0 +: 2]\"",
       "ring.yaml:23:69: the rows of receive are tokens*2, but the rows of send are tokens*1; make them equal"},
      {"receive: \"inbox[0]\"", "receive: weight",
       "ring.yaml:23:69: the rows of receive are hidden*1, but the rows of send are tokens*1; make them equal"},
      {"axis: tp, shift", "axis: dp, shift", "ring.yaml:23:33: 'dp' is not one of the axes; did you mean 'tp'?"},
      {"shift: 1,", "", "ring.yaml:23:5: key 'shift' is missing; add it, as in shift: 1"},
      {"shift: 1,", "shift: one,",
       "ring.yaml:23:44: 'one' is not a whole number from -268435456 to 268435456; write one"},
      {"shift: 1,", "shift: 1, wire: bf17,", "ring.yaml:23:53: 'bf17' is not one of the dtypes; did you mean 'bf16'?"},
      {"send: shard,", "send: \"shard; inbox[0, 0 +: 1]; out[0]\",",
       "ring.yaml:23:79: 'shard' and 'out' are cut from different dimensions; stack only regions of the same "
       "dimensions"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInLanesAndPurposes) {
  expect_messages({
      {"shift: 1,", "shift: 1, lane: comm0,",
       "ring.yaml:23:57: '0' is not a lane number; write comm or comm1 to comm255"},
      {"shift: 1,", "shift: 1, lane: cmm2,", "ring.yaml:23:53: unknown lane 'cmm2'; did you mean 'comm'?"},
      {"shift: 1,", "shift: 1, lane: comm256,",
       "ring.yaml:23:57: '256' is not a lane number; write comm or comm1 to comm255"},
      {"shift: 1,", "shift: 1, purpose: essential,",
       "ring.yaml:23:56: exchanges and collectives are communication; remove purpose"},
      {"op: gemm,", "op: gemm, purpose: communication,",
       "ring.yaml:24:32: only exchanges and collectives are communication; write essential or local, or remove "
       "purpose"},
      {"op: gemm,", "op: gemm, purpose: esential,",
       "ring.yaml:24:32: 'esential' is not one of the purposes; did you mean 'essential'?"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInConditions) {
  expect_messages({
      {"shift: 1,", "shift: 1, where: \"tp < 5\",",
       "ring.yaml:23:60: axis 'tp' cannot be compared with this; write a number from 0 to 4"},
      {"shift: 1,", "shift: 1, where: \"tp ~ 2\",",
       "ring.yaml:23:58: expected a relation, got '~'; write =, !=, < or >="},
      {"shift: 1,", "shift: 1, where: \"tp <= 2\",", "ring.yaml:23:58: unknown relation '<='; write =, !=, < or >="},
      {"shift: 1,", "shift: 1, where: \"tp == 2\",", "ring.yaml:23:58: unknown relation '=='; write =, !=, < or >="},
      {"shift: 1,", "shift: 1, where: \"tp=>2\",", "ring.yaml:23:57: unknown relation '=>'; write =, !=, < or >="},
      {"shift: 1,", "shift: 1, where: \"node < 2\",", "ring.yaml:23:55: unknown axis 'node'; known axes: tp"},
      {"shift: 1,", "shift: 1, where: \"tp < 2 3\",",
       "ring.yaml:23:62: expected the end, got '3'; write one comparison, as in tp < 3"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInGemms) {
  expect_messages({
      {"op: gemm,", "op: gemm, accumulate: yes,",
       "ring.yaml:24:35: 'yes' is neither true nor false; write true or false"},
      {"op: gemm,", "op: gemm, shift: 1,",
       "ring.yaml:24:23: unknown key 'shift'; known keys: id, op, lane, purpose, where, waits, accumulate, "
       "accumulator, transpose_a, transpose_b, kernel_m, kernel_n, a, b, out"},
      {"op: gemm,", "op: gemm, kernel_m: hidden*4,",
       "ring.yaml:24:33: the whole kernel has rows hidden*4, but this part of it has rows tokens*1; make the whole a "
       "multiple of the part"},
      {"op: gemm,", "op: gemm, kernel_n: tokens*4,",
       "ring.yaml:24:33: the whole kernel has columns tokens*4, but this part of it has columns ffn*1; make the whole "
       "a multiple of the part"},
      {"op: gemm,", "op: gemm, kernel_m: tokens*4, kernel_n: ffn*4,",
       "ring.yaml:24:53: a kernel is cut by rows or by columns, not by both; remove kernel_m or kernel_n"},
      {"op: gemm,", "op: gemm, transpose_a: true,",
       "ring.yaml:24:55: the rows of b are hidden*1, but the rows of a are tokens*1; make them equal"},
      {"op: gemm,", "op: gemm, transpose_b: true,",
       "ring.yaml:24:55: the columns of b are ffn*1, but the columns of a are hidden*1; make them equal"},
      {"op: gemm,", "op: gemm, transpose_b: yes,",
       "ring.yaml:24:36: 'yes' is neither true nor false; write true or false"},
      {"a: shard, b: weight", "a: weight, b: weight",
       "ring.yaml:24:37: the rows of b are hidden*1, but the columns of a are ffn*1; make them equal"},
      {"a: shard, b: weight", "a: shard", "ring.yaml:24:5: key 'b' is missing; add it, as in b: \"w\""},
  });
}

TEST(ScheduleTextMistakes, AreFoundInElementwiseOps) {
  expect_messages({
      {"function: add", "function: zero", "ring.yaml:26:50: zero takes no input; remove in"},
      {"function: add", "function: sum",
       "ring.yaml:26:40: 'sum' is not one of the functions; known functions: add, copy, swiglu, gelu, norm, "
       "residual, zero"},
      {"function: add", "function: copy", "ring.yaml:26:50: copy takes one input, not 2; write in: \"a\""},
      {"in: [\"inbox[0]\", \"inbox[1]\"]", "in: []",
       "ring.yaml:26:49: add takes one input or more, not 0; write in: [\"a\", \"b\"]"},
      {"in: [\"inbox[0]\", \"inbox[1]\"]", "in: [\"inbox[0]\", \"inbox[1 +: 2]\"]",
       "ring.yaml:26:62: the rows of this input are tokens*2, but the rows of out are tokens*1; make them equal"},
      {"in: [\"inbox[0]\", \"inbox[1]\"]", "in: weight",
       "ring.yaml:26:49: the rows of this input are hidden*1, but the rows of out are tokens*1; make them equal"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInWaits) {
  expect_messages({
      {"waits: [0]", "waits: [2]",
       "ring.yaml:25:79: op 2 waits for op 2, which is not earlier; wait for ops 0 to 1, or change the order"},
      {"waits: [0]", "waits: [7]",
       "ring.yaml:25:79: op 2 waits for op 7, which is not earlier; wait for ops 0 to 1, or change the order"},
      {"b: weight, out: \"out[tp]\"", "b: weight, out: \"out[tp]\", waits: [1]",
       "ring.yaml:24:68: op 1 waits for op 1, which is not earlier; wait for op 0, or change the order"},
      {"waits: [0]", "waits: 0",
       "ring.yaml:25:78: expected a list, got a single value; write [a, b] or lines that begin with '-'"},
      {"waits: [0]", "waits: [zero]", "ring.yaml:25:79: 'zero' is not a whole number from 0 to 268435456; write one"},
      {"receive: \"inbox[0]\"", "receive: \"inbox[0]\", waits: [0]",
       "ring.yaml:23:89: op 0 is the first op and cannot wait for another op; remove waits"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInCollectives) {
  expect_messages({
      {"kind: all_gather", "kind: allgather",
       "ring.yaml:27:35: 'allgather' is not one of the collectives; did you mean 'all_gather'?"},
      {"kind: all_gather", "kind: reduce_scatter",
       "ring.yaml:27:77: the rows of in are tokens*1, but the rows of out are tokens*4; the first must be 4 times the "
       "second"},
      {"kind: all_gather", "kind: all_reduce",
       "ring.yaml:27:73: the rows of out are tokens*4, but the rows of in are tokens*1; make them equal"},
      {"in: shard, out: inbox", "in: shard, out: \"inbox[0 +: 3]\"",
       "ring.yaml:27:73: the rows of out are tokens*3, but the rows of in are tokens*1; the first must be 4 times the "
       "second"},
  });
}

TEST(ScheduleTextMistakes, IncludeStackedRegionsThatDoNotFit) {
  expect_messages({
      {"out: \"out[tp]\"", "out: \"out[tp+1]; weight\"",
       "ring.yaml:24:61: 'out' and 'weight' are cut from different dimensions; stack only regions of the same "
       "dimensions"},
      {"out: \"out[tp]\"", "out: \"out[tp]; weight\"",
       "ring.yaml:24:59: 'out' and 'weight' are cut from different dimensions; stack only regions of the same "
       "dimensions"},
      {"out: \"out[tp]\"", "out: \"out[2 +: 2]\"",
       "ring.yaml:24:49: the rows of out are tokens*2, but the rows of a are tokens*1; make them equal"},
      {"out: \"out[tp]\"", "out: \"inbox[1]\"",
       "ring.yaml:24:49: the columns of out are hidden*1, but the columns of b are ffn*1; make them equal"},
      {"out: \"out[tp]\"", "out: out",
       "ring.yaml:24:49: the rows of out are tokens*4, but the rows of a are tokens*1; make them equal"},
      {"out: \"out[tp]\"", "out: \"wide[0, 0]; wide[1]\"",
       "ring.yaml:24:62: this region is 2 block columns wide, but the region before it is 1 wide; make them equal"},
      {"out: \"out[tp]\"", "out: \"wide[1]; wide[0, 0]\"",
       "ring.yaml:24:59: this region is 1 block column wide, but the region before it is 2 wide; make them equal"},
  });
}

TEST(ScheduleTextMistakes, AreReportedAtTheirCharacterInARegion) {
  expect_messages({
      {"out: \"out[tp]\"", "out: \"out[(tp+1)]\"",
       "ring.yaml:24:60: expected '%', got ']'; wrap the coordinate, as in (tp+1)%4"},
      {"out: \"out[tp]\"", "out: \"out[(tp+1)%5]\"", "ring.yaml:24:61: axis 'tp' has 4 coordinates; write %4"},
      {"out: \"out[tp]\"", "out: \"out[(tp+1)%4\"",
       "ring.yaml:24:62: expected ']', got the end of the text; write a region as in x[tp] or x[0 +: 2, 1]"},
      {"out: \"out[tp]\"", "out: \"out[(tp+tp)%4]\"",
       "ring.yaml:24:58: expected a number, got 't'; write one axis between parentheses, as in (tp+1)%4"},
      {"out: \"out[tp]\"", "out: \"out[tp+tp]\"",
       "ring.yaml:24:57: axis 'tp' appears twice; an index has one term with 'tp'"},
      {"out: \"out[tp]\"", "out: \"out[(((tp))))]\"",
       "ring.yaml:24:56: expected an axis or a number, got '('; write an index as in (tp+1)%4 or 2*tp"},
      {"out: \"out[tp]\"", "out: \"out[tp +:]\"",
       "ring.yaml:24:59: expected a number of rows, got ']'; write the number of blocks, as in +: 2"},
      {"out: \"out[tp]\"", "out: \"out[]\"",
       "ring.yaml:24:54: expected an axis or a number, got ']'; write an index as in (tp+1)%4 or 2*tp"},
      {"out: \"out[tp]\"", "out: \"out[tp] y\"",
       "ring.yaml:24:58: expected the end, got 'y'; separate stacked regions by ';'"},
      {"out: \"out[tp]\"", "out: \"out[tp*8]\"",
       "ring.yaml:24:56: expected ']', got '*'; write a region as in x[tp] or x[0 +: 2, 1]"},
      {"out: \"out[tp]\"", "out: \"out[tp];\"",
       "ring.yaml:24:58: expected a buffer, got the end of the text; write a region as in x, x[tp] or x[0 +: 2, 1]"},
      {"out: \"out[tp]\"", "out: \"\"",
       "ring.yaml:24:50: expected a buffer, got the end of the text; write a region as in x, x[tp] or x[0 +: 2, 1]"},
      {"out: \"out[tp]\"", "out: [\"out[tp]\"]",
       "ring.yaml:24:49: expected a single value, got a list; write one word, number or text"},
      {"out: \"out[tp]\"", "out: \"öut[tp]\"",
       "ring.yaml:24:50: expected a buffer, got 'ö'; write a region as in x, x[tp] or x[0 +: 2, 1]"},
      {"out: \"out[tp]\"", "out: \"out[ü]\"",
       "ring.yaml:24:54: expected an axis or a number, got 'ü'; write an index as in (tp+1)%4 or 2*tp"},
      {"out: \"out[tp]\"", "out: \"out[0 +: 1; out[1]\"",
       "ring.yaml:24:60: expected ']', got ';'; write a region as in x[tp] or x[0 +: 2, 1]"},
      {"out: \"out[tp]\"", "out: \"out[(1)]\"",
       "ring.yaml:24:56: expected an axis, got ')'; write a plain number without parentheses"},
      {"out: \"out[tp]\"", "out: \"out[tp%3]\"", "ring.yaml:24:57: axis 'tp' has 4 coordinates; write %4"},
      {"out: \"out[tp]\"", "out: \"out[-tp%]\"", "ring.yaml:24:58: axis 'tp' has 4 coordinates; write %4"},
  });
}

TEST(ScheduleTextMistakes, IncludeNumbersOutOfRangeInRegions) {
  expect_messages({
      {"out: \"out[tp]\"", "out: \"out[0*tp]\"",
       "ring.yaml:24:54: a factor of 0 is not allowed here; write a factor from 1 to 89478485"},
      {"out: \"out[tp]\"", "out: \"out[tp +: 5]\"",
       "ring.yaml:24:60: 'out' has 4 block rows, not 5; write a number from 1 to 4"},
      {"out: \"out[tp]\"", "out: \"out[tp, 0 +: 2]\"", "ring.yaml:24:63: 'out' has 1 block column, not 2; write 1"},
      {"out: \"out[tp]\"", "out: \"out[4]\"",
       "ring.yaml:24:54: 'out' has block rows 0 to 3, but this region is at block row 4; stay inside the buffer"},
      {"out: \"out[tp]\"", "out: \"out[-1]\"",
       "ring.yaml:24:54: 'out' has block rows 0 to 3, but this region is at block row -1; stay inside the buffer"},
      {"out: \"out[tp]\"", "out: \"out[3 +: 2]\"",
       "ring.yaml:24:54: 'out' has block rows 0 to 3, but this region is at block rows 3 to 4; stay inside the buffer"},
      {"out: \"out[tp]\"", "out: \"out[0, 1]\"",
       "ring.yaml:24:57: 'out' has only block column 0, but this region is at block column 1; stay inside the buffer"},
      {"out: \"out[tp]\"", "out: \"out[99999999999]\"", "ring.yaml:24:54: number too large; the limit is 268435456"},
      {"out: \"out[tp]\"", "out: \"o\\u0075t[4]\"",
       "ring.yaml:24:49: 'out' has block rows 0 to 3, but this region is at block row 4; stay inside the buffer"},
      {"out: \"out[tp]\"", "out: \"out[300000000 - 5]\"", "ring.yaml:24:54: number too large; the limit is 268435456"},
      {"out: \"out[tp]\"", "out: \"out[268435456 + 268435456]\"",
       "ring.yaml:24:54: index too large; the limit is 268435456"},
      {"out: \"out[tp]\"", "out: \"out[268435456*tp]\"",
       "ring.yaml:24:54: a factor of 268435456 is not allowed here; write a factor from 1 to 89478485"},
  });
}

TEST(ScheduleTextMistakes, AreFoundInTheFileAsAWhole) {
  EXPECT_EQ(text_refusal(""), "ring.yaml:1:1: the file is empty; write 'key: value' lines");
  EXPECT_EQ(text_refusal("- ring\n"), "ring.yaml:1:1: the top level is not a map; write 'key: value' lines");
  EXPECT_EQ(text_refusal(std::string((1U << 20U) + 1, '#')),
            "ring.yaml:1:1: 1048577 bytes are too many; a schedule is at most 1 MiB (1048576)");
  // yaml-cpp treats 0x04 as the end of the file.
  EXPECT_EQ(text_refusal(ring_text + "x\x04"), "ring.yaml:28:2: control character 0x04; write plain text in UTF-8");
  EXPECT_EQ(text_refusal(std::string("a\0b", 3)), "ring.yaml:1:2: control character 0x00; write plain text in UTF-8");
  EXPECT_EQ(text_refusal(std::string(5000, '[')).substr(0, 10), "ring.yaml:");
}

TEST(ScheduleTextMistakes, IncludeAStackOfTooManyRows) {
  const std::string tall =
      replaced(ring_text, "inbox: {role: scratch, rows: tokens*4", "inbox: {role: scratch, rows: tokens*16777202");
  EXPECT_EQ(text_refusal(replaced(tall, "in: shard, out: inbox", "in: shard, out: \"inbox; inbox\"")),
            "ring.yaml:27:81: the stack has more than 16777216 block rows; use fewer rows");
}

TEST(ScheduleTextMistakes, AreShownTogetherInOrderOfPlace) {
  const std::string text = replaced(replaced(replaced(ring_text, "op: gemm", "op: gem"), "here: out", "here: uot"),
                                    "waits: [0]", "wait: [0]");
  EXPECT_EQ(text_refusal(text),
            "ring.yaml:19:12: unknown buffer 'uot'; did you mean 'out'?\n"
            "ring.yaml:24:17: 'gem' is not one of the op kinds; did you mean 'gemm'?\n"
            "ring.yaml:25:71: unknown key 'wait'; did you mean 'waits'?");
}

TEST(ScheduleTextMistakes, DoNotCauseFurtherMessages) {
  // The mistake in x causes no second message, about y = x w.
  const std::string text = replaced(ring_text, "x: {rows: tokens*4", "x: {rows: tokens*0");
  EXPECT_EQ(text_refusal(text), "ring.yaml:6:20: this is not a number of blocks; write a number from 1 to 16777216");
}

TEST(ScheduleTextMistakes, AreLimitedToTwenty) {
  std::string text = ring_text;
  for (int op = 5; op < 35; ++op) {
    text += "  - {id: " + std::to_string(op) + ", op: gem}\n";
  }
  const std::string message = text_refusal(text);
  EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 20);
  // The first 20 mistakes are on lines 28 to 47.
  EXPECT_NE(message.find("ring.yaml:47:18: 'gem' is not one"), std::string::npos);
  EXPECT_EQ(message.find("ring.yaml:48"), std::string::npos);
  EXPECT_TRUE(message.ends_with("\nring.yaml: there may be more mistakes; first correct those listed above"));
}

/// A small random generator that draws the same numbers on every machine.
struct Dice {
  std::uint32_t state = 1;
  std::size_t below(std::size_t bound) {
    state = state * 1664525U + 1013904223U;
    return (state >> 8U) % bound;
  }
};

// A user may write anything. The result is a program that reads back, or a message, but never an abort.
TEST(ScheduleTextMistakes, ADamagedFileIsParsedOrRefused) {
  constexpr std::string_view letters = "{}[]()\"':,;%*+-<>=#&!|? \n\t0123456789xtp_.\xc3";
  Dice dice;
  int accepted = 0;
  for (int round = 0; round < 4000; ++round) {
    std::string text = ring_text;
    for (std::size_t edits = dice.below(3) + 1; edits > 0; --edits) {
      const std::size_t at = dice.below(text.size());
      switch (dice.below(4)) {
        case 0: text.erase(at, dice.below(8)); break;
        case 1: text.insert(at, 1, letters[dice.below(letters.size())]); break;
        case 2: text[at] = letters[dice.below(letters.size())]; break;
        default: text.insert(at, text.substr(dice.below(text.size()), dice.below(30))); break;
      }
    }
    try {
      const Program program = parse_program(text, "ring.yaml");
      EXPECT_EQ(parse_program(to_text(program), "again.yaml"), program) << text;
      ++accepted;
    } catch (const ConfigError& error) {
      EXPECT_EQ(std::string_view{error.what()}.substr(0, 10), "ring.yaml:") << text;
    }
  }
  EXPECT_GT(accepted, 50);
  EXPECT_LT(accepted, 3000);
}

/// Returns a schedule with two buffers of `blocks` blocks, and `ops` exchanges of all blocks.
std::string copies(int blocks, int ops) {
  std::string text = fmt::format(
      "schema: commfuse.schedule/1\nname: copies\nmesh: {{tp: 8}}\ndimensions: {{tokens: {0}, hidden: 1}}\n"
      "tensors: {{}}\nbuffers:\n  x: {{rows: tokens*{0}, columns: hidden*1}}\n"
      "  y: {{rows: tokens*{0}, columns: hidden*1}}\ninitial: []\nfinal: []\nunfused: []\nops:\n",
      blocks);
  for (int op = 0; op < ops; ++op) {
    text += fmt::format("  - {{id: {}, op: exchange, shift: 1, send: x, receive: y}}\n", op);
  }
  return text;
}

TEST(ScheduleTextMistakes, AFewOpsOnVeryManyBlocksAreRefusedBeforeTheProof) {
  const std::string refused =
      "ring.yaml:13:3: the ops of a rank access more than 134217728 blocks; cut the dimensions into fewer blocks, or "
      "use fewer ops";
  EXPECT_EQ(text_refusal(copies(8'000'000, 50)), refused);
  EXPECT_EQ(text_refusal(copies(8'000'000, 3)), "accepted");
}

TEST(ScheduleTextMistakes, AGemmOfVeryManyBlocksIsRefusedBeforeTheProof) {
  std::string text =
      replaced(ring_text, "tokens: 4, hidden: 1, ffn: 4", "tokens: 4, hidden: 1, ffn: 4, m: 512, n: 512, k: 512");
  text = replaced(text, "  wide:",
                  "  p: {rows: m*512, columns: k*512}\n  q: {rows: k*512, columns: n*512}\n"
                  "  r: {rows: m*512, columns: n*512}\n  wide:");
  EXPECT_EQ(text_refusal(text), "accepted");
  EXPECT_NE(text_refusal(text + "  - {id: 5, op: gemm, a: p, b: q, out: r}\n").find("access more than"),
            std::string::npos);
}

TEST(ScheduleTextMistakes, ATruncatedFileIsParsedOrRefused) {
  for (std::size_t length = 0; length < ring_text.size(); ++length) {
    EXPECT_NE(text_refusal(ring_text.substr(0, length)), "") << length;
  }
}

}  // namespace
}  // namespace commfuse
