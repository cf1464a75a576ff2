/* The functions of libfletching_oracle that the tests use, from a library that is opened at run
 * time, each under the name fletching_go_oracle_NAME. */
#ifndef FLETCHING_GO_ORACLE_LIBRARY_H
#define FLETCHING_GO_ORACLE_LIBRARY_H

#include "oracle.h"

/* X(result, name, parameters, arguments) */
#define FLETCHING_GO_ORACLE_FUNCTIONS(X)                                                          \
  X(int32_t, StructCount, (void), ())                                                             \
  X(const char*, StructName, (int32_t index), (index))                                            \
  X(int64_t, Size, (const char* owner), (owner))                                                  \
  X(int64_t, Align, (const char* owner), (owner))                                                 \
  X(int, CheckStruct, (const char* owner, int64_t size, int64_t align, char* text, size_t room),  \
    (owner, size, align, text, room))                                                             \
  X(int, CheckFieldNames, (const char* owner, const char* names, char* text, size_t room),        \
    (owner, names, text, room))                                                                   \
  X(int, CheckField,                                                                              \
    (const char* owner, const char* path, int64_t offset, int64_t size, char* text, size_t room), \
    (owner, path, offset, size, text, room))                                                      \
  X(int, CheckConstant, (const char* name, int64_t value, char* text, size_t room),               \
    (name, value, text, room))                                                                    \
  X(int, CheckConstantNames, (const char* names, char* text, size_t room), (names, text, room))   \
  X(int, CheckEnumerators, (const char* owner, const char* values, char* text, size_t room),      \
    (owner, values, text, room))                                                                  \
  X(uint64_t, Canary, (const char* owner, const char* path, int32_t element),                     \
    (owner, path, element))                                                                       \
  X(int, Fill, (const char* owner, void* object), (owner, object))                                \
  X(int, CheckRead,                                                                               \
    (const char* owner, const char* path, int32_t element, uint64_t seen, char* text,             \
     size_t room),                                                                                \
    (owner, path, element, seen, text, room))                                                     \
  X(int, CheckWritten, (const char* owner, const void* object, char* text, size_t room),          \
    (owner, object, text, room))                                                                  \
  X(int32_t, VariantCount, (void), ())                                                            \
  X(int, CheckCallbackNames, (const char* owner, const char* names, char* text, size_t room),     \
    (owner, names, text, room))                                                                   \
  X(int, CheckSignature,                                                                          \
    (const char* owner, const char* callback, const char* signature, char* text, size_t room),    \
    (owner, callback, signature, text, room))                                                     \
  X(int, Call,                                                                                    \
    (const char* owner, const char* callback, int32_t variant, void* object, char* text,          \
     size_t room),                                                                                \
    (owner, callback, variant, object, text, room))                                               \
  X(void, SawArgument, (const char* owner, const char* callback, int32_t index, uint64_t seen),   \
    (owner, callback, index, seen))                                                               \
  X(uint64_t, ExpectedResult, (void), ())                                                         \
  X(int, Install, (const char* owner, void* object), (owner, object))                             \
  X(void, BeginCall,                                                                              \
    (const char* owner, const char* callback, int32_t variant, const void* object),               \
    (owner, callback, variant, object))                                                           \
  X(uint64_t, Argument, (int32_t index), (index))                                                 \
  X(int, EndCall, (uint64_t result, char* text, size_t room), (result, text, room))

#define FLETCHING_GO_ORACLE_DECLARE(result, name, parameters, arguments) \
  result fletching_go_oracle_##name parameters;
FLETCHING_GO_ORACLE_FUNCTIONS(FLETCHING_GO_ORACLE_DECLARE)

/* Returns NULL, or the reason why the library cannot be used, which is valid until the next
 * call. */
const char* fletching_go_oracle_open(const char* path);

#endif /* FLETCHING_GO_ORACLE_LIBRARY_H */
