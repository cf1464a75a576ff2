// SPDX-License-Identifier: Apache-2.0
//
// A foreign producer of streams in plain C callbacks: it follows its script, counts calls, and
// records violations by the consumer.
#ifndef FLETCHING_TESTS_STREAM_SUPPORT_HPP
#define FLETCHING_TESTS_STREAM_SUPPORT_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "fletching/check_array.hpp"
#include "fletching/owner.hpp"
#include "fletching/stream.hpp"

namespace fletching::testing {

/// The behavior of one get_next.
struct Step {
  int code = 0;
  ArrowDeviceType device_type = ARROW_DEVICE_CPU;
  std::int64_t reserved = 0;
};

/// The end follows the last step.
// For gcc, which otherwise warns about scripts that name only some of the fields.
// NOLINTBEGIN(readability-redundant-member-init)
struct Script {
  std::vector<Step> steps = {};
  int schema_code = 0;
  bool schema_released = false;
  const char* text = "the foreign text";
  ArrowDeviceType device_type = ARROW_DEVICE_CPU;

  std::size_t at = 0;
  int live = 0;  // unreleased schemas and arrays
  int released_streams = 0;
  int asked_for_text = 0;
  int pulls = 0;
  std::vector<std::string> broken = {};  // violations by the consumer
  std::vector<char> given_text = {};
  bool failed = false;  // the last call has failed
  bool inside = false;  // a call is running
  bool gone = false;
};
// NOLINTEND(readability-redundant-member-init)

/// A running call: no other call may begin during it, and none after release.
class Call {
 public:
  template <class Raw>
  explicit Call(Raw* self, const char* name) : script_(*static_cast<Script*>(self->private_data)) {
    if (script_.inside) script_.broken.emplace_back("two calls at once");
    if (script_.gone) script_.broken.push_back(std::string(name) + " after release");
    script_.inside = true;
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() { script_.inside = false; }

  Script& script() { return script_; }

  /// A call with an out-struct invalidates the last error message.
  template <class Out>
  Script& begin(const Out* out) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(out);
    if (std::any_of(bytes, bytes + sizeof *out, [](unsigned char b) { return b != 0; })) {
      script_.broken.emplace_back("an out-struct that is not zeroed");
    }
    std::ranges::fill(script_.given_text, '!');
    script_.failed = false;
    return script_;
  }

 private:
  Script& script_;
};

template <class Base>
void release_base(Base* self) {
  auto& script = *static_cast<Script*>(self->private_data);
  --script.live;
  self->release = nullptr;
}

/// The buffers of batch `at`, an array of int32 with the values at + 1, at + 2 and so on.
inline const void** buffers_of_batch(std::size_t at) {
  constexpr std::size_t kBatches = 16;
  // Initialized once: streams on several threads share them.
  static const auto values = [] {
    std::array<std::int32_t, 2 * kBatches> filled{};
    for (std::size_t i = 0; i < filled.size(); ++i) filled[i] = static_cast<std::int32_t>(i + 1);
    return filled;
  }();
  static auto lists = [] {
    std::array<std::array<const void*, 2>, kBatches> filled{};
    for (std::size_t i = 0; i < kBatches; ++i) filled[i] = {nullptr, values.data() + i};
    return filled;
  }();
  return lists.at(at).data();
}

inline void fill(ArrowArray* out, Script& script, const Step& /*step*/) {
  out->length = static_cast<std::int64_t>(script.at) + 1;
  out->n_buffers = 2;
  out->buffers = buffers_of_batch(script.at);
  out->release = release_base<ArrowArray>;
  out->private_data = &script;
  ++script.live;
}
inline void fill(ArrowDeviceArray* out, Script& script, const Step& step) {
  fill(&out->array, script, step);
  out->device_type = step.device_type;
  out->device_id = -1;
  out->reserved[2] = step.reserved;
}

template <class Raw>
int foreign_get_schema(Raw* self, ArrowSchema* out) {
  Call call(self, "get_schema");
  Script& script = call.begin(out);
  script.failed = script.schema_code != 0;
  if (script.failed || script.schema_released) return script.schema_code;
  out->format = "i";
  out->name = "values";
  out->release = release_base<ArrowSchema>;
  out->private_data = &script;
  ++script.live;
  return 0;
}

template <class Raw, class Out>
int foreign_get_next(Raw* self, Out* out) {
  Call call(self, "get_next");
  Script& script = call.begin(out);
  ++script.pulls;
  if (script.at == script.steps.size()) return 0;
  const Step& step = script.steps[script.at];
  script.failed = step.code != 0;
  if (!script.failed) fill(out, script, step);
  ++script.at;
  return step.code;
}

template <class Raw>
const char* foreign_get_last_error(Raw* self) {
  Call call(self, "get_last_error");
  Script& script = call.script();
  if (!script.failed) script.broken.emplace_back("get_last_error without an error");
  ++script.asked_for_text;
  if (script.text == nullptr) return nullptr;
  script.given_text.assign(script.text, script.text + std::strlen(script.text) + 1);
  return script.given_text.data();
}

template <class Raw>
void foreign_release(Raw* self) {
  auto& script = *static_cast<Script*>(self->private_data);
  ++script.released_streams;
  script.gone = true;
  self->release = nullptr;
}

/// A stream over `script`, which must outlive the stream and its structs.
template <class Raw>
Owner<Raw> foreign_stream(Script& script) {
  Owner<Raw> stream;
  Raw* raw = stream.out();
  if constexpr (std::is_same_v<Raw, ArrowDeviceArrayStream>) raw->device_type = script.device_type;
  raw->get_schema = foreign_get_schema<Raw>;
  raw->get_next = foreign_get_next<Raw>;
  raw->get_last_error = foreign_get_last_error<Raw>;
  raw->release = foreign_release<Raw>;
  raw->private_data = &script;
  return stream;
}

/// Returns the next batch or error of `reader`, which must not be at its end.
template <class Reader>
Result<typename std::remove_cvref_t<Reader>::batch_type> next_of(Reader&& reader) {
  auto batch = reader.next();
  if (batch.has_value()) return *std::move(batch);
  ADD_FAILURE() << "next() is empty";
  return Error(ENODATA, "next() is empty");
}

inline std::int64_t length_of(const Array& array) { return array->length; }
inline std::int64_t length_of(const DeviceArray& array) { return array->array.length; }

/// Expects that the batch fits the schema and has the values of a batch of its length.
template <class Raw>
void expect_whole(const Schema& schema, const Owner<Raw>& batch) {
  const Status fits = verify_array(*schema, *batch);
  ASSERT_TRUE(fits) << fits.error().message();
  const ArrowArray& array = detail::base(*batch.get());
  const auto* values = static_cast<const std::int32_t*>(array.buffers[1]);
  for (std::int64_t i = 0; i < array.length; ++i) ASSERT_EQ(values[i], array.length + i);
}

/// Expects no live structs, one release of the stream, and no violations.
inline void expect_clean(const Script& script) {
  EXPECT_EQ(script.live, 0);
  EXPECT_EQ(script.released_streams, 1);
  for (const std::string& line : script.broken) ADD_FAILURE() << line;
}

}  // namespace fletching::testing

#endif  // FLETCHING_TESTS_STREAM_SUPPORT_HPP
