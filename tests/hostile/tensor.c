/* DLPack tensors that are wrong, of version 1.3 and from before version 1.0. */
#include "tensor.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "account.h"
#include "tensor_cases.h"

enum { kDimensions = 3 };

struct Tensor {
  DLManagedTensorVersioned versioned;
  DLManagedTensor legacy;
  int64_t shape[kDimensions];
  int64_t strides[kDimensions];
  int32_t values[4]; /* 0, 1, 2, 3 */
  struct Tensor* next_deleted;
};

/* --- Memory ---
 * A tensor is its own memory. What was deleted is kept until Finish, so that a second call of the
 * deleter finds the number of the tensor, which is no longer in the account. */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct Tensor* deleted; /* guarded by `lock` */

static void Keep(void* object) {
  struct Tensor* tensor = object;
  pthread_mutex_lock(&lock);
  tensor->next_deleted = deleted;
  deleted = tensor;
  pthread_mutex_unlock(&lock);
}

void FinishTensors(void) {
  pthread_mutex_lock(&lock);
  while (deleted != NULL) {
    struct Tensor* next = deleted->next_deleted;
    free(deleted);
    deleted = next;
  }
  pthread_mutex_unlock(&lock);
}

static void DeleteVersioned(DLManagedTensorVersioned* self) {
  CloseId(self->manager_ctx, "the deleter of a tensor");
}
static void DeleteLegacy(DLManagedTensor* self) {
  CloseId(self->manager_ctx, "the deleter of a tensor");
}

/* --- Cases --- */

static void SetSizes(struct Tensor* tensor, DLTensor* out, int32_t ndim, int64_t first,
                     int64_t second, int64_t third) {
  const int64_t sizes[kDimensions] = {first, second, third};
  memcpy(tensor->shape, sizes, sizeof sizes);
  out->ndim = ndim;
  out->strides = NULL;
}

static void SpoilShape(int32_t behaviour, struct Tensor* tensor, DLTensor* out) {
  switch (behaviour) {
    case kScalar:
      out->ndim = 0;
      out->shape = NULL;
      out->strides = NULL;
      break;
    case kEmpty:
      SetSizes(tensor, out, 1, 0, 0, 0);
      out->data = NULL;
      break;
    case kEmptyBehindHuge:
      SetSizes(tensor, out, 3, INT64_MAX, INT64_MAX, 0);
      break;
    case kNdimNegative:
      out->ndim = -1;
      break;
    case kNdimMin:
      out->ndim = INT32_MIN;
      break;
    case kNdimHuge:
      out->ndim = 100000;
      break;
    case kNdimMax:
      out->ndim = INT32_MAX;
      break;
    case kShapeNull:
      out->shape = NULL;
      break;
    case kShapeNegative:
      SetSizes(tensor, out, 2, 3, -1, 0);
      break;
    case kShapeMin:
      SetSizes(tensor, out, 1, INT64_MIN, 0, 0);
      break;
    case kShapeHuge:
      SetSizes(tensor, out, 1, INT64_MAX, 0, 0);
      break;
    case kShapeWrapsToZero:
      SetSizes(tensor, out, 2, (int64_t)1 << 32, (int64_t)1 << 32, 0);
      break;
    case kShapeWraps:
      SetSizes(tensor, out, 2, ((int64_t)1 << 33) + 1, ((int64_t)1 << 33) - 1, 0);
      break;
    case kBytesWrap:
      SetSizes(tensor, out, 1, (int64_t)1 << 62, 0, 0);
      break;
    case kLanesWrap:
      SetSizes(tensor, out, 1, (int64_t)1 << 48, 0, 0);
      break;
    default:
      break;
  }
}

static void SpoilPlace(int32_t behaviour, struct Tensor* tensor, DLTensor* out) {
  switch (behaviour) {
    case kOffset:
      out->data = tensor->values;
      out->byte_offset = 4;
      break;
    case kOffsetWraps:
      out->byte_offset = UINT64_MAX - 3;
      break;
    case kOffsetUnaligned:
      out->data = tensor->values;
      out->byte_offset = 2;
      break;
    case kDataNull:
      out->data = NULL;
      break;
    case kStridesNull:
    case kMinorOld:
      out->strides = NULL;
      break;
    case kStridesUnused:
      out->ndim = 2;
      tensor->shape[1] = 1;
      tensor->strides[1] = INT64_MIN;
      break;
    case kStridesZero:
      tensor->strides[0] = 0;
      break;
    case kStridesNegative:
      out->data = &tensor->values[3];
      tensor->strides[0] = -1;
      break;
    case kStridesHuge:
      tensor->strides[0] = INT64_MAX;
      break;
    case kStridesMin:
      tensor->strides[0] = INT64_MIN;
      break;
    case kDeviceUnknown:
      out->device.device_type = (DLDeviceType)9999;
      break;
    case kDeviceZero:
      out->device.device_type = (DLDeviceType)0;
      break;
    case kDeviceNegative:
      out->device.device_type = (DLDeviceType)INT32_MIN;
      break;
    case kDeviceIdNegative:
      out->device.device_id = INT32_MIN;
      break;
    default:
      break;
  }
}

static DLDataType TypeOf(int32_t behaviour) {
  switch (behaviour) {
    case kLanes:
      return (DLDataType){kDLInt, 32, 3};
    case kLanesZero:
      return (DLDataType){kDLInt, 32, 0};
    case kLanesWrap:
      return (DLDataType){kDLInt, 32, UINT16_MAX};
    case kBitsZero:
      return (DLDataType){kDLInt, 0, 1};
    case kBitsOdd:
      return (DLDataType){kDLUInt, 7, 1};
    case kBitsSubByte:
      return (DLDataType){kDLInt, 4, 1};
    case kBitsMax:
      return (DLDataType){kDLFloat, 255, 1};
    case kBoolOfABit:
      return (DLDataType){kDLBool, 1, 1};
    case kCodeHandle:
      return (DLDataType){kDLOpaqueHandle, 64, 1};
    case kCodeUnknown:
      return (DLDataType){255, 32, 1};
    default:
      return (DLDataType){kDLInt, 32, 1};
  }
}

static void Fill(int32_t behaviour, struct Tensor* tensor, DLTensor* out) {
  for (int32_t i = 0; i < 4; ++i) tensor->values[i] = i;
  tensor->shape[0] = behaviour == kLanes ? 1 : 3;
  tensor->strides[0] = 1;
  out->data = &tensor->values[1];
  out->device = (DLDevice){kDLCPU, 0};
  out->ndim = 1;
  out->dtype = TypeOf(behaviour);
  out->shape = tensor->shape;
  out->strides = tensor->strides;
  SpoilShape(behaviour, tensor, out);
  SpoilPlace(behaviour, tensor, out);
}

static void SpoilVersion(int32_t behaviour, DLManagedTensorVersioned* out) {
  const uint32_t major = behaviour == kMajorNewer ? 2 : behaviour == kMajorZero ? 0 : UINT32_MAX;
  switch (behaviour) {
    case kFlagsKnown:
      out->flags = DLPACK_FLAG_BITMASK_READ_ONLY | DLPACK_FLAG_BITMASK_IS_COPIED;
      break;
    case kFlagsUnknown:
      out->flags = (uint64_t)1 << 63;
      break;
    case kFlagsPadded:
      out->flags = DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED;
      break;
    case kMinorNewer:
      out->version.minor = UINT32_MAX;
      break;
    case kMinorOld:
      out->version.minor = 0;
      break;
    case kMajorZero:
    case kMajorMax:
      out->version = (DLPackVersion){major, 0};
      break;
    case kMajorNewer:
      out->version = (DLPackVersion){major, 0};
      memset(&out->flags, 0xA5, sizeof out->flags);
      memset(&out->dl_tensor, 0xA5, sizeof out->dl_tensor);
      break;
    default:
      break;
  }
}

/* --- Export --- */

/* The tensor of kDeleterNull, which is never deleted and so never freed. */
static struct Tensor eternal;

/* NULL without memory. */
static struct Tensor* Open(int32_t behaviour, void** id) {
  *id = NULL;
  if (behaviour == kDeleterNull) return &eternal;
  struct Tensor* tensor = calloc(1, sizeof *tensor);
  if (tensor == NULL) return NULL;
  *id = OpenId(kCountsAsStruct, tensor, Keep);
  if (*id != NULL) return tensor;
  free(tensor);
  return NULL;
}

int FletchingHostileExportTensor(const char* name, DLManagedTensorVersioned** out,
                                 struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kVersionedTensorParty, name, message);
  if (found == NULL) found = FindCase(&kTensorParty, name, message);
  if (found == NULL) return EINVAL;
  if (out == NULL) return Fail(message, EINVAL, "out is NULL");
  void* id;
  struct Tensor* tensor = Open(found->behaviour, &id);
  if (tensor == NULL) return Fail(message, ENOMEM, "out of memory");
  DLManagedTensorVersioned* versioned = &tensor->versioned;
  *versioned = (DLManagedTensorVersioned){
      .version = {1, 3}, .manager_ctx = id, .deleter = id == NULL ? NULL : DeleteVersioned};
  Fill(found->behaviour, tensor, &versioned->dl_tensor);
  SpoilVersion(found->behaviour, versioned);
  *out = versioned;
  return 0;
}

int FletchingHostileExportLegacyTensor(const char* name, DLManagedTensor** out,
                                       struct FletchingMessage* message) {
  const struct Case* found = FindCase(&kTensorParty, name, message);
  if (found == NULL) return EINVAL;
  if (out == NULL) return Fail(message, EINVAL, "out is NULL");
  void* id;
  struct Tensor* tensor = Open(found->behaviour, &id);
  if (tensor == NULL) return Fail(message, ENOMEM, "out of memory");
  tensor->legacy =
      (DLManagedTensor){.manager_ctx = id, .deleter = id == NULL ? NULL : DeleteLegacy};
  Fill(found->behaviour, tensor, &tensor->legacy.dl_tensor);
  *out = &tensor->legacy;
  return 0;
}
