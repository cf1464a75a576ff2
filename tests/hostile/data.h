/* Good schemas and arrays, which the cases change, and the contents of `out` after a failed call.
 * Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_DATA_H
#define FLETCHING_TESTS_HOSTILE_DATA_H

#include <stddef.h>

#include "account.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kChildren = 2, kLength = 3, kDepth = 100000 };

/* "i", or "+s" with two children that are "i". Errors: ENOMEM. Everything may be changed in the
 * struct afterwards but release and private_data: what is released is not read from it. */
int MakeSchema(int has_children, struct ArrowSchema* out);
int MakeArray(int has_children, struct ArrowArray* out);
/* The same on the CPU. */
int MakeDeviceArray(int has_children, struct ArrowDeviceArray* out);

/* Release as it should be, but release stays set. */
void ReleaseSchemaAndForget(struct ArrowSchema* schema);
void ReleaseSchemaChildInPlace(struct ArrowSchema* child);
void ReleaseArrayAndForget(struct ArrowArray* array);
void ReleaseArrayChildInPlace(struct ArrowArray* child);
/* For a consumer of the peer, whose own mistake it is. */
void AllowReleaseInPlace(int is_allowed);

/* A list in a list, kDepth times. Only the outermost one is counted. */
int MakeDeepSchema(struct ArrowSchema* out);

/* What a call has left behind that returned an error: nothing of it may be used. To release it is a
 * mistake. */
void LeaveSchema(struct ArrowSchema* out);
void LeaveArray(struct ArrowArray* out);
void LeaveDeviceArray(struct ArrowDeviceArray* out);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_HOSTILE_DATA_H */
