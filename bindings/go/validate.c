// SPDX-License-Identifier: Apache-2.0

#include "validate.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if defined(_WIN32)
#include <windows.h>
#else
#include <dlfcn.h>
#endif

/* --- Findings --- */

struct FletchingGoFindings {
  _Atomic(struct FletchingGoFinding*) newest;
};

struct FletchingGoFindings* fletching_findings_new(void) {
  return calloc(1, sizeof(struct FletchingGoFindings));
}

struct FletchingGoFinding* fletching_findings_take(struct FletchingGoFindings* findings) {
  return atomic_exchange(&findings->newest, NULL);
}

struct FletchingGoFinding* fletching_finding_free(struct FletchingGoFinding* finding) {
  struct FletchingGoFinding* next = finding->next;
  free(finding);
  return next;
}

/* Copies the strings to the memory after the struct. Returns NULL if out of memory. */
static struct FletchingGoFinding* copy_finding(const char* const texts[kFindingTexts]) {
  struct FletchingGoFinding* copy;
  size_t size = sizeof *copy;
  for (int i = 0; i < kFindingTexts; ++i) size += strlen(texts[i]) + 1;
  copy = malloc(size);
  if (copy == NULL) return NULL;
  char* to = (char*)(copy + 1);
  for (int i = 0; i < kFindingTexts; ++i) {
    const size_t length = strlen(texts[i]) + 1;
    copy->texts[i] = memcpy(to, texts[i], length);
    to += length;
  }
  return copy;
}

/* --- The declarations of fletching/validate.h, which is not part of the core --- */

struct FletchingFinding {
  const char* texts[kFindingTexts];
};

typedef void (*Report)(void* context, const struct FletchingFinding* finding);

struct ValidateOptions {
  size_t size;
  int32_t level;
  Report report;
  void* context;
  uint32_t stress;
};

typedef int CheckLayout(uint64_t, struct FletchingMessage*);
typedef int CheckArray(const struct ArrowSchema*, const struct ArrowArray*,
                       const struct ValidateOptions*, int64_t*, struct FletchingMessage*);
typedef int CheckDeviceArray(const struct ArrowSchema*, const struct ArrowDeviceArray*,
                             const struct ValidateOptions*, int64_t*, struct FletchingMessage*);
typedef int ValidateStream(struct ArrowArrayStream*, const struct ValidateOptions*,
                           struct FletchingMessage*);
typedef int ValidateDeviceStream(struct ArrowDeviceArrayStream*, const struct ValidateOptions*,
                                 struct FletchingMessage*);
typedef int ValidateHandler(struct ArrowAsyncDeviceStreamHandler**, const struct ValidateOptions*,
                            struct FletchingMessage*);
typedef int64_t ValidateLive(void);

static CheckLayout* g_check_layout;
static CheckArray* g_check_array;
static CheckDeviceArray* g_check_device_array;
static ValidateStream* g_stream;
static ValidateDeviceStream* g_device_stream;
static ValidateHandler* g_handler;
static ValidateLive* g_live;

static const struct {
  const char* name;
  void* function;
} kFunctions[] = {
    {"FletchingCheckLayout", &g_check_layout},
    {"FletchingCheckArray", &g_check_array},
    {"FletchingCheckDeviceArray", &g_check_device_array},
    {"FletchingValidateStream", &g_stream},
    {"FletchingValidateDeviceStream", &g_device_stream},
    {"FletchingValidateAsyncHandler", &g_handler},
    {"FletchingValidateLive", &g_live},
};

static void add_finding(void* context, const struct FletchingFinding* finding) {
  struct FletchingGoFindings* findings = context;
  struct FletchingGoFinding* added = copy_finding(finding->texts);
  if (added == NULL) return;
  added->next = atomic_load(&findings->newest);
  while (!atomic_compare_exchange_weak(&findings->newest, &added->next, added)) {
  }
}

/* --- The library --- */

static int fail(struct FletchingMessage* message, int code, const char* format, const char* text) {
  (void)snprintf(message->text, sizeof message->text, format, text);
  return code;
}

#if defined(_WIN32)
enum { kPathUnits = 32768 }; /* maximum length of a path, including the NUL */

/* Uses static memory: only one thread loads. */
static void* open_library(const char* name) {
  static wchar_t path[kPathUnits];
  const int units = MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, name, -1, path, kPathUnits);
  return units > 0 ? (void*)LoadLibraryW(path) : NULL;
}
static const char* open_error(const char* name) { return name; }
static void* find(void* library, const char* name) {
  return (void*)GetProcAddress((HMODULE)library, name);
}
#else
static void* open_library(const char* name) { return dlopen(name, RTLD_LAZY | RTLD_LOCAL); }
static const char* open_error(const char* name) {
  const char* reason = dlerror();
  return reason != NULL ? reason : name;
}
static void* find(void* library, const char* name) { return dlsym(library, name); }
#endif

int fletching_validate_load(const char* name, uint64_t layout, struct FletchingMessage* message) {
  void* library = open_library(name);
  if (library == NULL) return fail(message, ENOENT, "%s", open_error(name));
  for (size_t i = 0; i < sizeof kFunctions / sizeof kFunctions[0]; ++i) {
    void* found = find(library, kFunctions[i].name);
    if (found == NULL) {
      return fail(message, ENOSYS, "libfletching has no %s; hint: install a newer version",
                  kFunctions[i].name);
    }
    memcpy(kFunctions[i].function, &found, sizeof found);
  }
  return g_check_layout(layout, message);
}

#define OPTIONS(given)                                                             \
  &(const struct ValidateOptions) {                                                \
    .size = sizeof(struct ValidateOptions), .level = level, .report = add_finding, \
    .context = findings, .stress = (given)                                         \
  }

int fletching_validate_array(const struct ArrowSchema* schema, const struct ArrowArray* array,
                             int32_t level, struct FletchingGoFindings* findings,
                             struct FletchingMessage* message) {
  return g_check_array(schema, array, OPTIONS(0), NULL, message);
}

int fletching_validate_device_array(const struct ArrowSchema* schema,
                                    const struct ArrowDeviceArray* array, int32_t level,
                                    struct FletchingGoFindings* findings,
                                    struct FletchingMessage* message) {
  return g_check_device_array(schema, array, OPTIONS(0), NULL, message);
}

int fletching_validate_stream(struct ArrowArrayStream* stream, int32_t level, uint32_t stress,
                              struct FletchingGoFindings* findings,
                              struct FletchingMessage* message) {
  return g_stream(stream, OPTIONS(stress), message);
}

int fletching_validate_device_stream(struct ArrowDeviceArrayStream* stream, int32_t level,
                                     uint32_t stress, struct FletchingGoFindings* findings,
                                     struct FletchingMessage* message) {
  return g_device_stream(stream, OPTIONS(stress), message);
}

int fletching_validate_handler(struct ArrowAsyncDeviceStreamHandler** handler, int32_t level,
                               uint32_t stress, struct FletchingGoFindings* findings,
                               struct FletchingMessage* message) {
  return g_handler(handler, OPTIONS(stress), message);
}

int64_t fletching_validate_live(void) { return g_live(); }
