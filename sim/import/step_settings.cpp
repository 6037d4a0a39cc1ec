// SPDX-License-Identifier: Apache-2.0
#include "sim/import/step_settings.h"

#include <fmt/format.h>

#include "model/check.h"
#include "model/config/field.h"
#include "model/config/settings.h"

namespace commfuse::import {

Counts range_of(std::string_view key) {
  const Field* const field = find_field(key);
  check(field != nullptr && field->type == FieldType::count, "only counts have a range");
  return {field->least, field->most};
}

std::optional<std::int64_t> product_within(std::int64_t limit, std::initializer_list<std::int64_t> factors) {
  std::int64_t product = 1;
  for (const std::int64_t factor : factors) {
    if (factor > limit / product) {
      return std::nullopt;
    }
    product *= factor;
  }
  return product;
}

std::int64_t gpus_of(const StepSettings& step) {
  return step.tensor * step.pipeline * step.data * step.context * step.ulysses;
}

namespace {

std::string_view switch_word(bool is_on) { return is_on ? "on" : "off"; }

}  // namespace

std::string run_text(const StepSettings& step, std::string_view origin) {
  return fmt::format(
      "# {}\nschema: commfuse.run/1\nscope: step\nframework: {}\nranks: {}\nseq: {}\nbatch: {}\ndtype: {}\n"
      "attention_kernel: {}\nparallel:\n"
      "  sequence_parallel: {}\n  pipeline: {}\n  interleave: {}\n{}  data: {}\n  context: {}\n{}{}  experts: {}\n"
      "  zero: {}\nstep:\n  micro_batch: {}\n  recompute: {}\n{}  dropout: {}\n  gradient_dtype: {}\n"
      "  overlap_gradients: {}\n",
      origin, yaml_scalar(step.framework), step.tensor, step.seq, step.batch, step.dtype,
      step.fused_attention ? "fused" : "unfused", switch_word(step.sequence_parallel), step.pipeline, step.interleave,
      step.zero_bubble ? "  schedule: zero_bubble\n" : "", step.data, step.context,
      step.context > 1
          ? fmt::format("  context_exchange: {}\n", word_of(context_exchange_choices, step.context_exchange))
          : "",
      step.ulysses > 1 ? fmt::format("  ulysses: {}\n", step.ulysses) : "", step.experts, step.zero, step.micro_batch,
      yaml_scalar(step.recompute), step.is_sgd ? "  optimizer: sgd\n" : "", switch_word(step.dropout),
      step.gradient_dtype, switch_word(step.overlap_gradients));
}

std::string framework_text(const StepSettings& step, std::string_view origin, std::string_view name) {
  check(step.implementation_sites.has_value(), "only a list of GEMMs needs a framework of its own");
  const std::string framework = fmt::format("{}-overlap", name);  // no strategy has such a name
  return fmt::format(
      "# {}\nschema: commfuse.framework/1\nname: {}\nextends: {}\nsummary: {}\ntensor_parallel:\n"
      "  implementation_sites: [{}]\n",
      origin, yaml_scalar(framework), step.framework,
      yaml_scalar(fmt::format("{} with the GEMMs that the overlap file of {} chooses", step.framework, name)),
      fmt::join(*step.implementation_sites, ", "));
}

}  // namespace commfuse::import
