/* SPDX-License-Identifier: Apache-2.0
 *
 * The validation layer of libfletching, which is loaded at run time. Findings are collected in C,
 * so that reports do not enter Go. */
#ifndef FLETCHING_GO_VALIDATE_H
#define FLETCHING_GO_VALIDATE_H

#include <stdint.h>

#include "fletching_core.h"

#define fletching_validate_load FLETCHING_PREFIXED(ValidateLoad)
#define fletching_validate_array FLETCHING_PREFIXED(ValidateArray)
#define fletching_validate_device_array FLETCHING_PREFIXED(ValidateDeviceArray)
#define fletching_validate_stream FLETCHING_PREFIXED(ValidateStream)
#define fletching_validate_device_stream FLETCHING_PREFIXED(ValidateDeviceStream)
#define fletching_validate_handler FLETCHING_PREFIXED(ValidateHandler)
#define fletching_validate_live FLETCHING_PREFIXED(ValidateLive)
#define fletching_findings_new FLETCHING_PREFIXED(FindingsNew)
#define fletching_findings_take FLETCHING_PREFIXED(FindingsTake)
#define fletching_finding_free FLETCHING_PREFIXED(FindingFree)

enum { kFindingTexts = 6 }; /* rule, severity, party, path, message, history */

struct FletchingGoFinding {
  struct FletchingGoFinding* next;
  const char* texts[kFindingTexts];
};

/* Any thread may add to it. */
struct FletchingGoFindings;

/* Loads the library once, by its path or name. No two threads may call it at the same time. All
 * other functions require a previous call that returned 0. ENOENT if the library is not found,
 * ENOSYS if it lacks a function, EINVAL if it has another layout. */
int fletching_validate_load(const char* name, uint64_t layout, struct FletchingMessage* message);

int fletching_validate_array(const struct ArrowSchema* schema, const struct ArrowArray* array,
                             int32_t level, struct FletchingGoFindings* findings,
                             struct FletchingMessage* message);
int fletching_validate_device_array(const struct ArrowSchema* schema,
                                    const struct ArrowDeviceArray* array, int32_t level,
                                    struct FletchingGoFindings* findings,
                                    struct FletchingMessage* message);

/* The findings must never be freed. */
int fletching_validate_stream(struct ArrowArrayStream* stream, int32_t level, uint32_t stress,
                              struct FletchingGoFindings* findings,
                              struct FletchingMessage* message);
int fletching_validate_device_stream(struct ArrowDeviceArrayStream* stream, int32_t level,
                                     uint32_t stress, struct FletchingGoFindings* findings,
                                     struct FletchingMessage* message);
int fletching_validate_handler(struct ArrowAsyncDeviceStreamHandler** handler, int32_t level,
                               uint32_t stress, struct FletchingGoFindings* findings,
                               struct FletchingMessage* message);
int64_t fletching_validate_live(void);

/* The caller frees it with free(). Returns NULL if out of memory. */
struct FletchingGoFindings* fletching_findings_new(void);
/* Removes all findings and returns the newest, or NULL if there are none. The caller frees each. */
struct FletchingGoFinding* fletching_findings_take(struct FletchingGoFindings* findings);
/* Frees a finding and returns the next one. */
struct FletchingGoFinding* fletching_finding_free(struct FletchingGoFinding* finding);

#endif /* FLETCHING_GO_VALIDATE_H */
