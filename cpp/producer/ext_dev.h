/* The event of the backend ext_dev. ARROW_DEVICE_EXT_DEV leaves the type of sync_event to the
 * producer, which has to document it; a consumer registers a waiter to wait for it.
 *
 * ArrowDeviceArray.sync_event is a `const struct FletchingExtDevEvent*`. It lives until the last
 * struct that was exported with it is released. Its functions may be called from any thread and do
 * not fail, except as said.
 *
 * The device is a thread per queue, and its memory is host memory.
 */
#ifndef FLETCHING_PRODUCER_EXT_DEV_H
#define FLETCHING_PRODUCER_EXT_DEV_H

#ifdef __cplusplus
extern "C" {
#endif

/* What FletchingProducerQueueHandle returns for ext_dev. */
struct FletchingExtDevQueue;

struct FletchingExtDevEvent {
  /* 1: it has happened; 0: it is pending. */
  int (*query)(const struct FletchingExtDevEvent* self);
  /* Blocks until it has happened. */
  void (*synchronize)(const struct FletchingExtDevEvent* self);
  /* What is enqueued on `queue` from now on waits for it; returns at once. 0 or an errno value:
   * ENOMEM; EINVAL when `queue` is NULL. */
  int (*wait_on)(const struct FletchingExtDevEvent* self, struct FletchingExtDevQueue* queue);
};

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_EXT_DEV_H */
