/* The oracle: layouts and values that a C compiler derives from *upstream's* headers, at run time.
 *
 * libfletching_oracle is compiled against the abi.h of the pinned pyarrow wheel and never against
 * Fletching's headers. A binding under test queries its layouts, reads memory that it wrote, passes
 * it memory to verify, and calls callbacks in both directions. Every check returns 0 if both sides
 * agree and 1 otherwise; then `message` contains one line that names struct and field.
 *
 * Names: a struct is named as in C ("ArrowDeviceArray"). A path is a field, or a field of an
 * embedded struct: "device_id", "array.length". An element is the index in a fixed-size array field
 * ("reserved"), and 0 for every other field.
 *
 * Values: every value is passed as uint64_t: the bits of the field, argument or result in its
 * width, zero-extended (an int of -1 is 0xffffffff, a pointer is its address).
 *
 * Threads: the oracle keeps one call in flight in global state, so use it from one thread at a
 * time. Messages: one line, truncated to `capacity` bytes with its NUL. `message` may be NULL.
 * Ownership: the oracle owns the strings that it returns; they are valid for the library's
 * lifetime.
 */
#ifndef FLETCHING_TESTS_ORACLE_H
#define FLETCHING_TESTS_ORACLE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FLETCHING_ORACLE_EXPORT __declspec(dllexport)
#else
#define FLETCHING_ORACLE_EXPORT __attribute__((visibility("default")))
#endif

/* ---- Upstream's declarations. Unknown names return -1 or NULL. ---- */

FLETCHING_ORACLE_EXPORT int32_t FletchingOracleStructCount(void);
FLETCHING_ORACLE_EXPORT const char* FletchingOracleStructName(int32_t index);
FLETCHING_ORACLE_EXPORT int64_t FletchingOracleSize(const char* struct_name);
FLETCHING_ORACLE_EXPORT int64_t FletchingOracleAlign(const char* struct_name);
FLETCHING_ORACLE_EXPORT int32_t FletchingOracleFieldCount(const char* struct_name);
FLETCHING_ORACLE_EXPORT const char* FletchingOracleFieldName(const char* struct_name,
                                                             int32_t index);
FLETCHING_ORACLE_EXPORT int64_t FletchingOracleOffset(const char* struct_name, const char* path);
FLETCHING_ORACLE_EXPORT int64_t FletchingOracleFieldSize(const char* struct_name, const char* path);
/* Integer macros: the schema flags, the device types, and DLPack's DLPACK_* flags and versions. */
FLETCHING_ORACLE_EXPORT int32_t FletchingOracleConstantCount(void);
FLETCHING_ORACLE_EXPORT const char* FletchingOracleConstantName(int32_t index);

/* ---- Layout ---- */

FLETCHING_ORACLE_EXPORT int FletchingOracleCheckStruct(const char* struct_name, int64_t size,
                                                       int64_t align, char* message,
                                                       size_t capacity);
/* `names`: the direct fields of the struct, in order, joined by commas. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckFieldNames(const char* struct_name,
                                                           const char* names, char* message,
                                                           size_t capacity);
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckField(const char* struct_name, const char* path,
                                                      int64_t offset, int64_t size, char* message,
                                                      size_t capacity);
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckConstant(const char* name, int64_t value,
                                                         char* message, size_t capacity);
/* `names`: every integer macro that the binding declares, in any order, joined by commas. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckConstantNames(const char* names, char* message,
                                                              size_t capacity);

/* `values`: every enumerator of "DLDeviceType" or "DLDataTypeCode" in the binding, in any order:
 * "kDLCPU=1,kDLCUDA=2". The pinned header may be older than the binding: an enumerator that it
 * lacks passes if its value is greater than all values of the header. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckEnumerators(const char* enum_name,
                                                            const char* values, char* message,
                                                            size_t capacity);

/* ---- C writes, the language reads ---- */

/* The canary of one field: distinct per struct, path and element, with distinct nonzero bytes and
 * the top bit set. */
FLETCHING_ORACLE_EXPORT uint64_t FletchingOracleCanary(const char* struct_name, const char* path,
                                                       int32_t element);
/* Writes every field's canary through upstream's struct. `object` must have at least
 * FletchingOracleSize bytes. Returns 0, or ENOENT if upstream does not have the name. */
FLETCHING_ORACLE_EXPORT int FletchingOracleFill(const char* struct_name, void* object);
/* Checks that the binding read `seen` from that field of a filled object. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckRead(const char* struct_name, const char* path,
                                                     int32_t element, uint64_t seen, char* message,
                                                     size_t capacity);

/* ---- The language writes, C verifies ---- */

/* Compares all bytes except padding. Names the first wrong field, the byte, and the expected
 * value. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckWritten(const char* struct_name, const void* object,
                                                        char* message, size_t capacity);

/* ---- Calls ----
 * Each call is made once per variant. The oracle chooses the arguments and the result of a variant:
 * NULL and non-NULL pointers, int64_t of INT64_MIN and 2^33+1, codes of -1, results of 0, EINVAL,
 * -1. */

FLETCHING_ORACLE_EXPORT int32_t FletchingOracleVariantCount(void);
FLETCHING_ORACLE_EXPORT int32_t FletchingOracleCallbackCount(const char* struct_name);
FLETCHING_ORACLE_EXPORT const char* FletchingOracleCallbackName(const char* struct_name,
                                                                int32_t index);
/* -1 if upstream has no such callback. Argument 0 is the struct itself ("self"), except in
 * DLPackExchangeAPI, whose functions have no self argument. */
FLETCHING_ORACLE_EXPORT int32_t FletchingOracleArgumentCount(const char* struct_name,
                                                             const char* callback);

/* `names`: the callback fields of the struct, in any order, joined by commas. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckCallbackNames(const char* struct_name,
                                                              const char* names, char* message,
                                                              size_t capacity);
/* `signature`: the width of each argument, joined by commas, "->", and the width of the result. A
 * width is the number of bytes of an integer, "p" for a pointer, "v" for void: "p,4,p,p->v". */
FLETCHING_ORACLE_EXPORT int FletchingOracleCheckSignature(const char* struct_name,
                                                          const char* callback,
                                                          const char* signature, char* message,
                                                          size_t capacity);

/* C calls the language: calls the callback of `object` through upstream's declaration, with the
 * variant's arguments. The binding's callback must report each argument with SawArgument and return
 * ExpectedResult. Returns 0 if the callback was entered once and every argument and the result
 * arrived. */
FLETCHING_ORACLE_EXPORT int FletchingOracleCall(const char* struct_name, const char* callback,
                                                int32_t variant, void* object, char* message,
                                                size_t capacity);
FLETCHING_ORACLE_EXPORT void FletchingOracleSawArgument(const char* struct_name,
                                                        const char* callback, int32_t index,
                                                        uint64_t seen);
/* The result that the callback in flight must return: int bits, or the address of a string; 0 for
 * void. */
FLETCHING_ORACLE_EXPORT uint64_t FletchingOracleExpectedResult(void);

/* The language calls C: Install stores the oracle's functions in every callback field of `object`
 * and leaves the other fields unchanged. Per call: BeginCall; Argument for each argument, including
 * 0; the call; EndCall with the result (0 for void). EndCall returns 0 if the right function was
 * entered once with the right arguments, and the result arrived. */
FLETCHING_ORACLE_EXPORT int FletchingOracleInstall(const char* struct_name, void* object);
FLETCHING_ORACLE_EXPORT void FletchingOracleBeginCall(const char* struct_name, const char* callback,
                                                      int32_t variant, const void* object);
FLETCHING_ORACLE_EXPORT uint64_t FletchingOracleArgument(int32_t index);
FLETCHING_ORACLE_EXPORT int FletchingOracleEndCall(uint64_t result, char* message, size_t capacity);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_ORACLE_H */
