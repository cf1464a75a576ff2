/* The event of the ext_dev backend. For ARROW_DEVICE_EXT_DEV the producer must document the type of
 * sync_event; a consumer registers a waiter for it.
 *
 * ArrowDeviceArray.sync_event is a `const struct FletchingExtDevEvent*`. It lives until the last
 * struct exported with it is released. Unless noted otherwise, its functions may be called from any
 * thread and do not fail.
 *
 * Each queue is a thread. Memory is host memory.
 */
#ifndef FLETCHING_PRODUCER_EXT_DEV_H
#define FLETCHING_PRODUCER_EXT_DEV_H

#ifdef __cplusplus
extern "C" {
#endif

/* The value that FletchingProducerQueueHandle returns for ext_dev. */
struct FletchingExtDevQueue;

struct FletchingExtDevEvent {
  /* Returns 1 if the event has completed, 0 if it is pending. */
  int (*query)(const struct FletchingExtDevEvent* self);
  /* Blocks until the event has completed. */
  void (*synchronize)(const struct FletchingExtDevEvent* self);
  /* Makes later work on `queue` wait for the event, without blocking the caller. Returns 0,
   * ENOMEM, or EINVAL if `queue` is NULL. */
  int (*wait_on)(const struct FletchingExtDevEvent* self, struct FletchingExtDevQueue* queue);
};

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_PRODUCER_EXT_DEV_H */
