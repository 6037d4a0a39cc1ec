// SPDX-License-Identifier: Apache-2.0
#include "model/record/step_row.h"

#include <algorithm>

#include "model/check.h"

namespace commfuse {

namespace {

template <class T>
const T& cell(const StepRow& row, std::string_view name) {
  const StepRow::Value* value = row.find(name);
  check(value != nullptr && std::holds_alternative<T>(*value), "a row has the value under this name and type");
  return *std::get_if<T>(value);
}

}  // namespace

const StepRow::Value* StepRow::find(std::string_view name) const {
  const auto cell_place =
      std::find_if(cells.begin(), cells.end(), [&](const auto& cell) { return cell.first == name; });
  return cell_place == cells.end() ? nullptr : &cell_place->second;
}

const std::string& StepRow::text(std::string_view name) const { return cell<std::string>(*this, name); }
std::int64_t StepRow::count(std::string_view name) const { return cell<std::int64_t>(*this, name); }
double StepRow::number(std::string_view name) const { return cell<double>(*this, name); }
bool StepRow::flag(std::string_view name) const { return cell<bool>(*this, name); }

}  // namespace commfuse
