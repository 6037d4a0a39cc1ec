// SPDX-License-Identifier: Apache-2.0
// Tests that the loader of each kind reads every file below configs/, and that every sweep has points.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "model/config/catalogue.h"
#include "model/config/framework.h"
#include "model/config/implementation.h"
#include "model/config/plan_field.h"
#include "model/config/plan_file.h"
#include "model/config/yaml_reader.h"
#include "model/program_text/load_schedule.h"
#include "model/proof/check_program.h"
#include "sim/engine/load_faults.h"
#include "sim/lab/lab.h"
#include "sim/point/point_list.h"
#include "sim/sweep/sweep_file.h"

namespace commfuse {
namespace {

namespace fs = std::filesystem;

std::string schema_of(const std::string& path) {
  YamlFile file(path);
  return file.root().text("schema");
}

void load(const std::string& path) {
  const std::string schema = schema_of(path);
  Resolver resolver;
  if (schema == "commfuse.model/1") {
    load_model(path);
  } else if (schema == "commfuse.hardware/1" || schema == "commfuse.cluster/1") {
    load_machine(path);
  } else if (schema == "commfuse.jitter/1") {
    load_jitter(path);
  } else if (schema == "commfuse.run/1") {
    resolver.read_file(path);
    resolver.finish();
  } else if (schema == sweep_schema) {
    Sweep sweep = read_sweep(path, resolver);
    sweep.grid.axes = merged_axes(std::move(sweep.grid.axes), {}, resolver);
    sweep.grid.settings = resolver.finish();
    library_of(sweep.grid);
    EXPECT_GT(PointList(sweep.grid, max_sweep_points).size(), 0U) << path;
  } else if (schema == "commfuse.schedule/1") {
    EXPECT_TRUE(check_program(load_schedule(path).program).ok()) << path;
  } else if (schema == lab_schema) {
    load_lab(path);
  } else if (schema == "commfuse.faults/1") {
    load_faults(path);
  } else if (schema == "commfuse.implementation/1") {
    load_implementation(path);
  } else if (schema == "commfuse.framework/1") {
    load_framework(path);
  } else if (schema == plan_schema) {
    load_plan(path);
  } else {
    ADD_FAILURE() << path << " has a schema that nothing reads: " << schema;
  }
}

TEST(ShippedConfigs, EveryFileLoads) {
  int files = 0;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(COMMFUSE_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".yaml") {
      EXPECT_NO_THROW(load(entry.path().string())) << entry.path();
      ++files;
    }
  }
  EXPECT_GE(files, 5);
}

}  // namespace
}  // namespace commfuse
