// SPDX-License-Identifier: Apache-2.0
//
// Wraps a stream in the validation layer. The stream returns a code that is not an errno value.
#include "fletching/validate.h"

#include <stdio.h>

static int get_schema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  (void)self;
  (void)out;
  return -1;
}
static int get_next(struct ArrowArrayStream* self, struct ArrowArray* out) {
  (void)self;
  out->release = NULL;
  return 0;
}
static const char* get_last_error(struct ArrowArrayStream* self) {
  (void)self;
  return NULL;
}
static void release(struct ArrowArrayStream* self) { self->release = NULL; }

static void print(void* context, const struct FletchingFinding* finding) {
  (void)context;
  printf("%s: %s (rule %s)\n", finding->path, finding->message, finding->rule);
}

int main(void) {
  struct ArrowArrayStream stream = {get_schema, get_next, get_last_error, release, NULL};
  const struct FletchingValidateOptions options = {sizeof(struct FletchingValidateOptions),
                                                   FLETCHING_VALIDATE_SHAPE, print, NULL, 0};
  if (FletchingValidateStream(&stream, &options, NULL) != 0) return 1;

  struct ArrowSchema schema = {0};
  stream.get_schema(&stream, &schema);
  stream.release(&stream);
  return 0;
}
