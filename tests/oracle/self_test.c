/* Test of the oracle: every correct input passes, and every check fails on a wrong input.
 *
 * The binding under test is this file: plain C, written by hand against upstream's headers, without
 * the oracle's lists. Usage: oracle_self_test PATH/arrow/c/abi.h PATH/dlpack/dlpack.h
 */
#include <arrow/c/abi.h>
#include <ctype.h>
#include <dlpack/dlpack.h>
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"

enum { kMessage = 400, kMaxValues = 512 };

static int g_failures = 0;
static int g_print = 0; /* --print: prints the message of every rejection */

#define CHECK(condition, ...)                         \
  do {                                                \
    if (!(condition)) {                               \
      ++g_failures;                                   \
      fprintf(stderr, "%s:%d: ", __FILE__, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                   \
      fputc('\n', stderr);                            \
    }                                                 \
  } while (0)

/* `check` (an expression that uses message and kMessage) must pass. */
#define AGREES(check)                                       \
  do {                                                      \
    char message[kMessage] = "";                            \
    CHECK((check) == 0, "%s refused: %s", #check, message); \
  } while (0)

/* `check` must fail, with one line that contains both words. */
#define REFUSES(check, word1, word2)                                                \
  do {                                                                              \
    char message[kMessage] = "";                                                    \
    const int refused = (check);                                                    \
    CHECK(refused == 1, "%s: expected 1, got %d", #check, refused);                 \
    CHECK(strstr(message, word1) != NULL && strstr(message, word2) != NULL,         \
          "%s: \"%s\" names not \"%s\" and \"%s\"", #check, message, word1, word2); \
    CHECK(strchr(message, '\n') == NULL, "more than one line: %s", message);        \
    if (g_print) puts(message);                                                     \
  } while (0)

/* ---- Every value of every struct ---- */

typedef struct {
  const char* owner;
  char path[64];
  int32_t element;
  int64_t offset;
  int64_t size;
} Value;

static Value g_values[kMaxValues];
static int32_t g_value_count = 0;

static void AddValues(const char* owner, const char* path) {
  const int64_t offset = FletchingOracleOffset(owner, path);
  const int64_t size = FletchingOracleFieldSize(owner, path);
  int32_t count = 0;
  while (FletchingOracleCanary(owner, path, count) != 0) ++count;
  CHECK(count > 0, "%s.%s has no canary", owner, path);
  for (int32_t element = 0; element < count; ++element) {
    Value* value = &g_values[g_value_count++];
    value->owner = owner;
    snprintf(value->path, sizeof(value->path), "%s", path);
    value->element = element;
    value->offset = offset + element * (size / count);
    value->size = size / count;
  }
}

/* Every embedded struct. */
static const struct {
  const char* owner;
  const char* field;
  const char* embedded;
} kEmbedded[] = {
    {"ArrowDeviceArray", "array", "ArrowArray"},
    {"DLTensor", "device", "DLDevice"},
    {"DLTensor", "dtype", "DLDataType"},
    {"DLManagedTensor", "dl_tensor", "DLTensor"},
    {"DLManagedTensorVersioned", "version", "DLPackVersion"},
    {"DLManagedTensorVersioned", "dl_tensor", "DLTensor"},
    {"DLPackExchangeAPIHeader", "version", "DLPackVersion"},
    {"DLPackExchangeAPI", "header", "DLPackExchangeAPIHeader"},
};

static const char* Embedded(const char* owner, const char* field) {
  for (size_t i = 0; i < sizeof(kEmbedded) / sizeof(kEmbedded[0]); ++i) {
    if (strcmp(kEmbedded[i].owner, owner) == 0 && strcmp(kEmbedded[i].field, field) == 0) {
      return kEmbedded[i].embedded;
    }
  }
  return NULL;
}

/* Collects the fields of `part`, which is in `owner` after `prefix`. */
static void CollectFields(const char* owner, const char* part, const char* prefix) {
  for (int32_t f = 0; f < FletchingOracleFieldCount(part); ++f) {
    const char* field = FletchingOracleFieldName(part, f);
    const char* embedded = Embedded(part, field);
    char path[64];
    snprintf(path, sizeof(path), "%s%s%s", prefix, field, embedded != NULL ? "." : "");
    if (embedded == NULL) {
      AddValues(owner, path);
      continue;
    }
    CHECK(FletchingOracleCanary(part, field, 0) == 0, "embedded %s.%s has a canary", part, field);
    CollectFields(owner, embedded, path);
  }
}

static void CollectValues(void) {
  for (int32_t s = 0; s < FletchingOracleStructCount(); ++s) {
    CollectFields(FletchingOracleStructName(s), FletchingOracleStructName(s), "");
  }
}

static uint64_t Canary(const Value* value) {
  return FletchingOracleCanary(value->owner, value->path, value->element);
}

static void TestCanaries(void) {
  for (int32_t i = 0; i < g_value_count; ++i) {
    const Value* value = &g_values[i];
    const uint64_t canary = Canary(value);
    const int bits = (int)value->size * 8;
    CHECK(canary >> (bits - 1) == 1, "%s.%s: top bit or width of 0x%" PRIx64, value->owner,
          value->path, canary);
    for (int a = 0; a < bits; a += 8) {
      CHECK((canary >> a & 0xff) != 0, "%s.%s: zero byte", value->owner, value->path);
      for (int b = 0; b < a; b += 8) {
        CHECK((canary >> a & 0xff) != (canary >> b & 0xff), "%s.%s: equal bytes in 0x%" PRIx64,
              value->owner, value->path, canary);
      }
    }
    for (int32_t j = 0; j < i; ++j) {
      CHECK((uint32_t)Canary(&g_values[j]) != (uint32_t)canary, "%s.%s and %s.%s: equal canaries",
            value->owner, value->path, g_values[j].owner, g_values[j].path);
    }
  }
  CHECK(FletchingOracleCanary("ArrowDeviceArray", "reserved", 2) != 0, "reserved has 3 elements");
  CHECK(FletchingOracleCanary("ArrowDeviceArray", "reserved", 3) == 0, "reserved has 3 elements");
  CHECK(FletchingOracleCanary("ArrowDeviceArray", "reserved", -1) == 0, "negative element");
  CHECK(FletchingOracleCanary("ArrowDeviceArray", NULL, 0) == 0, "NULL path");
  CHECK(FletchingOracleCanary("ArrowNone", "length", 0) == 0, "unknown struct");
}

/* ---- Layout, names and constants ---- */

static void JoinFields(const char* owner, char* names, size_t capacity) {
  names[0] = '\0';
  for (int32_t f = 0; f < FletchingOracleFieldCount(owner); ++f) {
    if (f > 0) strncat(names, ",", capacity - strlen(names) - 1);
    strncat(names, FletchingOracleFieldName(owner, f), capacity - strlen(names) - 1);
  }
}

/* The lists name the fields in memory order. */
static void TestOrder(const char* owner) {
  for (int32_t f = 1; f < FletchingOracleFieldCount(owner); ++f) {
    const char* before = FletchingOracleFieldName(owner, f - 1);
    const char* field = FletchingOracleFieldName(owner, f);
    CHECK(FletchingOracleOffset(owner, before) < FletchingOracleOffset(owner, field),
          "%s.%s is listed before %s", owner, before, field);
  }
}

static void TestStruct(const char* owner) {
  const int64_t size = FletchingOracleSize(owner);
  const int64_t align = FletchingOracleAlign(owner);
  AGREES(FletchingOracleCheckStruct(owner, size, align, message, kMessage));
  REFUSES(FletchingOracleCheckStruct(owner, size + 8, align, message, kMessage), owner, "size");
  REFUSES(FletchingOracleCheckStruct(owner, size, align / 2, message, kMessage), owner,
          "alignment");

  char names[512];
  char wrong[600];
  JoinFields(owner, names, sizeof(names));
  const char* first = FletchingOracleFieldName(owner, 0);
  const char* second = FletchingOracleFieldName(owner, 1);
  AGREES(FletchingOracleCheckFieldNames(owner, names, message, kMessage));
  snprintf(wrong, sizeof(wrong), "%s,extra", names);
  REFUSES(FletchingOracleCheckFieldNames(owner, wrong, message, kMessage), owner,
          "extra: upstream has no such field");
  snprintf(wrong, sizeof(wrong), "%s,%s", names, second);
  REFUSES(FletchingOracleCheckFieldNames(owner, wrong, message, kMessage), owner, second);
  REFUSES(FletchingOracleCheckFieldNames(owner, strchr(names, ',') + 1, message, kMessage), owner,
          first);
  snprintf(wrong, sizeof(wrong), "%s,%s%s", second, first,
           names + strlen(first) + 1 + strlen(second));
  REFUSES(FletchingOracleCheckFieldNames(owner, wrong, message, kMessage), owner, first);
  REFUSES(FletchingOracleCheckFieldNames(owner, NULL, message, kMessage), owner, first);
}

static void TestField(const char* owner, const char* path, int64_t offset, int64_t size) {
  AGREES(FletchingOracleCheckField(owner, path, offset, size, message, kMessage));
  REFUSES(FletchingOracleCheckField(owner, path, offset + 4, size, message, kMessage), owner, path);
  REFUSES(FletchingOracleCheckField(owner, path, offset, size + 4, message, kMessage), owner, path);
}

static void TestLayout(void) {
  for (int32_t s = 0; s < FletchingOracleStructCount(); ++s) {
    TestStruct(FletchingOracleStructName(s));
    TestOrder(FletchingOracleStructName(s));
  }
  for (int32_t i = 0; i < g_value_count; ++i) {
    const Value* value = &g_values[i];
    TestField(value->owner, value->path, FletchingOracleOffset(value->owner, value->path),
              FletchingOracleFieldSize(value->owner, value->path));
  }
  TestField("ArrowDeviceArray", "array", 0, (int64_t)sizeof(struct ArrowArray));
  REFUSES(FletchingOracleCheckStruct("ArrowNone", 8, 8, message, kMessage), "ArrowNone", "no such");
  REFUSES(FletchingOracleCheckStruct(NULL, 8, 8, message, kMessage), "NULL", "no such");
  REFUSES(FletchingOracleCheckFieldNames("ArrowNone", "a", message, kMessage), "ArrowNone", "no");
  REFUSES(FletchingOracleCheckField("ArrowNone", "a", 0, 8, message, kMessage), "ArrowNone", "no");
  REFUSES(FletchingOracleCheckField("ArrowAsyncProducer", "release", 24, 8, message, kMessage),
          "ArrowAsyncProducer.release", "no such field");
  REFUSES(FletchingOracleCheckField("ArrowArray", "length.x", 0, 8, message, kMessage),
          "ArrowArray.length.x", "no such field");
  REFUSES(FletchingOracleCheckField("ArrowArray", NULL, 0, 8, message, kMessage), "ArrowArray",
          "no such field");
}

/* The published layouts: 64-bit; 32-bit with int64_t aligned to 8; 32-bit with int64_t aligned to 4
 * (i386). */
static void TestPublishedLayout(void) {
  static const struct {
    const char* name;
    int64_t sizes[3];
    int64_t aligns[3];
  } kSizes[] = {{"ArrowSchema", {72, 48, 44}, {8, 8, 4}},
                {"ArrowArray", {80, 64, 60}, {8, 8, 4}},
                {"ArrowDeviceArray", {128, 104, 100}, {8, 8, 4}},
                {"ArrowArrayStream", {40, 20, 20}, {8, 4, 4}},
                {"ArrowDeviceArrayStream", {48, 24, 24}, {8, 4, 4}},
                {"ArrowAsyncTask", {16, 8, 8}, {8, 4, 4}},
                {"ArrowAsyncProducer", {40, 20, 20}, {8, 4, 4}},
                {"ArrowAsyncDeviceStreamHandler", {48, 24, 24}, {8, 4, 4}},
                {"DLPackVersion", {8, 8, 8}, {4, 4, 4}},
                {"DLDevice", {8, 8, 8}, {4, 4, 4}},
                {"DLDataType", {4, 4, 4}, {2, 2, 2}},
                {"DLTensor", {48, 40, 36}, {8, 8, 4}},
                {"DLManagedTensor", {64, 48, 44}, {8, 8, 4}},
                {"DLManagedTensorVersioned", {80, 64, 60}, {8, 8, 4}},
                {"DLPackExchangeAPIHeader", {16, 12, 12}, {8, 4, 4}},
                {"DLPackExchangeAPI", {56, 32, 32}, {8, 4, 4}}};
  static const struct {
    const char* path;
    int64_t offsets[3];
  } kOffsets[] = {{"array", {0, 0, 0}},         {"array.private_data", {72, 56, 56}},
                  {"device_id", {80, 64, 60}},  {"device_type", {88, 72, 68}},
                  {"sync_event", {96, 76, 72}}, {"reserved", {104, 80, 76}}};
  struct Probe {
    char before;
    int64_t value;
  };
  const int column = sizeof(void*) == 8 ? 0 : offsetof(struct Probe, value) == 8 ? 1 : 2;
  CHECK(FletchingOracleStructCount() == 16, "%d structs", FletchingOracleStructCount());
  for (size_t i = 0; i < sizeof(kSizes) / sizeof(kSizes[0]); ++i) {
    AGREES(FletchingOracleCheckStruct(kSizes[i].name, kSizes[i].sizes[column],
                                      kSizes[i].aligns[column], message, kMessage));
  }
  for (size_t i = 0; i < sizeof(kOffsets) / sizeof(kOffsets[0]); ++i) {
    const int64_t offset = FletchingOracleOffset("ArrowDeviceArray", kOffsets[i].path);
    CHECK(offset == kOffsets[i].offsets[column], "%s at %" PRId64, kOffsets[i].path, offset);
  }
  const int64_t pointer = (int64_t)sizeof(void*);
  CHECK(FletchingOracleOffset("ArrowAsyncProducer", "additional_metadata") == 3 * pointer,
        "additional_metadata");
  CHECK(FletchingOracleFieldSize("ArrowDeviceArray", "device_type") == 4, "device_type");
  CHECK(FletchingOracleFieldSize("ArrowDeviceArray", "reserved") == 24, "reserved");
}

static void TestUnknownNames(void) {
  CHECK(FletchingOracleStructName(-1) == NULL, "struct -1");
  CHECK(FletchingOracleStructName(FletchingOracleStructCount()) == NULL, "struct past the end");
  CHECK(FletchingOracleSize("ArrowNone") == -1 && FletchingOracleSize(NULL) == -1, "size");
  CHECK(FletchingOracleAlign("ArrowNone") == -1, "align");
  CHECK(FletchingOracleFieldCount("ArrowNone") == -1, "field count");
  CHECK(FletchingOracleFieldName("ArrowNone", 0) == NULL, "field name");
  CHECK(FletchingOracleFieldName("ArrowArray", -1) == NULL, "field -1");
  CHECK(FletchingOracleFieldName("ArrowArray", 10) == NULL, "field past the end");
  CHECK(FletchingOracleOffset("ArrowArray", "none") == -1, "offset");
  CHECK(FletchingOracleOffset("ArrowArray", "") == -1, "empty path");
  CHECK(FletchingOracleOffset("ArrowDeviceArray", "array.") == -1, "half a path");
  CHECK(FletchingOracleFieldSize("ArrowNone", "length") == -1, "field size");
  CHECK(FletchingOracleConstantName(-1) == NULL, "constant -1");
  CHECK(FletchingOracleConstantName(FletchingOracleConstantCount()) == NULL, "constant past end");
  CHECK(FletchingOracleCallbackCount("ArrowNone") == -1, "callback count");
  CHECK(FletchingOracleCallbackName("ArrowNone", 0) == NULL, "callback name");
  CHECK(FletchingOracleCallbackName("ArrowSchema", 1) == NULL, "callback past the end");
  CHECK(FletchingOracleCallbackName("ArrowSchema", -1) == NULL, "callback -1");
  CHECK(FletchingOracleArgumentCount("ArrowSchema", "none") == -1, "argument count");
  CHECK(FletchingOracleFill("ArrowNone", NULL) == ENOENT, "fill");
  CHECK(FletchingOracleFill("ArrowArray", NULL) == EINVAL, "fill NULL");
  CHECK(FletchingOracleInstall("ArrowNone", NULL) == ENOENT, "install");
  CHECK(FletchingOracleInstall("ArrowArray", NULL) == EINVAL, "install NULL");
}

static void TestConstants(void) {
  char names[1024] = "";
  for (int32_t i = 0; i < FletchingOracleConstantCount(); ++i) {
    const char* name = FletchingOracleConstantName(i);
    if (i > 0) strncat(names, ",", sizeof(names) - strlen(names) - 1);
    strncat(names, name, sizeof(names) - strlen(names) - 1);
    REFUSES(FletchingOracleCheckConstant(name, 99, message, kMessage), name, "99 in the binding");
  }
  AGREES(FletchingOracleCheckConstant("ARROW_FLAG_MAP_KEYS_SORTED", 4, message, kMessage));
  AGREES(FletchingOracleCheckConstant("ARROW_DEVICE_VULKAN", 7, message, kMessage));
  AGREES(FletchingOracleCheckConstant("ARROW_DEVICE_HEXAGON", 16, message, kMessage));
  REFUSES(FletchingOracleCheckConstant("ARROW_DEVICE_MAIA", 17, message, kMessage),
          "ARROW_DEVICE_MAIA", "no such constant");
  REFUSES(FletchingOracleCheckConstant(NULL, 1, message, kMessage), "NULL", "no such constant");

  AGREES(FletchingOracleCheckConstant("DLPACK_FLAG_BITMASK_IS_COPIED", 2, message, kMessage));
  AGREES(FletchingOracleCheckConstantNames(names, message, kMessage));
  REFUSES(FletchingOracleCheckConstantNames(strchr(names, ',') + 1, message, kMessage),
          "ARROW_FLAG_DICTIONARY_ORDERED", "the binding has no such");
  strncat(names, ",ARROW_DEVICE_CPU", sizeof(names) - strlen(names) - 1);
  REFUSES(FletchingOracleCheckConstantNames(names, message, kMessage), "ARROW_DEVICE_CPU", "twice");
  strncat(names, ",ARROW_DEVICE_MAIA", sizeof(names) - strlen(names) - 1);
  REFUSES(FletchingOracleCheckConstantNames(names, message, kMessage), "ARROW_DEVICE_MAIA",
          "upstream has no such");
}

static void TestEnumerators(void) {
  static const char good[] =
      "kDLInt=0,kDLUInt=1,kDLFloat=2,kDLOpaqueHandle=3,kDLBfloat=4,kDLComplex=5,kDLBool=6,"
      "kDLFloat8_e3m4=7,kDLFloat8_e4m3=8,kDLFloat8_e4m3b11fnuz=9,kDLFloat8_e4m3fn=10,"
      "kDLFloat8_e4m3fnuz=11,kDLFloat8_e5m2=12,kDLFloat8_e5m2fnuz=13,kDLFloat8_e8m0fnu=14,"
      "kDLFloat6_e2m3fn=15,kDLFloat6_e3m2fn=16,kDLFloat4_e2m1fn=17";
  static const char* const owner = "DLDataTypeCode";
  char list[600];
  AGREES(FletchingOracleCheckEnumerators(owner, good, message, kMessage));
  snprintf(list, sizeof(list), "%s,kDLNewer=18", good);
  AGREES(FletchingOracleCheckEnumerators(owner, list, message, kMessage));
  snprintf(list, sizeof(list), "%s,kDLForked=17", good);
  REFUSES(FletchingOracleCheckEnumerators(owner, list, message, kMessage),
          "DLDataTypeCode.kDLForked", "upstream has no such enumerator");
  snprintf(list, sizeof(list), "%s,kDLInt=0", good);
  REFUSES(FletchingOracleCheckEnumerators(owner, list, message, kMessage), "DLDataTypeCode.kDLInt",
          "twice in the binding");
  REFUSES(FletchingOracleCheckEnumerators(owner, strchr(good, ',') + 1, message, kMessage),
          "DLDataTypeCode.kDLInt", "the binding has no such enumerator");
  REFUSES(FletchingOracleCheckEnumerators(owner, NULL, message, kMessage), "kDLInt", "no such");
  REFUSES(FletchingOracleCheckEnumerators(owner, "kDLInt=1", message, kMessage),
          "DLDataTypeCode.kDLInt", "0 upstream, 1 in the binding");
  REFUSES(FletchingOracleCheckEnumerators(owner, "kDLInt", message, kMessage), "\"kDLInt\"",
          "is not name=value");
  REFUSES(FletchingOracleCheckEnumerators(owner, "kDLInt=0x1", message, kMessage), "kDLInt=0x1",
          "is not name=value");
  REFUSES(FletchingOracleCheckEnumerators("DLNone", good, message, kMessage), "DLNone",
          "no such enum");
  REFUSES(FletchingOracleCheckEnumerators(NULL, good, message, kMessage), "NULL", "no such enum");
}

static void TestSignature(const char* owner, const char* callback, const char* right,
                          const char* wrong) {
  AGREES(FletchingOracleCheckSignature(owner, callback, right, message, kMessage));
  REFUSES(FletchingOracleCheckSignature(owner, callback, wrong, message, kMessage), right, wrong);
}

static void TestSignatures(void) {
  const char* handler = "ArrowAsyncDeviceStreamHandler";
  TestSignature("ArrowArray", "release", "p->v", "p->4");
  TestSignature("ArrowArrayStream", "get_last_error", "p->p", "p->4");
  TestSignature("ArrowDeviceArrayStream", "get_next", "p,p->4", "p,p->8");
  TestSignature("ArrowAsyncProducer", "request", "p,8->v", "p,4->v");
  TestSignature(handler, "on_error", "p,4,p,p->v", "p,8,p,p->v");
  TestSignature("DLPackExchangeAPI", "managed_tensor_allocator", "p,p,p,p->4", "p,p,p,p->8");
  TestSignature("DLPackExchangeAPI", "current_work_stream", "4,4,p->4", "4,8,p->4");
  REFUSES(FletchingOracleCheckSignature("ArrowArray", "release", NULL, message, kMessage),
          "ArrowArray.release", "(NULL) in the binding");
  REFUSES(FletchingOracleCheckSignature(handler, "none", "p->v", message, kMessage), "none",
          "no such callback");

  const char* names = "get_next,get_schema,release,get_last_error";
  const char* owner = "ArrowArrayStream";
  AGREES(FletchingOracleCheckCallbackNames(owner, names, message, kMessage));
  AGREES(FletchingOracleCheckCallbackNames("ArrowDeviceArray", "", message, kMessage));
  REFUSES(
      FletchingOracleCheckCallbackNames(owner, "get_next,get_schema,release", message, kMessage),
      "ArrowArrayStream.get_last_error", "the binding has no such callback");
  REFUSES(FletchingOracleCheckCallbackNames("ArrowArray", "release,rel", message, kMessage),
          "ArrowArray.rel:", "upstream has no such callback");
  REFUSES(FletchingOracleCheckCallbackNames("ArrowArray", "release,release", message, kMessage),
          "ArrowArray.release", "twice");
  REFUSES(FletchingOracleCheckCallbackNames("ArrowNone", "release", message, kMessage), "ArrowNone",
          "no such struct");
}

/* ---- Memory in both directions ---- */

/* The bits of a value at its offset, as a binding would read them. */
static uint64_t ReadBits(const unsigned char* object, const Value* value) {
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  if (value->size == 1) return object[value->offset];
  if (value->size == 2) return memcpy(&two, object + value->offset, 2), two;
  if (value->size == 4) return memcpy(&four, object + value->offset, 4), four;
  return memcpy(&eight, object + value->offset, 8), eight;
}

static int OwnsByte(const char* owner, int64_t byte) {
  for (int32_t i = 0; i < g_value_count; ++i) {
    const Value* value = &g_values[i];
    if (strcmp(value->owner, owner) == 0 && byte >= value->offset &&
        byte < value->offset + value->size) {
      return 1;
    }
  }
  return 0;
}

static void TestEveryByte(const char* owner, unsigned char* object) {
  for (int64_t byte = 0; byte < FletchingOracleSize(owner); ++byte) {
    object[byte] ^= 0x40;
    char number[32];
    snprintf(number, sizeof(number), ": byte %d of", (int)byte);
    if (OwnsByte(owner, byte)) {
      REFUSES(FletchingOracleCheckWritten(owner, object, message, kMessage), owner, number);
    } else {
      AGREES(FletchingOracleCheckWritten(owner, object, message, kMessage));
    }
    object[byte] ^= 0x40;
  }
}

static void TestMemory(void) {
  for (int32_t s = 0; s < FletchingOracleStructCount(); ++s) {
    const char* owner = FletchingOracleStructName(s);
    unsigned char* object = calloc(1, (size_t)FletchingOracleSize(owner));
    REFUSES(FletchingOracleCheckWritten(owner, object, message, kMessage), owner, "byte");
    CHECK(FletchingOracleFill(owner, object) == 0, "Fill %s", owner);
    AGREES(FletchingOracleCheckWritten(owner, object, message, kMessage));
    TestEveryByte(owner, object);
    for (int32_t i = 0; i < g_value_count; ++i) {
      const Value* value = &g_values[i];
      if (strcmp(value->owner, owner) != 0) continue;
      const uint64_t seen = ReadBits(object, value);
      CHECK(seen == Canary(value), "%s.%s: Fill and Canary differ", owner, value->path);
      AGREES(FletchingOracleCheckRead(owner, value->path, value->element, seen, message, kMessage));
      const uint64_t unsigned_part = seen & ~(UINT64_C(1) << (8 * value->size - 1));
      REFUSES(FletchingOracleCheckRead(owner, value->path, value->element, unsigned_part, message,
                                       kMessage),
              owner, value->path);
    }
    free(object);
  }
}

static void TestLookalikes(void) {
  struct ArrowDeviceArray array;
  CHECK(FletchingOracleFill("ArrowDeviceArray", &array) == 0, "Fill");
  const uint64_t null_count = FletchingOracleCanary("ArrowArray", "null_count", 0);
  REFUSES(FletchingOracleCheckRead("ArrowDeviceArray", "array.length", 0,
                                   (uint64_t)array.array.offset, message, kMessage),
          "ArrowDeviceArray.array.length:", "(looks like array.offset)");
  REFUSES(
      FletchingOracleCheckRead("ArrowDeviceArray", "device_id", 0, null_count, message, kMessage),
      "ArrowDeviceArray.device_id:", "(looks like ArrowArray.null_count)");
  REFUSES(FletchingOracleCheckRead("ArrowDeviceArray", "reserved", 1, (uint64_t)array.reserved[2],
                                   message, kMessage),
          "ArrowDeviceArray.reserved[1]:", "(looks like reserved[2])");
  REFUSES(FletchingOracleCheckRead("ArrowDeviceArray", "reserved", 3, 0, message, kMessage),
          "ArrowDeviceArray.reserved", "3");
  REFUSES(FletchingOracleCheckRead("ArrowDeviceArray", "array", 0, 0, message, kMessage),
          "ArrowDeviceArray.array", "no such value");
  REFUSES(FletchingOracleCheckRead("ArrowNone", "a", 0, 0, message, kMessage), "ArrowNone", "no");
  REFUSES(FletchingOracleCheckWritten("ArrowNone", &array, message, kMessage), "ArrowNone", "no");
  REFUSES(FletchingOracleCheckWritten("ArrowArray", NULL, message, kMessage), "ArrowArray", "NULL");

  const int64_t device_id = array.device_id;
  array.device_id = array.reserved[0];
  array.reserved[0] = device_id;
  REFUSES(FletchingOracleCheckWritten("ArrowDeviceArray", &array, message, kMessage),
          "ArrowDeviceArray.device_id:", "(looks like reserved[0])");
  array.device_id = device_id;
  REFUSES(FletchingOracleCheckWritten("ArrowDeviceArray", &array, message, kMessage),
          "ArrowDeviceArray.reserved[0]:", "(looks like device_id)");
}

static void TestMessages(void) {
  char small[8] = "xxxxxxx";
  CHECK(FletchingOracleCheckStruct("ArrowArray", 1, 8, small, sizeof(small)) == 1, "refused");
  CHECK(strcmp(small, "ArrowAr") == 0, "cut message: %s", small);
  CHECK(FletchingOracleCheckStruct("ArrowArray", 1, 8, NULL, 100) == 1, "NULL message");
  small[0] = 'x';
  CHECK(FletchingOracleCheckStruct("ArrowArray", 1, 8, small, 0) == 1, "no capacity");
  CHECK(small[0] == 'x', "wrote without capacity");
  REFUSES(FletchingOracleCheckStruct("two\nlines\xff", 1, 8, message, kMessage), "two?lines?",
          "no such");
}

/* ---- C calls the binding: correct and faulty callbacks ---- */

typedef enum {
  kGood,
  kWrongArgument,
  kSilent,
  kSkipsLast,
  kExtra,
  kTwice,
  kOtherFunction,
  kWrongResult,
  kFaultCount
} Fault;

static Fault g_fault = kGood;

static void ReportAll(const char* owner, const char* name, int count, const uint64_t* bits) {
  for (int i = 0; i < count; ++i) {
    if (g_fault == kSkipsLast && i == count - 1) break;
    const uint64_t wrong = g_fault == kWrongArgument && i == count - 1;
    FletchingOracleSawArgument(owner, name, i, bits[i] ^ wrong);
  }
}

static uint64_t Report(const char* owner, const char* name, int count, const uint64_t* bits) {
  if (g_fault == kOtherFunction) {
    ReportAll(owner, "other", count, bits);
  } else if (g_fault != kSilent) {
    ReportAll(owner, name, count, bits);
  }
  if (g_fault == kTwice) ReportAll(owner, name, count, bits);
  if (g_fault == kExtra) FletchingOracleSawArgument(owner, name, count, 0);
  return FletchingOracleExpectedResult() ^ (g_fault == kWrongResult ? 1 : 0);
}

#define POINTER_BITS(pointer) ((uint64_t)(uintptr_t)(pointer))
#define REPORT(owner, name, ...)                                                   \
  Report(owner, name, (int)(sizeof((uint64_t[]){__VA_ARGS__}) / sizeof(uint64_t)), \
         (uint64_t[]){__VA_ARGS__})

static int StreamGetNext(struct ArrowArrayStream* self, struct ArrowArray* out) {
  return (int)REPORT("ArrowArrayStream", "get_next", POINTER_BITS(self), POINTER_BITS(out));
}
static void ProducerRequest(struct ArrowAsyncProducer* self, int64_t n) {
  (void)REPORT("ArrowAsyncProducer", "request", POINTER_BITS(self), (uint64_t)n);
}
static void HandlerOnError(struct ArrowAsyncDeviceStreamHandler* self, int code,
                           const char* message, const char* metadata) {
  (void)REPORT("ArrowAsyncDeviceStreamHandler", "on_error", POINTER_BITS(self), (uint32_t)code,
               POINTER_BITS(message), POINTER_BITS(metadata));
}
static int ApiStream(DLDeviceType type, int32_t id, void** out) {
  return (int)REPORT("DLPackExchangeAPI", "current_work_stream", (uint32_t)type, (uint32_t)id,
                     POINTER_BITS(out));
}

static struct ArrowSchema g_schema;
static struct ArrowArrayStream g_stream;
static struct ArrowAsyncProducer g_producer;
static struct ArrowAsyncDeviceStreamHandler g_handler;
static DLPackExchangeAPI g_api;

/* One callback of each form; the language tests call all of them. */
static const struct {
  const char* owner;
  const char* name;
  void* object;
} kCalls[] = {
    {"ArrowArrayStream", "get_next", &g_stream},
    {"ArrowAsyncProducer", "request", &g_producer},
    {"ArrowAsyncDeviceStreamHandler", "on_error", &g_handler},
    {"DLPackExchangeAPI", "current_work_stream", &g_api},
};
enum { kCallCount = sizeof(kCalls) / sizeof(kCalls[0]) };

static void SetBindingCallbacks(void) {
  g_stream = (struct ArrowArrayStream){.get_next = StreamGetNext};
  g_producer = (struct ArrowAsyncProducer){.request = ProducerRequest};
  g_handler = (struct ArrowAsyncDeviceStreamHandler){.on_error = HandlerOnError};
  g_api = (DLPackExchangeAPI){.current_work_stream = ApiStream};
}

static int IsVoid(const char* name) {
  return strcmp(name, "request") == 0 || strcmp(name, "on_error") == 0;
}

static void TestBindingCallback(const char* owner, const char* name, void* object) {
  char full[96];
  snprintf(full, sizeof(full), "%s.%s", owner, name);
  for (int32_t variant = 0; variant < FletchingOracleVariantCount(); ++variant) {
    static const char* const kWords[kFaultCount] = {[kWrongArgument] = "the callback saw",
                                                    [kSilent] = "never entered",
                                                    [kSkipsLast] = "",
                                                    [kExtra] = "upstream has",
                                                    [kTwice] = "twice",
                                                    [kOtherFunction] = "other",
                                                    [kWrongResult] = "result"};
    AGREES(FletchingOracleCall(owner, name, variant, object, message, kMessage));
    for (g_fault = kGood + 1; g_fault < kFaultCount; ++g_fault) {
      if (g_fault == kWrongResult && IsVoid(name)) continue;
      REFUSES(FletchingOracleCall(owner, name, variant, object, message, kMessage), full,
              kWords[g_fault]);
    }
    g_fault = kGood;
  }
}

static void TestCToBinding(void) {
  SetBindingCallbacks();
  for (int i = 0; i < kCallCount; ++i) {
    TestBindingCallback(kCalls[i].owner, kCalls[i].name, kCalls[i].object);
  }
  CHECK(FletchingOracleCallbackCount("ArrowDeviceArray") == 0, "ArrowDeviceArray has callbacks");
  CHECK(FletchingOracleCallbackCount("DLPackExchangeAPI") == 5, "DLPackExchangeAPI");
  CHECK(FletchingOracleArgumentCount("ArrowAsyncDeviceStreamHandler", "on_error") == 4, "on_error");
  CHECK(FletchingOracleExpectedResult() == 0, "a result without a call");
  static const struct {
    const char* owner;
    const char* name;
    int32_t variant;
    void* object;
    const char* words[2];
  } kRefused[] = {
      {"ArrowNone", "release", 0, &g_stream, {"ArrowNone.release", "no such callback"}},
      {"ArrowArray", NULL, 0, &g_stream, {"ArrowArray.(NULL)", "no such callback"}},
      {"ArrowArray", "release", 99, &g_stream, {"ArrowArray.release", "no variant 99"}},
      {"ArrowArray", "release", -1, &g_stream, {"ArrowArray.release", "no variant -1"}},
      {"ArrowArray", "release", 0, NULL, {"ArrowArray.release", "object is NULL"}},
      {"ArrowArrayStream", "get_schema", 0, &g_stream, {"get_schema", "callback is NULL"}},
  };
  for (size_t i = 0; i < sizeof(kRefused) / sizeof(kRefused[0]); ++i) {
    REFUSES(FletchingOracleCall(kRefused[i].owner, kRefused[i].name, kRefused[i].variant,
                                kRefused[i].object, message, kMessage),
            kRefused[i].words[0], kRefused[i].words[1]);
  }
  CHECK(FletchingOracleInstall("ArrowArrayStream", &g_stream) == 0, "Install");
  REFUSES(FletchingOracleCall("ArrowArrayStream", "get_schema", 0, &g_stream, message, kMessage),
          "ArrowArrayStream.get_schema", "C's own function");
}

/* Messages that are compared in full. */

static void NarrowRequest(struct ArrowAsyncProducer* self, int64_t n) {
  FletchingOracleSawArgument("ArrowAsyncProducer", "request", 0, POINTER_BITS(self));
  FletchingOracleSawArgument("ArrowAsyncProducer", "request", 1, (uint32_t)n);
}

static void WideOnError(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                        const char* metadata) {
  (void)REPORT("ArrowAsyncDeviceStreamHandler", "on_error", POINTER_BITS(self),
               (uint64_t)(int64_t)code, POINTER_BITS(message), POINTER_BITS(metadata));
}

static void CheckLine(const char* owner, const char* name, int32_t variant, void* object,
                      const char* expected) {
  char message[kMessage] = "";
  CHECK(FletchingOracleCall(owner, name, variant, object, message, kMessage) == 1, "%s.%s agrees",
        owner, name);
  CHECK(strcmp(message, expected) == 0, "\"%s\", expected \"%s\"", message, expected);
}

static void TestCallLines(void) {
  SetBindingCallbacks();
  g_producer.request = NarrowRequest;
  CheckLine("ArrowAsyncProducer", "request", 1, &g_producer,
            "ArrowAsyncProducer.request argument 1 (n): C sent 8589934593, the callback saw 1");
  g_handler.on_error = WideOnError;
  CheckLine("ArrowAsyncDeviceStreamHandler", "on_error", 0, &g_handler,
            "ArrowAsyncDeviceStreamHandler.on_error argument 1 (code): C sent -1, "
            "the callback saw 0xffffffffffffffff");
  g_fault = kWrongArgument;
  CheckLine("ArrowArrayStream", "get_next", 1, &g_stream,
            "ArrowArrayStream.get_next argument 1 (out): C sent NULL, the callback saw 0x1");
  g_fault = kWrongResult;
  CheckLine("ArrowArrayStream", "get_next", 0, &g_stream,
            "ArrowArrayStream.get_next result: the callback returned 0, C got 1");
  CheckLine("ArrowArrayStream", "get_next", 2, &g_stream,
            "ArrowArrayStream.get_next result: the callback returned -1, C got -2");
  g_fault = kOtherFunction;
  CheckLine("ArrowArrayStream", "get_next", 0, &g_stream,
            "ArrowArrayStream.get_next: C called it, the call arrived at ArrowArrayStream.other");
  g_fault = kGood;
}

/* ---- The binding calls C ---- */

/* Calls the installed callback with these argument bits. */
static uint64_t CallByHand(const char* name, const uint64_t* a) {
#define POINTER(i, type) ((type)(uintptr_t)a[i])
  if (strcmp(name, "release") == 0) return g_schema.release(POINTER(0, struct ArrowSchema*)), 0;
  if (strcmp(name, "get_next") == 0) {
    return (uint32_t)g_stream.get_next(POINTER(0, struct ArrowArrayStream*),
                                       POINTER(1, struct ArrowArray*));
  }
  if (strcmp(name, "request") == 0) {
    return g_producer.request(POINTER(0, struct ArrowAsyncProducer*), (int64_t)a[1]), 0;
  }
  if (strcmp(name, "on_error") == 0) {
    g_handler.on_error(POINTER(0, struct ArrowAsyncDeviceStreamHandler*), (int)(uint32_t)a[1],
                       POINTER(2, const char*), POINTER(3, const char*));
    return 0;
  }
  return (uint32_t)g_api.current_work_stream((DLDeviceType)a[0], (int32_t)a[1], POINTER(2, void**));
#undef POINTER
}

static void BeginCall(const char* owner, const char* name, int32_t variant, void* object,
                      uint64_t arguments[4]) {
  FletchingOracleBeginCall(owner, name, variant, object);
  for (int i = 0; i < 4; ++i) arguments[i] = FletchingOracleArgument(i);
}

static void TestOwnCallback(const char* owner, const char* name, int32_t variant, void* object) {
  char full[96];
  char argument[32];
  uint64_t a[4];
  snprintf(full, sizeof(full), "%s.%s", owner, name);

  BeginCall(owner, name, variant, object, a);
  const int has_self = strcmp(owner, "DLPackExchangeAPI") != 0;
  CHECK(!has_self || a[0] == POINTER_BITS(object), "%s: argument 0 is not self", full);
  CHECK(FletchingOracleArgument(-1) == 0, "%s argument -1", full);
  CHECK(FletchingOracleArgument(FletchingOracleArgumentCount(owner, name)) == 0,
        "%s: an argument past the end", full);
  AGREES(FletchingOracleEndCall(CallByHand(name, a), message, kMessage));

  for (int i = 0; i < FletchingOracleArgumentCount(owner, name); ++i) {
    BeginCall(owner, name, variant, object, a);
    a[i] ^= 1;
    snprintf(argument, sizeof(argument), "argument %d", i);
    REFUSES(FletchingOracleEndCall(CallByHand(name, a), message, kMessage), full, argument);
  }

  BeginCall(owner, name, variant, object, a);
  REFUSES(FletchingOracleEndCall(CallByHand(name, a) ^ 1, message, kMessage), full, "result");

  BeginCall(owner, name, variant, object, a);
  (void)CallByHand(name, a);
  REFUSES(FletchingOracleEndCall(CallByHand(name, a), message, kMessage), full, "twice");

  BeginCall(owner, name, variant, object, a);
  REFUSES(FletchingOracleEndCall(0, message, kMessage), full, "never entered");

  /* A call of another function: the line contains its name and the intended one. */
  BeginCall(owner, name, variant, object, a);
  (void)CallByHand("release", a);
  REFUSES(FletchingOracleEndCall(0, message, kMessage), full, "ArrowSchema");

  BeginCall(owner, name, variant, object, a);
  FletchingOracleSawArgument(owner, name, 0, a[0]);
  REFUSES(FletchingOracleEndCall(0, message, kMessage), full, "binding's own");
}

static void TestBindingToC(void) {
  SetBindingCallbacks();
  CHECK(FletchingOracleInstall("ArrowSchema", &g_schema) == 0, "Install");
  for (int i = 0; i < kCallCount; ++i) {
    CHECK(FletchingOracleInstall(kCalls[i].owner, kCalls[i].object) == 0, "Install");
    for (int32_t variant = 0; variant < FletchingOracleVariantCount(); ++variant) {
      TestOwnCallback(kCalls[i].owner, kCalls[i].name, variant, kCalls[i].object);
    }
  }
  /* Without a call in flight, the oracle's functions and reports have no effect. */
  g_stream.release(&g_stream);
  CHECK(g_stream.get_schema(&g_stream, NULL) == 0, "get_schema without a call");
  FletchingOracleSawArgument("ArrowSchema", "release", 0, 1);
  FletchingOracleSawArgument(NULL, NULL, 0, 1);
  REFUSES(FletchingOracleEndCall(0, message, kMessage), "EndCall", "BeginCall");
  FletchingOracleBeginCall("ArrowNone", "release", 0, &g_schema);
  CHECK(FletchingOracleArgument(0) == 0, "an argument of nothing");
  REFUSES(FletchingOracleEndCall(0, message, kMessage), "ArrowNone.release", "no such callback");
  FletchingOracleBeginCall("ArrowArray", "release", 3, &g_schema);
  REFUSES(FletchingOracleEndCall(0, message, kMessage), "ArrowArray.release", "no variant 3");

  g_schema.flags = 12;
  CHECK(FletchingOracleInstall("ArrowSchema", &g_schema) == 0, "Install");
  CHECK(g_schema.flags == 12 && g_schema.private_data == NULL, "Install touched other fields");
}

/* ---- The values of the variants ---- */

static int IsText(const char* name, int index) {
  return (strcmp(name, "on_next_task") == 0 && index == 2) ||
         (strcmp(name, "on_error") == 0 && index >= 2);
}

/* Reads every byte of the pointee. Returns whether it contains a byte above 127. */
static int CheckPointee(const char* full, int index, uint64_t bits, int text) {
  const unsigned char* bytes = (const unsigned char*)(uintptr_t)bits;
  if (text) {
    CHECK(strlen((const char*)bytes) > 0, "%s argument %d: empty text", full, index);
    while (*bytes != 0 && *bytes < 128) ++bytes;
    return *bytes != 0;
  }
  CHECK(bits % 16 == 0, "%s argument %d: not aligned", full, index);
  for (int i = 0; i < 256; ++i) CHECK(bytes[i] == 0, "%s argument %d: not zero", full, index);
  return 0;
}

static void TestPointerArgument(const char* owner, const char* name, int index, void* object) {
  char full[96];
  snprintf(full, sizeof(full), "%s.%s", owner, name);
  int null = 0;
  int not_null = 0;
  int foreign = 0;
  for (int32_t variant = 0; variant < FletchingOracleVariantCount(); ++variant) {
    FletchingOracleBeginCall(owner, name, variant, object);
    const uint64_t bits = FletchingOracleArgument(index);
    null += bits == 0;
    not_null += bits != 0;
    if (bits != 0) foreign += CheckPointee(full, index, bits, IsText(name, index));
    for (int i = 0; i < index; ++i) {
      CHECK(bits == 0 || bits != FletchingOracleArgument(i), "%s arguments %d and %d are equal",
            full, i, index);
    }
  }
  CHECK(null > 0 && not_null > 0, "%s argument %d: %d times NULL, %d not", full, index, null,
        not_null);
  CHECK(!IsText(name, index) || foreign > 0, "%s argument %d: always ASCII", full, index);
}

static void TestIntegers(const char* owner, const char* name, int index, void* object,
                         const int64_t* expected, int is_code) {
  for (int32_t variant = 0; variant < FletchingOracleVariantCount(); ++variant) {
    FletchingOracleBeginCall(owner, name, variant, object);
    const uint64_t bits = (uint64_t)expected[variant];
    CHECK(FletchingOracleArgument(index) == (is_code ? (uint32_t)bits : bits), "%s.%s variant %d",
          owner, name, variant);
  }
}

static void TestResults(void) {
  static const int32_t kCodes[] = {0, EINVAL, -1};
  int null = 0;
  int foreign = 0;
  for (int32_t variant = 0; variant < FletchingOracleVariantCount(); ++variant) {
    FletchingOracleBeginCall("ArrowArrayStream", "get_next", variant, &g_stream);
    struct ArrowArray* out = (struct ArrowArray*)(uintptr_t)FletchingOracleArgument(1);
    const int code = g_stream.get_next(&g_stream, out);
    CHECK(code == kCodes[variant], "result %d in variant %d", code, variant);
    FletchingOracleBeginCall("ArrowArrayStream", "get_last_error", variant, &g_stream);
    const char* text = g_stream.get_last_error(&g_stream);
    null += text == NULL;
    if (text != NULL) foreign += CheckPointee("get_last_error", 0, POINTER_BITS(text), 1);
  }
  CHECK(null == 1 && foreign == 1, "texts: %d NULL, %d foreign", null, foreign);
}

static void TestVariants(void) {
  static const int64_t kCounts[] = {INT64_MIN, INT64_C(8589934593), -1};
  static const int64_t kCodes[] = {-1, INT32_MIN, 5};
  static const int64_t kEvenCodes[] = {-2, INT32_MAX, 6};
  CHECK(FletchingOracleVariantCount() == 3, "%d variants", FletchingOracleVariantCount());
  for (int32_t s = 0; s < FletchingOracleStructCount(); ++s) {
    const char* owner = FletchingOracleStructName(s);
    for (int32_t c = 0; c < FletchingOracleCallbackCount(owner); ++c) {
      const char* name = FletchingOracleCallbackName(owner, c);
      const int is_api = strcmp(owner, "DLPackExchangeAPI") == 0;
      const int codes = strcmp(name, "on_error") == 0              ? 1
                        : strcmp(name, "current_work_stream") == 0 ? 2
                                                                   : 0;
      const int first = is_api ? codes : 1 + codes;
      if (strcmp(name, "request") == 0) continue;
      for (int a = first; a < FletchingOracleArgumentCount(owner, name); ++a) {
        TestPointerArgument(owner, name, a, &g_stream);
      }
    }
  }
  TestIntegers("ArrowAsyncProducer", "request", 1, &g_producer, kCounts, 0);
  TestIntegers("ArrowAsyncDeviceStreamHandler", "on_error", 1, &g_handler, kCodes, 1);
  TestIntegers("DLPackExchangeAPI", "current_work_stream", 0, &g_api, kEvenCodes, 1);
  TestIntegers("DLPackExchangeAPI", "current_work_stream", 1, &g_api, kCodes, 1);
  TestResults();
}

/* ---- Completeness: the tables contain everything that upstream's headers declare ---- */

/* Overwrites comments with blanks. */
static void StripComments(char* text) {
  for (char* c = text; *c != '\0'; ++c) {
    const char* end = NULL;
    if (c[0] == '/' && c[1] == '/') end = strchr(c, '\n');
    if (c[0] == '/' && c[1] == '*') end = strstr(c + 2, "*/");
    if (end == NULL) continue;
    while (c < end) *c++ = ' ';
    if (c[0] == '*') c[0] = c[1] = ' ';
  }
}

/* Copies the identifier at `from`. Returns the position after it and following blanks. */
static const char* Identifier(const char* from, char name[128]) {
  size_t length = 0;
  while (isspace((unsigned char)*from)) ++from;
  while ((isalnum((unsigned char)*from) || *from == '_') && length < 127) name[length++] = *from++;
  name[length] = '\0';
  while (isspace((unsigned char)*from)) ++from;
  return from;
}

static int HasConstant(const char* name) {
  for (int32_t i = 0; i < FletchingOracleConstantCount(); ++i) {
    if (strcmp(FletchingOracleConstantName(i), name) == 0) return 1;
  }
  return 0;
}

typedef struct {
  int structs;
  int constants;
  int enums;
  int missing;
} Scan;

static void Missing(Scan* scan, const char* what, const char* name, int quiet) {
  ++scan->missing;
  if (!quiet) fprintf(stderr, "upstream has %s %s, tests/oracle/upstream.h has not\n", what, name);
}

static int IsConstant(const char* name) {
  static const char* const kPrefixes[] = {"ARROW_FLAG_", "ARROW_DEVICE_", "DLPACK_FLAG_",
                                          "DLPACK_MAJOR_VERSION", "DLPACK_MINOR_VERSION"};
  for (size_t i = 0; i < sizeof(kPrefixes) / sizeof(kPrefixes[0]); ++i) {
    if (strncmp(name, kPrefixes[i], strlen(kPrefixes[i])) == 0) return 1;
  }
  return 0;
}

static void ScanConstants(const char* text, Scan* scan, int quiet) {
  char name[128];
  for (const char* at = text; (at = strstr(at, "define")) != NULL; ++at) {
    Identifier(at + strlen("define"), name);
    if (!IsConstant(name)) continue;
    ++scan->constants;
    if (!HasConstant(name)) Missing(scan, "the constant", name, quiet);
  }
}

/* A struct's body has one semicolon per field; without a tag, its name is after the body. */
static void ScanStructs(const char* text, Scan* scan, int quiet) {
  char name[128];
  for (const char* at = text; (at = strstr(at, "struct ")) != NULL; ++at) {
    const char* body = Identifier(at + strlen("struct "), name);
    if (*body != '{') continue;
    ++scan->structs;
    int fields = 0;
    for (; *body != '}' && *body != '\0'; ++body) fields += *body == ';';
    if (name[0] == '\0') Identifier(body + 1, name);
    if (FletchingOracleSize(name) < 0) {
      Missing(scan, "the struct", name, quiet);
    } else if (FletchingOracleFieldCount(name) != fields) {
      Missing(scan, "another number of fields in", name, quiet);
    }
  }
}

/* Converts the body of an enum, "kDLCPU = 1, kDLTrn = 18U,", to the oracle's list format. */
static void ListEnumerators(const char* body, char* list, size_t capacity) {
  char name[128];
  list[0] = '\0';
  for (const char* at = body; (at = strstr(at, "kDL")) != NULL && strchr(at, '}') != NULL;) {
    if (memchr(body, '}', (size_t)(at - body)) != NULL) return;
    at = Identifier(at, name);
    const long value = *at == '=' ? strtol(at + 1, NULL, 10) : -1;
    const size_t length = strlen(list);
    snprintf(list + length, capacity - length, "%s%s=%ld", length > 0 ? "," : "", name, value);
  }
}

static void ScanEnums(const char* text, Scan* scan, int quiet) {
  static char list[4096];
  char name[128];
  for (const char* at = text; (at = strstr(at, "typedef enum")) != NULL; ++at) {
    const char* body = strchr(at, '{');
    const char* end = body != NULL ? strchr(body, '}') : NULL;
    if (end == NULL) return;
    Identifier(end + 1, name);
    if (name[0] == '\0') continue;
    ListEnumerators(body, list, sizeof(list));
    char message[kMessage] = "";
    if (FletchingOracleCheckEnumerators(name, list, message, kMessage) != 0) {
      Missing(scan, "another list:", message, quiet);
    }
    /* The check above accepts greater values as newer, so check the last enumerator separately. */
    const char* last = strrchr(list, '=');
    const long expected = strcmp(name, "DLDeviceType") == 0 ? 18 : 17;
    if (last == NULL || strtol(last + 1, NULL, 10) != expected) {
      Missing(scan, "a new last enumerator in", name, quiet);
    }
    ++scan->enums;
    at = end;
  }
}

static Scan ScanUpstream(const char* text, int quiet) {
  Scan scan = {0, 0, 0, 0};
  ScanConstants(text, &scan, quiet);
  ScanStructs(text, &scan, quiet);
  ScanEnums(text, &scan, quiet);
  return scan;
}

static Scan ScanFile(const char* path) {
  static char text[1 << 20];
  const Scan nothing = {0, 0, 0, 0};
  FILE* file = fopen(path, "rb");
  CHECK(file != NULL, "cannot open %s", path);
  if (file == NULL) return nothing;
  const size_t length = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  CHECK(length < sizeof(text) - 1, "%s is larger than this test expects", path);
  text[length] = '\0';
  StripComments(text);
  return ScanUpstream(text, 0);
}

static void TestUpstreamTexts(const char* abi, const char* dlpack) {
  const Scan arrow = ScanFile(abi);
  const Scan tensor = ScanFile(dlpack);
  CHECK(arrow.missing + tensor.missing == 0, "%d declarations of upstream are not in the oracle",
        arrow.missing + tensor.missing);
  CHECK(arrow.structs + tensor.structs == FletchingOracleStructCount(),
        "found %d structs in %s, %d in %s", arrow.structs, abi, tensor.structs, dlpack);
  CHECK(arrow.constants + tensor.constants == FletchingOracleConstantCount(),
        "found %d constants in %s, %d in %s", arrow.constants, abi, tensor.constants, dlpack);
  CHECK(tensor.enums == 2, "found %d enums in %s", tensor.enums, dlpack);

  char grown[] =
      "#  define ARROW_DEVICE_NEW 99 // struct ArrowComment { int a; };\n"
      "struct ArrowNew { int a; };\n/* struct ArrowOld { int a; }; */"
      "struct ArrowAsyncTask {\n int a; int b; int c; };"
      "typedef struct { int a; } DLNew; typedef struct { int a; int b; int c; } DLDevice;"
      "typedef enum { kDLCPU = 1, kDLNew = 19 } DLDeviceType;";
  StripComments(grown);
  const Scan scan = ScanUpstream(grown, 1);
  CHECK(scan.missing == 7, "%d of 7 changes seen in a grown header", scan.missing);
}

int main(int argc, char** argv) {
  if (argc < 3) {
    fprintf(stderr, "usage: oracle_self_test PATH/arrow/c/abi.h PATH/dlpack/dlpack.h [--print]\n");
    return 2;
  }
  g_print = argc > 3 && strcmp(argv[3], "--print") == 0;
  CollectValues();
  TestCanaries();
  TestLayout();
  TestPublishedLayout();
  TestUnknownNames();
  TestConstants();
  TestEnumerators();
  TestSignatures();
  TestMemory();
  TestLookalikes();
  TestMessages();
  TestCToBinding();
  TestCallLines();
  TestBindingToC();
  TestVariants();
  TestUpstreamTexts(argv[1], argv[2]);
  if (g_failures > 0) {
    fprintf(stderr, "oracle_self_test: %d failures\n", g_failures);
    return 1;
  }
  printf("oracle_self_test: %d structs, %d values, %d constants agree\n",
         FletchingOracleStructCount(), g_value_count, FletchingOracleConstantCount());
  return 0;
}
