/* What the round-trip library of a compiled language exports, so that a peer in another language
 * can send it data.
 *
 * FletchingTransitArray moves `schema` and `array` in (their release becomes NULL), checks them,
 * and fills `out_schema` and `out_array` with the same data under release callbacks of its own
 * language; those release what was moved in. Returns 0, or an errno value with one line in
 * `message`; then `schema` and `array` still belong to the caller.
 */
#ifndef FLETCHING_TESTS_TRANSIT_H
#define FLETCHING_TESTS_TRANSIT_H

#include <stddef.h>
#include <stdint.h>

struct ArrowSchema;
struct ArrowDeviceArray;

#ifdef __cplusplus
extern "C" {
#endif

int FletchingTransitArray(struct ArrowSchema* schema, struct ArrowDeviceArray* array,
                          struct ArrowSchema* out_schema, struct ArrowDeviceArray* out_array,
                          char* message, size_t capacity);
/* How many structs this library has exported, and how many of its own release callbacks have run.
 */
int64_t FletchingTransitExported(void);
int64_t FletchingTransitReleased(void);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_TRANSIT_H */
