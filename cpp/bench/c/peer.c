#include "peer.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int peer_size = kColumns;
static int64_t numbers[kMostColumns];
static const void* addresses[kMostColumns];
static struct ArrowDeviceArray kept[kKept];
static int n_kept;
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

void peer_read(struct ArrowDeviceArrayStream* stream) {
  struct ArrowSchema schema;
  if (stream->get_schema(stream, &schema) != 0) abort();
  schema.release(&schema);
  for (;;) {
    struct ArrowDeviceArray batch;
    if (stream->get_next(stream, &batch) != 0) abort();
    if (batch.array.release == NULL) break;
    peer_use(batch.array.length);
    batch.array.release(&batch.array);
  }
  stream->release(stream);
}

struct ArrowDeviceArray* peer_keep(void) {
  if (n_kept == kKept) abort();
  return &kept[n_kept++];
}

static size_t bytes_in_use(void) {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

int peer_main(int argc, char** argv, const struct Case* cases, int n_cases) {
  for (int i = 0; i < kMostColumns; ++i) addresses[i] = &numbers[i];
  const long rounds = argc == 3 || argc == 4 ? strtol(argv[2], NULL, 10) : 0;
  if (argc == 4) peer_size = atoi(argv[3]);
  for (int i = 0; rounds > 0 && i < n_cases; ++i) {
    if (strcmp(cases[i].name, argv[1]) != 0) continue;
    const int held = strncmp(argv[1], "hold_", 5) == 0;
    if (held) cases[i].run();  // also allocates shared state
    const size_t before = held ? bytes_in_use() : 0;
    for (long round = 0; round < rounds; ++round) cases[i].run();
    if (held) printf("{\"bytes\": %ld}\n", (long)(bytes_in_use() - before) / rounds);
    (void)taken;  // read, or clang warns that it is unused
    return 0;
  }
  fprintf(stderr, "usage: %s CASE ROUNDS [SIZE], with one of these cases:", argv[0]);
  for (int i = 0; i < n_cases; ++i) fprintf(stderr, " %s", cases[i].name);
  fprintf(stderr, "\n");
  return 2;
}
