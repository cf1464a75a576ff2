/* SPDX-License-Identifier: Apache-2.0
 *
 * Tensors in C with allocation failures: only the core's behavior. For types, shapes and orders
 * see ../dlpack_*_test.cpp. */
#include "memory.h"

static struct FletchingMessage message;
static int deletions;
static int releases;

static int says(const char* part) {
  if (strstr(message.text, part) != NULL) return 1;
  fprintf(stderr, "the message is: %s\n", message.text);
  return 0;
}

static void count_deletion(DLManagedTensorVersioned* tensor) {
  (void)tensor;
  ++deletions;
}

static void count_release(void* owner) {
  CHECK(owner == &releases);
  ++releases;
}

static int32_t values[6] = {0, 1, 2, 3, 4, 5};

/* Two rows of three; column-major if `by_column`. */
struct matrix {
  int64_t shape[2];
  int64_t strides[2];
  DLManagedTensorVersioned managed;
};

static DLManagedTensorVersioned* make_matrix(struct matrix* out, bool by_column) {
  *out = (struct matrix){
      .shape = {2, 3},
      .strides = {by_column ? 1 : 3, by_column ? 2 : 1},
      .managed = {.version = {DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION},
                  .deleter = count_deletion,
                  .dl_tensor = {
                      .data = values, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 32, 1}}}};
  out->managed.dl_tensor.shape = out->shape;
  out->managed.dl_tensor.strides = out->strides;
  return &out->managed;
}

/* Imports with each allocation failing once. Returns the number of allocations. */
static int fail_imports(bool by_column, uint32_t options) {
  struct matrix matrix;
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  for (int nth = 0;; ++nth) {
    deletions = 0;
    memset(&schema, 1, sizeof schema);
    memset(&array, 1, sizeof array);
    fail_allocation(nth);
    const int code = FletchingTensorImport(make_matrix(&matrix, by_column), NULL, options, &schema,
                                           &array, NULL, &message);
    if (!has_failed_allocation()) {
      CHECK(code == 0);
      schema.release(&schema);
      array.array.release(&array.array);
      CHECK(deletions == 1);
      return nth;
    }
    CHECK(code == ENOMEM && says("no memory") && deletions == 1);
    CHECK(schema.release == NULL && array.array.release == NULL);
  }
}

static void test_allocation_failure_returns_enomem(void) {
  struct matrix matrix;
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  DLManagedTensorVersioned* tensor = NULL;
  CHECK(fail_imports(false, 0) == 2); /* the schema and the array */
  CHECK(fail_imports(false, FLETCHING_TENSOR_LISTS) == 2);
  CHECK(fail_imports(true, FLETCHING_TENSOR_LISTS | FLETCHING_TENSOR_COPY) == 3); /* plus a copy */

  deletions = 0;
  CHECK(FletchingTensorImport(make_matrix(&matrix, false), NULL, 0, &schema, &array, NULL,
                              &message) == 0);
  fail_allocation(0);
  CHECK(FletchingTensorExport(&schema, &array, NULL, 0, &tensor, &message) == ENOMEM);
  CHECK(has_failed_allocation() && says("no memory"));
  CHECK(tensor == NULL && array.array.release != NULL);
  CHECK(FletchingTensorExport(&schema, &array, NULL, 0, &tensor, &message) == 0);
  CHECK(array.array.release == NULL && tensor->dl_tensor.data == values);
  schema.release(&schema);
  CHECK(deletions == 0);
  tensor->deleter(tensor);
  CHECK(deletions == 1);
}

static void test_import_rejects_malformed_tensor(void) {
  struct matrix matrix;
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  deletions = 0;
  (void)make_matrix(&matrix, false);
  matrix.shape[1] = -1;
  CHECK(FletchingTensorImport(&matrix.managed, NULL, 0, &schema, &array, NULL, &message) == EINVAL);
  CHECK(schema.release == NULL && array.array.release == NULL && deletions == 1);
}

static void test_imported_structs_can_be_moved_out(void) {
  struct matrix matrix;
  struct ArrowSchema schema;
  struct ArrowSchema item;
  struct ArrowDeviceArray array;
  struct ArrowArray child;
  deletions = 0;
  CHECK(FletchingTensorImport(make_matrix(&matrix, false), NULL, 0, &schema, &array, NULL,
                              &message) == 0);
  FletchingSchemaMove(schema.children[0], &item);
  FletchingArrayMove(array.array.children[0], &child);
  schema.release(&schema);
  array.array.release(&array.array);
  CHECK(schema.release == NULL && array.array.release == NULL && deletions == 0);
  CHECK(strcmp(item.format, "i") == 0 && strcmp(item.name, "item") == 0);
  CHECK(child.length == 6 && child.buffers[1] == values);
  item.release(&item);
  child.release(&child);
  CHECK(deletions == 1);
}

static void test_create_tensor_without_schema(void) {
  int64_t shape[] = {2, 0, 3};
  int64_t strides[] = {-1, 5, 7};
  DLTensor like = {.data = values, .device = {kDLCPU, 0}, .ndim = 3, .dtype = {kDLInt, 32, 1}};
  DLManagedTensorVersioned* tensor = NULL;
  like.shape = shape;
  releases = 0;
  CHECK(FletchingTensorCreate(&like, DLPACK_FLAG_BITMASK_READ_ONLY, &releases, count_release,
                              &tensor, &message) == 0);
  CHECK(tensor->flags == DLPACK_FLAG_BITMASK_READ_ONLY && tensor->dl_tensor.data == values);
  shape[0] = 9; /* the shape was copied */
  CHECK(tensor->dl_tensor.shape[0] == 2 && tensor->dl_tensor.shape[2] == 3);
  CHECK(tensor->dl_tensor.strides[0] == 3 && tensor->dl_tensor.strides[1] == 3 &&
        tensor->dl_tensor.strides[2] == 1);
  CHECK(releases == 0);
  tensor->deleter(tensor);
  CHECK(releases == 1);

  like.strides = strides;
  CHECK(FletchingTensorCreate(&like, 0, &releases, count_release, &tensor, &message) == 0);
  CHECK(tensor->dl_tensor.strides[0] == -1 && tensor->dl_tensor.strides[2] == 7);
  tensor->deleter(tensor);
  CHECK(releases == 2);

  shape[1] = -1;
  CHECK(FletchingTensorCreate(&like, 0, &releases, count_release, &tensor, &message) == EINVAL);
  CHECK(tensor == NULL && says("negative size: expected 0 or more, got -1"));
  like.ndim = FLETCHING_TENSOR_DIMENSIONS + 1;
  CHECK(FletchingTensorCreate(&like, 0, &releases, count_release, &tensor, &message) == EINVAL);
  CHECK(says("expected 0 to 64 sizes"));
  like.ndim = 0;
  fail_allocation(0);
  CHECK(FletchingTensorCreate(&like, 0, &releases, count_release, &tensor, &message) == ENOMEM);
  CHECK(has_failed_allocation() && tensor == NULL && releases == 2);
}

static void leave_schema(struct ArrowSchema* schema) { schema->release = NULL; }
static void leave_array(struct ArrowArray* array) { array->release = NULL; }

static void test_export_skips_validity_bitmap(void) {
  const uint8_t all_valid = 7;
  const void* buffers[] = {(const void*)16, values}; /* reading the bitmap would crash */
  struct ArrowSchema schema = {.format = "i", .release = leave_schema};
  struct ArrowDeviceArray array = {.array = {.length = 3,
                                             .null_count = -1,
                                             .n_buffers = 2,
                                             .buffers = buffers,
                                             .release = leave_array},
                                   .device_id = -1,
                                   .device_type = ARROW_DEVICE_CPU};
  DLManagedTensorVersioned* tensor = NULL;
  CHECK(FletchingTensorExport(&schema, &array, NULL, FLETCHING_TENSOR_NO_READS, &tensor,
                              &message) == ENOTSUP);
  CHECK(says("may have nulls") && tensor == NULL && array.array.release != NULL);
  array.array.null_count = 1;
  CHECK(FletchingTensorExport(&schema, &array, NULL, FLETCHING_TENSOR_NO_READS, &tensor,
                              &message) == ENOTSUP);
  CHECK(says("has nulls"));
  buffers[0] = &all_valid;
  CHECK(FletchingTensorExport(&schema, &array, NULL, 0, &tensor, &message) == 0);
  tensor->deleter(tensor);

  /* Without a bitmap no memory is read. */
  buffers[0] = NULL;
  array.array.null_count = -1;
  array.array.release = leave_array;
  CHECK(FletchingTensorExport(&schema, &array, NULL, FLETCHING_TENSOR_NO_READS, &tensor,
                              &message) == 0);
  tensor->deleter(tensor);
}

static void test_export_reads_largest_size(void) {
  const void* buffers[] = {NULL, values};
  struct ArrowSchema schema = {.format = "w:2147483647", .release = leave_schema};
  struct ArrowDeviceArray array = {
      .array = {.n_buffers = 2, .buffers = buffers, .release = leave_array},
      .device_id = -1,
      .device_type = ARROW_DEVICE_CPU};
  DLManagedTensorVersioned* tensor = NULL;
  CHECK(FletchingTensorExport(&schema, &array, NULL, FLETCHING_TENSOR_AS_STORAGE, &tensor,
                              &message) == 0);
  CHECK(tensor != NULL && tensor->dl_tensor.shape[1] == INT32_MAX);
  if (tensor != NULL) tensor->deleter(tensor);
  array.array.release = leave_array;
  schema.format = "w:2147483648";
  CHECK(FletchingTensorExport(&schema, &array, NULL, FLETCHING_TENSOR_AS_STORAGE, &tensor,
                              &message) == EINVAL);
  CHECK(says("expected one number from 0 to 2147483647"));
}

static void test_export_rejects_unknown_ordering(void) {
  const int32_t orderings[] = {-1, 0, FLETCHING_ORDER_STREAM + 1};
  for (size_t i = 0; i < sizeof orderings / sizeof orderings[0]; i++) {
    const struct FletchingTensorStream order = {.ordering = orderings[i]};
    struct ArrowSchema schema = {.format = "i", .release = leave_schema};
    const void* buffers[] = {NULL, values};
    struct ArrowDeviceArray array = {
        .array = {.length = 1, .n_buffers = 2, .buffers = buffers, .release = leave_array},
        .device_id = -1,
        .device_type = ARROW_DEVICE_CPU};
    DLManagedTensorVersioned* tensor = NULL;
    CHECK(FletchingTensorExport(&schema, &array, &order, 0, &tensor, &message) == EINVAL);
    CHECK(says("unknown ordering") && tensor == NULL && array.array.release != NULL);
    CHECK(FletchingTensorExport(&schema, &array, NULL, 0, &tensor, &message) == 0);
    CHECK(FletchingTensorImport(tensor, &order, 0, &schema, &array, NULL, &message) == EINVAL);
    CHECK(says("unknown ordering") && schema.release == NULL && array.array.release == NULL);
  }
}

static void test_rejects_null(void) {
  struct FletchingTensorView view;
  struct FletchingTensorLayout layout;
  struct ArrowSchema schema;
  struct ArrowDeviceArray array;
  DLManagedTensorVersioned* tensor = NULL;
  DLManagedTensor* legacy = NULL;
  CHECK(FletchingTensorStreamRead(ARROW_DEVICE_CPU, NULL, NULL, &message) == EINVAL);
  CHECK(FletchingTensorDescribe(NULL, NULL, 0, &view, &message) == EINVAL);
  CHECK(FletchingTensorArrange(NULL, 0, &layout, &message) == EINVAL);
  CHECK(FletchingTensorCreate(NULL, 0, NULL, NULL, &tensor, &message) == EINVAL);
  CHECK(FletchingTensorExport(NULL, NULL, NULL, 0, &tensor, &message) == EINVAL);
  CHECK(FletchingLegacyTensorExport(NULL, NULL, NULL, FLETCHING_TENSOR_WRITABLE, &legacy,
                                    &message) == EINVAL);
  CHECK(FletchingTensorImport(NULL, NULL, 0, &schema, &array, NULL, &message) == EINVAL);
  CHECK(says("tensor is NULL") && schema.release == NULL && array.array.release == NULL);
  CHECK(FletchingLegacyTensorImport(NULL, NULL, 0, &schema, &array, NULL, &message) == EINVAL);

  const DLDevice cpu = {kDLCPU, 0};
  DLTensor like = {.device = cpu, .dtype = {kDLInt, 32, 1}};
  const DLPackExchangeAPI empty = {.header = {.version = {DLPACK_MAJOR_VERSION, 0}}};
  CHECK(FletchingTensorExport(&schema, &array, NULL, 0, NULL, &message) == EINVAL);
  CHECK(says("result: NULL"));
  CHECK(FletchingLegacyTensorExport(&schema, &array, NULL, 0, NULL, &message) == EINVAL);
  CHECK(says("result: NULL"));
  CHECK(FletchingTensorCreate(&like, 0, NULL, NULL, NULL, &message) == EINVAL);
  CHECK(says("result: NULL"));
  CHECK(FletchingTensorAllocate(&like, NULL, NULL, NULL) == -1);
  CHECK(FletchingExchangeAllocate(&empty, &like, NULL, &message) == EINVAL);
  CHECK(says("result: NULL"));
  CHECK(FletchingExchangeWorkStream(&empty, cpu, NULL, &message) == EINVAL);
  CHECK(says("result: NULL"));
}

/* --- The table of functions --- */

static int refuse(DLTensor* prototype, DLManagedTensorVersioned** out, void* context,
                  void (*set_error)(void*, const char*, const char*)) {
  (void)prototype;
  (void)context;
  (void)set_error;
  *out = NULL;
  return -1;
}

static int work_stream(DLDeviceType type, int32_t id, void** out) {
  CHECK(type == kDLCUDA);
  *out = (void*)(uintptr_t)0x1000;
  return id == 3 ? -1 : 0;
}

static void rule_dlpack_exchange_version_checked(void) {
  DLPackExchangeAPI table = {.header = {.version = {DLPACK_MAJOR_VERSION, 9}}};
  DLPackExchangeAPIHeader newer = {.version = {DLPACK_MAJOR_VERSION + 1, 0}};
  CHECK(FletchingExchangeFind(NULL) == NULL && FletchingExchangeFind(&newer) == NULL);
  newer.prev_api = &table.header;
  CHECK(FletchingExchangeFind(&newer) == &table && FletchingExchangeFind(&table.header) == &table);
}

static void test_table_allocates_tensor(void) {
  int64_t shape[] = {3, 5};
  int64_t strides[] = {1, 3};
  DLTensor like = {.device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat4_e2m1fn, 4, 1}};
  DLPackExchangeAPI table = {.managed_tensor_allocator = FletchingTensorAllocate};
  DLManagedTensorVersioned* tensor = NULL;
  like.shape = shape;
  like.strides = strides;
  like.byte_offset = 7;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == 0);
  CHECK(tensor->dl_tensor.byte_offset == 0 && (uintptr_t)tensor->dl_tensor.data % 256 == 0);
  CHECK(tensor->dl_tensor.strides[0] == 5 && tensor->dl_tensor.strides[1] == 1);
  memset(tensor->dl_tensor.data, 1, 8); /* 15 values of 4 bits */
  tensor->deleter(tensor);
  shape[1] = 0;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == 0);
  CHECK(tensor->dl_tensor.data == NULL);
  tensor->deleter(tensor);
  table.managed_tensor_allocator = refuse;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == EIO);
  CHECK(says("managed_tensor_allocator: expected a tensor, got the result -1"));
  table.managed_tensor_allocator = NULL;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == ENOSYS);
  CHECK(FletchingExchangeAllocate(NULL, &like, &tensor, &message) == EINVAL);
}

static void rule_dlpack_exchange_set_error_on_failure(void) {
  int64_t shape[] = {3, INT64_MAX};
  DLTensor like = {
      .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat4_e2m1fn, 4, 1}, .shape = shape};
  const DLPackExchangeAPI table = {.managed_tensor_allocator = FletchingTensorAllocate};
  DLManagedTensorVersioned* tensor = NULL;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == EINVAL && tensor == NULL);
  CHECK(says("DLTensor.shape: out of range: expected fewer than 2^63 elements"));
  shape[1] = INT64_MAX / 4;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == EIO && tensor == NULL);
  CHECK(says("BufferError: DLTensor.shape: size out of range"));
  shape[1] = 5;
  for (int nth = 0; nth < 2; ++nth) { /* fails the memory, then the tensor */
    fail_allocation(nth);
    CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == ENOMEM);
    CHECK(has_failed_allocation() && says("MemoryError: ") && tensor == NULL);
  }
  fail_allocation(0);
  CHECK(FletchingTensorAllocate(&like, &tensor, NULL, NULL) == -1 && tensor == NULL);
  CHECK(has_failed_allocation());
  like.device.device_type = kDLCUDA;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == EIO);
  CHECK(says("expected the CPU, got cuda"));
  shape[1] = -1;
  CHECK(FletchingExchangeAllocate(&table, &like, &tensor, &message) == EINVAL);
}

static void rule_dlpack_exchange_cpu_stream_null(void) {
  DLPackExchangeAPI table = {.current_work_stream = work_stream};
  struct FletchingTensorStream stream;
  CHECK(FletchingExchangeWorkStream(&table, (DLDevice){kDLCPU, 0}, &stream, &message) == 0);
  CHECK(stream.ordering == FLETCHING_ORDER_NOTHING && message.text[0] == '\0');
  CHECK(FletchingExchangeWorkStream(&table, (DLDevice){kDLCUDA, 2}, &stream, &message) == 0);
  CHECK(stream.ordering == FLETCHING_ORDER_STREAM && stream.stream.device_id == 2);
  CHECK(stream.stream.handle == (void*)(uintptr_t)0x1000);
  CHECK(FletchingExchangeWorkStream(&table, (DLDevice){kDLCUDA, 3}, &stream, &message) == EIO);
  CHECK(says("current_work_stream: expected a stream, got the result -1"));
  table.current_work_stream = NULL;
  CHECK(FletchingExchangeWorkStream(&table, (DLDevice){kDLCUDA, 0}, &stream, &message) == ENOSYS);
}

int main(void) {
  rule_dlpack_exchange_version_checked();
  test_table_allocates_tensor();
  rule_dlpack_exchange_set_error_on_failure();
  rule_dlpack_exchange_cpu_stream_null();
  test_allocation_failure_returns_enomem();
  test_import_rejects_malformed_tensor();
  test_imported_structs_can_be_moved_out();
  test_create_tensor_without_schema();
  test_export_skips_validity_bitmap();
  test_export_reads_largest_size();
  test_export_rejects_unknown_ordering();
  test_rejects_null();
  printf("core_tensor: %d checks, %d failed\n", checks, failures);
  return failures == 0 ? 0 : 1;
}
