// SPDX-License-Identifier: Apache-2.0
#include "model/cost/jitter_sampler.h"

#include <algorithm>
#include <utility>

#include "model/check.h"
#include "model/random/philox.h"

namespace commfuse {

namespace {

constexpr std::size_t words_of_block = 4;
constexpr std::size_t words_per_batch = 1024;  // they fit into the first-level cache

constexpr std::uint32_t purpose_of_ranks = static_cast<std::uint32_t>(Draw::rank);

bool is_communication(const DrawKey& key) { return key.draw() == Draw::communication; }

/// Draws of one run, one at a time.
class OneSample {
 public:
  OneSample(const JitterDraws& draws, std::uint64_t sample) : draws_(draws), sample_(sample) {}

  [[nodiscard]] double rank_factor(Rank rank) const {
    const QuantileTable* table = draws_.tables->rank();
    return table == nullptr ? 1.0 : table->at(word(rank, 0, purpose_of_ranks));
  }

  [[nodiscard]] double time(Rank rank, const DrawKey& key, double nominal, double rank_factor) const {
    const double slowed = nominal * (is_communication(key) ? 1.0 : rank_factor);
    const QuantileTable* kernel = draws_.tables->kernel(is_communication(key));
    if (kernel == nullptr) {
      return to_whole(slowed);
    }
    const std::uint32_t drawn = word(rank, key.step, key.purpose);
    if (drawn >= draws_.tables->stalls()) {
      return to_whole(slowed * kernel->at(drawn - draws_.tables->stalls()));
    }
    return to_whole(slowed) + (key.can_stall && nominal > 0.0 ? draws_.tables->stall(drawn) : 0.0);
  }

 private:
  [[nodiscard]] std::uint32_t word(Rank rank, std::uint32_t step, std::uint32_t purpose) const {
    const auto group = static_cast<std::uint32_t>(sample_ / words_of_block);
    return philox({group, static_cast<std::uint32_t>(rank), step, purpose}, draws_.seed)[sample_ % words_of_block];
  }

  const JitterDraws& draws_;
  std::uint64_t sample_;
};

}  // namespace

JitterSampler::JitterSampler(JitterDraws draws, std::int32_t ranks, std::size_t lanes, const JitterLanes& inner)
    : draws_(std::move(draws)), ranks_(static_cast<std::size_t>(ranks)), lanes_(lanes), inner_(inner) {
  check(ranks >= 1 && lanes >= words_of_block && lanes % words_of_block == 0 && lanes <= words_per_batch,
        "samples come in fours");
  const std::size_t blocks = ranks_ * lanes_ / words_of_block;
  const std::size_t padded_blocks = (blocks + 7) / 8 * 8 + 8;
  counter_groups_.assign(padded_blocks, 0);
  counter_ranks_.assign(padded_blocks, 0);
  ones_.assign(ranks_ * lanes_, 1.0);
  rank_factors_ = ones_;
  words_.assign(words_per_batch, 0);
}

void JitterSampler::begin(std::uint64_t first) {
  check(first % words_of_block == 0 && first / words_of_block <= UINT32_MAX, "a batch begins at a multiple of four");
  const std::size_t groups = lanes_ / words_of_block;
  for (std::size_t block = 0; block < ranks_ * groups; ++block) {
    counter_groups_[block] = static_cast<std::uint32_t>(first / words_of_block + block % groups);
    counter_ranks_[block] = static_cast<std::uint32_t>(block / groups);
  }
  const QuantileTable* table = draws_.tables->rank();
  if (table == nullptr) {
    return;
  }
  for (RankRun run = ranks_from(0); run.count > 0; run = ranks_from(run.first + run.count)) {
    draw_words(run, {.step = 0, .purpose = purpose_of_ranks});
    for (std::size_t i = 0; i < run.count * lanes_; ++i) {
      rank_factors_[run.first * lanes_ + i] = table->at(words_[i]);
    }
  }
}

void JitterSampler::sample(std::size_t op, std::span<const double> nominal, double* times) {
  for (RankRun run = ranks_from(0); run.count > 0; run = ranks_from(run.first + run.count)) {
    sample_ranks(op, run, nominal, times + run.first * lanes_);
  }
}

JitterSampler::RankRun JitterSampler::ranks_from(std::size_t first) const {
  return {first, std::min(words_per_batch / lanes_, ranks_ - first)};
}

void JitterSampler::draw_words(RankRun ranks, const DrawKey& draw) {
  const std::size_t block = ranks.first * lanes_ / words_of_block;
  inner_.words({.groups = counter_groups_.data() + block,
                .ranks = counter_ranks_.data() + block,
                .blocks = ranks.count * lanes_ / words_of_block,
                .step = draw.step,
                .purpose = draw.purpose,
                .key = draws_.seed},
               words_.data());
}

void JitterSampler::sample_ranks(std::size_t op, RankRun ranks, std::span<const double> nominal, double* times) {
  const DrawKey& key = draws_.keys[op];
  const double* factors = (is_communication(key) ? ones_ : rank_factors_).data() + ranks.first * lanes_;
  const QuantileTable* kernel = draws_.tables->kernel(is_communication(key));
  if (kernel != nullptr) {
    draw_words(ranks, key);
  }
  const bool one_price = nominal.size() == 1;
  const std::size_t count = one_price ? ranks.count * lanes_ : lanes_;  // number of times that share one price
  for (std::size_t at = 0; at < ranks.count * lanes_; at += count) {
    const double price = nominal[one_price ? 0 : ranks.first + at / lanes_];
    if (kernel == nullptr) {
      std::transform(factors + at, factors + at + count, times + at,
                     [&](double factor) { return to_whole(price * factor); });
      continue;
    }
    const StretchRun run{
        .cells = kernel->cells(), .stalls = draws_.tables->stalls(), .last = kernel->last(), .nominal = price};
    if (inner_.stretch(run, words_.data() + at, factors + at, count, times + at)) {
      add_stalls(key, {words_.data() + at, count}, price, times + at);
    }
  }
}

void JitterSampler::add_stalls(const DrawKey& key, std::span<const std::uint32_t> words, double nominal,
                               double* times) const {
  if (!key.can_stall || nominal <= 0.0) {
    return;
  }
  const std::uint32_t stalls = draws_.tables->stalls();
  const auto add = [&](std::size_t first, std::size_t last) {
    for (std::size_t i = first; i < last; ++i) {
      if (words[i] < stalls) {
        times[i] += draws_.tables->stall(words[i]);
      }
    }
  };
  // Stalls are rare, so words are compared in groups of sixteen; only a group with a stall is searched word by word.
  constexpr std::size_t group_size = 16;
  std::size_t at = 0;
  for (; at + group_size <= words.size(); at += group_size) {
    std::uint32_t any = 0;
    for (std::size_t i = 0; i < group_size; ++i) {
      any |= words[at + i] < stalls ? 1U : 0U;
    }
    if (any != 0) {
      add(at, at + group_size);
    }
  }
  add(at, words.size());
}

Costs jittered(const Program& program, Costs costs, const JitterDraws& draws, std::uint64_t sample) {
  const std::size_t ops = program.ops.size();
  const auto ranks = static_cast<std::size_t>(program.mesh.ranks());
  if (costs.undisturbed.empty() && costs.undisturbed_by_rank.empty()) {
    costs.undisturbed = costs.duration;
    costs.undisturbed_by_rank = costs.by_rank;
  }
  spread_rows(costs, ranks);
  const OneSample draws_of_sample(draws, sample);
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    const auto as_rank = static_cast<Rank>(rank);
    const double factor = draws_of_sample.rank_factor(as_rank);
    for (std::size_t op = 0; op < ops; ++op) {
      Duration& time = costs.by_rank[rank * ops + op];
      const auto nominal = static_cast<double>(time.count());
      time = Duration{static_cast<std::int64_t>(draws_of_sample.time(as_rank, draws.keys[op], nominal, factor))};
    }
  }
  return costs;
}

}  // namespace commfuse
