// SPDX-License-Identifier: Apache-2.0
#include "model/config/renames.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <tuple>
#include <utility>

#include "model/build_info.h"

namespace commfuse {

namespace {

/// Former names, newest first. A test requires that each leads to an existing name; `./dev release --check` requires
/// that no alias outlives its release.
constexpr std::array<Rename, 0> table{};

/// Returns {0, 1} for "0.1.0".
std::pair<int, int> minor_release(std::string_view version) {
  std::pair<int, int> release{0, 0};
  const std::size_t dot = version.find('.');
  std::from_chars(version.data(), version.data() + version.size(), release.first);
  if (dot != std::string_view::npos) {
    std::from_chars(version.data() + dot + 1, version.data() + version.size(), release.second);
  }
  return release;
}

const Rename* find_in(std::span<const Rename> renames, std::string_view before) {
  const auto rename = std::ranges::find(renames, before, &Rename::before);
  return rename == renames.end() ? nullptr : &*rename;
}

}  // namespace

Renames::Renames(std::span<const Rename> table, std::string_view version) : table_(table) {
  std::tie(major_, minor_) = minor_release(version);
}

FormerName Renames::former(const Rename& rename, std::string_view typed, std::string_view now) const {
  const bool is_accepted = major_ == rename.major && minor_ <= rename.minor;
  std::string sentence =
      is_accepted ? fmt::format("{} is now called {}; the former name stops working in {}.{}", typed, now, rename.major,
                                rename.minor + 1)
                  : fmt::format("{} was renamed to {} in {}.{}; write {}", typed, now, rename.major, rename.minor, now);
  return {rename.now, is_accepted, std::move(sentence)};
}

std::optional<FormerName> Renames::key(std::string_view typed) const {
  const Rename* const rename = typed.starts_with("--") ? nullptr : find_in(table_, typed);
  return rename == nullptr ? std::nullopt : std::optional(former(*rename, typed, rename->now));
}

std::optional<FormerName> Renames::flag(std::string_view typed) const {
  const Rename* const rename = typed.starts_with("--") ? find_in(table_, typed) : nullptr;
  return rename == nullptr ? std::nullopt : std::optional(former(*rename, typed, rename->now));
}

std::optional<FormerName> Renames::variable(std::string_view typed) const {
  for (const Rename& rename : table_) {
    if (!rename.before.starts_with("--") && variable_of_key(rename.before) == typed) {
      return former(rename, typed, variable_of_key(rename.now));
    }
  }
  return std::nullopt;
}

const Renames& program_renames() {
  static const Renames renames(table, build_info().version);
  return renames;
}

std::string variable_of_key(std::string_view key) {
  std::string name = "COMMFUSE_";
  for (const char c : key) {
    name += c == '.' ? '_' : (c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c);
  }
  return name;
}

}  // namespace commfuse
