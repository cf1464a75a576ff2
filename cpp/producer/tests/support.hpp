// Helpers for all producer tests: exported structs that are released, and checks of the counters.
#ifndef FLETCHING_PRODUCER_TESTS_SUPPORT_HPP
#define FLETCHING_PRODUCER_TESTS_SUPPORT_HPP

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <ranges>
#include <string>
#include <type_traits>
#include <vector>

#include "producer.h"

inline std::vector<std::string> case_names() {
  std::vector<std::string> names(static_cast<size_t>(FletchingProducerCaseCount()));
  for (size_t i = 0; i < names.size(); ++i) {
    names[i] = FletchingProducerCaseName(static_cast<int32_t>(i));
  }
  return names;
}

inline FletchingProducerCounters counters_now() {
  FletchingProducerCounters counters;
  FletchingProducerReadCounters(&counters);
  return counters;
}

// Does not check `double_released`; the test does.
inline void expect_at_rest() {
  const FletchingProducerCounters counters = counters_now();
  EXPECT_EQ(counters.live_allocations, 0);
  EXPECT_EQ(counters.live_schemas, 0);
  EXPECT_EQ(counters.live_arrays, 0);
  EXPECT_EQ(counters.live_streams, 0);
  EXPECT_EQ(counters.released, counters.exported);
}

// Checks that the counters are at rest before and after each test.
class ProducerTest : public testing::Test {
 protected:
  void SetUp() override { FletchingProducerResetCounters(); }
  void TearDown() override {
    expect_at_rest();
    EXPECT_EQ(counters_now().double_released, expected_double_released_);
  }

  int64_t expected_double_released_ = 0;
};

// Moves a struct: copies it and marks the source as released.
template <class Struct>
Struct move(Struct& source) {
  const Struct target = source;
  source.release = nullptr;
  return target;
}

template <class Struct>
void release(Struct& released) {
  if (released.release != nullptr) released.release(&released);
  EXPECT_EQ(released.release, nullptr);
}

// One case, exported for the duration of the scope.
struct Exported {
  explicit Exported(std::string name) : case_name(std::move(name)) {
    // Filled with garbage: the export must zero it.
    std::memset(&schema, 0xA5, sizeof(schema));
    std::memset(&array, 0xA5, sizeof(array));
    EXPECT_EQ(FletchingProducerExportArray("cpu", case_name.c_str(), &schema, &array, &message), 0)
        << message.text;
  }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;
  ~Exported() {
    release(schema);
    release(array.array);
  }

  int verify() {
    return FletchingProducerVerifyArray("cpu", case_name.c_str(), &schema, &array, &message);
  }

  std::string case_name;
  ArrowSchema schema;
  ArrowDeviceArray array;
  FletchingMessage message{};
};

// Changes foreign structs in place and restores them before they are released.
class Changes {
 public:
  Changes() = default;
  Changes(const Changes&) = delete;
  Changes& operator=(const Changes&) = delete;
  ~Changes() {
    for (const auto& undo : undo_ | std::views::reverse) undo();
  }

  template <class Field>
  void set(Field& field, std::type_identity_t<Field> value) {
    undo_.push_back([&field, old = field] { field = old; });
    field = value;
  }

 private:
  std::vector<std::function<void()>> undo_;
};

#endif  // FLETCHING_PRODUCER_TESTS_SUPPORT_HPP
