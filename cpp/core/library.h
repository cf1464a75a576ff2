// SPDX-License-Identifier: Apache-2.0
//
// Loads the library of a vendor's runtime on demand and finds its functions.
#ifndef FLETCHING_CORE_LIBRARY_H
#define FLETCHING_CORE_LIBRARY_H

#include <stddef.h>

#include "failure.h"
#include "platform.h"

#if defined(_WIN32) && defined(__i386__)
#define FLETCHING_CALL __stdcall
#elif defined(_M_IX86)
#define FLETCHING_CALL __stdcall
#else
#define FLETCHING_CALL
#endif

struct vendor_function {
  const char* symbol;
  size_t offset;  // the pointer's offset in the runtime's function struct
};

// A vendor's library. It is loaded once and never closed. After a failure the next call tries
// again, because the library may have been loaded or installed since then.
struct vendor_library {
  const char* title;         // "CUDA driver API"
  const char* const* names;  // in the order of attempts; ends with NULL
  const struct vendor_function* functions;
  size_t n_functions;
  void* table;                 // the function struct; missing functions are NULL
  void (*bind)(void);          // called after the table is filled; may be NULL
  const char* found;           // the name that was loaded
  lock_type lock;              // protects the load
  atomic_bool is_loaded;       // if set, the struct is constant
  atomic_bool is_initialized;  // by this process or an ancestor
};

// Opens the library under the first name that works. Prefers a loaded library, because handles of
// one version are invalid in another.
static void* find_library(const struct vendor_library* self, const char** found) {
  for (const char* const* name = self->names; *name != NULL; ++name) {
    void* handle = open_library(*name, true);
    *found = *name;
    if (handle != NULL) return handle;
  }
  for (const char* const* name = self->names; *name != NULL; ++name) {
    void* handle = open_library(*name, false);
    *found = *name;
    if (handle != NULL) return handle;
  }
  return NULL;
}

// Replaces the middle of an addition that does not fit by "...".
static void append(char* text, size_t size, const char* separator, const char* added) {
  size_t used = strlen(text);
  (void)snprintf(text + used, size - used, "%s", used > 0 ? separator : "");
  used = strlen(text);
  const size_t length = strlen(added);
  const size_t half = (size - used) / 2;
  (void)snprintf(text + used, length < size - used ? size - used : half, "%s", added);
  if (length < size - used) return;
  end_at_character(text + used);
  if (half < 4) return;
  const char* end = added + length - half + 4;
  while (((unsigned char)*end & 0xC0) == 0x80) ++end;
  used = strlen(text);
  (void)snprintf(text + used, size - used, "...%s", end);
}

static bool no_library(const struct vendor_library* self, struct failure* failure) {
  char names[400] = "";
  char reasons[480] = "";
  char reason[1024];
  char shown[sizeof reason];
  for (const char* const* name = self->names; *name != NULL; ++name) {
    append(names, sizeof names, ", ", *name);
    if (open_library(*name, false) != NULL) continue;  // available to the next call
    library_error(*name, reason, sizeof reason);
    // A path may have any bytes. An incomplete character at the end of the reason does not fit.
    copy_printable(shown, sizeof shown, reason);
    append(reasons, sizeof reasons, "; ", shown);
  }
  if (names[0] == '\0') {
    return fail(failure, ENOENT, "%s: no library for this system", self->title);
  }
  return fail(failure, ENOENT,
              "%s: cannot load %s; hint: install it, or add its folder to the library search path "
              "(%s)",
              self->title, names, reasons);
}

// Once this has returned true, the table can be used.
static bool load(struct vendor_library* self, struct failure* failure) {
  if (atomic_load_explicit(&self->is_loaded, memory_order_acquire)) return true;
  bool is_loaded = true;
  lock(&self->lock);
  if (!atomic_load_explicit(&self->is_loaded, memory_order_relaxed)) {
    void* handle = find_library(self, &self->found);
    is_loaded = handle != NULL || no_library(self, failure);
    for (size_t i = 0; is_loaded && i < self->n_functions; ++i) {
      const any_function function = find_symbol(handle, self->functions[i].symbol);
      memcpy((char*)self->table + self->functions[i].offset, &function, sizeof function);
    }
    if (is_loaded && self->bind != NULL) self->bind();
    if (is_loaded) atomic_store_explicit(&self->is_loaded, true, memory_order_release);
  }
  unlock(&self->lock);
  return is_loaded;
}

// Fails only the operation that needs the function: other operations work without it.
static bool has_function(const struct vendor_library* self, bool is_there, const char* symbol,
                         struct failure* failure) {
  return is_there || fail(failure, ENOSYS, "%s: %s has no %s; hint: install a newer version",
                          self->title, self->found, symbol);
}

#endif  // FLETCHING_CORE_LIBRARY_H
