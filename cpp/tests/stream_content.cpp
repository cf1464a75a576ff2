// SPDX-License-Identifier: Apache-2.0
//
// Invalid stream contents. This does not compile: check_errors.cmake compares the compiler's
// errors, one line per call, with the comments here.
#include <span>
#include <utility>
#include <vector>

#include "fletching/stream_producer.hpp"

using namespace fletching;

struct Immovable {
  Immovable() = default;
  Immovable(const Immovable&) = delete;
  Immovable& operator=(const Immovable&) = delete;
  DeviceArray operator()() const { return {}; }
};

template <class Content>
void stream_of(Content&& content) {
  (void)make_device_stream(Schema(), ARROW_DEVICE_CPU, std::forward<Content>(content));
}

void make(std::vector<DeviceArray> batches, const std::vector<DeviceArray> constant) {
  // error: stream content: expected a callable without arguments, or an input range
  stream_of(7);
  // error: stream content: expected a callable without arguments, or an input range
  stream_of([](int) { return DeviceArray(); });

  // error: stream content: the callable returns another type: expected DeviceArray
  stream_of([] { return Array(); });
  // error: stream content: the callable returns another type: expected DeviceArray
  stream_of([] {});

  // error: stream content: the elements are of another type, or const: expected a range of
  stream_of(std::vector<Array>());
  // error: stream content: the elements are of another type, or const: expected a range of
  stream_of(std::span(constant));
  // error: stream content: the elements are of another type, or const: expected a range of
  (void)make_array_stream(Schema(), std::vector<DeviceArray>());

  // error: stream content: the range is an lvalue or const, and batches cannot be copied
  stream_of(batches);
  // error: stream content: the range is an lvalue or const, and batches cannot be copied
  stream_of(std::move(constant));

  // error: stream content: cannot be moved or copied into the stream
  stream_of(Immovable());
}
