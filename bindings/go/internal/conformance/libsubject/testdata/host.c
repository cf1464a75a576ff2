/* A library that embeds the Go library, like a plugin or a driver. */
#include "fletching/conformance.h"

const struct FletchingSubject* FletchingConformanceSubject(int32_t index);

int HostPass(struct ArrowSchema* schema, struct ArrowDeviceArray* array,
             struct ArrowSchema* out_schema, struct ArrowDeviceArray* out_array) {
  const struct FletchingSubject* subject = FletchingConformanceSubject(0);
  struct FletchingMessage message = {""};
  return subject->array(subject->context, schema, array, out_schema, out_array, &message);
}
