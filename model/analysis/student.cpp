// SPDX-License-Identifier: Apache-2.0
#include "model/analysis/student.h"

#include <array>

#include "model/check.h"

namespace commfuse {

namespace {

/// Quantiles for 1 to 30 degrees of freedom, computed by mpmath with 40 digits.
constexpr std::array<double, 30> quantiles_975 = {
    12.706204736174705, 4.3026527297494639, 3.1824463052837096, 2.7764451051977944, 2.5705818356363155,
    2.44691185114497,   2.3646242515927853, 2.3060041352041667, 2.2621571627982055, 2.2281388519862747,
    2.2009851600916399, 2.1788128296672289, 2.1603686564627925, 2.1447866879178038, 2.1314495455597757,
    2.1199052992212547, 2.1098155778333171, 2.1009220402410385, 2.0930240544083098, 2.0859634472658648,
    2.0796138447276804, 2.0738730679040262, 2.0686576104190487, 2.0638985616280258, 2.0595385527532977,
    2.0555294386428732, 2.0518305164802856, 2.0484071417952452, 2.0452296421327043, 2.0422724563012383};

/// The quantile for n degrees of freedom is the normal quantile plus a series in 1/n with these coefficients (Cornish
/// and Fisher 1960; Abramowitz and Stegun 26.7.5 has the polynomials in the normal quantile from which they are
/// computed).
constexpr double normal_975 = 1.9599639845400542;
constexpr std::array<double, 5> corrections = {2.3722712302985628, 2.8224986157396118, 2.5558496795077233,
                                               1.5895340533938235, 0.7328982119816057};

}  // namespace

double student_975(std::size_t degrees_of_freedom) {
  check(degrees_of_freedom >= 1, "a t distribution has a degree of freedom");
  if (degrees_of_freedom <= quantiles_975.size()) {
    return quantiles_975[degrees_of_freedom - 1];
  }
  const double x = 1.0 / static_cast<double>(degrees_of_freedom);
  double sum = 0.0;
  for (std::size_t i = corrections.size(); i-- > 0;) {
    sum = (sum + corrections[i]) * x;
  }
  return normal_975 + sum;
}

}  // namespace commfuse
