// SPDX-License-Identifier: Apache-2.0
// Matrices in the memory of a GPU, for tests of the plugin. Without a GPU the tests run on the software GPU, and print
// that; with SOFTWARE_GPU=off they are skipped instead, so that a test passes only on a real GPU.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "validate/cuda/load.h"
#include "validate/reference/rounding.h"
#include "validate/values/matrix.h"
#include "validate/values/random.h"

namespace commfuse::validate::test {

/// Returns values of a dtype: small integers, or numbers in [-1, 1).
inline Matrix<float> some_values(std::int64_t rows, std::int64_t columns, DType dtype, std::uint64_t seed,
                                 bool integers = false) {
  Matrix<float> values(rows, columns);
  Random random(seed);
  for (float& value : values.values()) {
    value = integers ? static_cast<float>(random.integer(2)) : stored(dtype, random.uniform());
  }
  return values;
}

/// Returns the values after storing them in a dtype.
inline Matrix<float> stored_as(DType dtype, Matrix<float> values) {
  for (float& value : values.values()) {
    value = stored(dtype, value);
  }
  return values;
}

/// Returns the plugin, or the plugin of the software GPU if the first one finds no GPU.
inline CudaPlugin plugin_for_tests() {
  CudaPlugin plugin = load_cuda_plugin();
  const char* choice = std::getenv("SOFTWARE_GPU");  // NOLINT(concurrency-mt-unsafe): nobody changes it
  if (!plugin.usable() && (choice == nullptr || std::string(choice) != "off")) {
    std::printf("no GPU was found, so the plugin runs on the software GPU\n");
    return load_cuda_plugin(COMMFUSE_SOFTWARE_GPU);
  }
  return plugin;
}

class OnDevice : public testing::Test {
 protected:
  static constexpr Duration patience = std::chrono::seconds(20);

  void SetUp() override {
    static const CudaPlugin plugin = plugin_for_tests();
    if (!plugin.usable()) {
      GTEST_SKIP() << plugin.missing;
    }
    module_ = plugin.module.get();
    driver_ = module_->open(0);
    stream_ = driver_->make_stream(false);
  }

  [[nodiscard]] const CudaModule& module() const { return *module_; }
  [[nodiscard]] Driver& driver() { return *driver_; }
  [[nodiscard]] StreamId stream() const { return stream_; }

  /// Allocates a matrix of bytes 0xff, which are NaN, with `padding` elements after each row and before the first row.
  Panel new_panel(std::int64_t rows, std::int64_t columns, DType dtype, std::int64_t padding = 0) {
    const std::int64_t stride = columns + padding;
    const auto bytes = static_cast<std::size_t>((rows * stride + padding) * bytes_of(dtype));
    const Address at = driver().allocate({static_cast<std::int64_t>(bytes)});
    driver().upload(at, std::vector<std::byte>(bytes, std::byte{0xff}));
    return {at + static_cast<Address>(padding * bytes_of(dtype)), rows, columns, stride, dtype};
  }

  Panel put(const Matrix<float>& values, DType dtype, std::int64_t padding = 0) {
    const Panel panel = new_panel(values.rows(), values.columns(), dtype, padding);
    std::vector<std::byte> bytes(static_cast<std::size_t>(values.columns() * bytes_of(dtype)));
    for (std::int64_t row = 0; row < values.rows(); ++row) {
      encode(dtype, values.row(row), bytes);
      driver().upload(row_at(panel, row), bytes);
    }
    return panel;
  }

  /// Reads a matrix once all issued work has finished.
  Matrix<float> get(const Panel& panel) {
    EXPECT_TRUE(driver().finish(patience));
    Matrix<float> values(panel.rows, panel.columns);
    std::vector<std::byte> bytes(static_cast<std::size_t>(panel.columns * bytes_of(panel.dtype)));
    for (std::int64_t row = 0; row < panel.rows; ++row) {
      driver().download(bytes, row_at(panel, row));
      decode(panel.dtype, bytes, values.row(row));
    }
    return values;
  }

  /// True if the padding after each row still has the bytes from new_panel().
  bool is_padding_untouched(const Panel& panel) {
    const std::int64_t padding = panel.stride - panel.columns;
    std::vector<std::byte> bytes(static_cast<std::size_t>(padding * bytes_of(panel.dtype)));
    bool untouched = true;
    for (std::int64_t row = 0; row < panel.rows && padding > 0; ++row) {
      driver().download(bytes, row_at(panel, row) + static_cast<Address>(panel.columns * bytes_of(panel.dtype)));
      untouched = untouched && std::ranges::all_of(bytes, [](std::byte value) { return value == std::byte{0xff}; });
    }
    return untouched;
  }

 private:
  static Address row_at(const Panel& panel, std::int64_t row) {
    return panel.at + static_cast<Address>(row * panel.stride * bytes_of(panel.dtype));
  }

  const CudaModule* module_ = nullptr;
  std::unique_ptr<Driver> driver_;
  StreamId stream_{};
};

}  // namespace commfuse::validate::test
