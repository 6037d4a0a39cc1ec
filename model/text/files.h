// SPDX-License-Identifier: Apache-2.0
// Reads untrusted files: limits the amount that is read, and the files that they may name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Returns true if the path is a named pipe. Opening such a pipe waits, perhaps forever, for a process at its other
/// end. Pipes that the program inherited open, such as /dev/stdin or /dev/fd/63, are not named pipes.
bool is_named_pipe(const std::filesystem::path& path);

/// Throws ConfigError if a file to read is a named pipe.
void refuse_named_pipe(const std::string& path);

/// Returns the text without the byte order mark that Windows editors put before it.
std::string_view without_byte_order_mark(std::string_view text);

/// Returns the whole file without a byte order mark, or its first `limit` + 1 bytes if it is larger than `limit`.
/// Throws ConfigError when the file cannot be read or is a named pipe.
std::string read_file(const std::string& path, std::size_t limit);

/// Returns the whole file. Throws ConfigError like read_file, and when it is larger than 1 MiB.
std::string read_small_file(const std::string& path);

/// Throws ConfigError if two of the paths lead to the same file, even through links or another spelling.
void refuse_repeated_files(std::span<const std::filesystem::path> files);

/// Returns true if a path leads out of a folder. Links are followed in the part of a path that exists.
bool leaves(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace commfuse
