// Cases of tests/corpus/hostile.json. "set" contains the fields that differ from a valid struct.
#ifndef FLETCHING_TESTS_HOSTILE_CASES_HPP
#define FLETCHING_TESTS_HOSTILE_CASES_HPP

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <nlohmann/json.hpp>

#include "account.h"

using nlohmann::json;

const json& changes_of(const Case* found);

/// Returns NULL for null. Valid for the lifetime of the library.
const char* text(const json& value);

/// The errno value of "error"; EIO by default.
int error_of(const json& set);

template <class Value>
void assign(const json& set, const char* key, Value& field) {
  if (set.contains(key)) field = set[key].get<Value>();
}

/// Does not allocate, because callbacks called from C use it.
inline void assign(const json& set, const char* key, const char*& field) {
  const auto found = set.find(key);
  if (found != set.end()) field = text(*found);
}

/// Runs `body` and converts its exceptions to errno values, because C cannot catch them.
template <class Body>
int guarded(FletchingMessage* message, Body body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return Fail(message, ENOMEM, "out of memory");
  } catch (const std::exception& error) {
    return Fail(message, EINVAL, "%s", error.what());
  }
}

inline void change_device(ArrowDeviceArray* out, const json& set) {
  assign(set, "device_type", out->device_type);
  assign(set, "device_id", out->device_id);
  if (set.contains("reserved")) std::memset(out->reserved, set["reserved"], sizeof out->reserved);
  if (set.contains("sync_event")) {
    out->sync_event = reinterpret_cast<void*>(set["sync_event"].get<uintptr_t>());
  }
}

#endif  // FLETCHING_TESTS_HOSTILE_CASES_HPP
