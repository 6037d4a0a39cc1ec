// SPDX-License-Identifier: Apache-2.0
// Files from strangers: how much of them is read, and which other files they may name.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace commfuse {

/// Whether a path is a pipe that lies in a folder: whoever opens it waits until somebody comes to its other end, which
/// may be never. Pipes that the program was given open, as /dev/stdin or /dev/fd/63, are none.
bool is_named_pipe(const std::filesystem::path& path);

/// Throws ConfigError where a file to read is one.
void refuse_named_pipe(const std::string& path);

/// A text without the mark of UTF-8 that editors of Windows put before it.
std::string_view without_byte_order_mark(std::string_view text);

/// The whole file without such a mark, or where it has more than `most` bytes, `most` + 1 of them. Throws ConfigError
/// when it cannot be read or is a named pipe.
std::string read_file(const std::string& path, std::size_t most);

/// The whole file. Throws ConfigError as read_file does, and when it is larger than 1 MiB.
std::string read_small_file(const std::string& path);

/// Throws ConfigError where two of some paths are of one file, by links or another spelling too.
void refuse_twice(std::span<const std::filesystem::path> files);

/// Whether a path leads out of a folder. Links are followed as far as they exist.
bool leaves(const std::filesystem::path& folder, const std::filesystem::path& path);

}  // namespace commfuse
