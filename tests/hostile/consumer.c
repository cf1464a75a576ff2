/* Consumers for arrays and streams of the code under test: unusual, but within the rules unless a
 * case says otherwise. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

enum {
  kPlain,
  kReleaseTwice,
  kReleaseElsewhere,
  kChildrenFirst,
  kChildInPlace,
  kChildrenManyThreads,
  kDirtyOut,
  kNextAfterEnd,
  kSchemaOften,
  kOutlive,
  kUnread,
  kNextElsewhere,
  kSchemaNever
};

static const struct Case kArrayCases[] = {
    {"array-consumer.plain", "moves the array and releases it", kFletchingHostileAccepted, 0,
     kPlain},
    {"array-consumer.release-twice", "calls the release callback again on the released struct",
     kFletchingHostileAccepted, 0, kReleaseTwice},
    {"array-consumer.release-elsewhere", "releases on a fresh thread", kFletchingHostileAccepted, 0,
     kReleaseElsewhere},
    {"array-consumer.children-first",
     "moves the children out, releases the parent, reads and releases the children",
     kFletchingHostileAccepted, 0, kChildrenFirst},
    {"array-consumer.child-in-place", "releases a child in its place, then the parent",
     kFletchingHostileAccepted, 0, kChildInPlace},
    {"array-consumer.children-many-threads",
     "moves the children out and releases each on a thread of its own, with the parent",
     kFletchingHostileAccepted, 0, kChildrenManyThreads},
};
static const struct Case kStreamCases[] = {
    {"stream-consumer.plain", "reads the schema and every array, and releases",
     kFletchingHostileAccepted, 0, kPlain},
    {"stream-consumer.dirty-out", "passes out-structs that are not zeroed",
     kFletchingHostileAccepted, 0, kDirtyOut},
    {"stream-consumer.next-after-end", "asks on after the end", kFletchingHostileAccepted, 0,
     kNextAfterEnd},
    {"stream-consumer.schema-often", "asks for the schema before, between and after the arrays",
     kFletchingHostileAccepted, 0, kSchemaOften},
    {"stream-consumer.schema-never", "asks for arrays alone", kFletchingHostileAccepted, 0,
     kSchemaNever},
    {"stream-consumer.outlive", "releases the stream before the arrays and the schema",
     kFletchingHostileAccepted, 0, kOutlive},
    {"stream-consumer.unread", "releases the stream unread", kFletchingHostileAccepted, 0, kUnread},
    {"stream-consumer.release-twice", "calls the release callback again on the released struct",
     kFletchingHostileAccepted, 0, kReleaseTwice},
    {"stream-consumer.next-elsewhere", "every call from another thread, one after the other",
     kFletchingHostileAccepted, 0, kNextElsewhere},
};

const struct Party kArrayConsumerParty = {kFletchingHostileArrayConsumer,
                                          sizeof kArrayCases / sizeof kArrayCases[0], kArrayCases};
const struct Party kStreamConsumerParty = {
    kFletchingHostileStreamConsumer, sizeof kStreamCases / sizeof kStreamCases[0], kStreamCases};

/* --- Arrays --- */

/* Reads every address in the array, so that a sanitizer detects freed memory. */
static int64_t Look(const struct ArrowArray* array) {
  int64_t seen = array->length + array->null_count + array->offset;
  for (int64_t i = 0; i < array->n_buffers; ++i) seen += array->buffers[i] != NULL;
  for (int64_t i = 0; i < array->n_children; ++i) seen += Look(array->children[i]);
  return seen;
}

static void ReleaseArray(void* argument) {
  struct ArrowArray* array = argument;
  if (array->release != NULL) array->release(array);
  if (array->release != NULL) Mistake("release of an array left itself set");
}

static void StartRelease(struct ArrowArray* array) {
  if (StartThread(ReleaseArray, array) != 0) ReleaseArray(array);
}

/* Moves every child out of the array. Returns NULL without children or without memory. */
static struct ArrowArray* MoveChildren(struct ArrowArray* array) {
  if (array->n_children <= 0) return NULL;
  struct ArrowArray* moved = calloc((size_t)array->n_children, sizeof *moved);
  for (int64_t i = 0; moved != NULL && i < array->n_children; ++i) {
    moved[i] = *array->children[i];
    array->children[i]->release = NULL;
  }
  return moved;
}

static struct ArrowArray* kept_children; /* until the next array: threads still read them */
static struct ArrowArray kept_parent;

static void PlayArray(int32_t behaviour, struct ArrowArray* array) {
  void (*release)(struct ArrowArray*) = array->release;
  const int64_t count = array->n_children;
  struct ArrowArray* children = NULL;
  switch (behaviour) {
    case kReleaseTwice:
      ReleaseArray(array);
      release(array);
      return;
    case kReleaseElsewhere:
      RunOnFreshThread(ReleaseArray, array);
      return;
    case kChildInPlace:
      AllowReleaseInPlace(1);
      if (count > 0) ReleaseArray(array->children[0]);
      AllowReleaseInPlace(0);
      ReleaseArray(array);
      return;
    case kChildrenFirst:
      children = MoveChildren(array);
      ReleaseArray(array);
      for (int64_t i = 0; children != NULL && i < count; ++i) {
        (void)Look(&children[i]);
        ReleaseArray(&children[i]);
      }
      free(children);
      return;
    case kChildrenManyThreads:
      free(kept_children);
      kept_children = MoveChildren(array);
      for (int64_t i = 0; kept_children != NULL && i < count; ++i) StartRelease(&kept_children[i]);
      kept_parent = *array;
      StartRelease(&kept_parent);
      return;
    default:
      (void)Look(array);
      ReleaseArray(array);
  }
}

int FletchingHostileConsumeArray(const char* name, struct ArrowDeviceArray* array,
                                 struct FletchingMessage* message) {
  if (array == NULL) return Fail(message, EINVAL, "array is NULL");
  struct ArrowDeviceArray moved = *array;
  memset(array, 0xA5, sizeof *array); /* which no pointer of the array may need */
  array->array.release = NULL;
  const struct Case* found = FindCase(&kArrayConsumerParty, name, message);
  int code = 0;
  if (moved.array.release == NULL) return Fail(message, EBADMSG, "the array is released");
  if (found == NULL) {
    moved.array.release(&moved.array);
    return EINVAL;
  }
  const int64_t* reserved = moved.reserved;
  if (reserved[0] != 0 || reserved[1] != 0 || reserved[2] != 0) {
    code = Fail(message, EBADMSG, "reserved is not zero");
  }
  PlayArray(found->behaviour, &moved.array);
  return code;
}

/* --- Streams: one set of functions for both kinds --- */

struct AnyStream {
  struct ArrowArrayStream* plain; /* NULL for a device stream */
  struct ArrowDeviceArrayStream* device;
};

static int CallGetSchema(const struct AnyStream* any, struct ArrowSchema* out) {
  return any->plain != NULL ? any->plain->get_schema(any->plain, out)
                            : any->device->get_schema(any->device, out);
}

static int CallGetNext(const struct AnyStream* any, struct ArrowDeviceArray* out) {
  return any->plain != NULL ? any->plain->get_next(any->plain, &out->array)
                            : any->device->get_next(any->device, out);
}

static void CallRelease(const struct AnyStream* any, int times) {
  if (any->plain != NULL) {
    void (*release)(struct ArrowArrayStream*) = any->plain->release;
    for (int i = 0; i < times; ++i) release(any->plain);
    if (any->plain->release != NULL) Mistake("release of a stream left itself set");
  } else {
    void (*release)(struct ArrowDeviceArrayStream*) = any->device->release;
    for (int i = 0; i < times; ++i) release(any->device);
    if (any->device->release != NULL) Mistake("release of a device stream left itself set");
  }
}

struct Reading {
  const struct AnyStream* any;
  int32_t behaviour;
  struct ArrowSchema schema;
  char format[8]; /* of the first schema */
  struct ArrowDeviceArray array;
  int code; /* of the last call */
};

static void ReadNext(void* argument) {
  struct Reading* reading = argument;
  memset(&reading->array, reading->behaviour == kDirtyOut ? 0xA5 : 0, sizeof reading->array);
  reading->code = CallGetNext(reading->any, &reading->array);
}

/* Returns NULL or a description of the problem. */
static const char* ReadSchema(struct Reading* reading) {
  if (reading->schema.release != NULL) reading->schema.release(&reading->schema);
  memset(&reading->schema, reading->behaviour == kDirtyOut ? 0xA5 : 0, sizeof reading->schema);
  reading->code = CallGetSchema(reading->any, &reading->schema);
  if (reading->code != 0) {
    reading->schema.release = NULL;
    return "get_schema has failed";
  }
  if (reading->schema.release == NULL) return "get_schema: returned a released schema";
  if (reading->format[0] == 0) {
    strncpy(reading->format, reading->schema.format, sizeof reading->format - 1);
  }
  if (strncmp(reading->format, reading->schema.format, sizeof reading->format - 1) != 0) {
    return "get_schema: another schema";
  }
  return NULL;
}

/* `expects_end`: 1 or 0; -1 if the number of arrays is unknown. */
static const char* ReadArray(struct Reading* reading, int expects_end) {
  if (reading->behaviour == kNextElsewhere) {
    RunOnFreshThread(ReadNext, reading);
  } else {
    ReadNext(reading);
  }
  if (reading->code != 0) {
    reading->array.array.release = NULL;
    return "get_next has failed";
  }
  struct ArrowArray dirty;
  memset(&dirty, 0xA5, sizeof dirty);
  if (reading->array.array.release == dirty.release) {
    reading->array.array.release = NULL;
    return "get_next: out was not filled";
  }
  const int is_end = reading->array.array.release == NULL;
  if (expects_end >= 0 && is_end != expects_end)
    return is_end ? "get_next: end too early" : "get_next: array after the end";
  const int64_t* reserved = reading->array.reserved;
  if (reading->any->plain == NULL && !is_end && (reserved[0] | reserved[1] | reserved[2]) != 0)
    return "get_next: reserved is not zero";
  return NULL;
}

static const char* ReadAll(struct Reading* reading, int64_t batches) {
  const int32_t behaviour = reading->behaviour;
  const char* wrong = behaviour == kSchemaNever ? NULL : ReadSchema(reading);
  const int ends = behaviour == kNextAfterEnd ? 5 : 1;
  int ended = 0;
  for (int64_t i = 0; wrong == NULL && ended < ends; ++i) {
    const int expects_end = batches >= 0 ? i >= batches : ended > 0 ? 1 : -1;
    wrong = ReadArray(reading, expects_end);
    if (wrong != NULL) break;
    if (reading->array.array.release == NULL) {
      ++ended;
      continue;
    }
    if (behaviour == kOutlive) break;
    ReleaseArray(&reading->array.array);
    if (behaviour == kSchemaOften) wrong = ReadSchema(reading);
  }
  if (wrong == NULL && behaviour == kSchemaOften) wrong = ReadSchema(reading);
  return wrong;
}

static int Consume(const char* name, int64_t batches, const struct AnyStream* any,
                   struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kStreamConsumerParty, name, message);
  if (found == NULL) {
    CallRelease(any, 1);
    return EINVAL;
  }
  struct Reading reading;
  memset(&reading, 0, sizeof reading);
  reading.any = any;
  reading.behaviour = found->behaviour;
  const char* wrong = found->behaviour == kUnread ? NULL : ReadAll(&reading, batches);
  if (wrong != NULL) Fail(message, EBADMSG, "%s: %s, errno %d", name, wrong, reading.code);
  CallRelease(any, found->behaviour == kReleaseTwice ? 2 : 1);
  if (reading.array.array.release != NULL) {
    (void)Look(&reading.array.array);
    ReleaseArray(&reading.array.array);
  }
  if (reading.schema.release != NULL) reading.schema.release(&reading.schema);
  return wrong == NULL ? 0 : EBADMSG;
}

int FletchingHostileConsumeStream(const char* name, int64_t batches,
                                  struct ArrowArrayStream* stream,
                                  struct FletchingMessage* message) {
  if (stream == NULL) return Fail(message, EINVAL, "stream is NULL");
  struct ArrowArrayStream moved = *stream;
  memset(stream, 0xA5, sizeof *stream);
  stream->release = NULL;
  if (moved.release == NULL) return Fail(message, EBADMSG, "the stream is released");
  return Consume(name, batches, &(struct AnyStream){&moved, NULL}, message);
}

int FletchingHostileConsumeDeviceStream(const char* name, int64_t batches,
                                        struct ArrowDeviceArrayStream* stream,
                                        struct FletchingMessage* message) {
  if (stream == NULL) return Fail(message, EINVAL, "stream is NULL");
  struct ArrowDeviceArrayStream moved = *stream;
  memset(stream, 0xA5, sizeof *stream);
  stream->release = NULL;
  if (moved.release == NULL) return Fail(message, EBADMSG, "the stream is released");
  return Consume(name, batches, &(struct AnyStream){NULL, &moved}, message);
}
