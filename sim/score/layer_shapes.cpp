// SPDX-License-Identifier: Apache-2.0
// Scores tables of the GEMMs and memory-bound ops of a framework layer, timed on one GPU that emulates a
// tensor-parallel rank.
#include <fmt/format.h>

#include <array>
#include <map>
#include <optional>
#include <string>

#include "model/config_error.h"
#include "model/cost/gemm.h"
#include "model/fit/holdout.h"
#include "model/text/plain_text.h"
#include "sim/score/checked_interval.h"
#include "sim/score/kinds.h"
#include "sim/score/layer_columns.h"
#include "sim/score/machine_column.h"

namespace commfuse::score {

namespace {

/// GEMMs of a framework whose library was not yet tuned for the accelerator: every started wave takes the time of a
/// full wave, and k loops reach only a share of the rate that later libraries reach.
struct EarlyLibrary {
  std::string_view framework;  ///< The framework's name in the comments of tables.
  std::string_view machine;
  double loop_share = 1.0;
  std::int64_t fitted_n = 0;  ///< Rows with this n and k determined `loop_share`; they are not scored.
  std::int64_t fitted_k = 0;
};
constexpr EarlyLibrary cublas_of_sarathi{
    .framework = "sarathi-serve", .machine = "h100-sxm", .loop_share = 0.76, .fitted_n = 22016, .fitted_k = 4096};

Accelerator with_early_library(Accelerator accelerator, const EarlyLibrary& library) {
  for (std::optional<MatrixUnit>& unit : accelerator.matrix_units) {
    if (unit) {
      unit->gemm.loop_efficiency.value *= library.loop_share;
      unit->gemm.wave_quantum.value = 1.0;
    }
  }
  return accelerator;
}

std::string remark_on(const EarlyLibrary& library) {
  return fmt::format(
      "{} on {} uses a GEMM library of 2023: partial waves cost as much as full waves and its loops run at {} of "
      "today's rate, fitted to the rows of {} x {} (n x k), which are not scored.",
      library.framework, library.machine, library.loop_share, library.fitted_n, library.fitted_k);
}

/// Scores the rows of one table.
class Layers {
 public:
  Layers(const Table& table, Context& context, Tally& tally)
      : columns_(table),
        widths_(layer_widths_in(table)),
        dtype_(dtype_of_layer(table)),
        is_early_(table.comments_say(cublas_of_sarathi.framework)),
        machines_(context.machines),
        context_(context),
        tally_(tally) {}

  void score(Row& row) {
    const double measured = row.amount(columns_.time);
    const std::int64_t m = row.count(columns_.m);
    const std::int64_t tp = row.count(columns_.tp);
    const std::string_view op = row.text(columns_.op);
    const std::string_view hw = row.text(columns_.hw);
    if (row.has(columns_.n) || row.has(columns_.k)) {
      const GemmSize size{.m = m, .n = row.count(columns_.n), .k = row.count(columns_.k), .dtype = dtype_};
      const bool held_out = is_held_out(gemm_group("gemm_layer", hw, name_of(dtype_), size));
      if (const Machine* machine = machine_of(row, hw, held_out)) {
        score_gemm(row, *machine, held_out, size, measured);
      }
      return;
    }
    const auto widths_of_degree = widths_.find(tp);
    const std::optional<FrameworkKernelSize> size =
        widths_of_degree == widths_.end() ? std::nullopt : framework_kernel_of(op, m, widths_of_degree->second, dtype_);
    const bool held_out = size && is_held_out(framework_kernel_group(hw, op, size->width));
    const Machine* machine = machine_of(row, hw, held_out);
    if (machine != nullptr && !size) {
      tally_.skip(fmt::format("the table does not state what {} moves", with_escapes(op)));
    } else if (machine != nullptr) {
      constexpr std::string_view part = "memory-bound ops";
      const auto price = [&](const Machine& other) {
        return to_microseconds(framework_kernel_time(other.accelerator, *size));
      };
      const Compared time{measured, price(*machine), std::span(&part, 1)};
      if (tally_.score(row, *machine, held_out, {time})) {
        check_interval(*machine,
                       {.shape = shape_of(PricedKind::framework_kernel, size->traffic),
                        .kind = "memory-bound kernels",
                        .key = {static_cast<std::int64_t>(size->kernel), size->width},
                        .held_out = held_out},
                       time, context_, tally_, price);
      }
    }
  }

 private:
  /// Returns the machine of a row to score. Otherwise counts the row and returns null.
  const Machine* machine_of(const Row& row, std::string_view hw, bool held_out) {
    if (!tally_.takes(row, held_out)) {
      return nullptr;
    }
    const FoundMachine& match = machines_.of(hw);
    if (match.machine == nullptr) {
      tally_.skip(match.why_not);
    }
    return match.machine;
  }

  void score_gemm(Row& row, const Machine& machine, bool held_out, const GemmSize& size, double measured) {
    constexpr std::string_view part = "products";
    const bool is_early = is_early_ && machine.name == cublas_of_sarathi.machine;
    if (!machine.accelerator.supports(dtype_)) {
      tally_.skip(fmt::format("{} does not support GEMMs in {}", machine.name, name_of(dtype_)));
    } else if (is_early && size.n == cublas_of_sarathi.fitted_n && size.k == cublas_of_sarathi.fitted_k) {
      tally_.skip("used to fit the rate of the framework's library");
    } else {
      const Accelerator& accelerator = is_early ? early_accelerator(machine) : machine.accelerator;
      Duration price{};
      try {
        price = estimate_gemm(accelerator, size, accelerator.sms).time;
      } catch (const ConfigError& error) {  // the time exceeds longest_op_seconds
        return tally_.skip(error.what());
      }
      const Compared time{measured, to_microseconds(price), std::span(&part, 1)};
      // Intervals of GEMMs in an early library are not checked, because no run prices such GEMMs.
      if (tally_.score(row, machine, held_out, {time}) && !is_early) {
        check_interval(
            machine,
            {.shape = shape_of(size), .kind = gemm_kind(dtype_), .key = {size.n, size.k}, .held_out = held_out}, time,
            context_, tally_, [&](const Machine& other) {
              return to_microseconds(estimate_gemm(other.accelerator, size, other.accelerator.sms).time);
            });
      }
    }
  }

  const Accelerator& early_accelerator(const Machine& machine) {
    if (!early_accelerator_) {
      early_accelerator_ = with_early_library(machine.accelerator, cublas_of_sarathi);
      tally_.result().remarks.push_back(remark_on(cublas_of_sarathi));
    }
    return *early_accelerator_;
  }

  LayerColumns columns_;
  std::map<std::int64_t, LayerWidths> widths_;
  DType dtype_;
  bool is_early_;
  MachineColumn machines_;
  Context& context_;
  std::optional<Accelerator> early_accelerator_;
  Tally& tally_;
};

}  // namespace

void score_layer_shapes(const Table& table, Context& context, Tally& tally) {
  Layers layers(table, context, tally);
  for (std::size_t i = 0; i < table.rows(); ++i) {
    Row row(table, i);
    layers.score(row);
  }
}

}  // namespace commfuse::score
