/* Tables that the compiler derives from the lists in upstream.h. Internal to the oracle. */
#ifndef FLETCHING_TESTS_ORACLE_TABLES_H
#define FLETCHING_TESTS_ORACLE_TABLES_H

#include <stddef.h>
#include <stdint.h>

#include "message.h"

typedef struct {
  const char* name;
  const char* embeds; /* name of the embedded struct, or NULL */
  size_t offset;
  size_t size;
  size_t element_size; /* smaller than size in an array field */
} Field;

typedef struct {
  const char* name;
  size_t size;
  size_t align;
  const Field* fields;
  int32_t field_count;
  /* Writes canaries through upstream's struct. `serial` counts leaves: the struct's first one on
   * entry, the next struct's on return. */
  void (*fill)(void* object, int32_t* serial);
} Struct;

/* One value in memory: a field without an embedded struct, or one element of an array field. Its
 * index in the table of leaves is its serial, which determines its canary. */
typedef struct {
  const Struct* owner;
  char path[64]; /* "array.length" */
  int32_t element;
  int32_t element_count;
  size_t offset;
  size_t size;
} Leaf;

typedef struct {
  const char* name;
  int64_t value;
} Constant;

typedef struct {
  const char* owner; /* the enum */
  const char* name;
  int64_t value;
} Enumerator;

extern const Struct kStructs[];
extern const int32_t kStructCount;
extern const Constant kConstants[];
extern const int32_t kConstantCount;
extern const Enumerator kEnumerators[];
extern const int32_t kEnumeratorCount;

/* NULL if not found, or for a NULL name. */
const Struct* FindStruct(const char* name);
const Field* FindField(const Struct* owner, Name name);
const Constant* FindConstant(const char* name);

/* Finds a path through embedded structs. Returns 0 if upstream has no such path. */
int FindPath(const Struct* owner, const char* path, size_t* offset, size_t* size);

/* All leaves of all structs, in declaration order. */
const Leaf* Leaves(int32_t* count);

uint64_t CanaryOf(int32_t serial, size_t size);

#endif /* FLETCHING_TESTS_ORACLE_TABLES_H */
