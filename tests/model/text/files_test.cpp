// SPDX-License-Identifier: Apache-2.0
#include "model/text/files.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "model/config_error.h"
#include "tests/own_folder.h"
#include "tests/refusal.h"

namespace commfuse {
namespace {

std::string file_refusal(const std::string& path) {
  return test::refusal_of([&] { read_small_file(path); });
}

TEST(RefuseTwice, RecognizesAFileByAnyPath) {
  const OwnFolder folder;
  std::ofstream("a.csv") << "a\n";
  std::ofstream("b.csv") << "a\n";
  std::filesystem::create_symlink("a.csv", "link.csv");
  const auto refusal_of = [](const std::vector<std::filesystem::path>& files) -> std::string {
    try {
      refuse_repeated_files(files);
    } catch (const ConfigError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal_of({"a.csv", "b.csv", "none.csv"}), "accepted");
  EXPECT_EQ(refusal_of({"a.csv", "b.csv", "a.csv"}), "a.csv: is given twice; remove one");
  EXPECT_EQ(refusal_of({"a.csv", "./a.csv"}), "./a.csv: is given twice, first as a.csv; remove one");
  EXPECT_EQ(refusal_of({"link.csv", "a.csv"}), "a.csv: is given twice, first as link.csv; remove one");
  EXPECT_EQ(refusal_of({"none.csv", "none.csv"}), "none.csv: is given twice; remove one");
}

TEST(ReadSmallFile, ANamedPipeIsNeverOpened) {
  const OwnFolder folder;
  ASSERT_EQ(mkfifo("pipe.yaml", 0600), 0);
  std::filesystem::create_symlink("pipe.yaml", "link.yaml");
  for (const char* path : {"pipe.yaml", "./pipe.yaml", "link.yaml", "/proc/self/cwd/pipe.yaml"}) {
    EXPECT_EQ(
        file_refusal(path),
        std::string(path) + ": is a named pipe, which is not supported; give a file, or pass its text as /dev/stdin");
  }
}

TEST(ReadSmallFile, AnOpenPipeIsRead) {
  for (const std::string_view folder : {"/dev/fd/", "/proc/self/fd/"}) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    EXPECT_EQ(write(ends[1], "seq: 8K\n", 8), 8);
    close(ends[1]);
    EXPECT_EQ(read_small_file(std::string(folder) + std::to_string(ends[0])), "seq: 8K\n");
    close(ends[0]);
  }
}

TEST(ReadSmallFile, ALinkToAnOpenPipeIsRead) {
  const OwnFolder folder;
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe(ends.data()), 0);
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(ends[0]), "link.yaml");
  close(ends[1]);
  EXPECT_EQ(read_small_file("link.yaml"), "");
  close(ends[0]);
}

TEST(ReadSmallFile, AnEndlessDeviceIsTooLarge) {
  EXPECT_EQ(file_refusal("/dev/zero"),
            "/dev/zero: the file is larger than 1 MiB; a config is a few KiB, so check the path");
  EXPECT_EQ(read_small_file("/dev/null"), "");
}

TEST(ReadSmallFile, SkipsAByteOrderMark) {
  const OwnFolder folder;
  std::ofstream("marked.txt") << "\xef\xbb\xbfGPU0";
  EXPECT_EQ(read_small_file("marked.txt"), "GPU0");
}

TEST(ReadFile, AMarkedFileBeyondTheLimitIsNotTakenForAWholeOne) {
  const OwnFolder folder;
  std::ofstream("long.txt") << "\xef\xbb\xbf" << std::string(100, 'a');
  EXPECT_EQ(read_file("long.txt", 100), std::string(100, 'a'));
  EXPECT_EQ(read_file("long.txt", 99), std::string(100, 'a'));  // one byte more than the limit
  EXPECT_EQ(read_file("long.txt", 98), std::string(99, 'a'));
  std::ofstream("large.yaml") << "\xef\xbb\xbf" << std::string((std::size_t{1} << 20) + 1, '#');
  EXPECT_EQ(file_refusal("large.yaml"),
            "large.yaml: the file is larger than 1 MiB; a config is a few KiB, so check the path");
}

TEST(ReadSmallFile, APathInAMessageIsEscaped) {
  EXPECT_EQ(file_refusal("a\x1b[31m"), "a\\x1b[31m: cannot be read (No such file or directory); check the path");
}

}  // namespace
}  // namespace commfuse
