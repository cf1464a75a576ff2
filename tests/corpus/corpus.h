/* The corpus: cases that are data (public.json, data.json), built in memory as structs of the C
 * interfaces, and a record of their releases.
 *
 * Errors: a function that takes a message returns 0 or an errno value. On an error, `message`, if
 * it is not NULL, contains one line with the reason: EINVAL for an unknown case or a NULL argument,
 * ENOMEM, EBADMSG if the code under test made a mistake.
 *
 * Threads: functions and callbacks may be called from any thread. The record is one per process, so
 * play cases one after the other and end each with Finish.
 *
 * Ownership: returned strings are valid for the lifetime of the library.
 */
#ifndef FLETCHING_CORPUS_H
#define FLETCHING_CORPUS_H

#include <stdint.h>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/message.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_WIN32)
#define FLETCHING_CORPUS_EXPORT __declspec(dllexport)
#else
#define FLETCHING_CORPUS_EXPORT __attribute__((visibility("default")))
#endif

/* The content of a case, and the functions below that export it. */
enum {
  kFletchingCorpusSchema = 1,      /* ExportSchema */
  kFletchingCorpusArray = 2,       /* ExportSchema, ExportArray */
  kFletchingCorpusStream = 3,      /* ExportSchema, ExportStream */
  kFletchingCorpusTensor = 4,      /* ExportTensor */
  kFletchingCorpusLegacyTensor = 5 /* ExportLegacyTensor */
};

/* The correct answer of code that reads the schema or compares the array with it. Code that only
 * owns and moves structs may reject a fault that it sees, and otherwise passes them on unchanged.
 */
enum { kFletchingCorpusAccept = 1, kFletchingCorpusRefuse = 2 };

/* Indices are 0 to count - 1. Past the end these return NULL or 0. */
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusCount(void);
FLETCHING_CORPUS_EXPORT const char* FletchingCorpusName(int32_t index);
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusKind(int32_t index);
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusVerdict(int32_t index);
/* Another key of the case as text: "about", "origin", "rule", "erratum", "values" (JSON),
 * "level". NULL if the case does not have it. Code that reads the buffers and looks for the fault
 * rejects a case of level "data"; a library that does not look for it may do anything. */
FLETCHING_CORPUS_EXPORT const char* FletchingCorpusText(int32_t index, const char* key);
/* Why a library ("pyarrow", "arrow-go", ...) answers differently from the verdict, or NULL. */
FLETCHING_CORPUS_EXPORT const char* FletchingCorpusException(int32_t index, const char* library);
/* The number of batches that a consumer of the stream receives, and the errno value after the last
 * one; 0 if the stream ends. */
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusBatches(int32_t index);
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusError(int32_t index);

/* `out` is overwritten, and then belongs to the caller. Buffers are aligned to 64 bytes. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportSchema(const char* name, struct ArrowSchema* out,
                                                        struct FletchingMessage* message);
/* Exports a CPU array without an event. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportArray(const char* name,
                                                       struct ArrowDeviceArray* out,
                                                       struct FletchingMessage* message);
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportStream(const char* name,
                                                        struct ArrowArrayStream* out,
                                                        struct FletchingMessage* message);

/* Exports a writable CPU tensor, which its deleter frees. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportTensor(const char* name,
                                                        DLManagedTensorVersioned** out,
                                                        struct FletchingMessage* message);
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportLegacyTensor(const char* name,
                                                              DLManagedTensor** out,
                                                              struct FletchingMessage* message);

/* Compares the struct with the last export: equal strings and numbers, and the same buffer
 * addresses. A NULL name equals an empty one. Returns EBADMSG with the field that differs. Call it
 * before the struct is released. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusCompareSchema(const char* name,
                                                         const struct ArrowSchema* schema,
                                                         struct FletchingMessage* message);
FLETCHING_CORPUS_EXPORT int FletchingCorpusCompareArray(const char* name,
                                                        const struct ArrowDeviceArray* array,
                                                        struct FletchingMessage* message);

/* Ends the case and resets the record. Returns 0, or EBADMSG with the first fault if a struct was
 * not released, was released twice, or was called after its release. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusFinish(struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_CORPUS_H */
