// SPDX-License-Identifier: Apache-2.0
//
// FLETCHING_VALIDATE. The variable is read once, so each test sets it in a child process.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>
#include <vector>

#ifndef _WIN32
#include <sys/wait.h>
#include <unistd.h>
#endif

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/handover.h"
#include "fletching/validate.h"

namespace fletching::testing {
namespace {

void import_struct(std::int32_t kind, void* address) {
  FletchingValidateHandover(FLETCHING_HANDOVER_IMPORT, kind, address);
}

ArrowSchema schema_with(std::int64_t flags) {
  ArrowSchema schema{};
  schema.format = "i";
  schema.flags = flags;
  schema.release = [](ArrowSchema* self) { self->release = nullptr; };
  return schema;
}

/// A warning: unknown bits.
void import_odd_schema() {
  ArrowSchema schema = schema_with(-1);
  import_struct(FLETCHING_HANDOVER_SCHEMA, &schema);
  schema.release(&schema);
}

void import_even_schema() {
  ArrowSchema schema = schema_with(0);
  import_struct(FLETCHING_HANDOVER_SCHEMA, &schema);
  schema.release(&schema);
}

/// An error: two releases of one schema.
void release_twice() {
  ArrowSchema schema = schema_with(0);
  import_struct(FLETCHING_HANDOVER_SCHEMA, &schema);
  ArrowSchema copy = schema;
  schema.release(&schema);
  copy.release(&copy);
}

/// Runs `body` in a child process. Its exit code is 0 unless `body` ends the process.
void expect(const char* value, const std::function<void()>& body,
            const std::function<bool(int)>& ends, const char* printed) {
  const auto run = [&] {
    ::setenv("FLETCHING_VALIDATE", value, 1);
    body();
    std::_Exit(0);
  };
  EXPECT_EXIT(run(), ends, printed) << value;
}

const ::testing::ExitedWithCode kReturns(0);
const ::testing::KilledBySignal kAborts(SIGABRT);

TEST(ValidateHandover, AbortsAtErrorsButNotAtWarnings) {
  expect("abort", release_twice, kAborts,
         "^fletching: import: schema: release was called again: expected one call for all copies "
         "\\(error, rule release.once, consumer\\)\n(qemu: [^\n]*\n)?$");
  expect("log", release_twice, kReturns, "^fletching: import: schema: release was called again");
  expect("abort", import_odd_schema, kReturns, "schema.flags-known");
}

TEST(ValidateHandover, ReadsLevel) {
  for (const char* value : {"log", "log:shape", "log:data"}) {
    expect(value, import_odd_schema, kReturns, "schema.flags-known");
  }
  expect("log:protocol", import_odd_schema, kReturns, "^$");
  expect("abort:protocol", release_twice, kAborts, "release.once");
}

TEST(ValidateHandover, ReportsUnknownValueOnce) {
  for (const char* value : {"1", "log:", "log:all", "abort:x", "LOG", ":data"}) {
    const auto twice = [] {
      release_twice();
      release_twice();
    };
    expect(value, twice, kReturns,
           "^fletching: FLETCHING_VALIDATE: unknown value: expected [^\n]*\n$");
  }
  expect("", release_twice, kReturns, "^$");
}

/// Whether a second import of the struct at `address` leaves it unchanged, and the first does not.
template <class Value>
bool is_wrapped_once(std::int32_t kind, Value* address) {
  const auto bytes = [&] {
    const auto* const begin = reinterpret_cast<const std::byte*>(address);
    return std::vector(begin, begin + sizeof *address);
  };
  const std::vector<std::byte> first = bytes();
  import_struct(kind, address);
  const std::vector<std::byte> wrapped = bytes();
  FletchingValidateHandover(FLETCHING_HANDOVER_EXPORT, kind, address);
  return first != wrapped && bytes() == wrapped;
}

template <class Raw>
Raw released_by(void (*release)(Raw*)) {
  Raw raw{};
  raw.release = release;
  return raw;
}

TEST(ValidateHandover, WrapsOnce) {
  const auto body = [] {
    ArrowSchema schema = schema_with(0);
    ArrowDeviceArray array{};
    array.device_type = ARROW_DEVICE_CPU;
    array.device_id = -1;
    array.array = released_by<ArrowArray>([](ArrowArray* self) { self->release = nullptr; });
    auto stream = released_by<ArrowArrayStream>([](auto* self) { self->release = nullptr; });
    auto devices = released_by<ArrowDeviceArrayStream>([](auto* self) { self->release = nullptr; });
    ArrowArray plain = array.array;
    const bool are_wrapped = is_wrapped_once(FLETCHING_HANDOVER_SCHEMA, &schema) &&
                             is_wrapped_once(FLETCHING_HANDOVER_ARRAY, &plain) &&
                             is_wrapped_once(FLETCHING_HANDOVER_DEVICE_ARRAY, &array) &&
                             is_wrapped_once(FLETCHING_HANDOVER_STREAM, &stream) &&
                             is_wrapped_once(FLETCHING_HANDOVER_DEVICE_STREAM, &devices);
    if (!are_wrapped) std::abort();
    schema.release(&schema);
    import_struct(FLETCHING_HANDOVER_SCHEMA, &schema);  // released
    if (schema.release != nullptr) std::abort();
  };
  expect("log:protocol", body, kReturns, "");  // the streams have no callbacks
}

TEST(ValidateHandover, WrapsPointedStructsOnce) {
  const auto body = [] {
    ArrowAsyncDeviceStreamHandler raw_handler{};
    ArrowAsyncDeviceStreamHandler* handler = &raw_handler;
    DLManagedTensor raw_tensor{};
    raw_tensor.dl_tensor.device = {kDLCPU, 0};
    DLManagedTensor* tensor = &raw_tensor;
    if (!is_wrapped_once(FLETCHING_HANDOVER_HANDLER, &handler)) std::abort();
    if (!is_wrapped_once(FLETCHING_HANDOVER_LEGACY_TENSOR, &tensor)) std::abort();
  };
  expect("log:protocol", body, kReturns, "");
}

/// A stream of one string that is not UTF-8.
ArrowArrayStream stream_of_odd_text() {
  auto stream = released_by<ArrowArrayStream>([](auto* self) { self->release = nullptr; });
  stream.get_schema = [](ArrowArrayStream*, ArrowSchema* out) {
    *out = schema_with(0);
    out->format = "u";
    return 0;
  };
  stream.get_next = [](ArrowArrayStream*, ArrowArray* out) {
    static constexpr std::int32_t kOffsets[] = {0, 1};
    static const void* buffers[] = {nullptr, kOffsets, "\xff"};
    *out = released_by<ArrowArray>([](ArrowArray* self) { self->release = nullptr; });
    out->length = 1;
    out->n_buffers = 3;
    out->buffers = buffers;
    return 0;
  };
  stream.get_last_error = [](ArrowArrayStream*) -> const char* { return nullptr; };
  return stream;
}

TEST(ValidateHandover, ReadsBuffersOfStreamAtLevelData) {
  const auto body = [] {
    ArrowArrayStream stream = stream_of_odd_text();
    import_struct(FLETCHING_HANDOVER_STREAM, &stream);
    ArrowSchema schema;
    ArrowArray batch;
    if (stream.get_schema(&stream, &schema) != 0) std::abort();
    if (stream.get_next(&stream, &batch) != 0) std::abort();
    schema.release(&schema);
    batch.release(&batch);
    stream.release(&stream);
  };
  expect("log:data", body, kReturns, "UTF-8");
  expect("log:shape", body, kReturns, "^$");
}

/// A stream of one batch. The wait for its event fails: the handle is NULL.
ArrowDeviceArrayStream stream_of_lost_event() {
  auto stream = released_by<ArrowDeviceArrayStream>([](auto* self) { self->release = nullptr; });
  stream.device_type = ARROW_DEVICE_CUDA_HOST;
  stream.get_schema = [](ArrowDeviceArrayStream*, ArrowSchema* out) {
    *out = schema_with(0);
    return 0;
  };
  stream.get_next = [](ArrowDeviceArrayStream*, ArrowDeviceArray* out) {
    static const void* buffers[2];
    static void* event = nullptr;
    *out = {};
    out->array = released_by<ArrowArray>([](ArrowArray* self) { self->release = nullptr; });
    out->array.n_buffers = 2;
    out->array.buffers = buffers;
    out->device_type = ARROW_DEVICE_CUDA_HOST;
    out->sync_event = &event;
    return 0;
  };
  stream.get_last_error = [](ArrowDeviceArrayStream*) -> const char* { return nullptr; };
  return stream;
}

TEST(ValidateHandover, DoesNotAbortAtLimitOfChecks) {
  const auto body = [] {
    ArrowDeviceArrayStream stream = stream_of_lost_event();
    import_struct(FLETCHING_HANDOVER_DEVICE_STREAM, &stream);
    ArrowSchema schema;
    ArrowDeviceArray batch;
    if (stream.get_schema(&stream, &schema) != 0) std::abort();
    if (stream.get_next(&stream, &batch) != 0) std::abort();
    schema.release(&schema);
    batch.array.release(&batch.array);
    stream.release(&stream);
  };
  expect("abort:data", body, kReturns, "\\(note, rule limit.event, both\\)\n$");
}

#ifndef _WIN32
void expect_success_of(pid_t child) {
  int status = -1;
  if (::waitpid(child, &status, 0) != child || status != 0) std::abort();
}

void fork_while_threads_import(int forks) {
  std::atomic<bool> is_over = false;
  const auto import_until_over = [&] {
    while (!is_over) import_even_schema();
  };
  const std::array importers{std::jthread(import_until_over), std::jthread(import_until_over),
                             std::jthread(import_until_over)};
  for (int i = 0; i < forks; ++i) {
    const pid_t child = ::fork();
    if (child == 0) {
      import_even_schema();
      ::_exit(0);
    }
    expect_success_of(child);
  }
  is_over = true;
}

TEST(ValidateHandover, ChildOfForkImports) {
  expect("log", [] { fork_while_threads_import(50); }, kReturns, "^$");
}

TEST(ValidateHandover, ChildOfForkDuringFirstImportImports) {
  const auto body = [] {
    for (int i = 0; i < 100; ++i) {
      const pid_t fresh = ::fork();
      if (fresh == 0) {
        fork_while_threads_import(1);
        ::_exit(0);
      }
      expect_success_of(fresh);
    }
  };
  expect("log", body, kReturns, "^$");
}
#endif

TEST(ValidateHandover, WrapsTensors) {
  const auto body = [] {
    DLManagedTensorVersioned raw{};
    raw.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    raw.dl_tensor.dtype = {kDLInt, 32, 1};
    raw.dl_tensor.device = {kDLCPU, 0};
    DLManagedTensorVersioned* tensor = &raw;
    FletchingValidateHandover(FLETCHING_HANDOVER_EXPORT, FLETCHING_HANDOVER_TENSOR, &tensor);
    DLManagedTensorVersioned* const wrapped = tensor;
    if (wrapped == &raw) std::abort();
    import_struct(FLETCHING_HANDOVER_TENSOR, &tensor);
    if (tensor != wrapped) std::abort();
    tensor->deleter(tensor);
    tensor->deleter(tensor);
    tensor = nullptr;
    import_struct(FLETCHING_HANDOVER_TENSOR, &tensor);
  };
  expect("log", body, kReturns,
         "^fletching: export: tensor: the deleter was called again: expected one call "
         "\\(warning, rule dlpack-managed.deleter-called, consumer\\)\n$");
}

TEST(ValidateHandover, PrintsWhyStructIsNotWrapped) {
  int unused = 0;
  expect(
      "log", [&] { import_struct(-1, &unused); }, kReturns,
      "^fletching: import: not validated: kind: unknown: expected a FLETCHING_HANDOVER_ value");
}

}  // namespace
}  // namespace fletching::testing
