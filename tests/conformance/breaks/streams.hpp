// SPDX-License-Identifier: Apache-2.0
//
// Streams of both kinds with a faulty callback, as output and as input of the C++ subject.
#ifndef FLETCHING_TESTS_CONFORMANCE_BREAKS_STREAMS_HPP
#define FLETCHING_TESTS_CONFORMANCE_BREAKS_STREAMS_HPP

#include <type_traits>

#include "breaks.hpp"

namespace fletching::conformance {

template <class Stream>
using BatchOf =
    std::conditional_t<std::is_same_v<Stream, ArrowArrayStream>, ArrowArray, ArrowDeviceArray>;

inline ArrowArray& base_of(ArrowArray& array) { return array; }
inline ArrowArray& base_of(ArrowDeviceArray& array) { return array.array; }

template <class Stream>
Stream* inner_of(Stream* self) {
  return static_cast<Stream*>(self->private_data);
}

template <class Stream>
int next_of(Stream* self, BatchOf<Stream>* out) {
  return inner_of(self)->get_next(inner_of(self), out);
}

/// Forwards every call to another stream. A fault replaces one callback.
template <class Stream>
Stream over(const Stream& inner) {
  Stream outer = inner;
  outer.get_schema = [](Stream* self, ArrowSchema* out) {
    return inner_of(self)->get_schema(inner_of(self), out);
  };
  outer.get_next = &next_of<Stream>;
  outer.get_last_error = [](Stream* self) {
    return inner_of(self)->get_last_error(inner_of(self));
  };
  outer.release = [](Stream* self) {
    inner_of(self)->release(inner_of(self));
    delete inner_of(self);
    self->release = nullptr;
  };
  outer.private_data = new Stream(inner);
  return outer;
}

/// A subject whose streams of one kind have the fault that `Plant`, without captures, adds.
template <class Plant>
FletchingSubject streams_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.stream = [](void* context, ArrowArrayStream* in, ArrowArrayStream* out,
                      FletchingMessage* message) {
    const int code = good().stream(context, in, out, message);
    if (code == 0) Plant()(*out = over(*out));
    return code;
  };
  return subject;
}
template <class Plant>
FletchingSubject device_streams_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.device_stream = [](void* context, ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out,
                             FletchingMessage* message) {
    const int code = good().device_stream(context, in, out, message);
    if (code == 0) Plant()(*out = over(*out));
    return code;
  };
  return subject;
}

/// A subject that reads the streams of one kind with the fault.
template <class Plant>
FletchingSubject reads_streams_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.stream = [](void* context, ArrowArrayStream* in, ArrowArrayStream* out,
                      FletchingMessage* message) {
    Plant()(*in = over(*in));
    return good().stream(context, in, out, message);
  };
  return subject;
}
template <class Plant>
FletchingSubject reads_device_streams_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.device_stream = [](void* context, ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out,
                             FletchingMessage* message) {
    Plant()(*in = over(*in));
    return good().device_stream(context, in, out, message);
  };
  return subject;
}

inline bool is_of_device_streams() {
  return name_of_test().starts_with("Device") || group_of_test() == "device-streams";
}

/// Expects the case to find the fault in the kind of stream that the test or its group names.
template <class Plant>
void finds_in_output(const char* case_name, Plant plant, const std::string& what = "") {
  finds(is_of_device_streams() ? device_streams_with(plant) : streams_with(plant), case_name, what);
}
template <class Plant>
void finds_in_reader(const char* case_name, Plant plant, const std::string& what = "") {
  finds(is_of_device_streams() ? reads_device_streams_with(plant) : reads_streams_with(plant),
        case_name, what);
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_BREAKS_STREAMS_HPP
