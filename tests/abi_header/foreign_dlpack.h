/* A copy of DLPack 1.2, as another project might have it, rewritten for these tests.
 *
 * A macro enables one defect at a time. Without any, the copy is correct.
 */
#ifndef DLPACK_DLPACK_H_
#define DLPACK_DLPACK_H_

#include <stdint.h>

#define DLPACK_MAJOR_VERSION 1
#ifdef FOREIGN_OLD_DLPACK
#define DLPACK_MINOR_VERSION 1
#else
#define DLPACK_MINOR_VERSION 2
#endif
#ifdef FOREIGN_WRONG_DLPACK_FLAG
#define DLPACK_FLAG_BITMASK_READ_ONLY 4UL
#endif

typedef struct {
  uint32_t major, minor;
} DLPackVersion;

#ifdef __cplusplus
typedef enum : int32_t {
#else
typedef enum {
#endif
  kDLCPU = 1,
  kDLCUDA,
  kDLCUDAHost,
  kDLOpenCL,
#ifdef FOREIGN_WRONG_DL_DEVICE
  kDLVulkan = 6,
  kDLMetal = 8,
#else
  kDLVulkan = 7,
  kDLMetal,
#endif
  kDLVPI,
  kDLROCM,
  kDLROCMHost,
  kDLExtDev,
  kDLCUDAManaged,
  kDLOneAPI,
  kDLWebGPU,
  kDLHexagon,
  kDLMAIA,
  kDLTrn
} DLDeviceType;

typedef struct {
#ifdef FOREIGN_SWAPPED_DL_DEVICE
  int32_t device_id;
  DLDeviceType device_type;
#else
  DLDeviceType device_type;
  int32_t device_id;
#endif
} DLDevice;

typedef enum {
#ifdef FOREIGN_WRONG_CODE
  kDLUInt,
  kDLInt,
#else
  kDLInt,
  kDLUInt,
#endif
  kDLFloat,
  kDLOpaqueHandle,
  kDLBfloat,
  kDLComplex,
  kDLBool,
  kDLFloat8_e3m4,
  kDLFloat8_e4m3,
  kDLFloat8_e4m3b11fnuz,
  kDLFloat8_e4m3fn,
  kDLFloat8_e4m3fnuz,
  kDLFloat8_e5m2,
  kDLFloat8_e5m2fnuz,
  kDLFloat8_e8m0fnu,
  kDLFloat6_e2m3fn,
  kDLFloat6_e3m2fn,
  kDLFloat4_e2m1fn
} DLDataTypeCode;

typedef struct {
  uint8_t code, bits;
#ifdef FOREIGN_NARROW_LANES
  uint8_t lanes, padding;
#else
  uint16_t lanes;
#endif
} DLDataType;

typedef struct {
  void* data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape, *strides;
  uint64_t byte_offset;
} DLTensor;

typedef struct DLManagedTensor {
  DLTensor dl_tensor;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensor*);
} DLManagedTensor;

typedef struct DLManagedTensorVersioned {
  DLPackVersion version;
  void* manager_ctx;
  void (*deleter)(struct DLManagedTensorVersioned*);
#ifdef FOREIGN_LATE_FLAGS
  DLTensor dl_tensor;
  uint64_t flags;
#else
  uint64_t flags;
  DLTensor dl_tensor;
#endif
} DLManagedTensorVersioned;

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api;
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor*, DLManagedTensorVersioned**, void*,
                                  void (*)(void*, const char*, const char*));
  int (*managed_tensor_from_py_object_no_sync)(void*, DLManagedTensorVersioned**);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned*, void**);
  int (*dltensor_from_py_object_no_sync)(void*, DLTensor*);
  int (*current_work_stream)(DLDeviceType, int32_t, void**);
} DLPackExchangeAPI;

#endif /* DLPACK_DLPACK_H_ */
