/* Owned objects, mistakes, and running threads. Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_ACCOUNT_H
#define FLETCHING_TESTS_HOSTILE_ACCOUNT_H

#include "hostile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One case of one party. `behaviour` is the party's internal number for it. */
struct Case {
  const char* name;
  const char* description;
  int32_t outcome;
  int32_t code;
  int32_t behaviour;
};

struct Party {
  int32_t id;
  int32_t count;
  const struct Case* cases;
};

extern const struct Party kSchemaParty;
extern const struct Party kArrayParty;
extern const struct Party kStreamParty;
extern const struct Party kDeviceStreamParty;
extern const struct Party kProducerParty;
extern const struct Party kArrayConsumerParty;
extern const struct Party kStreamConsumerParty;
extern const struct Party kHandlerParty;
extern const struct Party kTensorParty;
extern const struct Party kVersionedTensorParty;

/* Ends the process with a message if the case file was not read: without cases every test would
 * pass. A run that plays no case needs no file. */
void RequireCases(void);

/* Returns NULL and a message if the party has no such case; otherwise empties the message. */
const struct Case* FindCase(const struct Party* party, const char* name,
                            struct FletchingMessage* message);

#if defined(__GNUC__)
#define FORMAT(string, first) __attribute__((format(printf, string, first)))
#else
#define FORMAT(string, first)
#endif

/* Returns `code`. Reduces the text to one line of ASCII. */
FORMAT(3, 4) int Fail(struct FletchingMessage* message, int code, const char* format, ...);

/* Records a mistake of the code under test. Finish reports the first text. */
FORMAT(1, 2) void Mistake(const char* format, ...);

/* Returns EINVAL if an async case is unfinished; only one can run. Empties the message. */
int BeginAsync(struct FletchingMessage* message);

/* --- Owned objects: an id is stored in private_data, is never an address and never reused --- */

/* The counter for an id. A task counts until it is extracted. */
enum { kCountsAsStruct, kCountsAsTask, kCountsAsNothing };

/* Takes ownership of `object`, which is destroyed when the id is closed. Returns NULL, and does not
 * take it, if there is no memory for the id. */
void* OpenId(int counts_as, void* object, void (*destroy)(void* object));
/* Returns the object. NULL and a mistake, with the callback's name, if the id is not open. */
void* FindId(void* id, const char* callback);
/* Destroys the object. Returns 0 and records a mistake if the id is not open; a NULL callback
 * suppresses the mistake. */
int CloseId(void* id, const char* callback);
/* Seconds that the peer waits for the code under test. */
int PatienceSeconds(void);
/* Sleeps until every task is extracted. Returns 0 on timeout. */
int WaitForTasks(void);

/* Changes the number of unreleased handlers. */
void CountHandlers(int64_t change);

/* --- Threads --- */

/* Runs `body` on a new thread, which Finish waits for. Returns EAGAIN if no thread can start. */
int StartThread(void (*body)(void* argument), void* argument);
/* Runs `body` on a new thread and waits. Never fails: without a thread it runs on this one. */
void RunOnFreshThread(void (*body)(void* argument), void* argument);
/* Runs `body` on `count` threads at once and waits. */
void RunOnThreads(int count, void (*body)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_HOSTILE_ACCOUNT_H */
