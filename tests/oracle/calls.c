/* Calls in both directions, one at a time. The called side reports each argument that arrived, and
 * the first error is kept until the call ends. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "message.h"
#include "oracle.h"
#include "upstream.h"

enum { kVariants = 3, kMaxArguments = 4 };

typedef enum { kVOID, kSELF, kOBJECT, kTEXT, kFUNCTION, kCODE, kCOUNT } Kind;

typedef struct {
  const char* name;
  Kind kind;
} Argument;

typedef struct {
  const char* struct_name;
  const char* name;
  Kind result;
  int32_t argument_count;
  const Argument* arguments;
  int (*is_set)(const void* object);
  /* Stores the oracle's function in the field. */
  void (*install)(void* object);
  /* Calls the field's function through upstream's type. */
  uint64_t (*call)(void* object, const uint64_t* arguments);
} Callback;

static void EnterOwn(const char* struct_name, const char* callback, int32_t index, uint64_t seen);
static uint64_t OwnResult(void);

/* ---- Typed functions, one set per callback ---- */

#define BITS_SELF(value) ((uint64_t)(uintptr_t)(value))
#define BITS_OBJECT(value) ((uint64_t)(uintptr_t)(value))
#define BITS_FUNCTION(value) ((uint64_t)(uintptr_t)(value))
#define BITS_TEXT(value) ((uint64_t)(uintptr_t)(value))
#define BITS_CODE(value) ((uint64_t)(uint32_t)(value))
#define BITS_COUNT(value) ((uint64_t)(value))
#define VALUE_SELF(bits, type) ((type)(uintptr_t)(bits))
#define VALUE_OBJECT(bits, type) ((type)(uintptr_t)(bits))
#define VALUE_FUNCTION(bits, type) ((type)(uintptr_t)(bits))
#define VALUE_TEXT(bits, type) ((type)(uintptr_t)(bits))
#define VALUE_CODE(bits, type) ((type)(bits))
#define VALUE_COUNT(bits, type) ((type)(bits))
#define GIVE_VOID(bits) (void)(bits)
#define GIVE_CODE(bits) return (int)(bits)
#define GIVE_TEXT(bits) return (const char*)(uintptr_t)(bits)
#define TAKE_VOID(call) ((call), (uint64_t)0)
#define TAKE_CODE(call) BITS_CODE(call)
#define TAKE_TEXT(call) BITS_TEXT(call)

#define DESCRIBE(kind, index, name, type) {#name, k##kind},
#define SEND_FIRST(kind, index, name, type) VALUE_##kind(arguments[index], type)
#define SEND(kind, index, name, type) , VALUE_##kind(arguments[index], type)
/* Expands inside a function that defines own_struct and own_name. */
#define REPORT(kind, index, name, type) EnterOwn(own_struct, own_name, index, BITS_##kind(name));

#define DEFINE_INTEGER(S, field, type)
#define DEFINE_INTEGERS(S, field, type)
#define DEFINE_POINTER(S, field, type)
#define DEFINE_STRUCT(S, field, type)
#define DEFINE_CALLBACK(S, field, result)                                                         \
  static const Argument kArgumentsOf##S##_##field[] = {                                           \
      ARGUMENTS_##S##_##field(DESCRIBE, DESCRIBE)};                                               \
  static RESULT_##result Own##S##_##field(ARGUMENTS_##S##_##field(DECLARE_FIRST, DECLARE)) {      \
    static const char own_struct[] = #S;                                                          \
    static const char own_name[] = #field;                                                        \
    ARGUMENTS_##S##_##field(REPORT, REPORT) GIVE_##result(OwnResult());                           \
  }                                                                                               \
  static int IsSet##S##_##field(const void* object) { return ((const S*)object)->field != NULL; } \
  static void Install##S##_##field(void* object) { ((S*)object)->field = Own##S##_##field; }      \
  static uint64_t Call##S##_##field(void* object, const uint64_t* arguments) {                    \
    return TAKE_##result(((S*)object)->field(ARGUMENTS_##S##_##field(SEND_FIRST, SEND)));         \
  }
#define DEFINE(S, kind, field, type) DEFINE_##kind(S, field, type)
#define DEFINE_CALLBACKS(S) FIELDS_##S(DEFINE, S)

STRUCTS(DEFINE_CALLBACKS)

#define ROW_INTEGER(S, field, type)
#define ROW_INTEGERS(S, field, type)
#define ROW_POINTER(S, field, type)
#define ROW_STRUCT(S, field, type)
#define ROW_CALLBACK(S, field, result)                              \
  {#S,                                                              \
   #field,                                                          \
   k##result,                                                       \
   (int32_t)(sizeof(kArgumentsOf##S##_##field) / sizeof(Argument)), \
   kArgumentsOf##S##_##field,                                       \
   IsSet##S##_##field,                                              \
   Install##S##_##field,                                            \
   Call##S##_##field},
#define CALLBACK_ROW(S, kind, field, type) ROW_##kind(S, field, type)
#define CALLBACK_ROWS(S) FIELDS_##S(CALLBACK_ROW, S)

static const Callback kCallbacks[] = {STRUCTS(CALLBACK_ROWS)};
static const int32_t kCallbackCount = (int32_t)(sizeof(kCallbacks) / sizeof(kCallbacks[0]));

static int Same(const char* a, const char* b) {
  return a != NULL && b != NULL && strcmp(a, b) == 0;
}

static const Callback* FindCallback(const char* struct_name, const char* name) {
  for (int32_t i = 0; i < kCallbackCount; ++i) {
    if (Same(kCallbacks[i].struct_name, struct_name) && Same(kCallbacks[i].name, name)) {
      return &kCallbacks[i];
    }
  }
  return NULL;
}

/* ---- Values of a variant ---- */

/* One buffer per argument index, so that swapped pointers are detected. */
static _Alignas(16) unsigned char g_scratch[kMaxArguments][512];
static const char* const kTexts[kMaxArguments] = {"result", "first text", "second text",
                                                  "third text"};
static const char* const kForeignTexts[kMaxArguments] = {"\xff result", "\xff\xfe first",
                                                         "\xc3 second", "\x80 third"};

static const int64_t kCounts[kVariants] = {INT64_MIN, (INT64_C(1) << 33) + 1, -1};
/* For even and for odd arguments, so that neighbors differ. */
static const int32_t kCodes[kVariants][2] = {{-2, -1}, {INT32_MAX, INT32_MIN}, {6, 5}};
static const int32_t kResults[kVariants] = {0, EINVAL, -1};

/* Odd arguments are NULL in variant 1 and even ones in variant 0, so that neighbors differ in
 * both. */
static int IsNullPointer(int32_t index, int32_t variant) { return variant == index % 2; }

static uint64_t ArgumentBits(Kind kind, int32_t index, int32_t variant) {
  switch (kind) {
    case kOBJECT:
    case kFUNCTION: /* an address to pass on; never called */
      return IsNullPointer(index, variant) ? 0 : BITS_OBJECT(g_scratch[index]);
    case kTEXT:
      if (IsNullPointer(index, variant)) return 0;
      return BITS_TEXT(variant == 2 ? kForeignTexts[index] : kTexts[index]);
    case kCODE:
      return BITS_CODE(kCodes[variant][index % 2]);
    case kCOUNT:
      return BITS_COUNT(kCounts[variant]);
    default:
      return 0;
  }
}

static uint64_t ResultBits(Kind kind, int32_t variant) {
  if (kind == kCODE) return BITS_CODE(kResults[variant]);
  if (kind != kTEXT || variant == 1) return 0;
  return BITS_TEXT(variant == 2 ? kForeignTexts[0] : kTexts[0]);
}

/* A value, formatted for its kind. */
typedef struct {
  char text[32];
} Shown;

static Shown Show(Kind kind, uint64_t bits) {
  Shown shown;
  if (kind == kCOUNT) {
    snprintf(shown.text, sizeof(shown.text), "%" PRId64, (int64_t)bits);
  } else if (kind == kCODE && bits <= UINT32_MAX) {
    snprintf(shown.text, sizeof(shown.text), "%" PRId32, (int32_t)(uint32_t)bits);
  } else if (kind != kCODE && bits == 0) {
    snprintf(shown.text, sizeof(shown.text), "NULL");
  } else {
    snprintf(shown.text, sizeof(shown.text), "0x%" PRIx64, bits);
  }
  return shown;
}

/* ---- The call in flight ---- */

typedef enum { kNobody, kC, kBinding } Caller;

static struct {
  Caller caller;
  const Callback* callback; /* NULL after a failed BeginCall */
  uint64_t arguments[kMaxArguments];
  uint64_t result;
  int32_t seen[kMaxArguments]; /* how often each argument was reported */
  char problem[512];           /* the first one */
} g_call;

#define PROBLEM(...)                                                                          \
  do {                                                                                        \
    if (g_call.problem[0] == '\0') Fail(g_call.problem, sizeof(g_call.problem), __VA_ARGS__); \
  } while (0)

/* Starts `g_call`. Sets only its problem if the name or the variant is wrong. */
static void Begin(Caller caller, const char* struct_name, const char* name, int32_t variant,
                  const void* object) {
  memset(&g_call, 0, sizeof(g_call));
  memset(g_scratch, 0, sizeof(g_scratch));
  g_call.caller = caller;
  const Callback* callback = FindCallback(struct_name, name);
  if (callback == NULL) {
    PROBLEM("%s.%s: upstream has no such callback", Printable(struct_name), Printable(name));
  } else if (variant < 0 || variant >= kVariants) {
    PROBLEM("%s.%s: no variant %d, there are %d", struct_name, name, variant, kVariants);
  } else if (object == NULL) {
    PROBLEM("%s.%s: the object is NULL", struct_name, name);
  } else {
    g_call.callback = callback;
    for (int32_t i = 0; i < callback->argument_count; ++i) {
      const Kind kind = callback->arguments[i].kind;
      g_call.arguments[i] = kind == kSELF ? BITS_SELF(object) : ArgumentBits(kind, i, variant);
    }
    g_call.result = ResultBits(callback->result, variant);
  }
}

static const char* CallerName(void) { return g_call.caller == kC ? "C" : "the binding"; }

/* Records an argument that arrived at the function struct_name.name. */
static void Saw(const char* struct_name, const char* name, int32_t index, uint64_t seen) {
  const Callback* callback = g_call.callback;
  if (callback == NULL) return;
  const char* owner = callback->struct_name;
  if (!Same(struct_name, owner) || !Same(name, callback->name)) {
    PROBLEM("%s.%s: %s called it, the call arrived at %s.%s", owner, callback->name, CallerName(),
            Printable(struct_name), Printable(name));
    return;
  }
  if (index < 0 || index >= callback->argument_count) {
    PROBLEM("%s.%s argument %d: the callback reported it, upstream has %d arguments", owner, name,
            index, callback->argument_count);
    return;
  }
  const Argument* argument = &callback->arguments[index];
  if (++g_call.seen[index] > 1) {
    PROBLEM("%s.%s argument %d (%s): arrived twice, the callback was entered more than once", owner,
            name, index, argument->name);
    return;
  }
  if (seen != g_call.arguments[index]) {
    PROBLEM("%s.%s argument %d (%s): %s sent %s, the callback saw %s", owner, name, index,
            argument->name, CallerName(), Show(argument->kind, g_call.arguments[index]).text,
            Show(argument->kind, seen).text);
  }
}

static void CheckAllSeen(void) {
  const Callback* callback = g_call.callback;
  int32_t total = 0;
  for (int32_t i = 0; i < callback->argument_count; ++i) total += g_call.seen[i];
  if (total == 0) {
    PROBLEM("%s.%s: %s called it, it was never entered", callback->struct_name, callback->name,
            CallerName());
  }
  for (int32_t i = 0; i < callback->argument_count; ++i) {
    if (g_call.seen[i] == 0) {
      PROBLEM("%s.%s argument %d (%s): the callback did not report it", callback->struct_name,
              callback->name, i, callback->arguments[i].name);
    }
  }
}

/* Ends the call and writes its problem, if any, as one line. */
static int End(uint64_t result, char* message, size_t capacity) {
  const Callback* callback = g_call.callback;
  if (callback != NULL) {
    CheckAllSeen();
    if (result != g_call.result) {
      PROBLEM("%s.%s result: the callback returned %s, %s got %s", callback->struct_name,
              callback->name, Show(callback->result, g_call.result).text, CallerName(),
              Show(callback->result, result).text);
    }
  }
  g_call.caller = kNobody;
  g_call.callback = NULL;
  if (g_call.problem[0] == '\0') return 0;
  return Fail(message, capacity, "%s", g_call.problem);
}

/* ---- The oracle's functions ---- */

static void EnterOwn(const char* struct_name, const char* callback, int32_t index, uint64_t seen) {
  if (g_call.caller == kC) {
    PROBLEM("%s.%s: C's own function was entered, not the binding's", struct_name, callback);
    return;
  }
  Saw(struct_name, callback, index, seen);
}

static uint64_t OwnResult(void) { return g_call.caller == kBinding ? g_call.result : 0; }

/* ---- The public functions ---- */

int32_t FletchingOracleVariantCount(void) { return kVariants; }

int32_t FletchingOracleCallbackCount(const char* struct_name) {
  if (FletchingOracleSize(struct_name) < 0) return -1;
  int32_t count = 0;
  for (int32_t i = 0; i < kCallbackCount; ++i)
    count += Same(kCallbacks[i].struct_name, struct_name);
  return count;
}

const char* FletchingOracleCallbackName(const char* struct_name, int32_t index) {
  for (int32_t i = 0; i < kCallbackCount; ++i) {
    if (Same(kCallbacks[i].struct_name, struct_name) && index-- == 0) return kCallbacks[i].name;
  }
  return NULL;
}

int32_t FletchingOracleArgumentCount(const char* struct_name, const char* callback) {
  const Callback* found = FindCallback(struct_name, callback);
  return found != NULL ? found->argument_count : -1;
}

static int IsCallback(const char* struct_name, Name name) {
  for (int32_t i = 0; i < kCallbackCount; ++i) {
    if (Same(kCallbacks[i].struct_name, struct_name) && NameIs(name, kCallbacks[i].name)) return 1;
  }
  return 0;
}

int FletchingOracleCheckCallbackNames(const char* struct_name, const char* names, char* message,
                                      size_t capacity) {
  if (FletchingOracleSize(struct_name) < 0) {
    return Fail(message, capacity, "%s: upstream has no such struct", Printable(struct_name));
  }
  const char* rest = names;
  Name name;
  while (NextName(&rest, &name)) {
    if (!IsCallback(struct_name, name)) {
      return Fail(message, capacity, "%s.%.*s: upstream has no such callback", struct_name,
                  name.length, name.text);
    }
  }
  for (int32_t i = 0; i < kCallbackCount; ++i) {
    if (!Same(kCallbacks[i].struct_name, struct_name)) continue;
    const int32_t count = CountName(names, kCallbacks[i].name);
    if (count != 1) {
      return Fail(message, capacity, "%s.%s: %s", struct_name, kCallbacks[i].name,
                  count == 0 ? "the binding has no such callback" : "twice in the binding");
    }
  }
  return 0;
}

static Shown ShowWidth(Kind kind) {
  Shown shown = {"p"};
  if (kind == kVOID) return (Shown){"v"};
  if (kind == kCODE) snprintf(shown.text, sizeof(shown.text), "%zu", sizeof(int));
  if (kind == kCOUNT) snprintf(shown.text, sizeof(shown.text), "%zu", sizeof(int64_t));
  return shown;
}

int FletchingOracleCheckSignature(const char* struct_name, const char* callback,
                                  const char* signature, char* message, size_t capacity) {
  const Callback* found = FindCallback(struct_name, callback);
  if (found == NULL) {
    return Fail(message, capacity, "%s.%s: upstream has no such callback", Printable(struct_name),
                Printable(callback));
  }
  char expected[64] = "";
  size_t length = 0;
  for (int32_t i = 0; i < found->argument_count; ++i) {
    length += (size_t)snprintf(expected + length, sizeof(expected) - length, "%s%s",
                               i == 0 ? "" : ",", ShowWidth(found->arguments[i].kind).text);
  }
  snprintf(expected + length, sizeof(expected) - length, "->%s", ShowWidth(found->result).text);
  if (!Same(signature, expected)) {
    return Fail(message, capacity, "%s.%s: signature %s upstream, %s in the binding",
                found->struct_name, found->name, expected, Printable(signature));
  }
  return 0;
}

int FletchingOracleCall(const char* struct_name, const char* callback, int32_t variant,
                        void* object, char* message, size_t capacity) {
  Begin(kC, struct_name, callback, variant, object);
  const Callback* called = g_call.callback;
  if (called != NULL && !called->is_set(object)) {
    PROBLEM("%s.%s: the callback is NULL", struct_name, callback);
    called = NULL;
  }
  return End(called != NULL ? called->call(object, g_call.arguments) : 0, message, capacity);
}

void FletchingOracleSawArgument(const char* struct_name, const char* callback, int32_t index,
                                uint64_t seen) {
  if (g_call.caller == kBinding) {
    PROBLEM("%s.%s: the binding's own callback was entered, not C's", Printable(struct_name),
            Printable(callback));
    return;
  }
  Saw(struct_name, callback, index, seen);
}

uint64_t FletchingOracleExpectedResult(void) { return g_call.caller == kC ? g_call.result : 0; }

int FletchingOracleInstall(const char* struct_name, void* object) {
  if (FletchingOracleSize(struct_name) < 0) return ENOENT;
  if (object == NULL) return EINVAL;
  for (int32_t i = 0; i < kCallbackCount; ++i) {
    if (Same(kCallbacks[i].struct_name, struct_name)) kCallbacks[i].install(object);
  }
  return 0;
}

void FletchingOracleBeginCall(const char* struct_name, const char* callback, int32_t variant,
                              const void* object) {
  Begin(kBinding, struct_name, callback, variant, object);
}

uint64_t FletchingOracleArgument(int32_t index) {
  const Callback* callback = g_call.callback;
  if (callback == NULL || index < 0 || index >= callback->argument_count) return 0;
  return g_call.arguments[index];
}

int FletchingOracleEndCall(uint64_t result, char* message, size_t capacity) {
  if (g_call.caller != kBinding) {
    return Fail(message, capacity, "EndCall without BeginCall");
  }
  return End(result, message, capacity);
}
