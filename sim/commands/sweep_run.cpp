// SPDX-License-Identifier: Apache-2.0
#include "sim/commands/sweep_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <system_error>
#include <vector>

#include "model/config/choices.h"
#include "model/config_error.h"
#include "model/process/mpi.h"
#include "model/stderr_text.h"
#include "model/text/counted.h"
#include "model/text/shell_word.h"
#include "sim/commands/dry_run.h"
#include "sim/commands/sweep_folder.h"
#include "sim/commands/sweep_outputs.h"
#include "sim/commands/uncovered.h"
#include "sim/sweep/handout.h"
#include "sim/sweep/point_team.h"
#include "sim/sweep/progress.h"
#include "sim/sweep/simulate_points.h"

namespace commfuse::sim {

namespace {

/// The caller that receives the progress of a sweep, and its flag to stop the sweep.
struct Watched {
  Caller& caller;
  const std::atomic<bool>& stop;
};

Progress::Clock clock_from_now() {
  return [start = std::chrono::steady_clock::now()] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
  };
}

/// Returns the points of the shard that the store lacks.
std::vector<std::size_t> missing_points(const StoreIdentity& identity, const StoreWriter& store) {
  const std::vector<bool>& is_stored = store.held();
  std::vector<std::size_t> missing;
  for (std::size_t point = 0; point < identity.points; ++point) {
    if (!is_stored[point] && belongs_to(identity.shard, point, identity.points)) {
      missing.push_back(point);
    }
  }
  return missing;
}

/// Opens the store. With `force`, a new store replaces a store that has other results.
std::unique_ptr<StoreWriter> open_store(const std::filesystem::path& path, const StoreIdentity& identity, bool force) {
  if (std::error_code ignored; std::filesystem::is_symlink(path, ignored)) {
    throw ConfigError(fmt::format("{} is a symbolic link, but a sweep writes only to its own folder; remove the link",
                                  path.string()));
  }
  try {
    return std::make_unique<StoreWriter>(path, identity);
  } catch (const DamagedDatabase&) {
    throw;  // Even with --force: the intact parts of the store may still be saved.
  } catch (const ConfigError&) {
    if (!force) {
      throw;
    }
    TakenStore(path).remove();
  }
  return std::make_unique<StoreWriter>(path, identity);
}

/// Returns the number of threads per process if there are several processes: 1 by default, because they may share a
/// machine.
int threads_among_processes(const PreparedSweep& prepared) {
  const int threads = choices_of(prepared.sweep.grid.settings).threads;
  return threads > 0 ? threads : 1;
}

/// Simulates the points that the store lacks. The processes of `world`, unless it is null, share the work. Returns the
/// new counts of the store.
StoreCounts fill(const PreparedSweep& prepared, const SweepRequest& request, StoreWriter& store, World* world,
                 const Watched& watched) {
  const std::vector<std::size_t> points = missing_points(prepared.identity, store);
  Progress progress(progress_form(request.progress, watched.caller.shows_bars()), points.size(), clock_from_now(),
                    [&](const std::string& text) { watched.caller.progress(text); });
  SimulatorFactory factory(prepared.library, prepared.identity.kind);
  StoreFiller filler(store);
  const TakePoint take = [&](const StoredPoint& point) {
    filler.take(point);
    progress.finished(std::all_of(point.rows.begin(), point.rows.end(),
                                  [&](const StoreRow& row) { return is_feasible(prepared.identity.kind, row); }));
  };
  if (world != nullptr) {
    const int threads = threads_among_processes(prepared);
    if (const std::string warning = warning_of_bound_threads(threads, cores_of_this_process()); !warning.empty()) {
      watched.caller.note(warning);
    }
    lead(*world, {prepared.identity.digest, &prepared.list, &factory, threads}, points, take, &watched.stop);
  } else {
    simulate_points(prepared.list, points, factory, take,
                    {.threads = choices_of(prepared.sweep.grid.settings).threads, .stop = &watched.stop});
  }
  filler.finish();
  progress.end();
  return store.counts();
}

[[noreturn]] void fail_as_replaced(const std::filesystem::path& path) {
  throw DatabaseError(
      DatabaseError::Kind::other,
      fmt::format("{} was replaced or removed while this sweep ran; run it again in another folder", path.string()));
}

/// Finishes a sweep after filling its store: writes the result files, or notes how to continue.
Answer finish(const PreparedSweep& prepared, const SweepRequest& request, const SweepFolder& folder,
              const StoreCounts& counts, Caller& caller) {
  const StoreIdentity& identity = prepared.identity;
  StoreReader store(folder.path_of(store_name(identity.shard)), counts);
  if (store.identity() != identity) {
    fail_as_replaced(store.path());
  }
  const std::size_t stored = counts.points;
  const std::size_t expected = store.points_wanted();
  if (stored < expected) {
    return {.is_interrupted = true,
            .notes = fmt::format("interrupted; {} of {} {} stored, and the same command resumes there\n", stored,
                                 counted(expected, "point"), stored == 1 ? "is" : "are")};
  }
  if (identity.kind == StoreKind::layers) {
    if (const std::string uncovered = uncovered_in_words(prepared.list, prepared.library); !uncovered.empty()) {
      caller.note(for_stderr(uncovered));
    }
  }
  if (identity.shard.parts == 1) {
    return write_outputs(prepared.sweep, store, folder, request.format, caller);
  }
  Answer answer = text_answer(fmt::format("shard {}: {} in {}; when all shards are complete: commfuse-sim merge {}\n",
                                          name_of(identity.shard), counted(stored, "point"), store.path().string(),
                                          shell_word(request.out)));
  answer.code = counts.infeasible_rows == 0 ? exit_code::done : exit_code::failed_points;
  return answer;
}

SweepFolder prepared_folder(const PreparedSweep& prepared, const SweepRequest& request) {
  SweepFolder folder(request.out, prepared.identity.settings,
                     request.force ? FolderUse::forced_sweep : FolderUse::sweep);
  folder.begin();
  return folder;
}

/// Runs a prepared sweep and returns its answer. Calls `began` when the store is open, before the first point.
Answer run_prepared(const PreparedSweep& prepared, const SweepRequest& request, World* world, const Watched& watched,
                    const std::function<void()>& began) {
  const SweepFolder folder = prepared_folder(prepared, request);
  const std::filesystem::path path = folder.path_of(store_name(prepared.identity.shard));
  auto store = open_store(path, prepared.identity, request.force);
  began();
  const StoreCounts counts = fill(prepared, request, *store, world, watched);
  if (!store->is_in_place()) {
    fail_as_replaced(path);
  }
  store.reset();  // Closes the store, so that finish() can read it.
  Answer answer = finish(prepared, request, folder, counts, watched.caller);
  answer.files.push_back(request.out);
  return answer;
}

Answer run_here(const SweepRequest& request, const Watched& watched) {
  const PreparedSweep prepared(request);
  watched.caller.note(for_stderr(prepared.notes));
  if (request.dry_run) {
    return text_answer(dry_run_in_words(prepared));
  }
  return run_prepared(prepared, request, nullptr, watched, [] {});
}

/// Runs the first of several processes. Dismisses the other processes before it throws.
Answer run_leader(const SweepRequest& request, World& world, const Watched& watched) {
  bool has_begun = false;
  try {
    const PreparedSweep prepared(request);
    watched.caller.note(for_stderr(prepared.notes));
    return run_prepared(prepared, request, &world, watched, [&has_begun] { has_begun = true; });
  } catch (...) {
    if (!has_begun) {
      dismiss(world);
    }
    world.close();
    throw;
  }
}

Answer run_follower(const SweepRequest& request, World& world, const Watched& watched) {
  std::optional<PreparedSweep> prepared;
  std::optional<SimulatorFactory> factory;
  follow(
      world,
      [&] {
        prepared.emplace(request);
        factory.emplace(prepared->library, prepared->identity.kind);
        return SharedSweep{prepared->identity.digest, &prepared->list, &*factory, threads_among_processes(*prepared)};
      },
      &watched.stop);
  world.close();
  return {};
}

Answer run_among_processes(const SweepRequest& request, const Started& started, const Watched& watched) {
  const std::unique_ptr<World> world = open_world(started);
  if (started.process != 0) {
    return run_follower(request, *world, watched);
  }
  Answer answer = run_leader(request, *world, watched);
  world->close();
  return answer;
}

}  // namespace

std::string store_name(const Shard& shard) {
  return shard.parts == 1 ? store_file : fmt::format("shard-{}.sqlite", name_of(shard));
}

Answer run_sweep(const SweepRequest& request, Caller& caller) {
  const Watched watched{caller, caller.stop()};
  require_word("--progress", request.progress, progress_words, "format");
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no thread sets environment variables
  const auto started = started_by_mpi([](const char* name) { return std::getenv(name); });
  const bool is_whole = request.shard == "1/1";
  if (started && started->processes > 1 && is_whole) {
    if (!request.dry_run) {
      return run_among_processes(request, *started, watched);
    }
    if (started->process != 0) {
      return {};  // Process 0 describes the sweep, once for all processes.
    }
  }
  return run_here(request, watched);
}

}  // namespace commfuse::sim
