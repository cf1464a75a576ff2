// SPDX-License-Identifier: Apache-2.0
//
// A plug-in that exports arrays and says how many of them are alive. Its host is plugin_host.c.
#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>

#include "fletching_core.h"

static const int32_t values[] = {1, 2, 3};
static const void* buffers[] = {NULL, values};
static atomic_int alive;

static void release(struct ArrowArray* array) {
  array->release = NULL;
  atomic_fetch_sub(&alive, 1);
}

__attribute__((visibility("default"))) int plugin_produce(struct ArrowDeviceArray* out) {
  FletchingDeviceArrayInit(out);  // zeroes the whole struct
  out->device_type = ARROW_DEVICE_CPU;
  out->device_id = -1;
  out->array.length = 3;
  out->array.n_buffers = 2;
  out->array.buffers = buffers;
  out->array.release = release;
  atomic_fetch_add(&alive, 1);
  return 0;
}

__attribute__((visibility("default"))) int plugin_may_unload(void) {
  return atomic_load(&alive) == 0;
}
