/* A partial copy of two interfaces, as another project might have it: the guards, the structs, and
 * one device macro.
 *
 * A macro enables one defect at a time. Without any, the copied part is correct.
 */
#ifndef FOREIGN_H
#define FOREIGN_H

#include <stdint.h>

#ifdef FOREIGN_NARROW_TYPEDEF
typedef int16_t ArrowDeviceType;
#else
typedef int32_t ArrowDeviceType;
#endif

#ifdef FOREIGN_NARROW_FIELD
typedef int16_t ForeignDeviceField;
#else
typedef ArrowDeviceType ForeignDeviceField;
#endif

#ifdef FOREIGN_WRONG_FLAG
#define ARROW_FLAG_NULLABLE 3
#endif
#ifdef FOREIGN_WRONG_DEVICE
#define ARROW_DEVICE_CPU 2
#else
#define ARROW_DEVICE_CPU 1
#endif

#define ARROW_C_DATA_INTERFACE
#define ARROW_C_DEVICE_DATA_INTERFACE

struct ArrowSchema {
  const char *format, *name, *metadata;
  int64_t flags, n_children;
  struct ArrowSchema **children, *dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  int64_t length;
#ifndef FOREIGN_DROPPED
  int64_t null_count;
#endif
  int64_t offset, n_buffers, n_children;
  const void** buffers;
  struct ArrowArray **children, *dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
#ifdef FOREIGN_DROPPED
  int64_t null_count;
#endif
};

struct ArrowDeviceArray {
  struct ArrowArray array;
#ifdef FOREIGN_SWAPPED
  void* sync_event;
  ForeignDeviceField device_type;
  int64_t device_id;
#else
  int64_t device_id;
  ForeignDeviceField device_type;
  void* sync_event;
#endif
#ifdef FOREIGN_LONGER
  int64_t reserved[4];
#else
  int64_t reserved[3];
#endif
};

#ifdef FOREIGN_EXTRA_CALLBACK
#define ARROW_C_ASYNC_STREAM_INTERFACE
struct ArrowAsyncTask {
  int (*extract_data)(struct ArrowAsyncTask*, struct ArrowDeviceArray*);
  void* private_data;
};
struct ArrowAsyncProducer {
  ArrowDeviceType device_type;
  void (*request)(struct ArrowAsyncProducer*, int64_t);
  void (*cancel)(struct ArrowAsyncProducer*);
  void (*release)(struct ArrowAsyncProducer*);
  const char* additional_metadata;
  void* private_data;
};
struct ArrowAsyncDeviceStreamHandler {
  int (*on_schema)(struct ArrowAsyncDeviceStreamHandler*, struct ArrowSchema*);
  int (*on_next_task)(struct ArrowAsyncDeviceStreamHandler*, struct ArrowAsyncTask*, const char*);
  void (*on_error)(struct ArrowAsyncDeviceStreamHandler*, int, const char*, const char*);
  void (*release)(struct ArrowAsyncDeviceStreamHandler*);
  struct ArrowAsyncProducer* producer;
  void* private_data;
};
#endif

#endif /* FOREIGN_H */
