/* The corpus: cases as data (public.json, data.json), built in memory as structs of the C
 * interfaces, and an account of the releases.
 *
 * Errors: a function that takes a message returns 0 or an errno value, and then `message`, when it
 * is not NULL, holds one line that says why: EINVAL for an unknown case or a NULL argument, ENOMEM,
 * EBADMSG where the code under test did something wrong.
 *
 * Threads: any function and any callback from any thread. The account is one for the process, so
 * cases are played one after the other, each ended by Finish.
 *
 * Ownership: returned strings live as long as the library.
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

/* The right answer of code that reads the schema, or compares the array with it. Code that only
 * owns and moves structs may refuse a fault that it sees; else it passes them on unchanged. */
enum { kFletchingCorpusAccept = 1, kFletchingCorpusRefuse = 2 };

/* Every index from 0 to the count; past it NULL and 0. */
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusCount(void);
FLETCHING_CORPUS_EXPORT const char* FletchingCorpusName(int32_t index);
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusKind(int32_t index);
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusVerdict(int32_t index);
/* Another key of the case as text: "about", "origin", "rule", "erratum", "values" (JSON),
 * "level". NULL when the case does not have it. A case of level "data" is refused by code that
 * reads the buffers and looks for the fault; a library that does not look for it may do anything.
 */
FLETCHING_CORPUS_EXPORT const char* FletchingCorpusText(int32_t index, const char* key);
/* Why a library ("pyarrow", "arrow-go", ...) answers differently from the verdict; NULL when it
 * does not. */
FLETCHING_CORPUS_EXPORT const char* FletchingCorpusException(int32_t index, const char* library);
/* The number of batches that a consumer of the stream gets, and the errno behind them, 0 at the
 * end. */
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusBatches(int32_t index);
FLETCHING_CORPUS_EXPORT int32_t FletchingCorpusError(int32_t index);

/* `out` is overwritten and then the caller's. Buffers are aligned to 64 bytes. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportSchema(const char* name, struct ArrowSchema* out,
                                                        struct FletchingMessage* message);
/* On the CPU, without an event. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportArray(const char* name,
                                                       struct ArrowDeviceArray* out,
                                                       struct FletchingMessage* message);
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportStream(const char* name,
                                                        struct ArrowArrayStream* out,
                                                        struct FletchingMessage* message);

/* On the CPU, writable. The deleter frees it. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportTensor(const char* name,
                                                        DLManagedTensorVersioned** out,
                                                        struct FletchingMessage* message);
FLETCHING_CORPUS_EXPORT int FletchingCorpusExportLegacyTensor(const char* name,
                                                              DLManagedTensor** out,
                                                              struct FletchingMessage* message);

/* Compares the struct with the last export: equal texts and numbers, the same buffers at the same
 * addresses. A NULL name equals an empty one. EBADMSG with the field that differs. Only
 * before its release. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusCompareSchema(const char* name,
                                                         const struct ArrowSchema* schema,
                                                         struct FletchingMessage* message);
FLETCHING_CORPUS_EXPORT int FletchingCorpusCompareArray(const char* name,
                                                        const struct ArrowDeviceArray* array,
                                                        struct FletchingMessage* message);

/* Ends the case. EBADMSG, with the first fault, if a struct was not released, was released twice,
 * or was called after its end; else 0. The account begins anew. */
FLETCHING_CORPUS_EXPORT int FletchingCorpusFinish(struct FletchingMessage* message);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_CORPUS_H */
