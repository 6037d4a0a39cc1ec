// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <algorithm>
#include <array>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "model/check.h"
#include "model/config/catalogue.h"
#include "model/config/framework.h"
#include "model/config/hf_config.h"
#include "model/config/implementation.h"
#include "model/config/plan_file.h"
#include "model/config/resolver.h"
#include "model/config_error.h"
#include "model/formats/dcgm_diag.h"
#include "model/formats/nccl_tests.h"
#include "model/formats/nvbandwidth.h"
#include "model/formats/step_times.h"
#include "model/formats/topology_file.h"
#include "model/program_text/text.h"
#include "model/record/result.h"
#include "model/record/run_record.h"
#include "model/traces/rank_trace.h"
#include "reports/crossover.h"
#include "reports/step_rows.h"
#include "sim/calibrate/chakra.h"
#include "sim/calibrate/kineto.h"
#include "sim/calibrate/nsight.h"
#include "sim/import/deepspeed.h"
#include "sim/import/megatron.h"
#include "sim/import/nemo.h"
#include "sim/import/torchtitan.h"
#include "sim/score/kinds.h"
#include "sim/sweep/database.h"
#include "sim/sweep/result_store.h"
#include "sim/sweep/rows_of_json.h"
#include "sim/sweep/store_query.h"
#include "sim/sweep/store_row.h"
#include "sim/sweep/sweep_file.h"
#include "tests/fuzz/input_file.h"

namespace commfuse::fuzz {

namespace {

/// Runs `read`; refusing a user's mistake is a valid result.
template <class Read>
void tolerate(const Read& read) {
  try {
    read();
  } catch (const ConfigError&) {
  } catch (const DatabaseError&) {
  }
}

/// Checks that a profile can be fitted: sizes and times are above 0, and a collective's members are all known or all
/// unknown.
void check_profile(const calibrate::Profile& profile) {
  for (const MeasuredGemm& gemm : profile.gemms) {
    check(gemm.size.m > 0 && gemm.size.n > 0 && gemm.size.k > 0 && gemm.time > Duration{},
          "GEMMs have sizes and a time");
  }
  for (const MeasuredAttention& attention : profile.attention) {
    check(attention.size.seq > 0 && attention.size.heads % attention.size.kv_heads == 0 && attention.time > Duration{},
          "attention has sizes and a time");
  }
  for (const calibrate::TracedCollective& collective : profile.collectives) {
    check(collective.ranks > 1 && collective.bytes > 0 && collective.time_us > 0.0,
          "collectives have sizes and a time");
    check(collective.members.empty() || static_cast<int>(collective.members.size()) == collective.ranks,
          "all members or none are known");
  }
}

void chakra(std::string_view bytes) {
  tolerate([&] { check_profile(calibrate::read_chakra(input_file("trace.et", bytes))); });
}

void config(std::string_view bytes) {
  const std::string path = input_file("input.yaml", bytes).string();
  const auto mentions = [&](std::string_view schema) { return bytes.find(schema) != std::string_view::npos; };
  tolerate([&] {
    if (mentions("commfuse.hardware") || mentions("commfuse.cluster")) {
      load_machine(path);
    } else if (mentions("commfuse.model")) {
      load_model(path);
    } else if (mentions("commfuse.jitter")) {
      load_jitter(path);
    } else if (mentions("commfuse.plan")) {
      load_plan(path);
    } else if (mentions("commfuse.sweep")) {
      Resolver resolver;
      const Sweep sweep = read_sweep(path, resolver);
      resolver.finish();
      to_yaml(sweep);
    } else {
      Resolver resolver;
      resolver.read_file(path);
      resolver.finish();
    }
  });
}

/// Scores on machines that are loaded only once, so that time and memory depend only on the input.
void csv(std::string_view bytes) {
  static score::KnownMachines machines;
  static score::Doubts doubts;
  StructureCache structures;
  Predictor predictor(structures);
  tolerate([&] {
    const score::Table table{std::string(bytes)};
    const score::Kind* const kind = score::kind_of(table);
    if (kind == nullptr || kind->score == nullptr) {
      score::mistake_in_header(table);
      return;
    }
    TableScore result;
    score::Tally tally(result, false);
    score::Context context{machines, predictor, doubts, "input"};
    kind->score(table, context, tally);
  });
}

/// Checks that every result belongs to a test, and names an entity exactly if it has an id.
void dcgm_diag(std::string_view bytes) {
  tolerate([&] {
    for (const DcgmResult& result : read_dcgm_diag(bytes, "input.json").results) {
      check(!result.test.empty() && result.entity.empty() == !result.id,
            "every result has a test, and an entity if it has an id");
    }
  });
}

void deepspeed(std::string_view bytes) {
  import::Source source{input_file("input.json", bytes).string(), "input"};
  source.options.set("--model", {"llama-3.1-8b"});
  source.options.set("--seq", {"4K"});
  source.options.set("--gpus", {"16"});
  tolerate([&] { import::read_deepspeed(source); });
}

/// Checks that every choice is a value of a setting, and that costs are in range.
void framework(std::string_view bytes) {
  tolerate([&] {
    const Framework loaded = load_framework(input_file("input.yaml", bytes).string());
    with_defaults_of(loaded, Settings());
    check(loaded.issue.value >= Duration{} && loaded.loss_bytes > 0.0, "kernels take a time");
    check(loaded.loss_memory.value >= 0.0, "the loss needs no negative memory");
  });
}

void hf_config(std::string_view bytes) {
  tolerate([&] { read_hf_config(input_file("config.json", bytes)); });
}

/// Checks that an implementation can run somewhere, and that its costs are in range.
void implementation(std::string_view bytes) {
  tolerate([&] {
    const auto loaded = load_implementation(input_file("input.yaml", bytes).string());
    check(loaded->strategy != nullptr && !loaded->sites.empty() && !loaded->dtypes.empty() &&
              !loaded->generations.empty() && loaded->max_ranks > 1 && loaded->max_nodes > 0,
          "an implementation runs somewhere");
    for (const ImplementedSites& sites : loaded->costs.generations) {
      for (const ImplementedSite& site : {sites.ag_gemm, sites.gemm_rs}) {
        check(site.per_call.value >= Duration{} && site.per_step.value >= Duration{} && site.rate_share.value > 0.0 &&
                  (!site.rate || site.rate->value.value > 0.0),
              "costs are times of at least 0 and rates above 0");
      }
    }
  });
}

void kineto(std::string_view bytes) {
  tolerate([&] { check_profile(calibrate::read_kineto(input_file("trace.json", bytes))); });
  tolerate([&] {
    for (const TracedStep& step : read_rank_trace(input_file("trace.json", bytes)).steps) {
      check(step.time_us > 0.0 && step.compute_us >= 0.0 && step.communication_us >= 0.0 && step.idle_us >= 0.0,
            "a step takes time, and its parts are at least 0");
    }
  });
}

void megatron(std::string_view bytes) {
  tolerate([&] { import::read_megatron(bytes, "train.sh", "input"); });
}

void nccl_tests(std::string_view bytes) {
  tolerate([&] {
    for (const NcclTestsRun& run : read_nccl_tests(bytes, "input.txt")) {
      for (const NcclTestsRow& row : run.rows) {
        check(row.bytes > 0 && row.time_us > 0.0, "rows without a measurement are omitted");
      }
    }
  });
}

void nsight(std::string_view bytes) {
  tolerate([&] { check_profile(calibrate::read_nsight_database(input_file("profile.sqlite", bytes))); });
}

void nsight_table(std::string_view bytes) {
  tolerate([&] { check_profile(calibrate::read_nsight_table(input_file("trace.csv", bytes))); });
}

void nemo(std::string_view bytes) {
  import::Source source{input_file("input.yaml", bytes).string(), "input"};
  source.options.set("OVERRIDES", {"model.num_layers=4"});
  tolerate([&] { import::read_nemo(source); });
}

/// Checks that exactly the passed tests have values, in rectangular matrices, and that no value is negative.
void nvbandwidth(std::string_view bytes) {
  tolerate([&] {
    for (const BandwidthMatrix& matrix : read_nvbandwidth(bytes, "input.json").matrices) {
      check(matrix.values.empty() == (matrix.status != BandwidthStatus::passed),
            "exactly the passed tests have values");
      for (const auto& row : matrix.values) {
        check(row.size() == matrix.values.front().size(), "rows have equal lengths");
        check(std::none_of(row.begin(), row.end(), [](const auto& rate) { return rate && !(*rate >= 0.0); }),
              "rates and latencies are at least 0");
      }
    }
  });
}

void overlap_config(std::string_view bytes) {
  tolerate([&] {
    import::Imported import;
    import.step.tensor = 2;
    import.step.sequence_parallel = true;
    import::add_overlap(input_file("input.yaml", bytes).string(), import);
  });
}

void rows(std::string_view bytes) {
  std::istringstream text{std::string(bytes)};
  tolerate([&] {
    rows_of_json(text, "rows.jsonl",
                 {[](std::span<const Value>, const ResultRow& row) {
                    const std::vector<Value> values = values_of(row);
                    check(values_of(row_of(values)) == values, "a row equals the row made of its values");
                  },
                  [](const StepRow& row) {
                    reports::step_table({&row, 1});
                    reports::maps_of(std::span(&row, 1));
                  }});
  });
}

void run_record(std::string_view bytes) {
  tolerate([&] {
    const RunRecord record = parse_run_record(std::string(bytes), "record.json");
    const std::string text = to_json(record);
    check(to_json(parse_run_record(text, "record.json")) == text, "a record is read back as it was written");
  });
}

void schedule(std::string_view bytes) {
  tolerate([&] {
    const Program program = parse_program(std::string(bytes), "input.yaml");
    check(parse_program(to_text(program), "input.yaml") == program, "a schedule is read back as it was written");
  });
}

/// Checks that each rank occurs at most once in a step, that step times are above 0, and that compute times are at
/// least 0.
void step_times(std::string_view bytes) {
  is_step_times(bytes);
  tolerate([&] {
    std::set<std::pair<std::int64_t, std::int64_t>> ranks_of_steps;
    for (const StepTimes& times : read_step_times(bytes, "input.csv").steps) {
      check(times.rank >= 0 && times.time_us > 0.0 && times.compute_us.value_or(0.0) >= 0.0, "times are at least 0");
      check(ranks_of_steps.insert({times.step, times.rank}).second, "each rank occurs once in a step");
    }
  });
}

void store(std::string_view bytes) {
  const std::filesystem::path path = input_file("results.db", bytes);
  tolerate([&] {
    StoreReader reader(path);
    while (reader.next()) {
    }
  });
  tolerate([&] { StoreQuery(path).run(Query{}, [](std::span<const Value>) {}); });
}

/// Reads rows in the format that processes exchange. Stores hold the same format after a checksum, which does not
/// protect them because anybody can compute it. Every row that is read can be shown.
void store_rows(std::string_view bytes) {
  std::vector<StoreRow> rows;
  try {
    rows = unpacked(bytes);
  } catch (const std::runtime_error&) {
    return;
  }
  for (const StoreRow& row : rows) {
    tolerate([&] {
      if (row.size() == store_columns(StoreKind::layers).size()) {
        const ResultRow result = layer_row(row, "input");
        stored(result);
        reports::scalings_of(std::span(&result, 1));
      } else if (row.size() == store_columns(StoreKind::models).size()) {
        const StepRow step = model_row(row, "input");
        reports::step_table({&step, 1});
        reports::maps_of(std::span(&step, 1));
        reports::scalings_of(std::span(&step, 1));
      }
    });
  }
}

/// Without these rates, the reader would stop at the first link of a table.
constexpr WireRates wire_rates{
    .nvlink = BytesPerSecond{25e9}, .pcie = BytesPerSecond{32e9}, .root = BytesPerSecond{20e9}};

void topology_matrix(std::string_view bytes) {
  tolerate([&] { read_topology_matrix("topo.txt", std::string(bytes), wire_rates); });
}

void topology_rocm(std::string_view bytes) {
  tolerate([&] { read_rocm_topology("topo.txt", std::string(bytes), wire_rates); });
}

void topology_xml(std::string_view bytes) {
  tolerate([&] { read_nccl_topology("topo.xml", std::string(bytes), {}); });
}

void torchtitan(std::string_view bytes) {
  import::Source source{input_file("input.toml", bytes).string(), "input"};
  source.options.set("--gpus", {"64"});
  tolerate([&] { import::read_torchtitan(source); });
}

constexpr std::array all_targets{
    Target{"chakra", chakra},
    Target{"config", config},
    Target{"csv", csv},
    Target{"dcgm_diag", dcgm_diag},
    Target{"deepspeed", deepspeed},
    Target{"framework", framework},
    Target{"hf_config", hf_config},
    Target{"implementation", implementation},
    Target{"kineto", kineto},
    Target{"megatron", megatron},
    Target{"nccl_tests", nccl_tests},
    Target{"nemo", nemo},
    Target{"nsight", nsight},
    Target{"nsight_table", nsight_table},
    Target{"nvbandwidth", nvbandwidth},
    Target{"overlap_config", overlap_config},
    Target{"rows", rows},
    Target{"run_record", run_record},
    Target{"schedule", schedule},
    Target{"step_times", step_times},
    Target{"store", store},
    Target{"store_rows", store_rows},
    Target{"topology_matrix", topology_matrix},
    Target{"topology_rocm", topology_rocm},
    Target{"topology_xml", topology_xml},
    Target{"torchtitan", torchtitan},
};

}  // namespace

std::span<const Target> targets() { return all_targets; }

const Target* find_target(std::string_view name) {
  const auto* const target = std::find_if(all_targets.begin(), all_targets.end(),
                                          [&](const Target& candidate) { return candidate.name == name; });
  return target == all_targets.end() ? nullptr : target;
}

}  // namespace commfuse::fuzz
