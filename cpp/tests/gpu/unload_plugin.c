// SPDX-License-Identifier: Apache-2.0
//
// The plug-in of unload_test.c, which contains the core.
#include <semaphore.h>
#include <stdio.h>

#include "fletching/events.h"
#include "fletching/structs.h"

static void release(struct ArrowArray* array) {
  array->release = NULL;
  sem_post(array->private_data);
}

// Releases an array after the stream's current work. The release posts `released`.
__attribute__((visibility("default"))) int plugin_release_after(void* stream, sem_t* released) {
  struct ArrowDeviceArray array;
  struct FletchingMessage message = {""};
  FletchingDeviceArrayInit(&array);
  array.device_type = ARROW_DEVICE_CUDA;
  array.array.release = release;
  array.array.private_data = released;
  const int error = FletchingDeviceArrayReleaseAfter(&array, FletchingStreamOfArray(stream),
                                                     FLETCHING_CAPTURE_REFUSE, &message);
  if (error != 0) fprintf(stderr, "release_after: %s\n", message.text);
  return error;
}
