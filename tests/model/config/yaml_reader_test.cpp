// SPDX-License-Identifier: Apache-2.0
#include "model/config/yaml_reader.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "model/config_error.h"
#include "tests/own_folder.h"

namespace commfuse {
namespace {

/// Runs each test inside a separate empty folder, so that messages name just `a.yaml`.
class YamlReader : public ::testing::Test {
 protected:
  static void write(const std::string& text) { std::ofstream("a.yaml", std::ios::binary) << text; }

  /// Returns the messages of a reader that expects the fields below.
  static std::string mistakes(const std::string& text) {
    write(text);
    try {
      YamlFile file("a.yaml");
      YamlMap root = file.root();
      root.count("layers", {1, 100});
      YamlMap link = root.map("link");
      link.duration("latency");
      link.bandwidth("rate");
      if (std::optional<YamlMap> extra = root.optional_map("extra")) {
        extra->number_parameter("share", {0.0, 1.0});
        extra->boolean("gated");
        extra->text("name");
      }
      file.finish();
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  }

 private:
  OwnFolder folder_;
};

const std::string valid = "layers: 8\nlink: {latency: 5 us, rate: 450 GB/s}\n";

std::string extra(const std::string& share, const std::string& gated = "true", const std::string& name = "x") {
  return valid + "extra:\n  share: " + share + "\n  gated: " + gated + "\n  name: " + name + "\n";
}

TEST_F(YamlReader, ReadsEveryKindOfField) {
  write("n: 128K\nx: 0.5\nb: false\nt: 'two words'\nd: 5 us\ns: 32 KiB\nw: \"450 GB/s\"\nf: 989 TFLOP/s\nm: {k: 1}\n");
  YamlFile file("a.yaml");
  YamlMap root = file.root();
  EXPECT_EQ(root.count("n"), 131'072);
  EXPECT_EQ(root.number("x", {0.0, 1.0}), 0.5);
  EXPECT_FALSE(root.boolean("b"));
  EXPECT_EQ(root.text("t"), "two words");
  EXPECT_EQ(root.duration("d"), Duration{5'000'000});
  EXPECT_EQ(root.size("s"), Bytes{32'768});
  EXPECT_EQ(root.bandwidth("w"), BytesPerSecond{450e9});
  EXPECT_EQ(root.compute_rate("f"), FlopsPerSecond{989e12});
  EXPECT_EQ(root.map("m").count("k"), 1);
  EXPECT_TRUE(root.has("m"));
  EXPECT_FALSE(root.has("o"));
  EXPECT_EQ(root.keys().size(), 9u);
  EXPECT_FALSE(root.optional_map("o").has_value());
  EXPECT_NO_THROW(file.finish());
}

TEST_F(YamlReader, ReadsAParameterWithItsProvenance) {
  write(
      "rate: {value: 361 GB/s, error: 0.02, provenance: 'fitted: table.csv'}\n"
      "ctas: {value: 16, provenance: 'published: a: b'}\n");
  YamlFile file("a.yaml");
  const Parameter<BytesPerSecond> rate = file.root().bandwidth_parameter("rate");
  EXPECT_EQ(rate.value, BytesPerSecond{361e9});
  EXPECT_EQ(rate.standard_error, 0.02);
  EXPECT_EQ(rate.provenance, Provenance::fitted);
  EXPECT_EQ(rate.source, "table.csv");
  const Parameter<int> ctas = file.root().count_parameter("ctas", {0, 132});
  EXPECT_EQ(ctas.value, 16);
  EXPECT_EQ(ctas.standard_error, 0.0);
  EXPECT_EQ(ctas.source, "a: b");
  EXPECT_NO_THROW(file.finish());
}

TEST_F(YamlReader, AcceptsTheFileThatOtherTestsBreak) {
  EXPECT_EQ(mistakes(valid), "accepted");
  EXPECT_EQ(mistakes(extra("{value: 0.5, provenance: 'prior: why'}")), "accepted");
}

TEST_F(YamlReader, UnknownKeysGetTheNearestKeyOrTheWholeList) {
  EXPECT_EQ(mistakes("layers: 8\nlink: {latncy: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:2:8: unknown key 'latncy'; did you mean 'latency'?");
  EXPECT_EQ(mistakes(valid + "colour: red\n"), "a.yaml:3:1: unknown key 'colour'; known keys: layers, link, extra");
}

TEST_F(YamlReader, AKeyThatBelongsOneLevelBelowIsAnsweredWithItsMap) {
  EXPECT_EQ(mistakes(valid + "rate: 450 GB/s\n"), "a.yaml:3:1: unknown key 'rate'; it belongs under 'link'");
  EXPECT_EQ(mistakes("layers: 8\nlink: {latency: 5 us, rate: 450 GB/s, gated: true}\n"),
            "a.yaml:2:39: unknown key 'gated'; known keys: latency, rate");
}

TEST_F(YamlReader, MissingKeysComeWithAnExample) {
  EXPECT_EQ(mistakes("layers: 8\n"), "a.yaml:1:1: missing key 'link'; add it, as in \"link: {...}\"");
  EXPECT_EQ(mistakes("link: {latency: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:1: missing key 'layers'; add it, as in \"layers: 8\"");
}

TEST_F(YamlReader, AKeyWithoutValueIsAMistake) {
  EXPECT_EQ(mistakes("layers:\nlink: {latency: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:1: 'layers' has no value; write one, as in \"layers: 8\"");
}

TEST_F(YamlReader, QuantitiesNeedNumberAndUnit) {
  EXPECT_EQ(mistakes("layers: 8\nlink: {latency: 5, rate: 450 GB}\n"),
            "a.yaml:2:17: '5' is not a time; write a number and a unit, as in \"5 us\"\n"
            "a.yaml:2:26: '450 GB' is not a bandwidth; write a number and a unit (GB/s, Gbit/s), as in \"450 GB/s\"");
  EXPECT_EQ(mistakes("layers: 8\nlink: {latency: -5 us, rate: 0 GB/s}\n"),
            "a.yaml:2:17: '-5 us' is not a time; write a number and a unit, as in \"5 us\"\n"
            "a.yaml:2:30: 'rate' is 0 B/s; choose a bandwidth above 0");
  EXPECT_EQ(
      mistakes("layers: 8\nlink: {latency: 9999999 s, rate: 9999999 s}\n"),
      "a.yaml:2:17: '9999999 s' is too long; write a time below 9.2e6 s\n"
      "a.yaml:2:34: '9999999 s' is not a bandwidth; write a number and a unit (GB/s, Gbit/s), as in \"450 GB/s\"");
}

TEST_F(YamlReader, OctalLookingNumbersAreRefused) {
  EXPECT_EQ(mistakes("layers: 010\nlink: {latency: 05 us, rate: 450 GB/s}\n"),
            "a.yaml:1:9: '010' begins with 0, which YAML may read as octal; write 10\n"
            "a.yaml:2:17: '05 us' begins with 0, which YAML may read as octal; write 5 us");
  EXPECT_EQ(mistakes("layers: 00\nlink: {latency: 00.5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:9: '00' begins with 0, which YAML may read as octal; write 0\n"
            "a.yaml:2:17: '00.5 us' begins with 0, which YAML may read as octal; write 0.5 us");
}

TEST_F(YamlReader, CountsAreWholeAndInRange) {
  EXPECT_EQ(mistakes("layers: 3.7\nlink: {latency: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:9: '3.7' is not a whole number; write one, as in \"layers: 8\"");
  EXPECT_EQ(mistakes("layers: 0\nlink: {latency: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:9: 'layers' is 0; choose 1 to 100");
  EXPECT_EQ(mistakes("layers: 1K\nlink: {latency: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:9: 'layers' is 1024; choose 1 to 100");
}

TEST_F(YamlReader, MapsAndValuesAreNotInterchangeable) {
  EXPECT_EQ(mistakes("layers: {a: 1}\nlink: fast\n"),
            "a.yaml:1:9: 'layers' is a map; write one value, as in \"layers: 8\"\n"
            "a.yaml:2:7: 'link' is not a map; write fields below it, as in \"link: {key: value}\"");
  EXPECT_EQ(mistakes("layers: [1, 2]\nlink: {latency: 5 us, rate: 450 GB/s}\n"),
            "a.yaml:1:9: 'layers' is a list; write one value, as in \"layers: 8\"");
}

TEST_F(YamlReader, ABareParameterIsRefusedForItsValueAndItsSource) {
  EXPECT_EQ(mistakes(extra("half")),
            "a.yaml:4:10: 'half' is not a number; write one, as in \"share: 0.8\"\n"
            "a.yaml:4:10: 'share' has no provenance; write {value: 0.8, provenance: 'prior: why'}");
  EXPECT_EQ(mistakes(extra("2")),
            "a.yaml:4:10: 'share' is 2; choose 0 to 1\n"
            "a.yaml:4:10: 'share' has no provenance; write {value: 0.8, provenance: 'prior: why'}");
}

TEST_F(YamlReader, ParametersStateTheirSource) {
  EXPECT_EQ(mistakes(extra("0.5")),
            "a.yaml:4:10: 'share' has no provenance; write {value: 0.5, provenance: 'prior: why'}");
  EXPECT_EQ(mistakes(extra("{value: 0.5}")),
            "a.yaml:4:10: missing key 'provenance' in 'extra.share'; add it, as in \"provenance: 'prior: why'\"");
  EXPECT_EQ(
      mistakes(extra("{value: 0.5, provenance: guess}")),
      "a.yaml:4:35: unknown provenance 'guess'; write prior, published, fitted or measured, then ': ' and the source");
  EXPECT_EQ(mistakes(extra("{value: 2, eror: 0.1, provenance: 'prior: why'}")),
            "a.yaml:4:18: 'value' is 2; choose 0 to 1\n"
            "a.yaml:4:21: unknown key 'eror'; did you mean 'error'?");
  EXPECT_EQ(mistakes(extra("{value: half, error: -1, provenance: 'prior: why'}")),
            "a.yaml:4:18: 'half' is not a number; write one, as in \"value: 0.8\"\n"
            "a.yaml:4:31: 'error' is -1; choose 0 to 10");
}

TEST_F(YamlReader, YesIsNotTrue) {
  EXPECT_EQ(mistakes(extra("{value: 1, provenance: 'prior: why'}", "yes", "''")),
            "a.yaml:5:10: 'yes' is neither true nor false; write true or false\n"
            "a.yaml:6:9: 'name' is empty; write its text");
}

TEST_F(YamlReader, DuplicateKeysAreRefused) {
  EXPECT_EQ(mistakes(valid + "layers: 9\n"), "a.yaml:3:1: key 'layers' was already given on line 1; keep one of them");
}

TEST_F(YamlReader, AnchorsAliasesMergesAndTagsAreRefused) {
  EXPECT_EQ(mistakes("layers: &a 8\n"), "a.yaml:1:9: anchors and aliases are not supported; write the value in full");
  EXPECT_EQ(mistakes("base: &b {x: 1}\nlink: *b\n"),
            "a.yaml:1:7: anchors and aliases are not supported; write the value in full");
  EXPECT_EQ(mistakes("link:\n  <<: {rate: 1 GB/s}\n"),
            "a.yaml:2:3: merge keys are not supported; write the fields in full");
  EXPECT_EQ(mistakes("layers: !!int 8\n"), "a.yaml:1:9: tags such as !!int are not supported; remove the tag");
}

TEST_F(YamlReader, TextThatIsNotYamlIsRefusedWithItsPlace) {
  EXPECT_EQ(mistakes("layers: 8\nlink: {latency: 5 us\n"),
            "a.yaml:3:1: not valid YAML (end of map flow not found); correct the mistake there or before it");
  EXPECT_EQ(
      mistakes("layers: 8\n\tlink: 1\n"),
      "a.yaml:2:1: not valid YAML (illegal tab when looking for indentation); correct the mistake there or before it");
}

TEST_F(YamlReader, TheTopLevelIsOneMap) {
  EXPECT_EQ(mistakes(""), "a.yaml:1:1: the file is empty; write 'key: value' lines");
  EXPECT_EQ(mistakes("# nothing\n"), "a.yaml:1:1: the file is empty; write 'key: value' lines");
  EXPECT_EQ(mistakes("- 1\n- 2\n"), "a.yaml:1:1: the top level is not a map; write 'key: value' lines");
  EXPECT_EQ(mistakes("hello\n"), "a.yaml:1:1: the top level is not a map; write 'key: value' lines");
  EXPECT_EQ(mistakes(valid + "---\nlayers: 9\n"), "a.yaml:4:1: a second document begins; keep one document per file");
}

TEST_F(YamlReader, KeysArePlainText) {
  EXPECT_EQ(mistakes("? [a, b]\n: 1\n"), "a.yaml:1:3: a key is not plain text; write 'key: value'");
}

TEST_F(YamlReader, DeepNestingIsRefused) {
  EXPECT_EQ(mistakes("a: " + std::string(40, '[') + std::string(40, ']') + "\n"),
            "a.yaml:1:35: nested deeper than 32 levels; flatten the file");
  EXPECT_EQ(mistakes("a: " + std::string(20'000, '[') + std::string(20'000, ']')),
            "a.yaml:1:35: nested deeper than 32 levels; flatten the file");
}

TEST_F(YamlReader, OneFurtherMistakeIsSingular) {
  std::string text = valid;
  for (int i = 0; i < 101; ++i) {
    text += "k" + std::to_string(i) + ": 1\n";
  }
  const std::string message = mistakes(text);
  EXPECT_EQ(message.substr(message.rfind('\n')), "\na.yaml: 1 more mistake; first correct those listed above");
}

TEST_F(YamlReader, FilesThatCannotBeReadAreRefused) {
  const auto message = [](const std::string& path) -> std::string {
    try {
      YamlFile file(path);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("absent.yaml"), "absent.yaml: cannot be read (No such file or directory); check the path");
  EXPECT_EQ(message("."), ".: cannot be read (Is a directory); check the path");
  write(std::string(1024 * 1024 + 1, '#'));
  EXPECT_EQ(message("a.yaml"), "a.yaml: the file is larger than 1 MiB; a config is a few KiB, so check the path");
}

TEST_F(YamlReader, ControlCharactersNeverReachTheTerminal) {
  EXPECT_EQ(mistakes(valid + "\"a\\e[31m\": 1\n"),
            "a.yaml:3:1: unknown key 'a\\x1b[31m'; known keys: layers, link, extra");
}

TEST_F(YamlReader, TextIsOneLineWithoutControlCharacters) {
  const std::string refused = "a.yaml:6:9: 'name' must be one line of plain text; remove control characters";
  for (const char* name :
       {"\"\\e]0;x\\a\"", "\"a\\x7f\"", "\"a\\x9b31m\"", "\"a\\u202eb\"", "\"a\\u2066b\"", "\"a\\nb\""}) {
    EXPECT_EQ(mistakes(extra("{value: 0.5, provenance: 'prior: why'}", "true", name)), refused) << name;
  }
  for (const char* name : {"\"a\\tb\"", "|\n    one line\n", "\u6a21\u578b \u00e9"}) {
    EXPECT_EQ(mistakes(extra("{value: 0.5, provenance: 'prior: why'}", "true", name)), "accepted") << name;
  }
}

TEST_F(YamlReader, AProvenanceHasNoControlCharacters) {
  EXPECT_EQ(mistakes(extra("{value: 0.5, provenance: \"prior: \\e[31m\"}")),
            "a.yaml:4:35: 'provenance' must be plain text; remove control characters");
}

TEST_F(YamlReader, TextAndProvenanceAreUtf8) {
  EXPECT_EQ(mistakes(extra("{value: 0.5, provenance: 'prior: why'}", "true", "Jos\xe9")),
            "a.yaml:6:9: 'name' is not UTF-8; save the file as UTF-8");
  EXPECT_EQ(mistakes(extra("{value: 0.5, provenance: 'prior: Jos\xe9'}")),
            "a.yaml:4:35: 'provenance' is not UTF-8; save the file as UTF-8");
}

TEST_F(YamlReader, APathInAMessageHasItsControlCharactersEscaped) {
  std::ofstream("a\x1b[31m.yaml", std::ios::binary) << "layers: 8\n";
  try {
    YamlFile file("a\x1b[31m.yaml");
    file.root().count("levels");
    file.finish();
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, 19), "a\\x1b[31m.yaml:1:1:");
  }
}

TEST_F(YamlReader, AMapOfManyKeysIsReadKeyByKey) {
  std::string text;
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format("k{}: {}\n", i, i);
  }
  write(text);
  YamlFile file("a.yaml");
  YamlMap root = file.root();
  std::int64_t sum = 0;
  for (const std::string& key : root.keys()) {
    sum += root.count(key, {0, 20'000});
  }
  EXPECT_EQ(sum, 19'999 * 10'000);
  EXPECT_FALSE(root.has("k20000"));
  EXPECT_NO_THROW(file.finish());
}

TEST_F(YamlReader, AFieldNamesTheFileThatStatesIt) {
  const YamlFile last("last.yaml", "rate: {value: 1, error: 2}\nlink: {gpus: 4}\n");
  YamlFile base("base.yaml", "name: base\n");
  base.extend(last, {1, 1}, {});
  YamlFile file("file.yaml", "rate: {error: 3}\nnew: 1\n");
  file.extend(base, {1, 1}, {});
  YamlMap root = file.root();
  EXPECT_EQ(root.level("new"), 0);
  EXPECT_EQ(root.inherited_from("new"), "");
  EXPECT_EQ(root.level("absent"), 0);
  EXPECT_EQ(root.level("name"), 1);
  EXPECT_EQ(root.inherited_from("name"), "base.yaml");
  EXPECT_EQ(root.level("rate"), 2) << "its value counts";
  EXPECT_EQ(root.map("link").inherited_from("gpus"), "last.yaml");
  EXPECT_EQ(root.map("link").full_name("gpus"), "link.gpus");
  ASSERT_EQ(file.bases(), 2);
  EXPECT_EQ(file.base_root(1).text("name"), "base");
  EXPECT_EQ(file.base_root(1).map("link").count("gpus"), 4);
  EXPECT_FALSE(file.base_root(2).has("name"));
}

TEST_F(YamlReader, ManyKeysAreInheritedFromAnotherFile) {
  std::string text = "m: {a: 1}\n";
  for (int i = 0; i < 20'000; ++i) {
    text += fmt::format("k{}: {}\n", i, i);
  }
  write(text);
  const YamlFile base("a.yaml");
  write("m: {b: 2}\nk7: 1\n");
  YamlFile file("a.yaml");
  YamlMap root = file.root();
  EXPECT_FALSE(root.optional_value("k8"));
  file.extend(base, {1, 1}, {});
  EXPECT_EQ(root.keys().size(), 20'001U);
  EXPECT_EQ(root.count("k7"), 1);
  EXPECT_EQ(root.count("k19999"), 19'999);
  EXPECT_EQ(root.map("m").count("a"), 1);
  EXPECT_EQ(root.map("m").count("b"), 2);
  try {
    file.finish();
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    const std::string message_of_finish = error.what();
    EXPECT_EQ(message_of_finish.substr(0, message_of_finish.find('\n')),
              "a.yaml:1:1: unknown key 'k0'; did you mean 'k8'?");
    EXPECT_EQ(message_of_finish.find("unknown key 'k8';"), std::string::npos)
        << "k8 was read before the base provided it";
  }
}

TEST_F(YamlReader, ASchemaOfAnotherKindStopsImmediately) {
  write("schema: commfuse.model/1\nx: 1\n");
  YamlFile file("a.yaml");
  try {
    file.root().schema("commfuse.hardware/1");
    FAIL() << "accepted";
  } catch (const ConfigError& error) {
    EXPECT_STREQ(error.what(),
                 "a.yaml:1:9: schema is 'commfuse.model/1', but 'commfuse.hardware/1' is required here; give a file of "
                 "that kind");
  }
}

}  // namespace
}  // namespace commfuse
