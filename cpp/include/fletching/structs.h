/* SPDX-License-Identifier: Apache-2.0
 *
 * Ownership of the structs in C: init, move, release. C99 and C++. */
#ifndef FLETCHING_STRUCTS_H
#define FLETCHING_STRUCTS_H

#include "fletching/abi.h"
#include "fletching/export.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Four functions for each of the five structs with a release callback. The holder of a struct whose
 * `release` is not NULL owns the memory behind it, and releases it once (C Data Interface, "Memory
 * management"). A parent releases its children, unless they were moved out.
 *
 * ...Init: zeroes every byte. The struct is then released, as required for a slot that a producer
 * fills. The old content is neither released nor read.
 *
 * ...Move: copies *source to *target bit by bit, and marks *source as released; its other bytes are
 * unchanged. *target is overwritten and not released first. Moving a struct to itself does nothing.
 * The memory behind its pointers, including the sync event, keeps its address. To move a child out
 * of its parent, pass the child as *source.
 *
 * ...Release: marks the struct as released, moves it to the stack and calls the release callback
 * there. The callback may thus free the memory of the struct, and may omit to mark it. NULL and a
 * released struct are ignored.
 *
 * ...IsReleased: returns 1 for a released struct and for NULL, else 0. */

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

/* The version of the loaded library: "MAJOR.MINOR.PATCH". Valid while it is loaded. */
FLETCHING_EXPORT const char* FletchingVersion(void);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_STRUCTS_H */
