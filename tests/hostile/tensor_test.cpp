// Tests of the hostile peer's tensors, deleted correctly and incorrectly.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <string>

#include "hostile.h"

namespace {

std::string finish() {
  FletchingMessage message;
  return FletchingHostileFinish(&message) == 0 ? "" : message.text;
}

template <class Tensor>
void remove(Tensor* tensor) {
  if (tensor->deleter != nullptr) tensor->deleter(tensor);
}

TEST(Tensors, DeletesEachOnce) {
  int tensors = 0;
  for (int32_t i = 0; i < FletchingHostileCaseCount(); ++i) {
    const int32_t party = FletchingHostileCaseParty(i);
    const char* name = FletchingHostileCaseName(i);
    if (party != kFletchingHostileTensor && party != kFletchingHostileVersionedTensor) continue;
    ++tensors;
    DLManagedTensorVersioned* versioned = nullptr;
    ASSERT_EQ(FletchingHostileExportTensor(name, &versioned, nullptr), 0) << name;
    remove(versioned);
    EXPECT_EQ(finish(), "") << name;
    DLManagedTensor* legacy = nullptr;
    const bool both = party == kFletchingHostileTensor;
    ASSERT_EQ(FletchingHostileExportLegacyTensor(name, &legacy, nullptr), both ? 0 : EINVAL);
    if (both) remove(legacy);
    EXPECT_EQ(finish(), "") << name;
  }
  EXPECT_GT(tensors, 40);
}

TEST(Tensors, GoodTensorHasValues) {
  DLManagedTensor* tensor = nullptr;
  ASSERT_EQ(FletchingHostileExportLegacyTensor("tensor.good", &tensor, nullptr), 0);
  const DLTensor& good = tensor->dl_tensor;
  ASSERT_EQ(good.ndim, 1);
  ASSERT_EQ(good.shape[0], 3);
  for (int32_t i = 0; i < 3; ++i) EXPECT_EQ(static_cast<const int32_t*>(good.data)[i], i + 1);
  remove(tensor);
  EXPECT_EQ(finish(), "");
}

TEST(Tensors, ReportsLeak) {
  DLManagedTensorVersioned* tensor = nullptr;
  ASSERT_EQ(FletchingHostileExportTensor("tensor.good", &tensor, nullptr), 0);
  EXPECT_EQ(finish(), "not released: 1 structs");
  remove(tensor);
  EXPECT_EQ(finish(), "");
}

TEST(Tensors, ReportsSecondDelete) {
  DLManagedTensorVersioned* versioned = nullptr;
  ASSERT_EQ(FletchingHostileExportTensor("tensor.good", &versioned, nullptr), 0);
  remove(versioned);
  remove(versioned);
  EXPECT_EQ(finish(), "the deleter of a tensor was called on what is released (mistakes: 1)");
  DLManagedTensor* legacy = nullptr;
  ASSERT_EQ(FletchingHostileExportLegacyTensor("tensor.good", &legacy, nullptr), 0);
  remove(legacy);
  remove(legacy);
  EXPECT_EQ(finish(), "the deleter of a tensor was called on what is released (mistakes: 1)");
}

TEST(Tensors, RejectsUnknownCase) {
  FletchingMessage message;
  DLManagedTensorVersioned* tensor = nullptr;
  EXPECT_EQ(FletchingHostileExportTensor("array.good", &tensor, &message), EINVAL);
  EXPECT_EQ(FletchingHostileExportTensor("tensor.good", nullptr, &message), EINVAL);
  EXPECT_EQ(FletchingHostileExportLegacyTensor("tensor.good", nullptr, &message), EINVAL);
}

}  // namespace
