/* SPDX-License-Identifier: Apache-2.0
 *
 * Wrappers of the core's tensor functions for Go; see events.h. The address of a tensor is a number
 * in Go. */
#ifndef FLETCHING_GO_TENSORS_H
#define FLETCHING_GO_TENSORS_H

#include <stdbool.h>

#include "events.h"

/* Each global name contains the version, as in the core. */
#define fletching_drop_owner FLETCHING_PREFIXED(DropOwner)

/* Drops the value of the Go handle `handle`. Defined in block.c. */
void fletching_drop_owner(void* handle);

/* A DLPack stream argument, or none. */
struct OrderNumbers {
  struct StreamNumbers stream;
  int ordering;
  bool is_given;
};

#define ORDER(numbers)                                                                          \
  (!(numbers).is_given ? NULL                                                                   \
                       : &(const struct FletchingTensorStream){                                 \
                             {(void*)(numbers).stream.handle, (numbers).stream.device_id, NULL, \
                              (numbers).stream.runtime},                                        \
                             (numbers).ordering})

static inline struct Outcome read_tensor_stream(ArrowDeviceType type, const int64_t* argument,
                                                uintptr_t* handle, int* ordering) {
  struct FletchingMessage message;
  struct FletchingTensorStream read = {.ordering = 0};
  const int code = FletchingTensorStreamRead(type, argument, &read, &message);
  *handle = (uintptr_t)read.stream.handle;
  *ordering = read.ordering;
  return outcome_of(code, NULL, &message);
}

static inline struct Outcome export_tensor(const struct ArrowSchema* schema,
                                           struct ArrowDeviceArray* array,
                                           struct OrderNumbers order, uint32_t options,
                                           uintptr_t* tensor) {
  struct FletchingMessage message;
  DLManagedTensorVersioned* made = NULL;
  const int code = FletchingTensorExport(schema, array, ORDER(order), options, &made, &message);
  *tensor = (uintptr_t)made;
  return outcome_of(code, NULL, &message);
}

static inline struct Outcome export_legacy_tensor(const struct ArrowSchema* schema,
                                                  struct ArrowDeviceArray* array,
                                                  struct OrderNumbers order, uint32_t options,
                                                  uintptr_t* tensor) {
  struct FletchingMessage message;
  DLManagedTensor* made = NULL;
  const int code =
      FletchingLegacyTensorExport(schema, array, ORDER(order), options, &made, &message);
  *tensor = (uintptr_t)made;
  return outcome_of(code, NULL, &message);
}

static inline struct Outcome import_tensor(uintptr_t tensor, int is_legacy,
                                           struct OrderNumbers order, uint32_t options,
                                           struct ArrowSchema* schema,
                                           struct ArrowDeviceArray* array, uint64_t* flags) {
  struct FletchingMessage message;
  const int code = is_legacy
                       ? FletchingLegacyTensorImport((DLManagedTensor*)tensor, ORDER(order),
                                                     options, schema, array, flags, &message)
                       : FletchingTensorImport((DLManagedTensorVersioned*)tensor, ORDER(order),
                                               options, schema, array, flags, &message);
  return outcome_of(code, NULL, &message);
}

/* `like` contains no addresses of shape and strides, which are in Go memory. */
static inline struct Outcome create_tensor(DLTensor like, uintptr_t data, int64_t* shape,
                                           int64_t* strides, uint64_t flags, uintptr_t handle,
                                           uintptr_t* tensor) {
  struct FletchingMessage message;
  DLManagedTensorVersioned* made = NULL;
  like.data = (void*)data;
  like.shape = shape;
  like.strides = strides;
  const int code = FletchingTensorCreate(
      &like, flags, (void*)handle, handle != 0 ? fletching_drop_owner : NULL, &made, &message);
  *tensor = (uintptr_t)made;
  return outcome_of(code, NULL, &message);
}

static inline struct Outcome exchange_allocate(uintptr_t api, DLTensor like, int64_t* shape,
                                               uintptr_t* tensor) {
  struct FletchingMessage message;
  DLManagedTensorVersioned* made = NULL;
  like.shape = shape;
  const int code = FletchingExchangeAllocate((const DLPackExchangeAPI*)api, &like, &made, &message);
  *tensor = (uintptr_t)made;
  return outcome_of(code, NULL, &message);
}

static inline struct Outcome exchange_work_stream(uintptr_t api, DLDevice device, uintptr_t* handle,
                                                  int64_t* device_id, int* ordering) {
  struct FletchingMessage message;
  struct FletchingTensorStream found = {.ordering = 0};
  const int code =
      FletchingExchangeWorkStream((const DLPackExchangeAPI*)api, device, &found, &message);
  *handle = (uintptr_t)found.stream.handle;
  *device_id = found.stream.device_id;
  *ordering = found.ordering;
  return outcome_of(code, NULL, &message);
}

static inline uintptr_t exchange_find(uintptr_t first) {
  return (uintptr_t)FletchingExchangeFind((const DLPackExchangeAPIHeader*)first);
}

static inline uintptr_t exchange_allocator(void) { return (uintptr_t)FletchingTensorAllocate; }

#endif /* FLETCHING_GO_TENSORS_H */
