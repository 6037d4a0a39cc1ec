// SPDX-License-Identifier: Apache-2.0
#include "sim/point/hand_written.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "model/config_error.h"
#include "model/program/names.h"
#include "model/program/work.h"
#include "model/strategies/scope.h"
#include "model/strategies/strategies.h"
#include "model/text/quantity.h"
#include "model/text/suggest.h"
#include "sim/point/grid.h"
#include "sim/point/predict.h"

namespace commfuse {

namespace {

constexpr double max_elements = 0x1p40;  // per matrix, so that bytes and FLOPs stay within 64 bits

/// Returns the dimensions whose sizes come from the model and the load.
std::vector<std::string_view> model_dimensions() {
  std::vector<std::string_view> names;
  for (const Quantity& quantity : quantities_of(Transformer{}, Load{})) {
    names.push_back(quantity.dimension);
  }
  return names;
}

bool is_of_model(std::string_view dimension) {
  const std::vector<std::string_view> names = model_dimensions();
  return std::find(names.begin(), names.end(), dimension) != names.end();
}

/// Calls visit(shape) for every shape of the schedule's ops and of its unfused work.
template <class Visit>
void for_each_shape(const Program& program, const Visit& visit) {
  for (const auto* shapes : {&program.shapes, &program.unfused}) {
    for (const Shape& shape : *shapes) {
      visit(shape);
    }
  }
}

OwnSizes needed_sizes(const ScheduleFile& file, const OwnSizes& sizes) {
  const std::vector<std::string_view> known = model_dimensions();
  OwnSizes needed;
  for (const Dimension& dimension : file.program.dimensions) {
    const auto own_size = sizes.find(dimension.name);
    if (own_size != sizes.end()) {
      needed.insert(*own_size);
    } else if (!is_of_model(dimension.name)) {
      const std::optional<std::string> meant = nearest(dimension.name, known);
      throw ConfigError(fmt::format("{}: dimension '{}' has no size: a model defines {}; {}add --size {}=ELEMENTS",
                                    file.name(), dimension.name, fmt::join(known, ", "),
                                    meant ? fmt::format("call it '{}' in the file, or ", *meant) : "", dimension.name));
    }
  }
  return needed;
}

DType dtype_of_gemms(const ScheduleFile& file) {
  const std::vector<DType> dtypes = product_dtypes(file.program);
  if (dtypes.size() > 1) {
    throw ConfigError(fmt::format("{} has GEMMs in {} and {}, but a result has one dtype; use one dtype for all",
                                  file.name(), name_of(dtypes[0]), name_of(dtypes[1])));
  }
  const bool has_buffers = !file.program.buffers.empty();
  return !dtypes.empty() ? dtypes.front() : has_buffers ? file.program.buffers.front().dtype : DType::bf16;
}

void require_whole_queries(const ScheduleFile& file) {
  for_each_shape(file.program, [&](const Shape& shape) {
    const auto* attention = std::get_if<AttentionShape>(&shape);
    if (attention != nullptr && attention->queries != attention->keys) {
      throw ConfigError(fmt::format(
          "{}: attention is priced for all queries together; use as many query rows as key rows", file.name()));
    }
  });
}

/// Finds the scope whose generated schedules do the same work on the same number of ranks.
void find_scope(HandWritten& schedule) {
  const Mesh mesh{{{"tp", schedule.ranks()}}};
  const auto has_same_work = [&](Scope scope, bool gated) {
    return work_of(generate(operation_of(scope, gated), mesh, 0, serial_strategy, {})) == schedule.work;
  };
  for (const Scope scope : all_scopes) {
    const bool matches_gated = has_same_work(scope, true);
    const bool matches_ungated = has_same_work(scope, false);
    if (matches_gated || matches_ungated) {
      schedule.scope = scope;
      schedule.gated_mlp = matches_gated && matches_ungated ? std::nullopt : std::optional(matches_gated);
      return;
    }
  }
}

// --- agreement with settings ---------------------------------------------------------------------------------------

/// The values that the user chose for a setting; empty if it was left open.
struct Given {
  std::vector<std::string> values;
  Origin origin;
};

Given given_in(const Grid& grid, const Field& field) {
  Given given;
  for (const GridAxis& axis : grid.axes) {
    const auto column = std::find(axis.fields.begin(), axis.fields.end(), &field) - axis.fields.begin();
    for (const std::vector<Setting>& step : axis.steps) {
      if (static_cast<std::size_t>(column) < step.size()) {
        given.values.push_back(step[static_cast<std::size_t>(column)].text);
        given.origin = axis.origin;
      }
    }
  }
  const Setting& setting = grid.settings.at(field);
  if (given.values.empty() && setting.origin.source != Source::preset) {
    given = {{setting.text}, setting.origin};
  }
  return given;
}

bool means_the_same(const Field& field, const std::string& a, const std::string& b) {
  return field.type == FieldType::count ? parse_count(a) == parse_count(b) : a == b;
}

using TextOf = std::function<std::string(const HandWritten&)>;

void require_agreement(const Field& field, const Given& given, std::span<const HandWritten> files,
                       const TextOf& text_of_file) {
  for (const HandWritten& file : files) {
    const std::string required_text = text_of_file(file);
    const auto has_required_text = [&](const std::string& value) {
      return means_the_same(field, value, required_text);
    };
    if (std::none_of(given.values.begin(), given.values.end(), has_required_text)) {
      throw ConfigError(fmt::format("{} fixes {} at {}, but {} requests {}; set {} to {} or remove the setting",
                                    file.file, field.key, required_text, given.origin.where,
                                    fmt::join(given.values, ", "), field.key, required_text));
    }
  }
}

void agree(Grid& grid, std::string_view key, std::span<const HandWritten> files, const TextOf& text_of_file) {
  const Field& field = *find_field(key);
  const Given given = given_in(grid, field);
  if (!given.values.empty()) {
    require_agreement(field, given, files, text_of_file);
    return;
  }
  GridAxis axis{.fields = {&field}, .steps = {}, .origin = {Source::file, files.front().file}};
  for (const HandWritten& file : files) {
    const std::string required_text = text_of_file(file);
    const auto has_required_text = [&](const std::vector<Setting>& step) { return step.front().text == required_text; };
    if (std::none_of(axis.steps.begin(), axis.steps.end(), has_required_text)) {
      axis.steps.push_back({Setting{required_text, {Source::file, file.file}}});
    }
  }
  if (axis.steps.size() == 1) {
    grid.settings.put(field, axis.steps.front().front());
  } else {
    grid.axes.insert(grid.axes.begin(), std::move(axis));
  }
}

/// Throws ConfigError if a schedule whose work belongs to no scope is compared with schedules that do other work.
void require_comparable(const Grid& grid, std::span<const HandWritten> files, bool generated) {
  const auto own_work_file =
      std::find_if(files.begin(), files.end(), [](const HandWritten& file) { return !file.scope; });
  if (own_work_file == files.end()) {
    return;
  }
  for (const std::string_view key : {"scope", "as"}) {
    const Given given = given_in(grid, *find_field(key));
    const bool requests_other_work = std::any_of(given.values.begin(), given.values.end(), [](const auto& value) {
      return value != "none";  // `as: none` requests no implementation
    });
    if (requests_other_work) {
      throw ConfigError(fmt::format("{} computes none of the built-in scopes, but {} requests {}; remove this setting",
                                    own_work_file->file, given.origin.where, fmt::join(given.values, ", ")));
    }
  }
  if (generated) {
    throw ConfigError(fmt::format(
        "{} computes none of the built-in scopes, so no strategy can be compared with it; remove the strategy",
        own_work_file->file));
  }
  for (const HandWritten& file : files) {
    if (file.work != own_work_file->work) {
      throw ConfigError(fmt::format("{} and {} compute different things and cannot be compared; run them separately",
                                    own_work_file->file, file.file));
    }
  }
}

// --- sizes ---------------------------------------------------------------------------------------------------------

void require_countable(const HandWritten& schedule, const Sizes& sizes) {
  const auto require = [&](Extent rows, Extent columns) {
    const double elements = static_cast<double>(sizes.elements(rows)) * static_cast<double>(sizes.elements(columns));
    if (elements > max_elements) {
      const auto& dimensions = schedule.program().dimensions;
      throw ConfigError(fmt::format("{}: {}*{} times {}*{} is {:.3g} elements, more than {:.3g}; choose smaller sizes",
                                    schedule.file, dimensions[position(rows.dimension)].name, rows.blocks,
                                    dimensions[position(columns.dimension)].name, columns.blocks, elements,
                                    max_elements));
    }
  };
  for (const Buffer& buffer : schedule.program().buffers) {
    require(buffer.rows, buffer.columns);
  }
  for_each_shape(schedule.program(), [&](const Shape& shape) {
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      require(gemm->m, gemm->k);
      require(gemm->k, gemm->n);
      require(gemm->m, gemm->n);
    } else if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
      require(attention->keys, attention->qkv);
    } else if (const auto* elementwise = std::get_if<ElementwiseShape>(&shape)) {
      require(elementwise->rows, elementwise->columns);
    } else if (const auto* exchange = std::get_if<ExchangeShape>(&shape)) {
      require(exchange->rows, exchange->columns);
    } else {
      const auto& collective = std::get<CollectiveShape>(shape);
      require(collective.rows, collective.columns);
    }
  });
}

void require_whole_heads(const HandWritten& schedule, const Sizes& sizes) {
  for_each_shape(schedule.program(), [&](const Shape& shape) {
    const auto* attention = std::get_if<AttentionShape>(&shape);
    if (attention == nullptr) {
      return;
    }
    const std::int64_t qkv = sizes.block[position(attention->qkv.dimension)];
    const std::int64_t out = sizes.block[position(attention->columns.dimension)];
    const std::int64_t head = sizes.block[position(attention->head)];
    const std::int64_t kv = (qkv - out) / 2;
    if (out % head != 0 || kv < head || kv % head != 0 || out % kv != 0 || qkv != out + 2 * kv) {
      throw ConfigError(
          fmt::format("{}: a block of q, k and v has {} columns, {} of them queries, which would split heads of {} "
                      "columns; split heads over fewer ranks",
                      schedule.file, qkv, out, head));
    }
  });
}

}  // namespace

HandWritten hand_written(ScheduleFile file, const OwnSizes& sizes) {
  HandWritten schedule{.file = file.name(), .sizes = needed_sizes(file, sizes), .dtype = dtype_of_gemms(file)};
  require_whole_queries(file);
  schedule.work = work_of(file.program);
  schedule.structure = structure_of(std::move(file.program));
  find_scope(schedule);
  return schedule;
}

void require_needed(const OwnSizes& sizes, std::span<const ScheduleFile> files) {
  std::vector<std::string_view> names;
  for (const ScheduleFile& file : files) {
    for (const Dimension& dimension : file.program.dimensions) {
      if (!is_of_model(dimension.name)) {
        names.push_back(dimension.name);
      }
    }
  }
  for (const auto& [name, elements] : sizes) {
    if (is_of_model(name)) {
      throw ConfigError(fmt::format("--size: the model defines the size of '{0}'; remove '{0}' from --size", name));
    }
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      throw ConfigError(
          fmt::format("--size: unknown dimension {}; {}", in_quotes(name),
                      names.empty() ? "remove it" : remedy_for(name, names, "dimensions without a size")));
    }
  }
}

void fit(Grid& grid, std::span<const HandWritten> files, bool generated) {
  if (files.empty()) {
    return;
  }
  require_comparable(grid, files, generated);
  agree(grid, "ranks", files, [](const HandWritten& file) { return std::to_string(file.ranks()); });
  agree(grid, "dtype", files, [](const HandWritten& file) { return std::string{name_of(file.dtype)}; });
  if (files.front().scope) {
    agree(grid, "scope", files, [](const HandWritten& file) { return std::string{name_of(*file.scope)}; });
  }
}

bool belongs(const HandWritten& schedule, const Point& point) {
  return schedule.ranks() == point.ranks && schedule.dtype == point.dtype &&
         (!schedule.scope || *schedule.scope == point.scope);
}

Sizes sizes_at(const HandWritten& schedule, const Point& point) {
  if (schedule.gated_mlp && *schedule.gated_mlp != point.model.gated_mlp) {
    throw ConfigError(fmt::format("{} is for {} MLP, which {} does not have; choose another model", schedule.file,
                                  *schedule.gated_mlp ? "a gated" : "an ungated", point.model.name));
  }
  std::vector<Quantity> quantities = quantities_of(point.model, point.load(), point.ranks);
  for (const auto& [name, elements] : schedule.sizes) {
    quantities.push_back({name, elements});
  }
  Sizes sizes = bind_sizes(schedule.program(), quantities);
  if (schedule.scope) {
    require_divisible(*schedule.scope, point.model, point.load(), point.ranks);
  }
  require_countable(schedule, sizes);
  require_whole_heads(schedule, sizes);
  return sizes;
}

Flops flops_of(const HandWritten& schedule, const Point& point, const Sizes& sizes) {
  if (schedule.scope) {
    return flops_of(*schedule.scope, point.model, point.load());
  }
  const auto elements = [&](Extent extent) { return static_cast<double>(sizes.elements(extent)); };
  Flops flops_per_rank;
  for (const Shape& shape : schedule.program().unfused) {
    if (const auto* gemm = std::get_if<GemmShape>(&shape)) {
      flops_per_rank += Flops{2.0 * elements(gemm->m) * elements(gemm->n) * elements(gemm->k)};
    } else if (const auto* attention = std::get_if<AttentionShape>(&shape)) {
      const double seq = elements(attention->keys) / static_cast<double>(sizes.block[position(attention->batch)]);
      const double full = 4.0 * elements(attention->queries) * seq * elements(attention->columns);
      flops_per_rank += Flops{attention->causal ? full / 2.0 : full};
    }
  }
  return static_cast<double>(schedule.ranks()) * flops_per_rank;
}

}  // namespace commfuse
