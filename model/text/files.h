// SPDX-License-Identifier: Apache-2.0
// Reads untrusted files: limits the amount that is read, and the files that they may name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns true if a path is a pipe that lies in a folder, because opening it waits for a process at its other end,
/// perhaps for ever. Pipes that the program was given open, such as /dev/stdin or /dev/fd/63, do not count.
bool is_named_pipe(const std::filesystem::path& path);

/// Throws ConfigError if a file to read is a named pipe.
void refuse_named_pipe(const std::string& path);

/// Returns the text without the byte order mark that Windows editors put before it.
std::string_view without_byte_order_mark(std::string_view text);

/// Returns the whole file without such a mark, or `limit` + 1 bytes if it has more than `limit`. Throws ConfigError
/// when it cannot be read or is a named pipe.
std::string read_file(const std::string& path, std::size_t limit);

/// Returns the whole file. Throws ConfigError like read_file, and when it is larger than 1 MiB.
std::string read_small_file(const std::string& path);

/// Throws ConfigError if two of the paths name one file, even through links or another spelling.
void refuse_twice(std::span<const std::filesystem::path> files);

/// Returns true if a path leads out of a folder. Links are followed as far as they exist.
bool leaves(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace commfuse
