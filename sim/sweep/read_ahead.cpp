// SPDX-License-Identifier: Apache-2.0
#include "sim/sweep/read_ahead.h"

#include <tbb/parallel_pipeline.h>

#include <array>
#include <cstddef>
#include <vector>

#include "sim/parallel/parallel.h"

namespace commfuse {

namespace {

constexpr std::size_t rows_a_batch = 512;  // some hundred KiB, which a core's second cache holds
constexpr std::size_t most_batches = 4;    // being read, taken, or waiting between

/// Rows keep their memory from batch to batch, because most texts are those of the row before.
struct Batch {
  std::vector<StoreRow> rows;
  std::size_t used = 0;

  void add(const StoreRow& row) {
    if (used == rows.size()) {
      rows.emplace_back();
    }
    rows[used++] = row;
  }
};

}  // namespace

void read_ahead(StoreReader& store, const std::function<void(const StoreRow& row)>& take) {
  // Both stages run in order and no more batches than these are under way, so each is free when its turn comes again.
  std::array<Batch, most_batches> batches;
  std::size_t begun = 0;
  const auto read = [&](tbb::flow_control& flow) -> Batch* {
    Batch& batch = batches[begun++ % most_batches];
    batch.used = 0;
    bool has_more = true;
    while (has_more && batch.used < rows_a_batch) {
      has_more = store.next_point([&](std::size_t, const StoreRow& row) { batch.add(row); });
    }
    if (batch.used == 0) {
      flow.stop();
    }
    return &batch;
  };
  const auto end = [&](const Batch* batch) {
    for (std::size_t i = 0; i < batch->used; ++i) {
      take(batch->rows[i]);
    }
  };
  Handover before;
  Handover reading;
  Handover ready;
  Handover taking;
  Handover after;
  before.give();
  tbb::parallel_pipeline(
      most_batches,
      tbb::make_filter<void, Batch*>(tbb::filter_mode::serial_in_order, marked({&before, &reading, &ready}, read)) &
          tbb::make_filter<Batch*, void>(tbb::filter_mode::serial_in_order, marked({&ready, &taking, &after}, end)));
  for (Handover* handover : {&reading, &ready, &after}) {
    handover->take();
  }
}

}  // namespace commfuse
