// SPDX-License-Identifier: Apache-2.0
//
// The C ABI of libfletching: what a program in C, or in any language that calls C, needs beside the
// structs themselves. C99 and C++.
//
// Names: the object, then the verb. Every symbol of the library begins with Fletching, so this
// header goes together with arrow/c/helpers.h and with nanoarrow.h, which both define
// ArrowArrayMove.
//
// Threads: every function may be called from any thread; one struct is used by one thread at a
// time.
//
// Errors: a function that can fail returns 0 or an errno value and writes a FletchingMessage.
// Nothing throws.
#ifndef FLETCHING_C_API_H
#define FLETCHING_C_API_H

#include "fletching/abi.h"
#include "fletching/message.h"

#if defined(_WIN32) && defined(FLETCHING_BUILDING_SHARED)
#define FLETCHING_EXPORT __declspec(dllexport)
#elif defined(_WIN32)
#define FLETCHING_EXPORT __declspec(dllimport)
#else
#define FLETCHING_EXPORT __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/// The version of the library that is loaded: "0.1.0". Lives as long as the library.
FLETCHING_EXPORT const char* FletchingVersion(void);

// --- Ownership ---
//
// For each of the five structs that have a release callback the same four functions. Whoever holds
// a struct whose `release` is not NULL owns what it points to, and releases it once (C Data
// Interface, "Memory management"). Children are released by their parent, unless they were moved
// out.
//
// ...Init: writes zero to every byte. The struct is then released, as a slot that a producer fills
// has to be. Nothing that was in it is released or read.
//
// ...Move: copies *source, bit by bit, to *target, and marks *source as released; its other bytes
// stay. *target is overwritten and not released first. Moving a struct to itself does nothing.
// What its pointers lead to, the sync event among them, stays at its address. To move a child out
// of its parent, *source is the child.
//
// ...Release: calls the release callback, when there is one, and marks the struct as released even
// if the callback forgot to. NULL, or a struct that is released already: nothing is done.
//
// ...IsReleased: 1 when there is nothing to release, for NULL as well; else 0.

FLETCHING_EXPORT void FletchingSchemaInit(struct ArrowSchema* schema);
FLETCHING_EXPORT void FletchingSchemaMove(struct ArrowSchema* source, struct ArrowSchema* target);
FLETCHING_EXPORT void FletchingSchemaRelease(struct ArrowSchema* schema);
FLETCHING_EXPORT int FletchingSchemaIsReleased(const struct ArrowSchema* schema);

FLETCHING_EXPORT void FletchingArrayInit(struct ArrowArray* array);
FLETCHING_EXPORT void FletchingArrayMove(struct ArrowArray* source, struct ArrowArray* target);
FLETCHING_EXPORT void FletchingArrayRelease(struct ArrowArray* array);
FLETCHING_EXPORT int FletchingArrayIsReleased(const struct ArrowArray* array);

FLETCHING_EXPORT void FletchingDeviceArrayInit(struct ArrowDeviceArray* array);
FLETCHING_EXPORT void FletchingDeviceArrayMove(struct ArrowDeviceArray* source,
                                               struct ArrowDeviceArray* target);
FLETCHING_EXPORT void FletchingDeviceArrayRelease(struct ArrowDeviceArray* array);
FLETCHING_EXPORT int FletchingDeviceArrayIsReleased(const struct ArrowDeviceArray* array);

FLETCHING_EXPORT void FletchingArrayStreamInit(struct ArrowArrayStream* stream);
FLETCHING_EXPORT void FletchingArrayStreamMove(struct ArrowArrayStream* source,
                                               struct ArrowArrayStream* target);
FLETCHING_EXPORT void FletchingArrayStreamRelease(struct ArrowArrayStream* stream);
FLETCHING_EXPORT int FletchingArrayStreamIsReleased(const struct ArrowArrayStream* stream);

FLETCHING_EXPORT void FletchingDeviceArrayStreamInit(struct ArrowDeviceArrayStream* stream);
FLETCHING_EXPORT void FletchingDeviceArrayStreamMove(struct ArrowDeviceArrayStream* source,
                                                     struct ArrowDeviceArrayStream* target);
FLETCHING_EXPORT void FletchingDeviceArrayStreamRelease(struct ArrowDeviceArrayStream* stream);
FLETCHING_EXPORT int FletchingDeviceArrayStreamIsReleased(
    const struct ArrowDeviceArrayStream* stream);

#ifdef __cplusplus
}
#endif

#endif  // FLETCHING_C_API_H
