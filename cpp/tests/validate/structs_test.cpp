// SPDX-License-Identifier: Apache-2.0
//
// Validation of single schemas, arrays and tensors.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

#include "findings.hpp"
#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/validate.h"
#include "fletching/validate.hpp"

namespace fletching::testing {
namespace {

using Found = std::vector<std::string>;

const char* const kFormats[] = {"i", "u"};

ArrowSchema schema_of(const char* format, int* releases) {
  ArrowSchema schema{};
  schema.format = format;
  schema.private_data = releases;
  schema.release = [](ArrowSchema* self) {
    ++*static_cast<int*>(self->private_data);
    self->release = nullptr;
  };
  return schema;
}

struct Int32Array {
  Int32Array() {
    raw.array.n_buffers = 2;
    raw.array.buffers = buffers;
    raw.array.private_data = &releases;
    raw.array.release = [](ArrowArray* self) {
      ++*static_cast<int*>(self->private_data);
      self->release = nullptr;
    };
    raw.device_type = ARROW_DEVICE_CPU;
    raw.device_id = -1;
  }

  const void* buffers[2] = {};
  int releases = 0;
  ArrowDeviceArray raw{};
};

TEST(ValidateStructs, ReportsSecondRelease) {
  Findings found;
  const FletchingValidateOptions options = found.options(FLETCHING_VALIDATE_PROTOCOL);
  int releases = 0;
  ArrowSchema schema = schema_of("i", &releases);
  Int32Array array;
  ASSERT_EQ(FletchingValidateSchema(&schema, &options, nullptr), 0);
  ASSERT_EQ(FletchingValidateArray(nullptr, &array.raw.array, &options, nullptr), 0);
  ArrowSchema schema_copy = schema;
  ArrowArray array_copy = array.raw.array;
  schema.release(&schema);
  array.raw.array.release(&array.raw.array);
  EXPECT_EQ(found.list, Found{});
  schema_copy.release(&schema_copy);
  array_copy.release(&array_copy);
  EXPECT_EQ(found.list,
            (Found{"release.once error consumer schema", "release.once error consumer array"}));
  EXPECT_EQ(releases + array.releases, 2);
}

TEST(ValidateStructs, ComparesWithSchemaAboveLevelProtocol) {
  for (const char* format : kFormats) {
    for (const std::int32_t level : {FLETCHING_VALIDATE_PROTOCOL, FLETCHING_VALIDATE_SHAPE}) {
      Findings found;
      const FletchingValidateOptions options = found.options(level);
      int releases = 0;
      ArrowSchema schema = schema_of(format, &releases);
      Int32Array array;
      array.raw.reserved[0] = 1;
      ASSERT_EQ(FletchingValidateDeviceArray(&schema, &array.raw, &options, nullptr), 0);
      Found expected;
      if (level == FLETCHING_VALIDATE_SHAPE) {
        expected.emplace_back("device-array.reserved-zero error producer array");
        if (format == kFormats[1])
          expected.emplace_back("array.n-buffers-of-type error producer array");
      }
      EXPECT_EQ(found.list, expected);
      array.raw.array.release(&array.raw.array);
      schema.release(&schema);
    }
  }
}

TEST(ValidateStructs, ChecksSchemaMembers) {
  Findings found;
  const FletchingValidateOptions options = found.options(FLETCHING_VALIDATE_SHAPE);
  int releases = 0;
  ArrowSchema schema = schema_of("i", &releases);
  schema.flags = 64;
  ASSERT_EQ(FletchingValidateSchema(&schema, &options, nullptr), 0);
  EXPECT_EQ(found.list, Found{"schema.flags-known warning producer schema"});
  schema.release(&schema);
}

TEST(ValidateStructs, ReportsLiveStructs) {
  Findings found;
  const FletchingValidateOptions options = found.options(FLETCHING_VALIDATE_PROTOCOL);
  const std::int64_t before = FletchingValidateLive();
  Int32Array array;
  ASSERT_EQ(FletchingValidateDeviceArray(nullptr, &array.raw, &options, nullptr), 0);
  EXPECT_EQ(FletchingValidateLive(), before + 1);
  EXPECT_EQ(found.list, Found{"release.once error consumer array"});
  array.raw.array.release(&array.raw.array);
  EXPECT_EQ(FletchingValidateLive(), before);
}

TEST(ValidateStructs, ReleasesImmediatelyUnderStress) {
  for (const std::uint32_t stress : kStress) {
    Findings found;
    found.stress = stress;
    const FletchingValidateOptions options = found.options(FLETCHING_VALIDATE_SHAPE);
    Int32Array array;
    ASSERT_EQ(FletchingValidateDeviceArray(nullptr, &array.raw, &options, nullptr), 0);
    array.raw.array.release(&array.raw.array);
    EXPECT_EQ(array.releases, 1) << stress;
    EXPECT_EQ(found.list, Found{}) << stress;
  }
}

TEST(ValidateStructs, RejectsUnwrappableStructs) {
  FletchingMessage message;
  ArrowSchema released{};
  EXPECT_EQ(FletchingValidateSchema(&released, nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "expected a live schema or array");
  EXPECT_EQ(FletchingValidateArray(nullptr, nullptr, nullptr, nullptr), EINVAL);
  Findings found;
  const FletchingValidateOptions options = found.options(9);
  Int32Array array;
  EXPECT_EQ(FletchingValidateDeviceArray(nullptr, &array.raw, &options, &message), EINVAL);
  EXPECT_STREQ(message.text, "options.level: unknown: expected a FLETCHING_VALIDATE_ value");
  array.raw.array.release(&array.raw.array);
  EXPECT_EQ(array.releases, 1);
}

// --- Tensors ---

struct Tensor {
  Tensor() {
    raw.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
    raw.manager_ctx = this;
    raw.deleter = [](DLManagedTensorVersioned* self) {
      auto* const tensor = static_cast<Tensor*>(self->manager_ctx);
      ++tensor->deleted;
      tensor->thread = std::this_thread::get_id();
    };
    raw.dl_tensor = {&values, {kDLCPU, 0}, 1, {kDLInt, 32, 1}, &shape, &stride, 0};
  }

  std::int32_t values = 7;
  std::int64_t shape = 1;
  std::int64_t stride = 1;
  int deleted = 0;
  std::thread::id thread;
  DLManagedTensorVersioned raw{};
};

TEST(ValidateTensor, ForwardsTensorAndDeleter) {
  for (const std::uint32_t stress : kStress) {
    Findings found;
    found.stress = stress;
    const FletchingValidateOptions options = found.options(FLETCHING_VALIDATE_DATA);
    Tensor tensor;
    DLManagedTensorVersioned* validated = &tensor.raw;
    ASSERT_EQ(FletchingValidateTensor(&validated, &options, nullptr), 0);
    ASSERT_NE(validated, &tensor.raw);
    EXPECT_EQ(validated->dl_tensor.data, &tensor.values);
    EXPECT_EQ(validated->dl_tensor.shape[0] + validated->dl_tensor.strides[0], 2);
    const std::int64_t* const shape = validated->dl_tensor.shape;
    validated->deleter(validated);
    EXPECT_EQ(tensor.deleted, 1);
    EXPECT_EQ(*shape != 1, (stress & FLETCHING_STRESS_POISON) != 0);
    EXPECT_EQ(tensor.thread == std::this_thread::get_id(), (stress & FLETCHING_STRESS_THREAD) == 0);
    EXPECT_EQ(found.list, Found{});
    validated->deleter(validated);
    EXPECT_EQ(tensor.deleted, 1);
    EXPECT_EQ(found.list, Found{"dlpack-managed.deleter-called warning consumer tensor"});
  }
}

TEST(ValidateTensor, ReportsLiveTensors) {
  Findings found;
  const FletchingValidateOptions options = found.options(FLETCHING_VALIDATE_PROTOCOL);
  Tensor tensor;
  DLManagedTensor legacy{tensor.raw.dl_tensor, nullptr, nullptr};
  DLManagedTensor* validated = &legacy;
  ASSERT_EQ(FletchingValidateLegacyTensor(&validated, &options, nullptr), 0);
  FletchingValidateLive();
  EXPECT_EQ(found.list, Found{"dlpack-managed.deleter-called warning consumer tensor"});
  validated->deleter(validated);
  FletchingValidateLive();
  EXPECT_EQ(found.list.size(), 1U);
}

using Change = void (*)(Tensor&);

TEST(ValidateTensor, ChecksMembers) {
  const struct {
    Change change;
    Found expected;
  } kCases[] = {
      {[](Tensor&) {}, {}},
      {[](Tensor& t) { t.shape = 0; },
       {"dlpack.data-null-when-empty warning producer tensor.data"}},
      {[](Tensor& t) { t.raw.dl_tensor.strides = nullptr; },
       {"dlpack.strides-not-null error producer tensor.strides"}},
      {[](Tensor& t) {
         t.raw.version.minor = 1;
         t.raw.dl_tensor.strides = nullptr;
       },
       {}},
      {[](Tensor& t) { t.raw.dl_tensor.device.device_id = 1; },
       {"dlpack.device-id-of-cpu error producer tensor.device"}},
      {[](Tensor& t) { t.raw.dl_tensor.device = {kDLCUDA, 1}; }, {}},
      {[](Tensor& t) { t.raw.dl_tensor.dtype.code = 200; },
       {"dlpack-type.code-known warning producer tensor.dtype"}},
      {[](Tensor& t) { t.raw.dl_tensor.dtype = {kDLFloat6_e3m2fn, 8, 1}; },
       {"dlpack-type.fp6-bits error producer tensor.dtype"}},
      {[](Tensor& t) { t.raw.dl_tensor.dtype = {kDLFloat4_e2m1fn, 8, 1}; },
       {"dlpack-type.fp4-bits error producer tensor.dtype"}},
      {[](Tensor& t) { t.raw.flags = 8; },
       {"dlpack-managed.flags-zero-by-default warning producer tensor.flags"}},
      {[](Tensor& t) {
         t.raw.version.minor = DLPACK_MINOR_VERSION + 1;
         t.raw.flags = 8;
       },
       {}},
  };
  for (const auto& [change, expected] : kCases) {
    for (const std::int32_t level : {FLETCHING_VALIDATE_PROTOCOL, FLETCHING_VALIDATE_SHAPE}) {
      Findings found;
      const FletchingValidateOptions options = found.options(level);
      Tensor tensor;
      change(tensor);
      DLManagedTensorVersioned* validated = &tensor.raw;
      ASSERT_EQ(FletchingValidateTensor(&validated, &options, nullptr), 0);
      EXPECT_EQ(found.list, level == FLETCHING_VALIDATE_SHAPE ? expected : Found{});
      validated->deleter(validated);
    }
  }
}

TEST(ValidateTensor, RejectsUnreadableTensors) {
  const struct {
    Change change;
    int code;
    const char* text;
  } kCases[] = {
      {[](Tensor& t) { t.raw.version.major = 2; }, ENOTSUP,
       "tensor.version: expected major version 1"},
      {[](Tensor& t) { t.raw.dl_tensor.ndim = -1; }, EINVAL,
       "tensor: ndim is out of range or shape NULL: expected 0 to 64 sizes"},
      {[](Tensor& t) { t.raw.dl_tensor.ndim = 65; }, EINVAL,
       "tensor: ndim is out of range or shape NULL: expected 0 to 64 sizes"},
      {[](Tensor& t) { t.raw.dl_tensor.shape = nullptr; }, EINVAL,
       "tensor: ndim is out of range or shape NULL: expected 0 to 64 sizes"},
  };
  FletchingMessage message;
  for (const auto& [change, code, text] : kCases) {
    Tensor tensor;
    change(tensor);
    DLManagedTensorVersioned* same = &tensor.raw;
    EXPECT_EQ(FletchingValidateTensor(&same, nullptr, &message), code);
    EXPECT_STREQ(message.text, text);
    EXPECT_EQ(same, &tensor.raw);
  }
  DLManagedTensorVersioned* none = nullptr;
  EXPECT_EQ(FletchingValidateTensor(&none, nullptr, nullptr), EINVAL);
  EXPECT_EQ(FletchingValidateLegacyTensor(nullptr, nullptr, nullptr), EINVAL);
}

// --- Owners ---

TEST(ValidateOwners, ForwardStructs) {
  Findings found;
  const auto report = [&](const FletchingFinding& finding) { Findings::add(&found, &finding); };
  const ValidateOptions options{.level = FLETCHING_VALIDATE_SHAPE};
  int releases = 0;
  Int32Array array;
  Int32Array device_array;
  Tensor tensor;
  DLManagedTensor legacy{tensor.raw.dl_tensor, nullptr, nullptr};
  {
    ArrowSchema raw = schema_of("u", &releases);
    const Schema schema = validate(Schema(&raw), report, options).value();
    (void)validate(Array(&array.raw.array), *schema, report, options).value();
    (void)validate(DeviceArray(&device_array.raw), *schema, report, options).value();
    (void)validate(DlpackTensor(&tensor.raw), report, options).value();
    (void)validate(LegacyDlpackTensor(&legacy), report, options).value();
  }
  EXPECT_EQ(releases + array.releases + device_array.releases + tensor.deleted, 4);
  EXPECT_EQ(found.list, Found(2, "array.n-buffers-of-type error producer array"));
  EXPECT_EQ(validate(Schema(), report, options).error().code(), EINVAL);
  EXPECT_EQ(validate(DlpackTensor(), report, options).error().code(), EINVAL);
  Tensor refused;
  EXPECT_EQ(validate(DlpackTensor(&refused.raw), report, {.level = 9}).error().code(), EINVAL);
  EXPECT_EQ(refused.deleted, 1);
}

}  // namespace
}  // namespace fletching::testing
