// SPDX-License-Identifier: Apache-2.0
#include "model/text/files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <string_view>
#include <system_error>

#include "model/config_error.h"
#include "model/text/plain_text.h"

namespace commfuse {

namespace {

constexpr std::size_t largest_config = std::size_t{1} << 20;
constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";

[[noreturn]] void refuse_file(const std::string& path, std::string_view message) {
  throw ConfigError(fmt::format("{}: {}", with_escapes(path), message));
}

/// Returns true if the path names a file that the program inherited open, such as "/dev/fd/5", which a shell passes for
/// <(cat file) and >(cat).
bool is_inherited_open(const std::filesystem::path& path) {
  const std::string name = path.filename().string();
  const bool is_number = !name.empty() && name.find_first_not_of("0123456789") == std::string::npos;
  const std::filesystem::path folder = path.parent_path();
  return path == "/dev/stdin" || path == "/dev/stdout" ||
         (is_number && (folder == "/dev/fd" || folder == "/proc/self/fd"));
}

}  // namespace

// A pipe without a name has no canonical path.
bool is_named_pipe(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::is_fifo(path, error) || is_inherited_open(path)) {
    return false;
  }
  return !std::filesystem::canonical(path, error).empty();
}

void refuse_named_pipe(const std::string& path) {
  if (is_named_pipe(path)) {
    refuse_file(path, "is a named pipe, which is not supported; give a file, or pass its text as /dev/stdin");
  }
}

std::string_view without_byte_order_mark(std::string_view text) {
  return text.substr(text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0);
}

// The file may be a pipe or a device, so the limit applies to the bytes read and not to the size that the file system
// reports.
std::string read_file(const std::string& path, std::size_t limit) {
  refuse_named_pipe(path);
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), &std::fclose);
  if (!file) {
    refuse_file(path, fmt::format("cannot be read ({}); check the path", std::strerror(errno)));
  }
  constexpr std::size_t step = 16384;
  std::string text;
  std::size_t size = 0;
  do {  // Reads step by step, because clearing the largest possible buffer takes longer than reading a config.
    size = text.size();
    text.resize(size + step);
    text.resize(size + std::fread(text.data() + size, 1, step, file.get()));
  } while (text.size() == size + step && text.size() <= limit + byte_order_mark.size());
  if (std::ferror(file.get()) != 0) {
    refuse_file(path, fmt::format("cannot be read ({}); check the path", std::strerror(errno)));
  }
  text.erase(0, text.size() - without_byte_order_mark(text).size());
  text.resize(std::min(text.size(), limit + 1));
  return text;
}

std::string read_small_file(const std::string& path) {
  std::string text = read_file(path, largest_config);
  if (text.size() > largest_config) {
    refuse_file(path, "the file is larger than 1 MiB; a config is a few KiB, so check the path");
  }
  return text;
}

void refuse_repeated_files(std::span<const std::filesystem::path> files) {
  std::map<std::filesystem::path, std::filesystem::path> paths;  // path as written, by the file to which it leads
  for (const std::filesystem::path& file : files) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::canonical(file, error);
    const auto [first, is_new] = paths.emplace(error ? file : target, file);
    if (!is_new) {
      refuse_file(file.string(), first->second == file ? "is given twice; remove one"
                                                       : fmt::format("is given twice, first as {}; remove one",
                                                                     with_escapes(first->second.string())));
    }
  }
}

bool leaves(const std::filesystem::path& folder, const std::filesystem::path& path) {
  std::error_code error;
  const std::filesystem::path from = std::filesystem::weakly_canonical(folder, error);
  const std::filesystem::path to = std::filesystem::weakly_canonical(path, error);
  return std::mismatch(from.begin(), from.end(), to.begin(), to.end()).first != from.end();
}

}  // namespace commfuse
