// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/prepared_sweep.h"

#include <fmt/format.h>

#include <cstdlib>
#include <utility>

#include "model/config/catalogue.h"
#include "model/config_error.h"
#include "model/record/model_version.h"
#include "sim/commands/sweep_outputs.h"
#include "sim/point/unused_variables.h"
#include "sim/sweep/sweep_digest.h"

namespace commfuse::sim {

namespace {

Sweep sweep_of(const SweepRequest& request) {
  Resolver resolver;
  read_files(request.settings, resolver);
  Sweep sweep = read_sweep(file_or_known(Catalogue::sweeps, request.file), resolver);
  read_above_files(request.settings, resolver);
  sweep.grid.axes = merged_axes(std::move(sweep.grid.axes), request.settings.axes, resolver);
  sweep.grid.settings = resolver.finish();
  return sweep;
}

}  // namespace

PreparedSweep::PreparedSweep(const SweepRequest& request)
    : sweep(sweep_of(request)),
      notes(ignore_unused_variables(sweep.grid)),
      library(library_of(sweep.grid)),
      list(sweep.grid, max_sweep_points) {
  notes += notes_on_unused_draws(sweep.grid) + notes_on_unused_methods(sweep.grid, library);
  if (list.size() == 0) {
    throw ConfigError(fmt::format("{}: no point meets the constraints; loosen one or widen an axis", request.file));
  }
  identity.kind = has_whole_models(sweep.grid) ? StoreKind::models : StoreKind::layers;
  identity.settings = to_yaml(sweep);
  identity.digest = digest_of(identity.settings, sweep.grid);
  identity.model_version = model_version;
  identity.points = list.size();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets environment variables
  identity.shard = parse_shard(request.shard, [](const char* name) { return std::getenv(name); });
  require_format(identity.kind, request.format);
}

}  // namespace commfuse::sim
