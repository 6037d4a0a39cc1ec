// SPDX-License-Identifier: Apache-2.0
// Files of /proc, /sys and /dev below a root folder. The root need not be "/": a container sees the files of its host
// below a mount point, and tests create a tree.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace commfuse::validate {

/// Paths are relative to the root ("proc/cmdline"). No function throws: files that cannot be read count as missing. No
/// call waits.
class NodeFiles {
 public:
  explicit NodeFiles(std::filesystem::path root = "/") : root_(std::move(root)) {}

  /// Returns at most the first `max_bytes` bytes.
  [[nodiscard]] std::optional<std::string> bytes(const std::filesystem::path& path, std::size_t max_bytes) const;
  /// Returns up to `max_bytes` of the kernel's log since it was cleared (dmesg --clear); nothing if the log is not
  /// readable.
  [[nodiscard]] std::optional<std::string> kernel_log(std::size_t max_bytes) const;
  /// Returns at most 64 KiB, without surrounding blanks and line ends.
  [[nodiscard]] std::optional<std::string> text(const std::filesystem::path& path) const;
  /// Returns the names in a folder, sorted; none if it is not a folder.
  [[nodiscard]] std::vector<std::string> names(const std::filesystem::path& path) const;
  [[nodiscard]] bool exists(const std::filesystem::path& path) const;
  /// Returns the last component of a link's target ("vfio-pci" for .../driver).
  [[nodiscard]] std::optional<std::string> link_name(const std::filesystem::path& path) const;
  /// Returns the path with its links resolved, relative to the root; the path itself if that fails or leaves the root.
  [[nodiscard]] std::filesystem::path resolved(const std::filesystem::path& path) const;

 private:
  std::filesystem::path root_;
};

}  // namespace commfuse::validate
