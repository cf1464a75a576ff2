/* The functions of libfletching_corpus, a library that is opened at run time, each under the name
 * fletching_go_corpus_NAME. tests/corpus/corpus.h documents them. Structs and messages are untyped
 * pointers here, so that the module needs no header from outside. */
#ifndef FLETCHING_GO_CORPUS_LIBRARY_H
#define FLETCHING_GO_CORPUS_LIBRARY_H

#include <stdint.h>

/* X(result, name, parameters, arguments) */
#define FLETCHING_GO_CORPUS_FUNCTIONS(X)                                                   \
  X(int32_t, Count, (void), ())                                                            \
  X(const char*, Name, (int32_t index), (index))                                           \
  X(int32_t, Kind, (int32_t index), (index))                                               \
  X(int32_t, Verdict, (int32_t index), (index))                                            \
  X(const char*, Exception, (int32_t index, const char* library), (index, library))        \
  X(const char*, Text, (int32_t index, const char* key), (index, key))                     \
  X(int, ExportSchema, (const char* name, void* out, void* message), (name, out, message)) \
  X(int, ExportArray, (const char* name, void* out, void* message), (name, out, message))  \
  X(int, Finish, (void* message), (message))

#define FLETCHING_GO_CORPUS_DECLARE(result, name, parameters, arguments) \
  result FletchingCorpus##name parameters;                               \
  result fletching_go_corpus_##name parameters;
FLETCHING_GO_CORPUS_FUNCTIONS(FLETCHING_GO_CORPUS_DECLARE)

/* Returns NULL, or the reason why the library cannot be used, which is valid until the next
 * call. */
const char* fletching_go_corpus_open(const char* path);

#endif /* FLETCHING_GO_CORPUS_LIBRARY_H */
