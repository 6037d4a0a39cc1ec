// SPDX-License-Identifier: Apache-2.0
// The files are made up, in the layouts of DCGM 2, 3 and 4.
#include "model/formats/dcgm_diag.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/refusal.h"

namespace commfuse {
namespace {

DcgmDiagnostic read_diagnostic(const std::string& text) { return read_dcgm_diag(text, "diag.json"); }

std::string diagnostic_refusal(const std::string& text) {
  return test::refusal_of([&] { read_diagnostic(text); });
}

/// Returns a line such as "Hardware/pcie GPU1 fail" for each result.
std::vector<std::string> lines(const DcgmDiagnostic& diagnostic) {
  constexpr const char* words[] = {"pass", "skip", "warn", "fail"};
  std::vector<std::string> lines;
  for (const DcgmResult& result : diagnostic.results) {
    lines.push_back(result.category + "/" + result.test + " " +
                    (result.id ? result.entity + std::to_string(*result.id) : "all") + " " +
                    words[static_cast<int>(result.status)]);
  }
  return lines;
}

std::string version_4(const std::string& tests) {
  return R"({"DCGM Diagnostic": {"test_categories": [{"category": "Hardware", "tests": [)" + tests +
         R"(]}]}, "entity_groups": [{"entity_group": "GPU", "entity_group_id": 1, "entities":
         [{"entity_id": 0, "device_id": "2330", "serial_num": "1"}]}],
         "metadata": {"version": "4.2.3", "Driver Version Detected": "570.86.15"}})";
}

TEST(DcgmDiag, Version4HasEntitiesCodesAndASummary) {
  const DcgmDiagnostic diagnostic = read_diagnostic(version_4(
      R"({"name": "pcie", "results": [
            {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 0, "status": "Pass", "info": ["GPU 0: 55 GB/s"]},
            {"entity_group": "GPU", "entity_group_id": 1, "entity_id": 1, "status": "Fail", "warnings":
               [{"warning": "PCIe link width is 8.", "error_id": 30, "error_category": 14, "error_severity": 6}]},
            {"entity_group": "NvSwitch", "entity_group_id": 3, "entity_id": 2, "status": "Skip"}],
          "test_summary": {"status": "Fail"}})"));
  EXPECT_EQ(diagnostic.version, "4.2.3");
  EXPECT_EQ(diagnostic.driver, "570.86.15");
  EXPECT_EQ(lines(diagnostic), (std::vector<std::string>{"Hardware/pcie GPU0 pass", "Hardware/pcie GPU1 fail",
                                                         "Hardware/pcie NvSwitch2 skip", "Hardware/pcie all fail"}));
  EXPECT_EQ(diagnostic.results[0].info, std::vector<std::string>{"GPU 0: 55 GB/s"});
  ASSERT_EQ(diagnostic.results[1].warnings.size(), 1U);
  const DcgmWarning& warning = diagnostic.results[1].warnings[0];
  EXPECT_EQ(warning.text, "PCIe link width is 8.");
  EXPECT_EQ(warning.error, 30);
  EXPECT_EQ(warning.category, 14);
  EXPECT_EQ(warning.severity, DcgmSeverity::reset);
  EXPECT_EQ(name_of(*warning.severity), "reset");
  EXPECT_EQ(diagnostic.notes, std::vector<std::string>{});
}

TEST(DcgmDiag, Version3HasListsOfGpusAndNulls) {
  const DcgmDiagnostic diagnostic = read_diagnostic(
      R"(Successfully ran diagnostic for group.
      {"DCGM GPU Diagnostic": {"test_categories": [
        {"category": "Deployment", "tests": [
          {"name": "Denylist", "results": [{"gpu_ids": "0,1", "status": "PASS"}]}, null]},
        {"category": "Stress", "tests": [
          {"name": "SM Stress", "results": [{"gpu_ids": 0, "status": "Pass"}, null,
             {"gpu_ids": "1", "status": "WARN", "warnings": ["hot", "slow"], "info": "GPU 1: 40 C"}]}]}],
        "version": "3.3.9", "Driver Version Detected": "535.129.03", "GPU Device IDs": ["2330"],
        "GPU Device Serials": {"0": "1"}, "info": ["a statement"]}})");
  EXPECT_EQ(diagnostic.version, "3.3.9");
  EXPECT_EQ(diagnostic.driver, "535.129.03");
  EXPECT_EQ(lines(diagnostic),
            (std::vector<std::string>{"Deployment/Denylist GPU0 pass", "Deployment/Denylist GPU1 pass",
                                      "Stress/SM Stress GPU0 pass", "Stress/SM Stress GPU1 warn"}));
  ASSERT_EQ(diagnostic.results[3].warnings.size(), 2U);
  EXPECT_EQ(diagnostic.results[3].warnings[1].text, "slow");
  EXPECT_EQ(diagnostic.results[3].warnings[1].error, std::nullopt);
  EXPECT_EQ(diagnostic.results[3].info, std::vector<std::string>{"GPU 1: 40 C"});
  EXPECT_EQ(diagnostic.notes,
            (std::vector<std::string>{
                "diag.json: text before the JSON is not used: 'Successfully ran diagnostic for group.\\x0a      '",
                "diag.json: dcgmi reports: 'a statement'"}));
}

TEST(DcgmDiag, ReadsCodedWarningsOfVersion3AndTheGpuIdOfVersion2) {
  const DcgmDiagnostic diagnostic = read_diagnostic(
      R"({"DCGM GPU Diagnostic": {"test_categories": [{"category": "Integration", "tests": [
          {"name": "PCIe", "results": [{"gpu_id": "3", "status": "Fail", "warnings":
            {"warning": "slow", "error_id": 9, "error_category": 1, "error_severity": 4}}]}]}]}})");
  EXPECT_EQ(lines(diagnostic), std::vector<std::string>{"Integration/PCIe GPU3 fail"});
  EXPECT_EQ(diagnostic.results[0].warnings.at(0).severity, DcgmSeverity::triage);
  EXPECT_EQ(diagnostic.version, "");
}

TEST(DcgmDiag, ARunThatFailedAsAWholeHasItsError) {
  const DcgmDiagnostic diagnostic = read_diagnostic(
      R"({"DCGM GPU Diagnostic": {"version": "3.3.9", "runtime_error": "no GPU in the group", "error_code": 1}})");
  EXPECT_EQ(diagnostic.error, "no GPU in the group");
  EXPECT_TRUE(diagnostic.results.empty());
}

TEST(DcgmDiag, UnusedPartsAreNoted) {
  const DcgmDiagnostic diagnostic = read_diagnostic(version_4(
      R"({"name": "memory", "aux_data": {}, "results": [{"entity_group": "GPU", "entity_id": 0, "status": "Pass",
          "seconds": 3, "warnings": [{"warning": "a", "error_severity": 40}]}]}, {"name": "idle"})"));
  EXPECT_EQ(diagnostic.notes,
            (std::vector<std::string>{
                "diag.json: DCGM Diagnostic.test_categories[0].tests[0]: key 'aux_data' is not used",
                "diag.json: DCGM Diagnostic.test_categories[0].tests[0].results[0]: key 'seconds' is not used",
                "diag.json: DCGM Diagnostic.test_categories[0].tests[0].results[0].warnings[0]: unknown severity 40",
                "diag.json: DCGM Diagnostic.test_categories[0].tests[1]: test 'idle' has no result"}));
  EXPECT_EQ(diagnostic.results.at(0).warnings.at(0).severity, DcgmSeverity::unknown);
}

TEST(DcgmDiag, MistakesAreRefusedWithTheirPlace) {
  const auto result_refusal = [](const std::string& result) {
    return diagnostic_refusal(version_4(R"({"name": "pcie", "results": [)" + result + "]}"));
  };
  const std::string place = "diag.json: DCGM Diagnostic.test_categories[0].tests[0].results[0]";
  EXPECT_EQ(diagnostic_refusal("Error: unable to connect"),
            "diag.json: contains no JSON; give what dcgmi diag -j printed");
  EXPECT_EQ(diagnostic_refusal("{\"a\": 1}"),
            "diag.json: has neither 'DCGM Diagnostic' nor 'DCGM GPU Diagnostic'; give what dcgmi diag -j printed");
  EXPECT_EQ(diagnostic_refusal("{\"DCGM Diagnostic\": {\n"),
            "diag.json:2:1: is not one JSON document; give the complete output of dcgmi diag -j, one run per file");
  EXPECT_EQ(diagnostic_refusal("{\"DCGM Diagnostic\": {\"test_categories\": []}}"),
            "diag.json: DCGM Diagnostic: has no result and no error; check the output of dcgmi, and run it again");
  EXPECT_EQ(result_refusal(R"({"entity_group": "GPU", "entity_id": 0, "status": "Fine"})"),
            place + ".status: unknown status 'Fine'; known: Pass, Fail, Warn, Skip");
  EXPECT_EQ(result_refusal(R"({"entity_group": "GPU", "entity_id": 0})"),
            place + ": has no status; give the whole file as it was printed");
  EXPECT_EQ(result_refusal(R"({"status": "Pass"})"),
            place + ": names neither a GPU nor another entity; give the whole file as it was printed");
  EXPECT_EQ(result_refusal(R"({"entity_id": 0, "status": "Pass"})"),
            place + ": has an entity without its group; give the whole file as it was printed");
  EXPECT_EQ(result_refusal(R"({"entity_group": "GPU", "entity_id": -1, "status": "Pass"})"),
            place + ".entity_id: is not a whole number from 0 to 1048576; give the whole file as it was printed");
  EXPECT_EQ(result_refusal(R"({"gpu_ids": "0,x", "status": "Pass"})"),
            place + ".gpu_ids: '0,x' is not a list of GPUs; give the whole file as it was printed");
  EXPECT_EQ(result_refusal(R"({"gpu_ids": "0", "status": "Pass", "info": [3]})"),
            place + ".info[0]: is not text; give the whole file as it was printed");
}

}  // namespace
}  // namespace commfuse
