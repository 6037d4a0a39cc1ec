// SPDX-License-Identifier: Apache-2.0
// Checks words of the sources: comments that begin with a fragment, meaningless names, and names of tests. All C++
// sources below the rooms of the root are read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace commfuse::house {

/// Returns, as `path:line: sentence`, every comment that begins with a fragment ("Of one rank.", "What a transfer
/// costs."), in folders where more than 0.3% of the comments begin with one. Lines of a comment block count as one
/// comment; licence lines, NOLINT and the ends of namespaces do not count.
std::vector<std::string> comment_fragments(const std::filesystem::path& root);

/// Returns, as `path:line: sentence`, every name that does not say what it holds, such as `found`. Names after '.',
/// '->' and '::' do not count, because only their declaration can be renamed; names in lines of the allow-list may
/// stay.
std::vector<std::string> retired_names(const std::filesystem::path& root);

/// Returns, as `path:line: sentence`, every test whose name is not CamelCase of at most 60 characters, the length that
/// reports of test runs show in full.
std::vector<std::string> odd_test_names(const std::filesystem::path& root);

}  // namespace commfuse::house
