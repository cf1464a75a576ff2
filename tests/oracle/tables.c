#include "tables.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "upstream.h"

#define MEMBER(S, field) (((S*)0)->field)
#define COUNT_OF(table) ((int32_t)(sizeof(table) / sizeof((table)[0])))

/* ---- The types in the lists match upstream's ---- */

#define SAME_TYPE(lvalue, type) \
  _Static_assert(_Generic(lvalue, type: 1, default: 0), #lvalue " is not a " #type " upstream");

#define TYPE_INTEGER(S, field, type) SAME_TYPE(MEMBER(S, field), type)
#define TYPE_INTEGERS(S, field, type) SAME_TYPE(MEMBER(S, field)[0], type)
#define TYPE_POINTER(S, field, type) SAME_TYPE(MEMBER(S, field), type)
#define TYPE_STRUCT(S, field, type) SAME_TYPE(MEMBER(S, field), type)
#define TYPE_CALLBACK(S, field, result) SAME_TYPE(MEMBER(S, field), S##_##field*)
#define TYPE(S, kind, field, type) TYPE_##kind(S, field, type)
#define TYPES(S) FIELDS_##S(TYPE, S)

STRUCTS(TYPES)

/* ---- Canaries ---- */

/* No two bytes are equal: only the top byte has the top bit, and the others step through a prime
 * number of values without repetition. Serials up to 127 differ in every byte. */
uint64_t CanaryOf(int32_t serial, size_t size) {
  const uint32_t prime = 127;
  const uint32_t start = (uint32_t)serial % prime;
  const uint32_t step = 37 + (uint32_t)serial / prime;
  uint64_t canary = 0x81 + start;
  for (size_t i = size - 1; i-- > 0;) {
    canary = canary << 8 | (1 + (start + step * (uint32_t)i) % prime);
  }
  return canary;
}

static uint64_t NextCanary(int32_t* serial, size_t size) { return CanaryOf((*serial)++, size); }

#define FILL_INTEGER(S, field, type) object->field = (type)NextCanary(serial, sizeof(type));
#define FILL_INTEGERS(S, field, type)                                 \
  for (size_t i = 0; i < sizeof(object->field) / sizeof(type); ++i) { \
    object->field[i] = (type)NextCanary(serial, sizeof(type));        \
  }
#define FILL_POINTER(S, field, type) \
  object->field = (type)(uintptr_t)NextCanary(serial, sizeof(type));
#define FILL_STRUCT(S, field, type) Fill##type(&object->field, serial);
#define FILL_CALLBACK(S, field, result) \
  object->field = (S##_##field*)(uintptr_t)NextCanary(serial, sizeof(object->field));
#define FILL(S, kind, field, type) FILL_##kind(S, field, type)
#define DEFINE_FILL(S)                                 \
  static void Fill##S(void* memory, int32_t* serial) { \
    S* object = memory;                                \
    FIELDS_##S(FILL, S)                                \
  }

STRUCTS(DEFINE_FILL)

/* ---- Tables ---- */

#define ROW(S, field, embeds, element_size) \
  {#field, embeds, offsetof(S, field), sizeof(MEMBER(S, field)), element_size},
#define ROW_INTEGER(S, field, type) ROW(S, field, NULL, sizeof(type))
#define ROW_INTEGERS(S, field, type) ROW(S, field, NULL, sizeof(type))
#define ROW_POINTER(S, field, type) ROW(S, field, NULL, sizeof(type))
#define ROW_STRUCT(S, field, type) ROW(S, field, #type, sizeof(type))
#define ROW_CALLBACK(S, field, result) ROW(S, field, NULL, sizeof(MEMBER(S, field)))
#define FIELD_ROW(S, kind, field, type) ROW_##kind(S, field, type)
#define DEFINE_FIELDS(S) static const Field kFieldsOf##S[] = {FIELDS_##S(FIELD_ROW, S)};
#define STRUCT_ROW(S) {#S, sizeof(S), _Alignof(S), kFieldsOf##S, COUNT_OF(kFieldsOf##S), Fill##S},
#define CONSTANT_ROW(name) {#name, (int64_t)(name)},
#define DLDeviceType_ROW(name) {"DLDeviceType", #name, (int64_t)(name)},
#define DLDataTypeCode_ROW(name) {"DLDataTypeCode", #name, (int64_t)(name)},
#define ENUMERATOR_ROWS(E) ENUMERATORS_##E(E##_ROW)

STRUCTS(DEFINE_FIELDS)
const Struct kStructs[] = {STRUCTS(STRUCT_ROW)};
const int32_t kStructCount = COUNT_OF(kStructs);
const Constant kConstants[] = {CONSTANTS(CONSTANT_ROW)};
const int32_t kConstantCount = COUNT_OF(kConstants);
const Enumerator kEnumerators[] = {ENUMS(ENUMERATOR_ROWS)};
const int32_t kEnumeratorCount = COUNT_OF(kEnumerators);

/* ---- Look-ups ---- */

const Struct* FindStruct(const char* name) {
  for (int32_t i = 0; name != NULL && i < kStructCount; ++i) {
    if (strcmp(kStructs[i].name, name) == 0) return &kStructs[i];
  }
  return NULL;
}

const Field* FindField(const Struct* owner, Name name) {
  for (int32_t i = 0; i < owner->field_count; ++i) {
    if (NameIs(name, owner->fields[i].name)) return &owner->fields[i];
  }
  return NULL;
}

const Constant* FindConstant(const char* name) {
  for (int32_t i = 0; name != NULL && i < kConstantCount; ++i) {
    if (strcmp(kConstants[i].name, name) == 0) return &kConstants[i];
  }
  return NULL;
}

int FindPath(const Struct* owner, const char* path, size_t* offset, size_t* size) {
  *offset = 0;
  while (owner != NULL && path != NULL) {
    const Name name = {path, (int)strcspn(path, ".")};
    const Field* field = FindField(owner, name);
    if (field == NULL) return 0;
    *offset += field->offset;
    *size = field->size;
    if (path[name.length] == '\0') return 1;
    owner = FindStruct(field->embeds);
    path += name.length + 1;
  }
  return 0;
}

/* ---- Leaves ---- */

enum { kMaxLeaves = 512 };
static Leaf g_leaves[kMaxLeaves];
static int32_t g_leaf_count = 0;

static void AddLeaf(const Struct* owner, const char* prefix, const Field* field, int32_t element,
                    size_t base) {
  if (g_leaf_count == kMaxLeaves) {
    fprintf(stderr, "oracle: more than %d fields, raise kMaxLeaves in tables.c\n", kMaxLeaves);
    abort();
  }
  Leaf* leaf = &g_leaves[g_leaf_count++];
  leaf->owner = owner;
  snprintf(leaf->path, sizeof(leaf->path), "%s%s", prefix, field->name);
  leaf->element = element;
  leaf->element_count = (int32_t)(field->size / field->element_size);
  leaf->offset = base + field->offset + (size_t)element * field->element_size;
  leaf->size = field->element_size;
}

/* Walks the fields in the order of the fill functions, so that both assign the same serials. */
static void AddLeaves(const Struct* owner, const Struct* part, const char* prefix, size_t base) {
  for (int32_t i = 0; i < part->field_count; ++i) {
    const Field* field = &part->fields[i];
    if (field->embeds != NULL) {
      char inner[64];
      snprintf(inner, sizeof(inner), "%s%s.", prefix, field->name);
      AddLeaves(owner, FindStruct(field->embeds), inner, base + field->offset);
      continue;
    }
    const int32_t elements = (int32_t)(field->size / field->element_size);
    for (int32_t element = 0; element < elements; ++element) {
      AddLeaf(owner, prefix, field, element, base);
    }
  }
}

const Leaf* Leaves(int32_t* count) {
  if (g_leaf_count == 0) {
    for (int32_t i = 0; i < kStructCount; ++i) AddLeaves(&kStructs[i], &kStructs[i], "", 0);
  }
  *count = g_leaf_count;
  return g_leaves;
}

/* ---- Upstream's declarations ---- */

int32_t FletchingOracleStructCount(void) { return kStructCount; }

const char* FletchingOracleStructName(int32_t index) {
  return index >= 0 && index < kStructCount ? kStructs[index].name : NULL;
}

int64_t FletchingOracleSize(const char* struct_name) {
  const Struct* found = FindStruct(struct_name);
  return found != NULL ? (int64_t)found->size : -1;
}

int64_t FletchingOracleAlign(const char* struct_name) {
  const Struct* found = FindStruct(struct_name);
  return found != NULL ? (int64_t)found->align : -1;
}

int32_t FletchingOracleFieldCount(const char* struct_name) {
  const Struct* found = FindStruct(struct_name);
  return found != NULL ? found->field_count : -1;
}

const char* FletchingOracleFieldName(const char* struct_name, int32_t index) {
  const Struct* found = FindStruct(struct_name);
  if (found == NULL || index < 0 || index >= found->field_count) return NULL;
  return found->fields[index].name;
}

int64_t FletchingOracleOffset(const char* struct_name, const char* path) {
  size_t offset;
  size_t size;
  return FindPath(FindStruct(struct_name), path, &offset, &size) ? (int64_t)offset : -1;
}

int64_t FletchingOracleFieldSize(const char* struct_name, const char* path) {
  size_t offset;
  size_t size;
  return FindPath(FindStruct(struct_name), path, &offset, &size) ? (int64_t)size : -1;
}

int32_t FletchingOracleConstantCount(void) { return kConstantCount; }

const char* FletchingOracleConstantName(int32_t index) {
  return index >= 0 && index < kConstantCount ? kConstants[index].name : NULL;
}
