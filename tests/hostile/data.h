/* Valid schemas and arrays, which the cases modify, and the contents of `out` after a failed call.
 * Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_DATA_H
#define FLETCHING_TESTS_HOSTILE_DATA_H

#include <stddef.h>

#include "account.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { kChildren = 2, kLength = 3, kDepth = 100000 };

/* Makes "i", or "+s" with two "i" children. Returns 0 or ENOMEM. The caller may change every field
 * except release and private_data: release does not read the others. */
int MakeSchema(int has_children, struct ArrowSchema* out);
int MakeArray(int has_children, struct ArrowArray* out);
/* Like MakeArray, for a device array on the CPU. */
int MakeDeviceArray(int has_children, struct ArrowDeviceArray* out);

/* Releases correctly, but leaves `release` set. */
void ReleaseSchemaAndForget(struct ArrowSchema* schema);
void ReleaseSchemaChildInPlace(struct ArrowSchema* child);
void ReleaseArrayAndForget(struct ArrowArray* array);
void ReleaseArrayChildInPlace(struct ArrowArray* child);
/* Allows the peer's consumer to make this mistake on purpose. */
void AllowReleaseInPlace(int is_allowed);

/* Makes kDepth nested lists. Only the outermost schema is counted. */
int MakeDeepSchema(struct ArrowSchema* out);

/* Fill `out` as after a failed call: it may not be used, and releasing it is a mistake. */
void LeaveSchema(struct ArrowSchema* out);
void LeaveArray(struct ArrowArray* out);
void LeaveDeviceArray(struct ArrowDeviceArray* out);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_HOSTILE_DATA_H */
