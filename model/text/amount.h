// SPDX-License-Identifier: Apache-2.0
// Formats large numbers and amounts of money with a letter for thousands, millions, billions or trillions, and days.
#pragma once

#include <string>

namespace commfuse {

/// Returns "3.86M" or "123.4B", and four significant digits below a thousand: "418.7".
std::string large_number(double number);

/// Returns "$9.66M"; below a thousand with cents, "$2.50", and below one with four decimals, "$0.6439".
std::string amount_of_money(const std::string& currency, double amount);

/// Returns a number of days with tenths, "78.5", or below 0.095 with two significant digits, "0.032".
std::string amount_of_days(double days);

}  // namespace commfuse
