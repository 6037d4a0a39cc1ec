// SPDX-License-Identifier: Apache-2.0
#include "model/cost/jitter_lanes.h"

#include <bit>

#include "model/random/philox.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace commfuse {

namespace {

using Cell = QuantileTable::Cell;

// A double between 2^52 and 2^53 holds an integer in the low bits of its mantissa.
constexpr double two_to_52 = 4503599627370496.0;
constexpr std::uint64_t bits_of_2_to_52 = 0x4330000000000000;
constexpr int cell_shift = 52 - QuantileTable::cell_bits;
constexpr int first_cell = (1023 + QuantileTable::first_exponent) << QuantileTable::cell_bits;
constexpr int upper_half = static_cast<int>(QuantileTable::cells_of_half);

void words_portable(const PhiloxRun& run, std::uint32_t* words) {
  for (std::size_t block = 0; block < run.blocks; ++block) {
    const PhiloxWords drawn = philox({run.groups[block], run.ranks[block], run.step, run.purpose}, run.key);
    for (std::size_t word = 0; word < drawn.size(); ++word) {
      words[drawn.size() * block + word] = drawn[word];
    }
  }
}

// A stalling word wraps around, to a distance of at least 2^31 from both ends of the table, where the factor is 1.
bool stretch_portable(const StretchRun& run, const std::uint32_t* words, const double* rank_factors, std::size_t count,
                      double* times) {
  std::uint32_t distances = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint32_t word = words[i] - run.stalls;
    const std::uint32_t from_top = run.last - word;
    const std::uint32_t distance = word < from_top ? word : from_top;
    distances |= distance;
    const double x = std::bit_cast<double>(bits_of_2_to_52 | distance) - (two_to_52 - 0.5);
    const std::uint64_t cell = (std::bit_cast<std::uint64_t>(x) >> cell_shift) - first_cell;
    const Cell& entry = run.cells[cell + (word > from_top ? upper_half : 0)];
    times[i] = to_whole(run.nominal * rank_factors[i] * (entry.base + entry.slope * x));
  }
  return distances >> 31 != 0;
}

#if defined(__x86_64__)

#define COMMFUSE_AVX2 [[gnu::target("avx2")]]

/// Four blocks, each word in the low half of 64 bits; the high half is never read.
struct PhiloxState {
  __m256i word0, word1, word2, word3;
};

COMMFUSE_AVX2 inline PhiloxState philox_round(const PhiloxState& at, std::uint32_t key0, std::uint32_t key1) {
  const __m256i a = _mm256_mul_epu32(_mm256_set1_epi64x(philox_multipliers[0]), at.word0);
  const __m256i b = _mm256_mul_epu32(_mm256_set1_epi64x(philox_multipliers[1]), at.word2);
  const __m256i with_key0 = _mm256_xor_si256(at.word1, _mm256_set1_epi64x(key0));
  const __m256i with_key1 = _mm256_xor_si256(at.word3, _mm256_set1_epi64x(key1));
  return {_mm256_xor_si256(_mm256_srli_epi64(b, 32), with_key0), b,
          _mm256_xor_si256(_mm256_srli_epi64(a, 32), with_key1), a};
}

COMMFUSE_AVX2 inline __m256i load_four(const std::uint32_t* words) {
  return _mm256_cvtepu32_epi64(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
}

/// Stores the words block by block.
COMMFUSE_AVX2 inline void store(const PhiloxState& at, std::uint32_t* words) {
  const __m256i first = _mm256_blend_epi32(at.word0, _mm256_slli_epi64(at.word1, 32), 0xaa);
  const __m256i second = _mm256_blend_epi32(at.word2, _mm256_slli_epi64(at.word3, 32), 0xaa);
  const __m256i even = _mm256_unpacklo_epi64(first, second);
  const __m256i odd = _mm256_unpackhi_epi64(first, second);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), _mm256_permute2x128_si256(even, odd, 0x20));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words + 8), _mm256_permute2x128_si256(even, odd, 0x31));
}

COMMFUSE_AVX2 void words_avx2(const PhiloxRun& run, std::uint32_t* words) {
  for (std::size_t block = 0; block < run.blocks; block += 4) {
    PhiloxState at{load_four(run.groups + block), load_four(run.ranks + block), _mm256_set1_epi64x(run.step),
                   _mm256_set1_epi64x(run.purpose)};
    auto key0 = static_cast<std::uint32_t>(run.key);
    auto key1 = static_cast<std::uint32_t>(run.key >> 32);
    for (int round = 0; round < philox_rounds; ++round) {
      at = philox_round(at, key0, key1);
      key0 += philox_weyl[0];
      key1 += philox_weyl[1];
    }
    store(at, words + 4 * block);
  }
}

/// The bases of four cells in one vector and their slopes in another. Whole cells are loaded, because gathers take
/// longer.
struct FourCells {
  __m256d bases, slopes;
};
COMMFUSE_AVX2 inline FourCells load_cells(const Cell* cells, __m256i indices) {
  alignas(32) std::int64_t at[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(at), indices);
  const __m256d even = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(&cells[at[0]].base)),
                                            _mm_loadu_pd(&cells[at[2]].base), 1);
  const __m256d odd = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(&cells[at[1]].base)),
                                           _mm_loadu_pd(&cells[at[3]].base), 1);
  return {_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd)};
}

// Computes the same as stretch_portable, four values per iteration.
COMMFUSE_AVX2 bool stretch_avx2(const StretchRun& run, const std::uint32_t* words, const double* rank_factors,
                                std::size_t count, double* times) {
  const __m128i stalls = _mm_set1_epi32(static_cast<int>(run.stalls));
  const __m128i last = _mm_set1_epi32(static_cast<int>(run.last));
  const __m256d nominal = _mm256_set1_pd(run.nominal);
  const __m256d to_integer = _mm256_set1_pd(two_to_52);
  __m128i distances = _mm_setzero_si128();
  for (std::size_t i = 0; i < count; i += 4) {
    const __m128i word = _mm_sub_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words + i)), stalls);
    const __m128i distance = _mm_min_epu32(word, _mm_sub_epi32(last, word));
    distances = _mm_or_si128(distances, distance);
    const __m128i above = _mm_andnot_si128(_mm_cmpeq_epi32(distance, word), _mm_set1_epi32(upper_half));
    const __m256i integer = _mm256_or_si256(_mm256_cvtepu32_epi64(distance), _mm256_castpd_si256(to_integer));
    const __m256d x = _mm256_sub_pd(_mm256_castsi256_pd(integer), _mm256_set1_pd(two_to_52 - 0.5));
    const __m256i index = _mm256_add_epi64(_mm256_srli_epi64(_mm256_castpd_si256(x), cell_shift),
                                           _mm256_cvtepi32_epi64(_mm_sub_epi32(above, _mm_set1_epi32(first_cell))));
    const FourCells cells = load_cells(run.cells.data(), index);
    const __m256d factor = _mm256_add_pd(cells.bases, _mm256_mul_pd(cells.slopes, x));
    const __m256d time = _mm256_mul_pd(_mm256_mul_pd(nominal, _mm256_loadu_pd(rank_factors + i)), factor);
    _mm256_storeu_pd(times + i, _mm256_sub_pd(_mm256_add_pd(time, to_integer), to_integer));
  }
  return _mm_movemask_ps(_mm_castsi128_ps(distances)) != 0;
}

#undef COMMFUSE_AVX2

// g++ 12 warns about its own headers, in which some AVX-512 intrinsics start from an uninitialized vector.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define COMMFUSE_AVX512 [[gnu::target("avx512f,avx512vl")]]

/// PhiloxState with eight blocks.
struct WidePhiloxState {
  __m512i word0, word1, word2, word3;
};

COMMFUSE_AVX512 inline __m512i xor_three(__m512i a, __m512i b, __m512i c) {
  constexpr int parity = 0x96;
  return _mm512_ternarylogic_epi64(a, b, c, parity);
}

COMMFUSE_AVX512 inline WidePhiloxState philox_round(const WidePhiloxState& at, std::uint32_t key0, std::uint32_t key1) {
  const __m512i a = _mm512_mul_epu32(_mm512_set1_epi64(philox_multipliers[0]), at.word0);
  const __m512i b = _mm512_mul_epu32(_mm512_set1_epi64(philox_multipliers[1]), at.word2);
  return {xor_three(_mm512_srli_epi64(b, 32), at.word1, _mm512_set1_epi64(key0)), b,
          xor_three(_mm512_srli_epi64(a, 32), at.word3, _mm512_set1_epi64(key1)), a};
}

COMMFUSE_AVX512 inline __m512i load_eight(const std::uint32_t* words) {
  return _mm512_cvtepu32_epi64(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)));
}

/// Stores the words block by block.
COMMFUSE_AVX512 inline void store(const WidePhiloxState& at, std::uint32_t* words) {
  constexpr __mmask16 high_halves = 0xaaaa;
  const __m512i first = _mm512_mask_blend_epi32(high_halves, at.word0, _mm512_slli_epi64(at.word1, 32));
  const __m512i second = _mm512_mask_blend_epi32(high_halves, at.word2, _mm512_slli_epi64(at.word3, 32));
  const __m512i front = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
  const __m512i back = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
  _mm512_storeu_si512(words, _mm512_permutex2var_epi64(first, front, second));
  _mm512_storeu_si512(words + 16, _mm512_permutex2var_epi64(first, back, second));
}

COMMFUSE_AVX512 void words_avx512(const PhiloxRun& run, std::uint32_t* words) {
  for (std::size_t block = 0; block < run.blocks; block += 8) {
    WidePhiloxState at{load_eight(run.groups + block), load_eight(run.ranks + block), _mm512_set1_epi64(run.step),
                       _mm512_set1_epi64(run.purpose)};
    auto key0 = static_cast<std::uint32_t>(run.key);
    auto key1 = static_cast<std::uint32_t>(run.key >> 32);
    for (int round = 0; round < philox_rounds; ++round) {
      at = philox_round(at, key0, key1);
      key0 += philox_weyl[0];
      key1 += philox_weyl[1];
    }
    store(at, words + 4 * block);
  }
}

COMMFUSE_AVX512 inline __m512d load_cell_pairs(const Cell* cells, const std::int64_t* at) {
  const __m256d front = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(&cells[at[0]].base)),
                                             _mm_loadu_pd(&cells[at[2]].base), 1);
  const __m256d back = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(&cells[at[4]].base)),
                                            _mm_loadu_pd(&cells[at[6]].base), 1);
  return _mm512_insertf64x4(_mm512_castpd256_pd512(front), back, 1);
}

// Computes the same as stretch_portable, eight values per iteration; AVX2 computes the last four if they remain.
COMMFUSE_AVX512 bool stretch_avx512(const StretchRun& run, const std::uint32_t* words, const double* rank_factors,
                                    std::size_t count, double* times) {
  const __m256i stalls = _mm256_set1_epi32(static_cast<int>(run.stalls));
  const __m256i last = _mm256_set1_epi32(static_cast<int>(run.last));
  const __m512d nominal = _mm512_set1_pd(run.nominal);
  const __m512d to_integer = _mm512_set1_pd(two_to_52);
  __m256i distances = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m256i word = _mm256_sub_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words + i)), stalls);
    const __m256i distance = _mm256_min_epu32(word, _mm256_sub_epi32(last, word));
    distances = _mm256_or_si256(distances, distance);
    const __m256i above = _mm256_andnot_si256(_mm256_cmpeq_epi32(distance, word), _mm256_set1_epi32(upper_half));
    const __m512i integer = _mm512_or_si512(_mm512_cvtepu32_epi64(distance), _mm512_castpd_si512(to_integer));
    const __m512d x = _mm512_sub_pd(_mm512_castsi512_pd(integer), _mm512_set1_pd(two_to_52 - 0.5));
    const __m512i index =
        _mm512_add_epi64(_mm512_srli_epi64(_mm512_castpd_si512(x), cell_shift),
                         _mm512_cvtepi32_epi64(_mm256_sub_epi32(above, _mm256_set1_epi32(first_cell))));
    alignas(64) std::int64_t at[8];
    _mm512_store_si512(at, index);
    const __m512d even = load_cell_pairs(run.cells.data(), at);
    const __m512d odd = load_cell_pairs(run.cells.data(), at + 1);
    const __m512d factor =
        _mm512_add_pd(_mm512_unpacklo_pd(even, odd), _mm512_mul_pd(_mm512_unpackhi_pd(even, odd), x));
    const __m512d time = _mm512_mul_pd(_mm512_mul_pd(nominal, _mm512_loadu_pd(rank_factors + i)), factor);
    _mm512_storeu_pd(times + i, _mm512_sub_pd(_mm512_add_pd(time, to_integer), to_integer));
  }
  const bool stalls_before = _mm256_movemask_ps(_mm256_castsi256_ps(distances)) != 0;
  const bool stalls_after = i < count && stretch_avx2(run, words + i, rank_factors + i, count - i, times + i);
  return stalls_before || stalls_after;
}

#undef COMMFUSE_AVX512
#pragma GCC diagnostic pop

#endif

}  // namespace

std::vector<JitterLanes> supported_jitter_lanes() {
  std::vector<JitterLanes> supported{portable_jitter_lanes()};
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2")) {
    supported.push_back({words_avx2, stretch_avx2});
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) {
      supported.push_back({words_avx512, stretch_avx512});
    }
  }
#endif
  return supported;
}

JitterLanes portable_jitter_lanes() { return {words_portable, stretch_portable}; }

JitterLanes fastest_jitter_lanes() { return supported_jitter_lanes().back(); }

}  // namespace commfuse
