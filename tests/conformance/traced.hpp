// SPDX-License-Identifier: Apache-2.0
//
// Reports the calls that pass between the suite and a plain function, so that the last one before a
// crash is known.
#ifndef FLETCHING_TESTS_CONFORMANCE_TRACED_HPP
#define FLETCHING_TESTS_CONFORMANCE_TRACED_HPP

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <type_traits>
#include <utility>

#include "run.hpp"

namespace fletching::conformance {

/// Results other than 0 of the stream callbacks since the start of the process.
inline std::atomic<std::int64_t> g_failures = 0;

/// Keeps a hook until the process ends, so that a late call on its struct reaches valid memory.
template <class Hook>
Hook* keep(Hook hook) {
  static std::mutex mutex;
  static std::deque<Hook> hooks;
  const std::scoped_lock lock(mutex);
  return &hooks.emplace_back(std::move(hook));
}

inline ArrowArray& base_of(ArrowArray& array) noexcept { return array; }
inline ArrowArray& base_of(ArrowDeviceArray& array) noexcept { return array.array; }
inline ArrowSchema& base_of(ArrowSchema& schema) noexcept { return schema; }

/// Makes a call that returns an errno value, and reports it.
template <class Call>
int traced_call(const std::string& name, const Call& call) {
  note_call(name);
  const int code = call();
  if (code != 0) ++g_failures;
  note_call(name + " returned " + std::to_string(code));
  return code;
}

template <class Base>
struct Traced {
  std::string name;
  void (*release)(Base*);
  void* private_data;
};

template <class Base>
void release_traced(Base* self) {
  auto* const traced = static_cast<Traced<Base>*>(self->private_data);
  Base inner = *self;
  inner.release = traced->release;
  inner.private_data = traced->private_data;
  note_call("release of " + traced->name);
  inner.release(&inner);
  note_call("release of " + traced->name + " returned");
  if (inner.release == nullptr) self->release = nullptr;
}

/// Hooks the release of a schema or an array.
template <class Base>
void trace(Base& base, std::string name) {
  if (base.release == nullptr) return;
  base.private_data = keep(Traced<Base>{std::move(name), base.release, base.private_data});
  base.release = &release_traced<Base>;
}

template <class Raw>
struct TracedStream {
  using Batch =
      std::conditional_t<std::is_same_v<Raw, ArrowArrayStream>, ArrowArray, ArrowDeviceArray>;

  Raw inner;
  std::int64_t schemas = 0;
  std::int64_t batches = 0;

  static TracedStream& of(Raw* self) { return *static_cast<TracedStream*>(self->private_data); }

  static int get_schema(Raw* self, ArrowSchema* out) {
    TracedStream& stream = of(self);
    const std::string name = "get_schema[" + std::to_string(stream.schemas++) + "]";
    const int code = traced_call(name, [&] { return stream.inner.get_schema(&stream.inner, out); });
    if (code == 0) trace(*out, name + ".schema");
    return code;
  }
  static int get_next(Raw* self, Batch* out) {
    TracedStream& stream = of(self);
    const std::string name = "get_next[" + std::to_string(stream.batches++) + "]";
    const int code = traced_call(name, [&] { return stream.inner.get_next(&stream.inner, out); });
    if (code == 0) trace(base_of(*out), name + ".array");
    return code;
  }
  static const char* get_last_error(Raw* self) {
    TracedStream& stream = of(self);
    note_call("get_last_error");
    const char* const text = stream.inner.get_last_error(&stream.inner);
    note_call("get_last_error returned");
    return text;
  }
  static void release(Raw* self) {
    TracedStream& stream = of(self);
    note_call("release of stream");
    stream.inner.release(&stream.inner);
    note_call("release of stream returned");
    if (stream.inner.release == nullptr) self->release = nullptr;
  }
};

/// Hooks the callbacks of a stream. A missing callback stays NULL.
template <class Raw>
void trace_stream(Raw& raw) {
  using Stream = TracedStream<Raw>;
  if (raw.release == nullptr) return;
  Stream* const stream = keep(Stream{raw});
  if (raw.get_schema != nullptr) raw.get_schema = &Stream::get_schema;
  if (raw.get_next != nullptr) raw.get_next = &Stream::get_next;
  if (raw.get_last_error != nullptr) raw.get_last_error = &Stream::get_last_error;
  raw.release = &Stream::release;
  raw.private_data = stream;
}

}  // namespace fletching::conformance

#endif  // FLETCHING_TESTS_CONFORMANCE_TRACED_HPP
