/* Checks of layout, names and constants, and of memory in both directions. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "message.h"
#include "oracle.h"
#include "tables.h"

static int NoStruct(const char* struct_name, char* message, size_t capacity) {
  return Fail(message, capacity, "%s: upstream has no such struct", Printable(struct_name));
}

static int NoField(const char* struct_name, const char* path, char* message, size_t capacity) {
  return Fail(message, capacity, "%s.%s: upstream has no such field", Printable(struct_name),
              Printable(path));
}

/* ---- Layout ---- */

int FletchingOracleCheckStruct(const char* struct_name, int64_t size, int64_t align, char* message,
                               size_t capacity) {
  const Struct* found = FindStruct(struct_name);
  if (found == NULL) return NoStruct(struct_name, message, capacity);
  if (size != (int64_t)found->size) {
    return Fail(message, capacity, "%s: size %zu upstream, %" PRId64 " in the binding", found->name,
                found->size, size);
  }
  if (align != (int64_t)found->align) {
    return Fail(message, capacity, "%s: alignment %zu upstream, %" PRId64 " in the binding",
                found->name, found->align, align);
  }
  return 0;
}

static int CheckFieldOrder(const Struct* owner, const char* names, char* message, size_t capacity) {
  Name name;
  for (int32_t i = 0; NextName(&names, &name); ++i) {
    if (FindField(owner, name) != &owner->fields[i]) {
      return Fail(message, capacity, "%s.%s: wrong order: expected it as field %d, got %.*s",
                  owner->name, owner->fields[i].name, i, name.length, name.text);
    }
  }
  return 0;
}

int FletchingOracleCheckFieldNames(const char* struct_name, const char* names, char* message,
                                   size_t capacity) {
  const Struct* owner = FindStruct(struct_name);
  if (owner == NULL) return NoStruct(struct_name, message, capacity);
  const char* rest = names;
  Name name;
  while (NextName(&rest, &name)) {
    if (FindField(owner, name) == NULL) {
      return Fail(message, capacity, "%s.%.*s: upstream has no such field", owner->name,
                  name.length, name.text);
    }
  }
  for (int32_t i = 0; i < owner->field_count; ++i) {
    const int32_t count = CountName(names, owner->fields[i].name);
    if (count != 1) {
      return Fail(message, capacity, "%s.%s: %s", owner->name, owner->fields[i].name,
                  count == 0 ? "the binding has no such field" : "twice in the binding");
    }
  }
  return CheckFieldOrder(owner, names, message, capacity);
}

int FletchingOracleCheckField(const char* struct_name, const char* path, int64_t offset,
                              int64_t size, char* message, size_t capacity) {
  const Struct* owner = FindStruct(struct_name);
  if (owner == NULL) return NoStruct(struct_name, message, capacity);
  size_t true_offset;
  size_t true_size;
  if (!FindPath(owner, path, &true_offset, &true_size)) {
    return NoField(struct_name, path, message, capacity);
  }
  if (offset != (int64_t)true_offset) {
    return Fail(message, capacity, "%s.%s: offset %zu upstream, %" PRId64 " in the binding",
                struct_name, path, true_offset, offset);
  }
  if (size != (int64_t)true_size) {
    return Fail(message, capacity, "%s.%s: size %zu upstream, %" PRId64 " in the binding",
                struct_name, path, true_size, size);
  }
  return 0;
}

/* ---- Constants ---- */

int FletchingOracleCheckConstant(const char* name, int64_t value, char* message, size_t capacity) {
  const Constant* found = FindConstant(name);
  if (found == NULL) {
    return Fail(message, capacity, "%s: upstream has no such constant", Printable(name));
  }
  if (value != found->value) {
    return Fail(message, capacity, "%s: %" PRId64 " upstream, %" PRId64 " in the binding", name,
                found->value, value);
  }
  return 0;
}

static int IsConstant(Name name) {
  for (int32_t i = 0; i < kConstantCount; ++i) {
    if (NameIs(name, kConstants[i].name)) return 1;
  }
  return 0;
}

int FletchingOracleCheckConstantNames(const char* names, char* message, size_t capacity) {
  const char* rest = names;
  Name name;
  while (NextName(&rest, &name)) {
    if (!IsConstant(name)) {
      return Fail(message, capacity, "%.*s: upstream has no such constant", name.length, name.text);
    }
  }
  for (int32_t i = 0; i < kConstantCount; ++i) {
    const int32_t count = CountName(names, kConstants[i].name);
    if (count != 1) {
      return Fail(message, capacity, "%s: %s", kConstants[i].name,
                  count == 0 ? "the binding has no such constant" : "twice in the binding");
    }
  }
  return 0;
}

/* ---- Enumerators ---- */

/* "kDLCPU=1" */
typedef struct {
  Name name;
  int64_t value;
} Valued;

static int SplitValue(Name entry, Valued* split) {
  const char* equals = memchr(entry.text, '=', (size_t)entry.length);
  if (equals == NULL) return 0;
  char digits[24] = "";
  const int length = entry.length - (int)(equals + 1 - entry.text);
  if (length <= 0 || length >= (int)sizeof(digits)) return 0;
  memcpy(digits, equals + 1, (size_t)length);
  char* end;
  split->value = strtoll(digits, &end, 10);
  split->name = entry;
  split->name.length = (int)(equals - entry.text);
  return *end == '\0';
}

static const Enumerator* FindEnumerator(const char* owner, Name name) {
  for (int32_t i = 0; i < kEnumeratorCount; ++i) {
    const Enumerator* candidate = &kEnumerators[i];
    if (strcmp(candidate->owner, owner) == 0 && NameIs(name, candidate->name)) return candidate;
  }
  return NULL;
}

/* The greatest value of the enum; -1 for an unknown enum. */
static int64_t GreatestValue(const char* owner) {
  int64_t greatest = -1;
  for (int32_t i = 0; owner != NULL && i < kEnumeratorCount; ++i) {
    if (strcmp(kEnumerators[i].owner, owner) == 0 && kEnumerators[i].value > greatest) {
      greatest = kEnumerators[i].value;
    }
  }
  return greatest;
}

static int CheckEnumerator(const char* owner, Name entry, int32_t* found, char* message,
                           size_t capacity) {
  Valued split;
  if (!SplitValue(entry, &split)) {
    return Fail(message, capacity, "%s: \"%.*s\" is not name=value", owner, entry.length,
                entry.text);
  }
  const Enumerator* known = FindEnumerator(owner, split.name);
  if (known == NULL) {
    if (split.value > GreatestValue(owner)) return 0;
    return Fail(message, capacity, "%s.%.*s: upstream has no such enumerator", owner,
                split.name.length, split.name.text);
  }
  if (known->value != split.value) {
    return Fail(message, capacity, "%s.%s: %" PRId64 " upstream, %" PRId64 " in the binding", owner,
                known->name, known->value, split.value);
  }
  ++found[known - kEnumerators];
  return 0;
}

int FletchingOracleCheckEnumerators(const char* enum_name, const char* values, char* message,
                                    size_t capacity) {
  if (GreatestValue(enum_name) < 0) {
    return Fail(message, capacity, "%s: upstream has no such enum", Printable(enum_name));
  }
  int32_t* found = calloc((size_t)kEnumeratorCount, sizeof(*found));
  if (found == NULL) return Fail(message, capacity, "%s: out of memory", enum_name);
  int result = 0;
  Name entry;
  while (result == 0 && NextName(&values, &entry)) {
    result = CheckEnumerator(enum_name, entry, found, message, capacity);
  }
  for (int32_t i = 0; i < kEnumeratorCount && result == 0; ++i) {
    if (strcmp(kEnumerators[i].owner, enum_name) != 0 || found[i] == 1) continue;
    result = Fail(message, capacity, "%s.%s: %s", enum_name, kEnumerators[i].name,
                  found[i] == 0 ? "the binding has no such enumerator" : "twice in the binding");
  }
  free(found);
  return result;
}

/* ---- Leaves and their names ---- */

/* "reserved[1]" or "device_id", with the struct as a prefix if it is not `home`. */
static void NameLeaf(const Leaf* leaf, const Struct* home, char* text, size_t capacity) {
  char index[16] = "";
  if (leaf->element_count > 1) snprintf(index, sizeof(index), "[%d]", leaf->element);
  snprintf(text, capacity, "%s%s%s%s", leaf->owner == home ? "" : leaf->owner->name,
           leaf->owner == home ? "" : ".", leaf->path, index);
}

/* The serial of a leaf; -1 if unknown. */
static int32_t FindLeaf(const Struct* owner, const char* path, int32_t element) {
  int32_t count;
  const Leaf* leaves = Leaves(&count);
  for (int32_t i = 0; path != NULL && i < count; ++i) {
    if (leaves[i].owner == owner && leaves[i].element == element &&
        strcmp(leaves[i].path, path) == 0) {
      return i;
    }
  }
  return -1;
}

/* Writes " (looks like device_id)" if `seen` is the canary of another leaf, else "". */
static void NameLookalike(uint64_t seen, const Leaf* expected, char* text, size_t capacity) {
  int32_t count;
  const Leaf* leaves = Leaves(&count);
  text[0] = '\0';
  for (int32_t i = 0; i < count; ++i) {
    if (&leaves[i] == expected || leaves[i].size != expected->size ||
        CanaryOf(i, leaves[i].size) != seen) {
      continue;
    }
    char name[128];
    NameLeaf(&leaves[i], expected->owner, name, sizeof(name));
    snprintf(text, capacity, " (looks like %s)", name);
    return;
  }
}

uint64_t FletchingOracleCanary(const char* struct_name, const char* path, int32_t element) {
  const int32_t serial = FindLeaf(FindStruct(struct_name), path, element);
  if (serial < 0) return 0;
  int32_t count;
  return CanaryOf(serial, Leaves(&count)[serial].size);
}

/* ---- C writes, the binding reads ---- */

static void FillStruct(const Struct* owner, void* object) {
  int32_t count;
  const Leaf* leaves = Leaves(&count);
  int32_t serial = 0;
  while (leaves[serial].owner != owner) ++serial;
  owner->fill(object, &serial);
}

int FletchingOracleFill(const char* struct_name, void* object) {
  const Struct* owner = FindStruct(struct_name);
  if (owner == NULL) return ENOENT;
  if (object == NULL) return EINVAL;
  FillStruct(owner, object);
  return 0;
}

int FletchingOracleCheckRead(const char* struct_name, const char* path, int32_t element,
                             uint64_t seen, char* message, size_t capacity) {
  const Struct* owner = FindStruct(struct_name);
  if (owner == NULL) return NoStruct(struct_name, message, capacity);
  const int32_t serial = FindLeaf(owner, path, element);
  if (serial < 0) {
    return Fail(message, capacity, "%s.%s: upstream has no such value at element %d", owner->name,
                Printable(path), element);
  }
  int32_t count;
  const Leaf* leaf = &Leaves(&count)[serial];
  const uint64_t written = CanaryOf(serial, leaf->size);
  if (seen == written) return 0;
  char name[128];
  char lookalike[160];
  NameLeaf(leaf, owner, name, sizeof(name));
  NameLookalike(seen, leaf, lookalike, sizeof(lookalike));
  return Fail(message, capacity, "%s.%s: C wrote 0x%" PRIx64 ", the binding read 0x%" PRIx64 "%s",
              owner->name, name, written, seen, lookalike);
}

/* ---- The binding writes, C verifies ---- */

static uint64_t LoadBits(const unsigned char* bytes, size_t size) {
  uint8_t one;
  uint16_t two;
  uint32_t four;
  uint64_t eight;
  switch (size) {
    case 1:
      return memcpy(&one, bytes, size), one;
    case 2:
      return memcpy(&two, bytes, size), two;
    case 4:
      return memcpy(&four, bytes, size), four;
    default:
      return memcpy(&eight, bytes, sizeof(eight)), eight;
  }
}

static int WrongBytes(const Leaf* leaf, const unsigned char* seen, const unsigned char* expected,
                      char* message, size_t capacity) {
  size_t byte = leaf->offset;
  while (seen[byte] == expected[byte]) ++byte;
  const uint64_t seen_bits = LoadBits(seen + leaf->offset, leaf->size);
  const uint64_t expected_bits = LoadBits(expected + leaf->offset, leaf->size);
  char name[128];
  char lookalike[160];
  NameLeaf(leaf, leaf->owner, name, sizeof(name));
  NameLookalike(seen_bits, leaf, lookalike, sizeof(lookalike));
  return Fail(message, capacity,
              "%s.%s: byte %zu of the struct is 0x%02x, expected 0x%02x; the field holds 0x%" PRIx64
              ", expected 0x%" PRIx64 "%s",
              leaf->owner->name, name, byte, seen[byte], expected[byte], seen_bits, expected_bits,
              lookalike);
}

int FletchingOracleCheckWritten(const char* struct_name, const void* object, char* message,
                                size_t capacity) {
  const Struct* owner = FindStruct(struct_name);
  if (owner == NULL) return NoStruct(struct_name, message, capacity);
  if (object == NULL) return Fail(message, capacity, "%s: the object is NULL", owner->name);
  unsigned char* expected = malloc(owner->size);
  if (expected == NULL) return Fail(message, capacity, "%s: out of memory", owner->name);
  FillStruct(owner, expected);
  int32_t count;
  const Leaf* leaves = Leaves(&count);
  int result = 0;
  for (int32_t i = 0; i < count && result == 0; ++i) {
    const Leaf* leaf = &leaves[i];
    if (leaf->owner != owner) continue;
    const unsigned char* seen = object;
    if (memcmp(seen + leaf->offset, expected + leaf->offset, leaf->size) != 0) {
      result = WrongBytes(leaf, seen, expected, message, capacity);
    }
  }
  free(expected);
  return result;
}
