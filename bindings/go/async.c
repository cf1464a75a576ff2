/* SPDX-License-Identifier: Apache-2.0 */
#include "async.h"

#include <stddef.h>

struct Task {
  int (*extract_data)(struct Task* self, uint8_t* out);
  uintptr_t private_data;
};

struct Call {
  uintptr_t stream;
  int kind;
  const struct Call* outer;
};

static _Thread_local const struct Call* innermost;

int fletching_async_extract(uintptr_t stream, uintptr_t extract_data, uintptr_t private_data,
                            uint8_t* out) {
  const struct Call call = {stream, kFletchingToTask, innermost};
  struct Task task = {(int (*)(struct Task*, uint8_t*))extract_data, private_data};
  innermost = &call;
  int code = task.extract_data(&task, out);
  innermost = call.outer;
  return code;
}

void fletching_async_request(uintptr_t stream, uintptr_t request, uintptr_t producer, int64_t n) {
  const struct Call call = {stream, kFletchingToProducer, innermost};
  innermost = &call;
  ((void (*)(uintptr_t, int64_t))request)(producer, n);
  innermost = call.outer;
}

void fletching_async_cancel(uintptr_t stream, uintptr_t cancel, uintptr_t producer) {
  const struct Call call = {stream, kFletchingToProducer, innermost};
  innermost = &call;
  ((void (*)(uintptr_t))cancel)(producer);
  innermost = call.outer;
}

int fletching_async_here(uintptr_t stream, int kind) {
  int count = 0;
  for (const struct Call* call = innermost; call != NULL; call = call->outer) {
    count += call->stream == stream && call->kind == kind;
  }
  return count;
}
