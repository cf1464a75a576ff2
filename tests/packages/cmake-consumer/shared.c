// Uses libfletching in C.
#include <stdio.h>

#include "fletching/c_api.h"

static void release(struct ArrowArray* array) { array->release = NULL; }

int main(void) {
  struct ArrowDeviceArray source;
  struct ArrowDeviceArray target;
  FletchingDeviceArrayInit(&source);
  source.array.release = release;
  FletchingDeviceArrayMove(&source, &target);
  FletchingDeviceArrayRelease(&target);
  puts(FletchingVersion());
  return FletchingDeviceArrayIsReleased(&target) ? 0 : 1;
}
