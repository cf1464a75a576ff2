// Uses the C functions, of the core or of libfletching, and prints their version.
#include <stdio.h>

#include "fletching/c_api.h"

static void release(struct ArrowArray* array) { array->release = NULL; }

int main(void) {
  struct ArrowDeviceArray source;
  struct ArrowDeviceArray target;
  FletchingDeviceArrayInit(&source);
  source.device_type = ARROW_DEVICE_CPU;
  source.array.release = release;
  FletchingDeviceArrayMove(&source, &target);
  const int code = FletchingDeviceArraySynchronize(&target, NULL);
  FletchingDeviceArrayRelease(&target);
  puts(FletchingVersion());
  return code == 0 && FletchingDeviceArrayIsReleased(&target) ? 0 : 1;
}
