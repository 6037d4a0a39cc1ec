// SPDX-License-Identifier: Apache-2.0
// A folder for the files of a test.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <string>

namespace commfuse {

/// An empty folder that is the working directory during the object's lifetime, so that messages contain just `a.yaml`.
/// Requires a running test.
class OwnFolder {
 public:
  OwnFolder() {
    const ::testing::TestInfo& test = *::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = "commfuse-" + std::to_string(getpid()) + "-" + test.test_suite_name() + "-" + test.name();
    std::ranges::replace(name, '/', '-');  // names of tests with parameters contain slashes
    folder_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::create_directories(folder_);
    std::filesystem::current_path(folder_);
  }
  ~OwnFolder() {
    std::filesystem::current_path(before_);
    std::filesystem::remove_all(folder_);
  }
  OwnFolder(const OwnFolder&) = delete;
  OwnFolder& operator=(const OwnFolder&) = delete;

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
  std::filesystem::path folder_;
};

}  // namespace commfuse
