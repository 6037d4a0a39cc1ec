// SPDX-License-Identifier: Apache-2.0
// Files of /proc, /sys and /dev below a root folder, which may be another one than "/": a container sees its host's
// below a mount, and tests plant a tree.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace commfuse::validate {

/// Paths are relative to the root ("proc/cmdline"). Nothing throws: what cannot be read is missing. No call waits.
class NodeFiles {
 public:
  explicit NodeFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// Returns at most the first `most_bytes` bytes.
  [[nodiscard]] std::optional<std::string> bytes(const std::filesystem::path& path, std::size_t most_bytes) const;
  /// The kernel's log since it was cleared (dmesg --clear), at most `most_bytes` of it. Nothing if it is not
  /// readable.
  [[nodiscard]] std::optional<std::string> kernel_log(std::size_t most_bytes) const;
  /// At most 64 KiB, without blanks and line ends around it.
  [[nodiscard]] std::optional<std::string> text(const std::filesystem::path& path) const;
  /// Names in a folder, sorted; none if it is not a folder.
  [[nodiscard]] std::vector<std::string> names(const std::filesystem::path& path) const;
  [[nodiscard]] bool exists(const std::filesystem::path& path) const;
  /// The last name of where a link leads ("vfio-pci" of .../driver).
  [[nodiscard]] std::optional<std::string> link_name(const std::filesystem::path& path) const;
  /// The path with its links followed, relative to the root; the path itself where that fails or leaves the root.
  [[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path) const;

 private:
  std::filesystem::path root_;
};

}  // namespace commfuse::validate
