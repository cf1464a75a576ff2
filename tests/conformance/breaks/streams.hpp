// SPDX-License-Identifier: Apache-2.0
//
// Streams of the C++ subject with a faulty callback.
#ifndef FLETCHING_TESTS_CONFORMANCE_BREAKS_STREAMS_HPP
#define FLETCHING_TESTS_CONFORMANCE_BREAKS_STREAMS_HPP

#include "breaks.hpp"

namespace fletching::conformance {

inline ArrowDeviceArrayStream* inner_of(ArrowDeviceArrayStream* self) {
  return static_cast<ArrowDeviceArrayStream*>(self->private_data);
}

/// Passes every call to another stream; a fault replaces one callback.
inline ArrowDeviceArrayStream over(ArrowDeviceArrayStream inner) {
  ArrowDeviceArrayStream outer{};
  outer.device_type = inner.device_type;
  outer.get_schema = [](ArrowDeviceArrayStream* self, ArrowSchema* out) {
    return inner_of(self)->get_schema(inner_of(self), out);
  };
  outer.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
    return inner_of(self)->get_next(inner_of(self), out);
  };
  outer.get_last_error = [](ArrowDeviceArrayStream* self) {
    return inner_of(self)->get_last_error(inner_of(self));
  };
  outer.release = [](ArrowDeviceArrayStream* self) {
    inner_of(self)->release(inner_of(self));
    delete inner_of(self);
    self->release = nullptr;
  };
  outer.private_data = new ArrowDeviceArrayStream(inner);
  return outer;
}

/// A subject whose device streams have the fault that `Plant`, without captures, puts in.
template <class Plant>
FletchingSubject device_streams_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.device_stream = [](void* context, ArrowDeviceArrayStream* in, ArrowDeviceArrayStream* out,
                             FletchingMessage* message) {
    const int code = good().device_stream(context, in, out, message);
    if (code == 0) {
      *out = over(*out);
      Plant()(*out);
    }
    return code;
  };
  return subject;
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_BREAKS_STREAMS_HPP
