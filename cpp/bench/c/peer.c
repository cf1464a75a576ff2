#include "peer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int64_t numbers[kColumns];
static const void* addresses[kColumns];
static int64_t taken;

static void peer_release(struct ArrowArray* self) { self->release = NULL; }

void peer_produce(struct ArrowDeviceArray* out) {
  memset(out, 0, sizeof *out);
  out->array.release = &peer_release;
}

const void* const* peer_data(void) { return addresses; }

void peer_drop(const void* const* data) { taken += data == addresses; }

void peer_use(int64_t value) { taken += value; }

void peer_consume(struct ArrowDeviceArray* source) {
  struct ArrowDeviceArray array = *source;
  source->array.release = NULL;
  int64_t read = 0;
  for (int64_t i = 0; i < array.array.n_children; ++i) {
    const struct ArrowArray* child = array.array.children[i];
    read += child->length + child->null_count + *(const int64_t*)child->buffers[1];
  }
  peer_use(read);
  array.array.release(&array.array);
}

int peer_main(int argc, char** argv, const struct Case* cases, int n_cases) {
  for (int i = 0; i < kColumns; ++i) addresses[i] = &numbers[i];
  const long rounds = argc == 3 ? strtol(argv[2], NULL, 10) : 0;
  for (int i = 0; rounds > 0 && i < n_cases; ++i) {
    if (strcmp(cases[i].name, argv[1]) != 0) continue;
    for (long round = 0; round < rounds; ++round) cases[i].run();
    (void)taken;  // read, or clang warns that it is unused
    return 0;
  }
  fprintf(stderr, "usage: %s CASE ROUNDS, with one of these cases:", argv[0]);
  for (int i = 0; i < n_cases; ++i) fprintf(stderr, " %s", cases[i].name);
  fprintf(stderr, "\n");
  return 2;
}
