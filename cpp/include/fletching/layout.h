/* SPDX-License-Identifier: Apache-2.0
 *
 * Checks that a program and the loaded library use the same struct layouts. C99 and C++. */
#ifndef FLETCHING_LAYOUT_H
#define FLETCHING_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "fletching/devices.h"
#include "fletching/events.h"
#include "fletching/structs.h"
#include "fletching/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One step of a hash (FNV-1a on a whole number instead of a byte). */
#define FLETCHING_LAYOUT_STEP(hash, number) \
  (((hash) ^ (uint64_t)(number)) * UINT64_C(1099511628211))
#define FLETCHING_LAYOUT_STEP_2(hash, a, b) FLETCHING_LAYOUT_STEP(FLETCHING_LAYOUT_STEP(hash, a), b)
#define FLETCHING_LAYOUT_STEP_4(hash, a, b, c, d) \
  FLETCHING_LAYOUT_STEP_2(FLETCHING_LAYOUT_STEP_2(hash, a, b), c, d)

#define FLETCHING_LAYOUT_EVENTS                                                               \
  FLETCHING_LAYOUT_STEP_4(                                                                    \
      FLETCHING_LAYOUT_STEP_4(UINT64_C(14695981039346656037), sizeof(struct FletchingStream), \
                              offsetof(struct FletchingStream, device_id),                    \
                              offsetof(struct FletchingStream, context),                      \
                              offsetof(struct FletchingStream, runtime)),                     \
      sizeof(struct FletchingEvent), offsetof(struct FletchingEvent, device_id),              \
      offsetof(struct FletchingEvent, context), offsetof(struct FletchingEvent, device_type))

#define FLETCHING_LAYOUT_OTHERS                                                               \
  FLETCHING_LAYOUT_STEP_4(                                                                    \
      FLETCHING_LAYOUT_STEP_4(FLETCHING_LAYOUT_EVENTS, sizeof(struct FletchingReleaseCounts), \
                              offsetof(struct FletchingReleaseCounts, inherited_events),      \
                              sizeof(struct FletchingWaiter),                                 \
                              offsetof(struct FletchingWaiter, context)),                     \
      sizeof(struct FletchingVulkanWaitContext),                                              \
      offsetof(struct FletchingVulkanWaitContext, set_stages),                                \
      offsetof(struct FletchingVulkanWaitContext, get_device_proc_addr),                      \
      sizeof(struct FletchingMessage))

#define FLETCHING_LAYOUT_DEVICES                                                        \
  FLETCHING_LAYOUT_STEP_4(FLETCHING_LAYOUT_OTHERS, sizeof(struct FletchingFoundDevice), \
                          offsetof(struct FletchingFoundDevice, name),                  \
                          sizeof(struct FletchingDeviceReportEntry),                    \
                          offsetof(struct FletchingDeviceReportEntry, devices))

#define FLETCHING_LAYOUT_TENSORS                                                              \
  FLETCHING_LAYOUT_STEP_4(                                                                    \
      FLETCHING_LAYOUT_STEP_4(FLETCHING_LAYOUT_DEVICES, sizeof(struct FletchingTensorStream), \
                              offsetof(struct FletchingTensorStream, ordering),               \
                              sizeof(struct FletchingTensorView),                             \
                              offsetof(struct FletchingTensorView, strides)),                 \
      sizeof(struct FletchingTensorLayout), offsetof(struct FletchingTensorLayout, order),    \
      sizeof(DLManagedTensorVersioned), offsetof(DLManagedTensorVersioned, dl_tensor))

/** A hash of the sizes and offsets of the structs in this compilation. */
#define FLETCHING_LAYOUT                                                              \
  FLETCHING_LAYOUT_STEP_4(                                                            \
      FLETCHING_LAYOUT_STEP_4(FLETCHING_LAYOUT_TENSORS, sizeof(struct ArrowSchema),   \
                              offsetof(struct ArrowSchema, private_data),             \
                              sizeof(struct ArrowArray),                              \
                              offsetof(struct ArrowArray, private_data)),             \
      sizeof(struct ArrowDeviceArray), offsetof(struct ArrowDeviceArray, sync_event), \
      sizeof(struct ArrowDeviceArrayStream),                                          \
      offsetof(struct ArrowDeviceArrayStream, private_data))

/** Compares the program's struct layouts with the library's. A program that loads the library calls
 * FletchingCheckLayout(FLETCHING_LAYOUT, &message) before any other function. EINVAL if the layouts
 * differ, because the library was built from other headers or with another ABI. */
FLETCHING_EXPORT int FletchingCheckLayout(uint64_t layout, struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_LAYOUT_H */
