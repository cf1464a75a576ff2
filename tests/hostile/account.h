/* Owned objects, mistakes, and running threads. Internal to the hostile peer. */
#ifndef FLETCHING_TESTS_HOSTILE_ACCOUNT_H
#define FLETCHING_TESTS_HOSTILE_ACCOUNT_H

#include "hostile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One case of one party. `behaviour` is the party's own number for it. */
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

/* Ends the process with a message if the file of cases was not read: without them every test would
 * pass. A run that plays no case needs no file. */
void RequireCases(void);

/* NULL, and a message, for a name that the party does not have; else the message is emptied. */
const struct Case* FindCase(const struct Party* party, const char* name,
                            struct FletchingMessage* message);

#if defined(__GNUC__)
#define FORMAT(string, first) __attribute__((format(printf, string, first)))
#else
#define FORMAT(string, first)
#endif

/* Returns `code`. The text becomes one line of ASCII. */
FORMAT(3, 4) int Fail(struct FletchingMessage* message, int code, const char* format, ...);

/* The code under test did what it must not. The first text is kept for Finish. */
FORMAT(1, 2) void Mistake(const char* format, ...);

/* EINVAL when an async case was not finished: there is one at a time. Empties the message. */
int BeginAsync(struct FletchingMessage* message);

/* --- Owned objects: an id is stored in private_data, is never an address and never used twice ---
 */

/* What an id counts as. A task is one until it is extracted. */
enum { kCountsAsStruct, kCountsAsTask, kCountsAsNothing };

/* Takes `object`, which is destroyed when the id is closed; NULL without memory for the
 * id, and then it is not taken. */
void* OpenId(int counts_as, void* object, void (*destroy)(void* object));
/* The object; NULL and a mistake, named after the callback, when it was closed or never opened. */
void* FindId(void* id, const char* callback);
/* Destroys the object; 0 and a mistake when there is none. With a NULL callback it is not a
 * mistake.
 */
int CloseId(void* id, const char* callback);
/* How long the peer waits for the code under test. */
int PatienceSeconds(void);
/* Sleeps until every task is extracted; 0 when that took too long. */
int WaitForTasks(void);

/* Handlers that are not released. */
void CountHandlers(int64_t change);

/* --- Threads --- */

/* Runs `body` on a thread of its own, which Finish waits for. EAGAIN when there is none. */
int StartThread(void (*body)(void* argument), void* argument);
/* The same, and waits for its end. Never fails: without a thread it runs here. */
void RunOnFreshThread(void (*body)(void* argument), void* argument);
/* The same on `count` threads at once. */
void RunOnThreads(int count, void (*body)(void* argument), void* argument);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_TESTS_HOSTILE_ACCOUNT_H */
