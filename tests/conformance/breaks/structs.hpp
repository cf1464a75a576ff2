// SPDX-License-Identifier: Apache-2.0
//
// Schemas and arrays with a faulty field or release, as output of the C++ subject, and subjects
// that mishandle their input.
#ifndef FLETCHING_TESTS_CONFORMANCE_BREAKS_STRUCTS_HPP
#define FLETCHING_TESTS_CONFORMANCE_BREAKS_STRUCTS_HPP

#include <cerrno>

#include "breaks.hpp"

namespace fletching::conformance {

template <class Struct>
Struct* within(Struct* self) {
  return static_cast<Struct*>(self->private_data);
}

template <class Struct>
void release_inner(Struct* self) {
  within(self)->release(within(self));
  delete within(self);
}

/// A copy of a struct. Its release releases the original, whatever fields a fault changes.
template <class Struct>
Struct around(const Struct& inner) {
  Struct outer = inner;
  outer.release = [](Struct* self) {
    release_inner(self);
    self->release = nullptr;
  };
  outer.private_data = new Struct(inner);
  return outer;
}

/// A subject whose schemas have the fault that `Plant`, without captures, adds.
template <class Plant>
FletchingSubject schemas_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.schema = [](void* context, ArrowSchema* in, ArrowSchema* out, FletchingMessage* message) {
    const int code = good().schema(context, in, out, message);
    if (code == 0) Plant()(*out = around(*out));
    return code;
  };
  return subject;
}

/// A subject whose arrays, or their schemas, have the fault.
template <class Plant>
FletchingSubject arrays_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.array = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in,
                     ArrowSchema* out_schema, ArrowDeviceArray* out, FletchingMessage* message) {
    const int code = good().array(context, schema, in, out_schema, out, message);
    if (code == 0) {
      *out_schema = around(*out_schema);
      out->array = around(out->array);
      Plant()(*out_schema, *out);
    }
    return code;
  };
  return subject;
}

/// A subject that runs `Plant` before it imports a schema. A nonzero code ends the call.
template <class Plant>
FletchingSubject takes_schemas_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.schema = [](void* context, ArrowSchema* in, ArrowSchema* out, FletchingMessage* message) {
    const int code = Plant()(*in);
    return code != 0 ? code : good().schema(context, in, out, message);
  };
  return subject;
}
template <class Plant>
FletchingSubject takes_arrays_with(Plant /*plant*/) {
  FletchingSubject subject = good();
  subject.array = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in,
                     ArrowSchema* out_schema, ArrowDeviceArray* out, FletchingMessage* message) {
    const int code = Plant()(*in);
    return code != 0 ? code : good().array(context, schema, in, out_schema, out, message);
  };
  return subject;
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_BREAKS_STRUCTS_HPP
