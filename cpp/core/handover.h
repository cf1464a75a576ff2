// SPDX-License-Identifier: Apache-2.0
//
// Loads the validation layer for FLETCHING_VALIDATE.
#ifndef FLETCHING_CORE_HANDOVER_H
#define FLETCHING_CORE_HANDOVER_H

#include <stdlib.h>
#include <string.h>

#include "failure.h"
#include "fletching/handover.h"
#include "fletching/version.h"
#include "library.h"

#define VERSION_TEXT_OF(number) #number
#define VERSION_TEXT(number) VERSION_TEXT_OF(number)
#define LIBRARY_VERSION \
  VERSION_TEXT(FLETCHING_VERSION_MAJOR) "." VERSION_TEXT(FLETCHING_VERSION_MINOR)

static const char* const validation_names[] = {
#if defined(_WIN32)
    "fletching.dll",
#elif defined(__APPLE__)
    "libfletching." LIBRARY_VERSION ".dylib", "libfletching.dylib",
#else
    "libfletching.so." LIBRARY_VERSION, "libfletching.so",
#endif
    NULL};

static lock_type handover_lock = LOCK_INIT;  // protects the following two
static bool is_validation_sought;
static void (*validate_handover)(int32_t direction, int32_t kind, void* address);

static void find_validation(void) {
  static const char kFunction[] = "FletchingValidateHandover";
  const char* const path[] = {getenv("FLETCHING_LIBRARY"), NULL};
  const bool has_path = path[0] != NULL && path[0][0] != '\0';
  struct vendor_library library = {.title = "FLETCHING_VALIDATE",
                                   .names = has_path ? path : validation_names};
  struct failure failure;
  no_failure(&failure);
  void* const handle = find_library(&library, &library.found);
  if (handle != NULL) {
    const any_function function = find_symbol(handle, kFunction);
    memcpy(&validate_handover, &function, sizeof function);
  }
  if (handle == NULL ? no_library(&library, &failure)
                     : has_function(&library, validate_handover != NULL, kFunction, &failure)) {
    return;
  }
  (void)fprintf(stderr, "fletching: %s, or set FLETCHING_LIBRARY to its path\n",
                failure.message.text);
  const char* const value = getenv("FLETCHING_VALIDATE");
  if (value != NULL && strncmp(value, "abort", sizeof "abort" - 1) == 0) abort();
}

void FletchingHandOver(int32_t direction, int32_t kind, void* address) {
  lock(&handover_lock);
  if (!is_validation_sought) find_validation();
  is_validation_sought = true;
  unlock(&handover_lock);
  if (validate_handover != NULL) validate_handover(direction, kind, address);
}

#endif  // FLETCHING_CORE_HANDOVER_H
