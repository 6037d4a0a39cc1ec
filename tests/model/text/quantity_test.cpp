// SPDX-License-Identifier: Apache-2.0
#include "model/text/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace commfuse {
namespace {

using namespace std::chrono_literals;

TEST(Quantity, SharesAreWrittenInPercentOrPlain) {
  EXPECT_EQ(parse_share("2%"), 0.02);
  EXPECT_EQ(parse_share("2.5 %"), 0.025);
  EXPECT_EQ(parse_share("0.8"), 0.8);
  for (const char* wrong : {"", "%", "two", "2%%", "% 2"}) {
    EXPECT_FALSE(parse_share(wrong)) << wrong;
  }
}

TEST(ParseAmount, ReadsSuffixesOfEitherCase) {
  EXPECT_EQ(parse_amount("500b"), 5e11);
  EXPECT_EQ(parse_amount("500B"), 5e11);
  EXPECT_EQ(parse_amount("$3m"), 3e6);
  EXPECT_EQ(parse_amount("2t"), 2e12);
  EXPECT_EQ(parse_amount("4g"), 4e9);
  EXPECT_EQ(parse_amount("2.80"), 2.8);
  for (const char* wrong : {"", "m", "3mm", "3x", "3 m"}) {
    EXPECT_FALSE(parse_amount(wrong)) << wrong;
  }
}

TEST(ParseDuration, ReadsEveryUnitExactly) {
  EXPECT_EQ(parse_duration("7 ps"), Duration{7});
  EXPECT_EQ(parse_duration("811 ns"), Duration{811'000});
  EXPECT_EQ(parse_duration("5 us"), Duration{5us});
  EXPECT_EQ(parse_duration("2.5ms"), Duration{2500us});
  EXPECT_EQ(parse_duration("1 s"), Duration{1s});
  EXPECT_EQ(parse_duration("0 us"), Duration{0});
}

TEST(ParseDuration, RefusesOtherTexts) {
  for (const char* text : {"", "5", "us", "5 GB", "-5 us", "+5 us", "05 us", "5  us", "5 us ", " 5 us", "5 hours",
                           "1e99 s", "nan us", "inf s", "0x5 us", "9300000 s"}) {
    EXPECT_EQ(parse_duration(text), std::nullopt) << text;
  }
}

TEST(ParseSize, IsBinaryForBareLettersAsInNcclTestsAndDecimalForKBAndMB) {
  EXPECT_EQ(parse_size("32 KiB"), Bytes{32'768});
  EXPECT_EQ(parse_size("128M"), Bytes{134'217'728});
  EXPECT_EQ(parse_size("1 GiB"), Bytes{1'073'741'824});
  EXPECT_EQ(parse_size("80 GB"), Bytes{80'000'000'000});
  EXPECT_EQ(parse_size("4.85 MB"), Bytes{4'850'000});
  EXPECT_EQ(parse_size("1.5K"), Bytes{1536});
  EXPECT_EQ(parse_size("512 B"), Bytes{512});
}

TEST(ParseSize, ReadsDecimalSizesWhoseProductIsRounded) {
  EXPECT_EQ(parse_size("4.1 MB"), Bytes{4'100'000});
  EXPECT_EQ(parse_size("16.1 kB"), Bytes{16'100});
  EXPECT_EQ(parse_size("1.07 GB"), Bytes{1'070'000'000});
  EXPECT_EQ(parse_size("0.27 TB"), Bytes{270'000'000'000});
  EXPECT_EQ(parse_size("1.0001 kB"), std::nullopt);
}

TEST(ParseSize, RefusesPartsOfAByteAndMissingOrAmbiguousUnits) {
  for (const char* text : {"0.5 B", "4096", "1 KB", "1 kb", "1 GB/s", "9e18 B"}) {
    EXPECT_EQ(parse_size(text), std::nullopt) << text;
  }
}

TEST(ParseBandwidth, IsDecimalUnlessABinaryUnitIsWritten) {
  EXPECT_EQ(parse_bandwidth("450 GB/s"), BytesPerSecond{450e9});
  EXPECT_EQ(parse_bandwidth("3.35TB/s"), BytesPerSecond{3.35e12});
  EXPECT_EQ(parse_bandwidth("1 GiB/s"), BytesPerSecond{1073741824.0});
  EXPECT_EQ(parse_bandwidth("400 Gbit/s"), BytesPerSecond{50e9});
  EXPECT_EQ(parse_bandwidth("450"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("450 GB"), std::nullopt);
  EXPECT_EQ(parse_bandwidth("1e308 TB/s"), std::nullopt);
}

TEST(ParseComputeRate, ReadsFlopRates) {
  EXPECT_EQ(parse_compute_rate("989 TFLOP/s"), FlopsPerSecond{989e12});
  EXPECT_EQ(parse_compute_rate("1.979 PFLOP/s"), FlopsPerSecond{1.979e15});
  EXPECT_EQ(parse_compute_rate("989 TFLOPS"), std::nullopt);
}

TEST(ParseCount, IsBinary) {
  EXPECT_EQ(parse_count("128K"), 131'072);
  EXPECT_EQ(parse_count("1M"), 1'048'576);
  EXPECT_EQ(parse_count("1.5K"), 1536);
  EXPECT_EQ(parse_count("8"), 8);
  for (const char* text : {"", "K", "010", "-1", "1e3", "1_000", "3.7", "0x10", "8 K8", "8KB"}) {
    EXPECT_EQ(parse_count(text), std::nullopt) << text;
  }
}

TEST(ParseInteger, ReadsWholeNumbersOnly) {
  EXPECT_EQ(parse_integer("0"), 0);
  EXPECT_EQ(parse_integer("9007199254740992"), 9007199254740992);
  for (const char* text : {"", "07", "1K", "1.0", "-1", "1e3", "99999999999999999999"}) {
    EXPECT_EQ(parse_integer(text), std::nullopt) << text;
  }
}

TEST(ParseNumber, ReadsDecimalsWithSignAndExponent) {
  EXPECT_EQ(parse_number("0.5"), 0.5);
  EXPECT_EQ(parse_number("-2"), -2.0);
  EXPECT_EQ(parse_number("1e-3"), 0.001);
  for (const char* text : {"", "-", "--1", ".5", "00.5", "nan", "inf", "1 ", "1x", "1e999"}) {
    EXPECT_EQ(parse_number(text), std::nullopt) << text;
  }
}

TEST(Format, WritesTheNaturalUnit) {
  EXPECT_EQ(format_duration(5us), "5 us");
  EXPECT_EQ(format_duration(Duration{2'574'000}), "2.574 us");
  EXPECT_EQ(format_duration(Duration{0}), "0 ps");
  EXPECT_EQ(format_duration(90s), "90 s");
  EXPECT_EQ(format_size({32'768}), "32 KiB");
  EXPECT_EQ(format_size({1000}), "1000 B");
  EXPECT_EQ(format_bandwidth({450e9}), "450 GB/s");
  EXPECT_EQ(format_count(131'072), "128K");
  EXPECT_EQ(format_count(1000), "1000");
  EXPECT_EQ(format_count(0), "0");
}

TEST(Format, RatesInWordsStayInTheirUnit) {
  EXPECT_EQ(bandwidth_in_words({450e9 / 7}), "64.2857 GB/s");
  EXPECT_EQ(bandwidth_in_words({450e9}), "450 GB/s");
  EXPECT_EQ(bandwidth_in_words({449.96e9}), "449.96 GB/s");
  EXPECT_EQ(bandwidth_in_words({0.5}), "0.5 B/s");
}

TEST(Format, ReadsBackToTheSameValue) {
  std::uint64_t state = 1;
  for (int i = 0; i < 20'000; ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto number = static_cast<std::int64_t>(state >> (11 + state % 50));
    EXPECT_EQ(parse_size(format_size({number})), Bytes{number});
    EXPECT_EQ(parse_count(format_count(number)), number);
    const Duration duration{number % 1'000'000'000'000'000};
    EXPECT_EQ(parse_duration(format_duration(duration)), duration) << number;
    const BytesPerSecond rate{static_cast<double>(number) / 7.0};
    EXPECT_EQ(parse_bandwidth(format_bandwidth(rate)), rate) << number;
  }
}

TEST(ParsePower, ReadsWattsAndNothingElse) {
  EXPECT_EQ(parse_power("700 W"), Watts{700.0});
  EXPECT_EQ(parse_power("1.3kW"), Watts{1300.0});
  EXPECT_EQ(parse_power("20 MW"), Watts{20e6});
  for (const char* text : {"", "700", "W", "-1 W", "700 w", "1 Wh"}) {
    EXPECT_EQ(parse_power(text), std::nullopt) << text;
  }
}

TEST(ParseSpan, ReadsMonthsToo) {
  EXPECT_EQ(parse_span("365 days"), Seconds{365.0 * 86400.0});
  EXPECT_EQ(parse_span("1 d"), Seconds{86400.0});
  EXPECT_EQ(parse_span("36h"), Seconds{36.0 * 3600.0});
  EXPECT_EQ(parse_span("10 min"), Seconds{600.0});
  EXPECT_EQ(parse_span("500 ms"), Seconds{0.5});
  for (const char* text : {"", "60", "days", "-1 h", "1 year", "2027-03-01"}) {
    EXPECT_EQ(parse_span(text), std::nullopt) << text;
  }
}

TEST(ParseDate, ReadsDaysOfTheCalendar) {
  const auto days = *parse_date("2027-03-01") - *parse_date("2026-12-01");
  EXPECT_EQ(days.count(), 90);
  EXPECT_EQ((*parse_date("2028-03-01") - *parse_date("2028-02-28")).count(), 2);  // a leap year
  for (const char* text : {"", "2026-02-30", "2026-13-01", "26-1-1", "2026/01/01", "2026-1-01", "2026-01-01 "}) {
    EXPECT_EQ(parse_date(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace commfuse
