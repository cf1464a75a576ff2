/* Streams that go wrong, as ArrowArrayStream and as ArrowDeviceArrayStream. */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"

enum {
  kGood,
  kEmpty,
  kAllNull,
  kGetSchemaNull,
  kGetNextNull,
  kLastErrorNull,
  kReleaseNull,
  kReleaseForgets,
  kSchemaFails,
  kSchemaPartial,
  kSchemaReleased,
  kNextFails,
  kNextPartial,
  kFailsMidway,
  kFailsAtEnd,
  kErrorThenMore,
  kEndThenMore,
  kNegativeCode,
  kHugeCode,
  kTextNull,
  kTextEmpty,
  kTextNotUtf8,
  kTextLong,
  kTextChanges,
  /* Device streams only. */
  kTypeZero,
  kTypeUnknown,
  kBatchTypeUnknown,
  kBatchTypeOther,
  kBatchReserved
};

static const struct Case kCases[] = {
    {"stream.good", "nothing is wrong", kFletchingHostileAccepted, 0, kGood},
    {"stream.empty", "the stream is empty", kFletchingHostileAccepted, 0, kEmpty},
    {"stream.all-null", "every callback but release is NULL", kFletchingHostileRefused, 0,
     kAllNull},
    {"stream.get-schema-null", "get_schema is NULL", kFletchingHostileRefused, 0, kGetSchemaNull},
    {"stream.get-next-null", "get_next is NULL", kFletchingHostileRefused, 0, kGetNextNull},
    {"stream.last-error-null", "get_next fails, get_last_error is NULL", kFletchingHostileReported,
     EIO, kLastErrorNull},
    {"stream.released", "release is NULL, the rest is not", kFletchingHostileRefused, 0,
     kReleaseNull},
    {"stream.release-forgets", "release frees and leaves itself set", kFletchingHostileAccepted, 0,
     kReleaseForgets},
    {"stream.schema-fails", "get_schema fails", kFletchingHostileReported, ENOTSUP, kSchemaFails},
    {"stream.schema-partial", "get_schema fills half a schema and fails", kFletchingHostileReported,
     ENOMEM, kSchemaPartial},
    {"stream.schema-released", "get_schema returns a released schema and 0",
     kFletchingHostileRefused, 0, kSchemaReleased},
    {"stream.next-fails", "the first get_next fails", kFletchingHostileReported, EIO, kNextFails},
    {"stream.next-partial", "get_next fills half an array and fails", kFletchingHostileReported,
     ENOMEM, kNextPartial},
    {"stream.fails-midway", "get_next fails after two arrays", kFletchingHostileReported, EIO,
     kFailsMidway},
    {"stream.fails-at-end", "get_next fails in place of the end", kFletchingHostileReported, EIO,
     kFailsAtEnd},
    {"stream.error-then-more", "get_next fails, and would return arrays afterwards",
     kFletchingHostileReported, EIO, kErrorThenMore},
    {"stream.end-then-more", "get_next returns the end, and would return arrays afterwards",
     kFletchingHostileAccepted, 0, kEndThenMore},
    {"stream.negative-code", "get_next fails with -5, which is not an errno",
     kFletchingHostileRefused, 0, kNegativeCode},
    {"stream.huge-code", "get_next fails with INT_MAX, which is not an errno that anybody knows",
     kFletchingHostileReported, INT_MAX, kHugeCode},
    {"stream.text-null", "get_next fails, the text is NULL", kFletchingHostileReported, EIO,
     kTextNull},
    {"stream.text-empty", "get_next fails, the text is empty", kFletchingHostileReported, EIO,
     kTextEmpty},
    {"stream.text-not-utf8", "get_next fails, the text is not UTF-8", kFletchingHostileReported,
     EIO, kTextNotUtf8},
    {"stream.text-long", "get_next fails, the text has a million bytes", kFletchingHostileReported,
     EIO, kTextLong},
    {"stream.text-changes",
     "get_next fails, the text is overwritten by the next call and freed by release",
     kFletchingHostileReported, EIO, kTextChanges},
};
static const struct Case kDeviceCases[] = {
    {"device-stream.type-zero", "device_type of the stream is 0", kFletchingHostileRefused, 0,
     kTypeZero},
    {"device-stream.type-unknown", "device_type is 9999, of the stream and of its arrays",
     kFletchingHostileAccepted, 0, kTypeUnknown},
    {"device-stream.batch-type-unknown", "device_type of the stream is CPU, of the arrays 9999",
     kFletchingHostileRefused, 0, kBatchTypeUnknown},
    {"device-stream.batch-type-other", "device_type of the stream is CPU, of the arrays CUDA",
     kFletchingHostileRefused, 0, kBatchTypeOther},
    {"device-stream.batch-reserved", "reserved of the arrays is not zero",
     kFletchingHostileTolerated, 0, kBatchReserved},
};

const struct Party kStreamParty = {kFletchingHostileStream, sizeof kCases / sizeof kCases[0],
                                   kCases};
const struct Party kDeviceStreamParty = {
    kFletchingHostileDeviceStream, sizeof kDeviceCases / sizeof kDeviceCases[0], kDeviceCases};

enum { kBatches = 3 };

struct Stream {
  int32_t behaviour;
  int32_t code; /* of every failure */
  int calls;    /* of get_next */
  int failed;   /* whether the last call has failed */
  char text[32];
};

static struct Stream* Find(void* id, const char* callback) {
  struct Stream* stream = FindId(id, callback);
  if (stream == NULL) return NULL;
  stream->failed = 0;
  memset(stream->text, '#', sizeof stream->text - 1);
  return stream;
}

static int FailCall(struct Stream* stream, int32_t code) {
  stream->failed = 1;
  snprintf(stream->text, sizeof stream->text, "failed at call %d", stream->calls);
  return code;
}

static int GetSchema(void* id, struct ArrowSchema* out) {
  struct Stream* stream = Find(id, "get_schema");
  if (stream == NULL) return EINVAL;
  switch (stream->behaviour) {
    case kSchemaFails:
      return FailCall(stream, stream->code);
    case kSchemaPartial:
      LeaveSchema(out);
      return FailCall(stream, stream->code);
    case kSchemaReleased:
      memset(out, 0, sizeof *out);
      return 0;
    default:
      return MakeSchema(0, out);
  }
}

/* The number of the call, from 1, that fails; 0 for never. */
static int FailingCall(int32_t behaviour) {
  switch (behaviour) {
    case kFailsMidway:
      return kBatches;
    case kFailsAtEnd:
      return kBatches + 1;
    case kLastErrorNull:
    case kNextFails:
    case kNextPartial:
    case kErrorThenMore:
    case kNegativeCode:
    case kHugeCode:
    case kTextNull:
    case kTextEmpty:
    case kTextNotUtf8:
    case kTextLong:
    case kTextChanges:
      return 1;
    default:
      return 0;
  }
}

static int IsEnd(const struct Stream* stream) {
  if (stream->behaviour == kEmpty) return 1;
  if (stream->behaviour == kEndThenMore) return stream->calls == kBatches + 1;
  return stream->calls > kBatches;
}

static int MakeBatch(const struct Stream* stream, struct ArrowDeviceArray* out) {
  const int made = MakeDeviceArray(0, out);
  if (made != 0) return made;
  switch (stream->behaviour) {
    case kTypeUnknown:
    case kBatchTypeUnknown:
      out->device_type = 9999;
      break;
    case kBatchTypeOther:
      out->device_type = ARROW_DEVICE_CUDA;
      break;
    case kBatchReserved:
      memset(out->reserved, 0xA5, sizeof out->reserved);
      break;
    default:
      break;
  }
  return 0;
}

/* Both kinds of get_next. On an error *out is not touched; *partial is set to leave something. */
static int GetNext(void* id, struct ArrowDeviceArray* out, int* partial) {
  *partial = 0;
  struct Stream* stream = Find(id, "get_next");
  if (stream == NULL) return EINVAL;
  ++stream->calls;
  const int failing = FailingCall(stream->behaviour);
  const int is_later = stream->calls > failing && stream->behaviour != kErrorThenMore;
  if (failing != 0 && (stream->calls == failing || is_later)) {
    *partial = stream->behaviour == kNextPartial;
    return FailCall(stream, stream->code);
  }
  if (!IsEnd(stream)) return MakeBatch(stream, out);
  memset(out, 0, sizeof *out);
  return 0;
}

static const char* GetLastError(void* id) {
  struct Stream* stream = FindId(id, "get_last_error");
  if (stream == NULL) return NULL;
  if (!stream->failed) {
    Mistake("get_last_error was called, and the last call had not failed");
    return NULL;
  }
  switch (stream->behaviour) {
    case kTextNull:
      return NULL;
    case kTextEmpty:
      return "";
    case kTextNotUtf8:
      return kNotUtf8;
    case kTextLong:
      return LongText();
    default:
      return stream->text;
  }
}

static void Release(void* id) { CloseId(id, "release of a stream"); }

static int PlainGetSchema(struct ArrowArrayStream* self, struct ArrowSchema* out) {
  return GetSchema(self->private_data, out);
}
static int PlainGetNext(struct ArrowArrayStream* self, struct ArrowArray* out) {
  struct ArrowDeviceArray device;
  int partial;
  const int code = GetNext(self->private_data, &device, &partial);
  if (code == 0) *out = device.array;
  if (partial) LeaveArray(out);
  return code;
}
static const char* PlainGetLastError(struct ArrowArrayStream* self) {
  return GetLastError(self->private_data);
}
static void PlainReleaseAndForget(struct ArrowArrayStream* self) { Release(self->private_data); }
static void PlainRelease(struct ArrowArrayStream* self) {
  Release(self->private_data);
  self->release = NULL;
}

static int DeviceGetSchema(struct ArrowDeviceArrayStream* self, struct ArrowSchema* out) {
  return GetSchema(self->private_data, out);
}
static int DeviceGetNext(struct ArrowDeviceArrayStream* self, struct ArrowDeviceArray* out) {
  int partial;
  const int code = GetNext(self->private_data, out, &partial);
  if (partial) LeaveDeviceArray(out);
  return code;
}
static const char* DeviceGetLastError(struct ArrowDeviceArrayStream* self) {
  return GetLastError(self->private_data);
}
static void DeviceReleaseAndForget(struct ArrowDeviceArrayStream* self) {
  Release(self->private_data);
}
static void DeviceRelease(struct ArrowDeviceArrayStream* self) {
  Release(self->private_data);
  self->release = NULL;
}

static void* Open(const struct Case* found) {
  struct Stream* stream = calloc(1, sizeof *stream);
  if (stream == NULL) return NULL;
  stream->behaviour = found->behaviour;
  stream->code = found->code != 0 ? found->code : -EIO;
  void* id = OpenId(kCountsAsStruct, stream, free);
  if (id == NULL) free(stream);
  return id;
}

int FletchingHostileExportStream(const char* name, struct ArrowArrayStream* out,
                                 struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kStreamParty, name, message);
  if (found == NULL) return EINVAL;
  if (out == NULL) return Fail(message, EINVAL, "out is NULL");
  *out = (struct ArrowArrayStream){PlainGetSchema, PlainGetNext, PlainGetLastError, PlainRelease,
                                   NULL};
  const int32_t behaviour = found->behaviour;
  if (behaviour == kAllNull || behaviour == kGetSchemaNull) out->get_schema = NULL;
  if (behaviour == kAllNull || behaviour == kGetNextNull) out->get_next = NULL;
  if (behaviour == kAllNull || behaviour == kLastErrorNull) out->get_last_error = NULL;
  if (behaviour == kReleaseForgets) out->release = PlainReleaseAndForget;
  if (behaviour == kReleaseNull) {
    out->release = NULL;
    return 0;
  }
  out->private_data = Open(found);
  if (out->private_data != NULL) return 0;
  out->release = NULL;
  return Fail(message, ENOMEM, "out of memory");
}

int FletchingHostileExportDeviceStream(const char* name, struct ArrowDeviceArrayStream* out,
                                       struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kDeviceStreamParty, name, message);
  if (found == NULL) found = FindCase(&kStreamParty, name, message);
  if (found == NULL) return EINVAL;
  if (out == NULL) return Fail(message, EINVAL, "out is NULL");
  *out = (struct ArrowDeviceArrayStream){ARROW_DEVICE_CPU,   DeviceGetSchema, DeviceGetNext,
                                         DeviceGetLastError, DeviceRelease,   NULL};
  const int32_t behaviour = found->behaviour;
  if (behaviour == kTypeZero) out->device_type = 0;
  if (behaviour == kTypeUnknown) out->device_type = 9999;
  if (behaviour == kAllNull || behaviour == kGetSchemaNull) out->get_schema = NULL;
  if (behaviour == kAllNull || behaviour == kGetNextNull) out->get_next = NULL;
  if (behaviour == kAllNull || behaviour == kLastErrorNull) out->get_last_error = NULL;
  if (behaviour == kReleaseForgets) out->release = DeviceReleaseAndForget;
  if (behaviour == kReleaseNull) {
    out->release = NULL;
    return 0;
  }
  out->private_data = Open(found);
  if (out->private_data != NULL) return 0;
  out->release = NULL;
  return Fail(message, ENOMEM, "out of memory");
}
