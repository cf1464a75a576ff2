// SPDX-License-Identifier: Apache-2.0
//
// fletching/c_api.h from C99: ownership of each struct.
#include "fletching/c_api.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"

static int is_zero(const void* bytes, size_t size) {
  const unsigned char* byte = bytes;
  for (size_t i = 0; i < size; ++i) {
    if (byte[i] != 0) return 0;
  }
  return 1;
}

// Includes padding: a move copies every byte.
static int same_bytes(const void* left, const void* right, size_t size) {
  return memcmp(left, right, size) == 0;
}

// Defines, for each struct, counting callbacks and a test of each function.
#define DEFINE_TEST(Name, Raw, Base, base)                   \
  static int Name##_released;                                \
  static void Name##_release(struct Base* self) {            \
    ++Name##_released;                                       \
    self->release = NULL;                                    \
  }                                                          \
  static void Name##_release_and_forget(struct Base* self) { \
    (void)self;                                              \
    ++Name##_released;                                       \
  }                                                          \
  static void Name##_release_and_free(struct Base* self) {   \
    self->release = NULL;                                    \
    ++Name##_released;                                       \
    free(self->private_data);                                \
  }                                                          \
  static void test_##Name(void) {                            \
    struct Raw* freed;                                       \
    struct Raw source;                                       \
    struct Raw target;                                       \
    int private_data = 0;                                    \
    Name##_released = 0;                                     \
    memset(&source, 0x5A, sizeof source);                    \
    Fletching##Name##Init(&source);                          \
    CHECK(is_zero(&source, sizeof source));                  \
    CHECK(Fletching##Name##IsReleased(&source) == 1);        \
    Fletching##Name##Release(&source);                       \
    Fletching##Name##Release(NULL);                          \
    CHECK(Fletching##Name##IsReleased(NULL) == 1);           \
    CHECK(Name##_released == 0);                             \
                                                             \
    source base release = Name##_release;                    \
    source base private_data = &private_data;                \
    memset(&target, 0x5A, sizeof target);                    \
    Fletching##Name##Move(&source, &source);                 \
    CHECK(Fletching##Name##IsReleased(&source) == 0);        \
    Fletching##Name##Move(&source, &target);                 \
    CHECK(Fletching##Name##IsReleased(&source) == 1);        \
    CHECK(Fletching##Name##IsReleased(&target) == 0);        \
    CHECK(target base private_data == &private_data);        \
    source base release = Name##_release;                    \
    CHECK(same_bytes(&source, &target, sizeof source));      \
    Fletching##Name##Init(&source);                          \
    CHECK(Name##_released == 0);                             \
    Fletching##Name##Release(&target);                       \
    CHECK(Name##_released == 1);                             \
    CHECK(Fletching##Name##IsReleased(&target) == 1);        \
    Fletching##Name##Release(&target);                       \
    CHECK(Name##_released == 1);                             \
                                                             \
    source base release = Name##_release_and_forget;         \
    Fletching##Name##Release(&source);                       \
    CHECK(Fletching##Name##IsReleased(&source) == 1);        \
    Fletching##Name##Release(&source);                       \
    CHECK(Name##_released == 2);                             \
                                                             \
    freed = calloc(1, sizeof *freed);                        \
    CHECK(freed != NULL);                                    \
    (*freed) base release = Name##_release_and_free;         \
    (*freed) base private_data = freed;                      \
    Fletching##Name##Release(freed);                         \
    CHECK(Name##_released == 3);                             \
  }

DEFINE_TEST(Schema, ArrowSchema, ArrowSchema, .)
DEFINE_TEST(Array, ArrowArray, ArrowArray, .)
DEFINE_TEST(DeviceArray, ArrowDeviceArray, ArrowArray, .array.)
DEFINE_TEST(ArrayStream, ArrowArrayStream, ArrowArrayStream, .)
DEFINE_TEST(DeviceArrayStream, ArrowDeviceArrayStream, ArrowDeviceArrayStream, .)

int main(int count, char** arguments) {
  test_Schema();
  test_Array();
  test_DeviceArray();
  test_ArrayStream();
  test_DeviceArrayStream();
  CHECK(count == 2 && strcmp(FletchingVersion(), arguments[1]) == 0);
  return failures == 0 ? 0 : 1;
}
