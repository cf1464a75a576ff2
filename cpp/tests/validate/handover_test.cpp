// SPDX-License-Identifier: Apache-2.0
//
// FLETCHING_VALIDATE. The variable is read once, so each test sets it in a child process.
#include <gtest/gtest.h>

#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <functional>

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
         "\\(error, rule release.once, consumer\\)\n$");
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

TEST(ValidateHandover, WrapsOnce) {
  const auto body = [] {
    ArrowSchema schema = schema_with(0);
    import_struct(FLETCHING_HANDOVER_SCHEMA, &schema);
    const ArrowSchema wrapped = schema;
    FletchingValidateHandover(FLETCHING_HANDOVER_EXPORT, FLETCHING_HANDOVER_SCHEMA, &schema);
    if (schema.private_data != wrapped.private_data) std::abort();
    schema.release(&schema);
    import_struct(FLETCHING_HANDOVER_SCHEMA, &schema);  // released
    if (schema.release != nullptr) std::abort();
  };
  expect("log", body, kReturns, "^$");
}

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
