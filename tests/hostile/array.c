/* Arrays that are wrong, with schemas that are right. */
#include <errno.h>
#include <string.h>

#include "data.h"

enum {
  kGood,
  kReleased,
  kLengthNegative,
  kLengthHuge,
  kOffsetNegative,
  kOffsetHuge,
  kSumOverflows,
  kNullCountNegative,
  kNullCountHuge,
  kBuffersNegative,
  kBuffersHuge,
  kBuffersNull,
  kBufferNull,
  kDictionaryUnasked,
  kReleaseForgets,
  kDeviceUnknown,
  kDeviceNegative,
  kIdHuge,
  kReserved,
  kEventWithoutWaiter,
  kEventOnUnknown,
  /* From here on with children. */
  kGoodChildren,
  kChildrenNegative,
  kChildrenHuge,
  kChildrenNull,
  kChildNull,
  kChildReleased,
  kChildrenFewer,
  kChildShorter,
  kCycle
};

static const struct Case kCases[] = {
    {"array.good", "nothing is wrong", kFletchingHostileAccepted, 0, kGood},
    {"array.good-children", "nothing is wrong, two children", kFletchingHostileAccepted, 0,
     kGoodChildren},
    {"array.released", "release is NULL", kFletchingHostileRefused, 0, kReleased},
    {"array.length-negative", "length is -1", kFletchingHostileRefused, 0, kLengthNegative},
    {"array.length-huge", "length is INT64_MAX", kFletchingHostileRefused, 0, kLengthHuge},
    {"array.offset-negative", "offset is -1", kFletchingHostileRefused, 0, kOffsetNegative},
    {"array.offset-huge", "offset is INT64_MAX", kFletchingHostileRefused, 0, kOffsetHuge},
    {"array.sum-overflows", "offset + length is more than INT64_MAX", kFletchingHostileRefused, 0,
     kSumOverflows},
    {"array.null-count-negative", "null_count is INT64_MIN", kFletchingHostileRefused, 0,
     kNullCountNegative},
    {"array.null-count-huge", "null_count is more than length", kFletchingHostileRefused, 0,
     kNullCountHuge},
    {"array.buffers-negative", "n_buffers is -1", kFletchingHostileRefused, 0, kBuffersNegative},
    {"array.buffers-huge", "n_buffers is INT64_MAX", kFletchingHostileRefused, 0, kBuffersHuge},
    {"array.buffers-null", "n_buffers is 2, buffers is NULL", kFletchingHostileRefused, 0,
     kBuffersNull},
    {"array.buffer-null", "three values, and the buffer of them is NULL", kFletchingHostileRefused,
     0, kBufferNull},
    {"array.dictionary-unasked", "a dictionary, released, that the schema does not have",
     kFletchingHostileRefused, 0, kDictionaryUnasked},
    {"array.release-forgets", "release frees and leaves itself set", kFletchingHostileAccepted, 0,
     kReleaseForgets},
    {"array.device-unknown", "device_type is 9999", kFletchingHostileAccepted, 0, kDeviceUnknown},
    {"array.device-negative", "device_type is INT32_MIN", kFletchingHostileTolerated, 0,
     kDeviceNegative},
    {"array.device-id-huge", "device_id is INT64_MIN, on the CPU", kFletchingHostileAccepted, 0,
     kIdHuge},
    {"array.reserved", "reserved is not zero", kFletchingHostileTolerated, 0, kReserved},
    {"array.event-without-waiter", "EXT_DEV, with an event and no waiter", kFletchingHostileRefused,
     0, kEventWithoutWaiter},
    {"array.event-on-unknown", "device_type is 9999, with an event", kFletchingHostileRefused, 0,
     kEventOnUnknown},
    {"array.children-negative", "n_children is -1", kFletchingHostileRefused, 0, kChildrenNegative},
    {"array.children-huge", "n_children is INT64_MAX, the schema has 2", kFletchingHostileRefused,
     0, kChildrenHuge},
    {"array.children-null", "n_children is 2, children is NULL", kFletchingHostileRefused, 0,
     kChildrenNull},
    {"array.child-null", "the second child is NULL", kFletchingHostileRefused, 0, kChildNull},
    {"array.child-released", "the second child is released", kFletchingHostileRefused, 0,
     kChildReleased},
    {"array.children-fewer", "n_children is 1, the schema has 2", kFletchingHostileRefused, 0,
     kChildrenFewer},
    {"array.child-shorter", "the second child is shorter than the struct", kFletchingHostileRefused,
     0, kChildShorter},
    {"array.cycle", "the first child is its own child", kFletchingHostileRefused, 0, kCycle},
};

const struct Party kArrayParty = {kFletchingHostileArray, sizeof kCases / sizeof kCases[0], kCases};

/* It must not be followed, so it is not an address. */
static void* Nowhere(void) { return (void*)(uintptr_t)0x10; }

static void SpoilDevice(int32_t behaviour, struct ArrowDeviceArray* device) {
  switch (behaviour) {
    case kDeviceUnknown:
      device->device_type = 9999;
      break;
    case kDeviceNegative:
      device->device_type = INT32_MIN;
      break;
    case kIdHuge:
      device->device_id = INT64_MIN;
      break;
    case kReserved:
      memset(device->reserved, 0xA5, sizeof device->reserved);
      break;
    case kEventWithoutWaiter:
      device->device_type = ARROW_DEVICE_EXT_DEV;
      device->sync_event = Nowhere();
      break;
    case kEventOnUnknown:
      device->device_type = 9999;
      device->sync_event = Nowhere();
      break;
    default:
      break;
  }
}

static struct ArrowArray no_array; /* released */

static void SpoilChildren(int32_t behaviour, struct ArrowArray* array) {
  struct ArrowArray** children = array->children;
  switch (behaviour) {
    case kChildrenNegative:
      array->n_children = -1;
      break;
    case kChildrenHuge:
      array->n_children = INT64_MAX;
      break;
    case kChildrenNull:
      array->children = NULL;
      break;
    case kChildNull:
      children[1] = NULL;
      break;
    case kChildReleased:
      ReleaseArrayChildInPlace(children[1]);
      break;
    case kChildrenFewer:
      array->n_children = 1;
      break;
    case kChildShorter:
      children[1]->length = kLength - 1;
      break;
    case kCycle:
      children[0]->n_children = 1;
      children[0]->children = children;
      break;
    default:
      break;
  }
}

static void Spoil(int32_t behaviour, struct ArrowArray* array) {
  switch (behaviour) {
    case kReleased:
      array->release(array);
      break;
    case kLengthNegative:
      array->length = -1;
      break;
    case kLengthHuge:
      array->length = INT64_MAX;
      break;
    case kOffsetNegative:
      array->offset = -1;
      break;
    case kOffsetHuge:
      array->offset = INT64_MAX;
      array->length = 0;
      break;
    case kSumOverflows:
      array->offset = INT64_MAX - 1;
      break;
    case kNullCountNegative:
      array->null_count = INT64_MIN;
      break;
    case kNullCountHuge:
      array->null_count = kLength + 1;
      break;
    case kBuffersNegative:
      array->n_buffers = -1;
      break;
    case kBuffersHuge:
      array->n_buffers = INT64_MAX;
      break;
    case kBuffersNull:
      array->buffers = NULL;
      break;
    case kBufferNull:
      array->buffers[1] = NULL;
      break;
    case kDictionaryUnasked:
      array->dictionary = &no_array;
      break;
    case kReleaseForgets:
      array->release = ReleaseArrayAndForget;
      break;
    default:
      break;
  }
}

int FletchingHostileExportArray(const char* name, struct ArrowSchema* schema,
                                struct ArrowDeviceArray* out, struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kArrayParty, name, message);
  if (found == NULL) return EINVAL;
  if (schema == NULL || out == NULL) return Fail(message, EINVAL, "schema or out is NULL");
  const int has_children = found->behaviour >= kGoodChildren;
  if (MakeSchema(has_children, schema) != 0) return Fail(message, ENOMEM, "out of memory");
  if (MakeDeviceArray(has_children, out) != 0) {
    schema->release(schema);
    return Fail(message, ENOMEM, "out of memory");
  }
  Spoil(found->behaviour, &out->array);
  SpoilDevice(found->behaviour, out);
  SpoilChildren(found->behaviour, &out->array);
  return 0;
}
