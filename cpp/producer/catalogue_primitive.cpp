// Fixed-width cases: numbers, booleans, decimals, times. Also nulls and offsets, which apply to
// every type and are tested with numbers.
#include <cmath>
#include <limits>

#include "builders.hpp"

namespace fletching::producer {
namespace {

// 1, minimum, null, maximum.
template <class T>
Node extremes(std::string format) {
  return fixed<T>(std::move(format),
                  {T{1}, std::numeric_limits<T>::min(), kNull, std::numeric_limits<T>::max()});
}

// Memory representation of the interval types.
struct DayTime {
  int32_t days;
  int32_t milliseconds;
};
struct MonthDayNano {
  int32_t months;
  int32_t days;
  int64_t nanoseconds;
};

void add_numbers(NamedNodes& cases) {
  constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
  constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
  constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
  cases.emplace_back("int32", int32({1, 2, kMin32, kMax32}));
  cases.emplace_back("int64", int64({1, -2, kMin64, kMax64}));
  cases.emplace_back("int8", extremes<int8_t>("c"));
  cases.emplace_back("int16", extremes<int16_t>("s"));
  cases.emplace_back("uint8", extremes<uint8_t>("C"));
  cases.emplace_back("uint16", extremes<uint16_t>("S"));
  cases.emplace_back("uint32", extremes<uint32_t>("I"));
  cases.emplace_back("uint64", extremes<uint64_t>("L"));
  // 1.5, -2, the maximum, the smallest value above 0, infinity
  cases.emplace_back("float16",
                     fixed<uint16_t>("e", {0x3E00, 0xC000, kNull, 0x7BFF, 0x0001, 0x7C00}));
  cases.emplace_back("float32", fixed<float>("f", {0.5F, -0.0F, kNull, -HUGE_VALF, 1e-45F}));
  cases.emplace_back("float64", fixed<double>("g", {0.5, -0.0, 1e300, HUGE_VAL}));
  cases.emplace_back("bool", boolean({true, false, kNull, true, true, false, true, false, true}));
  cases.emplace_back("null", null(3));
}

void add_decimals(NamedNodes& cases) {
  cases.emplace_back("decimal32", decimal("d:9,2,32", 4, {"150", kNull, "-999999999"}));
  cases.emplace_back("decimal64", decimal("d:18,3,64", 8, {"1500", kNull, "-999999999999999999"}));
  cases.emplace_back("decimal128",
                     decimal("d:38,2", 16, {"150", kNull, "-9999999999999999999999999"}));
  cases.emplace_back("decimal128_bits", decimal("d:20,0,128", 16, {"1", "-18446744073709551616"}));
  cases.emplace_back("decimal128_negative_scale", decimal("d:5,-2", 16, {"15", kNull, "-99999"}));
  cases.emplace_back("decimal256",
                     decimal("d:76,4,256", 32,
                             {"15000", kNull, "-100000000000000000000000000000000000000000001"}));
}

void add_times(NamedNodes& cases) {
  cases.emplace_back("date32", fixed<int32_t>("tdD", {0, -1, kNull, 20778}));
  cases.emplace_back("date64", fixed<int64_t>("tdm", {0, -86400000, kNull, 1795219200000}));
  cases.emplace_back("time32_s", fixed<int32_t>("tts", {0, kNull, 86399}));
  cases.emplace_back("time32_ms", fixed<int32_t>("ttm", {0, kNull, 86399999}));
  cases.emplace_back("time64_us", fixed<int64_t>("ttu", {0, kNull, 86399999999}));
  cases.emplace_back("time64_ns", fixed<int64_t>("ttn", {0, kNull, 86399999999999}));
  const Values<int64_t> moments = {0, -1, kNull, 1795262400};
  for (const char* const unit : {"s", "m", "u", "n"}) {
    const std::string name = std::string(unit) + (*unit == 's' ? "" : "s");
    const std::string format = std::string("ts") + unit + ":";
    cases.emplace_back("timestamp_" + name, fixed<int64_t>(format, moments));
    cases.emplace_back("timestamp_" + name + "_zone",
                       fixed<int64_t>(format + "Europe/Berlin", moments));
    cases.emplace_back("duration_" + name, fixed<int64_t>(std::string("tD") + unit, moments));
  }
  cases.emplace_back("interval_months", fixed<int32_t>("tiM", {0, -13, kNull, 14}));
  cases.emplace_back("interval_day_time",
                     fixed<DayTime>("tiD", {DayTime{1, 2}, kNull, DayTime{-3, -86399999}}));
  cases.emplace_back("interval_month_day_nano",
                     fixed<MonthDayNano>("tin", {MonthDayNano{1, -2, 3000000000}, kNull,
                                                 MonthDayNano{-14, 31, -1}}));
}

void add_nulls_and_offsets(NamedNodes& cases) {
  const Values<int32_t> eleven = {0, kNull, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  cases.emplace_back("nulls", int32({kNull, 1, kNull, 3, kNull, kNull, 6, 7, 8, kNull}));
  cases.emplace_back("nulls_only", int32({kNull, kNull, kNull}));
  cases.emplace_back("nulls_uncounted", uncounted(int32({kNull, 1, kNull, 3})));
  cases.emplace_back("nulls_uncounted_without_validity", uncounted(int32({1, 2, 3})));
  cases.emplace_back("nulls_none_with_validity", with_validity(int32({1, 2, 3})));
  // The null is skipped: null_count is 0 despite a validity bitmap.
  cases.emplace_back("offset", skip(3, int32(eleven)));
  cases.emplace_back("offset_uncounted", uncounted(skip(1, int32(eleven))));
  cases.emplace_back("offset_to_the_end", skip(11, int32(eleven)));
  cases.emplace_back("slice", shorten(2, skip(1, int32(eleven))));
  cases.emplace_back("bool_slice",
                     shorten(3, skip(7, boolean({true, false, kNull, true, true, false, true, false,
                                                 true, kNull, false, true, true, false}))));
  cases.emplace_back("null_slice", skip(1, null(3)));
}

}  // namespace

NamedNodes primitive_cases() {
  NamedNodes cases;
  add_numbers(cases);
  add_decimals(cases);
  add_times(cases);
  add_nulls_and_offsets(cases);
  return cases;
}

}  // namespace fletching::producer
