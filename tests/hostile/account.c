#include "account.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "handler.h"
#include "tensor.h"

enum {
  kPatienceSeconds = 60, /* unless FLETCHING_HOSTILE_SECONDS says another number */
  kReleaseSeconds = 2,   /* for a thread of the code under test that is about to release */
  kStepsPerSecond = 100, /* of a wait during which the machine may pause */
  kMaxThreads = 8
};

struct Owned {
  uintptr_t id;
  int counts_as;
  uintptr_t period; /* how many cases were finished when it was exported */
  void* object;
  void (*destroy)(void* object);
  struct Owned* next;
};

struct Body {
  void (*run)(void* argument);
  void* argument;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
/* Everything below is guarded by `lock`. */
static struct Owned* owned;
static uintptr_t last_id = 1;
static uintptr_t period;
static int64_t running_threads;
static struct FletchingHostileCounters counters;
static char first_mistake[sizeof(((struct FletchingMessage*)0)->text)];

/* --- Messages --- */

static void MakeOneLine(char* text) {
  for (char* c = text; *c != '\0'; ++c) {
    if (*c < ' ' || *c > '~') *c = '?';
  }
}

int Fail(struct FletchingMessage* message, int code, const char* format, ...) {
  if (message == NULL) return code;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(message->text, sizeof message->text, format, arguments);
  va_end(arguments);
  MakeOneLine(message->text);
  return code;
}

void Mistake(const char* format, ...) {
  pthread_mutex_lock(&lock);
  if (counters.mistakes++ == 0) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(first_mistake, sizeof first_mistake, format, arguments);
    va_end(arguments);
    MakeOneLine(first_mistake);
  }
  pthread_mutex_unlock(&lock);
}

/* --- The catalogue --- */

static const struct Party* const kParties[] = {
    &kSchemaParty,   &kArrayParty,          &kStreamParty,         &kDeviceStreamParty,
    &kProducerParty, &kArrayConsumerParty,  &kStreamConsumerParty, &kHandlerParty,
    &kTensorParty,   &kVersionedTensorParty};
enum { kPartyCount = sizeof kParties / sizeof kParties[0] };

/* The case at the index, and its party in *party. NULL past the end. */
static const struct Case* CaseAt(int32_t index, const struct Party** party) {
  if (index < 0) return NULL;
  for (int i = 0; i < kPartyCount; ++i) {
    *party = kParties[i];
    if (index < kParties[i]->count) return &kParties[i]->cases[index];
    index -= kParties[i]->count;
  }
  return NULL;
}

int32_t FletchingHostileCaseCount(void) {
  RequireCases();
  int32_t count = 0;
  for (int i = 0; i < kPartyCount; ++i) count += kParties[i]->count;
  return count;
}

const char* FletchingHostileCaseName(int32_t index) {
  const struct Party* party;
  const struct Case* found = CaseAt(index, &party);
  return found == NULL ? NULL : found->name;
}

const char* FletchingHostileCaseDescription(int32_t index) {
  const struct Party* party;
  const struct Case* found = CaseAt(index, &party);
  return found == NULL ? NULL : found->description;
}

int32_t FletchingHostileCaseParty(int32_t index) {
  const struct Party* party;
  return CaseAt(index, &party) == NULL ? 0 : party->id;
}

int32_t FletchingHostileCaseOutcome(int32_t index) {
  const struct Party* party;
  const struct Case* found = CaseAt(index, &party);
  return found == NULL ? 0 : found->outcome;
}

int32_t FletchingHostileCaseCode(int32_t index) {
  const struct Party* party;
  const struct Case* found = CaseAt(index, &party);
  return found == NULL ? 0 : found->code;
}

const struct Case* FindCase(const struct Party* party, const char* name,
                            struct FletchingMessage* message) {
  for (int32_t i = 0; name != NULL && i < party->count; ++i) {
    if (strcmp(party->cases[i].name, name) != 0) continue;
    Fail(message, 0, "%s", "");
    return &party->cases[i];
  }
  Fail(message, EINVAL, "no such case for this function: %s", name == NULL ? "(NULL)" : name);
  return NULL;
}

/* --- Owned objects --- */

/* The caller holds the lock. `change` is 1 for a new object and -1 for a destroyed one. */
static void Count(int counts_as, int change) {
  if (counts_as == kCountsAsStruct) {
    *(change > 0 ? &counters.exported : &counters.released) += 1;
    counters.live_structs += change;
  } else if (counts_as == kCountsAsTask) {
    *(change > 0 ? &counters.tasks_delivered : &counters.tasks_extracted) += 1;
    counters.live_tasks += change;
  }
  pthread_cond_broadcast(&changed);
}

void* OpenId(int counts_as, void* object, void (*destroy)(void* object)) {
  struct Owned* entry = malloc(sizeof *entry);
  if (entry == NULL) return NULL;
  pthread_mutex_lock(&lock);
  last_id += 2; /* odd, so that it cannot be mistaken for an address */
  *entry = (struct Owned){last_id, counts_as, period, object, destroy, owned};
  owned = entry;
  Count(counts_as, 1);
  pthread_mutex_unlock(&lock);
  return (void*)entry->id;
}

static struct Owned** FindEntry(void* id) {
  struct Owned** entry = &owned;
  while (*entry != NULL && (*entry)->id != (uintptr_t)id) entry = &(*entry)->next;
  return entry;
}

void* FindId(void* id, const char* callback) {
  pthread_mutex_lock(&lock);
  const struct Owned* entry = *FindEntry(id);
  void* object = entry == NULL ? NULL : entry->object;
  pthread_mutex_unlock(&lock);
  if (object == NULL) Mistake("%s was called on what is released", callback);
  return object;
}

int CloseId(void* id, const char* callback) {
  pthread_mutex_lock(&lock);
  struct Owned** place = FindEntry(id);
  struct Owned* entry = *place;
  if (entry != NULL) {
    *place = entry->next;
    /* Leaks of an earlier case were reported then. */
    if (entry->period == period) Count(entry->counts_as, -1);
  }
  pthread_mutex_unlock(&lock);
  if (entry == NULL) {
    if (callback != NULL) Mistake("%s was called on what is released", callback);
    return 0;
  }
  entry->destroy(entry->object);
  free(entry);
  return 1;
}

int PatienceSeconds(void) {
  const char* seconds = getenv("FLETCHING_HOSTILE_SECONDS");
  return seconds == NULL ? kPatienceSeconds : atoi(seconds);
}

static struct timespec After(int seconds) {
  struct timespec end;
  timespec_get(&end, TIME_UTC);
  end.tv_sec += seconds;
  return end;
}

/* The caller holds the lock. */
static void WaitForReleases(int seconds) {
  int steps = seconds * kStepsPerSecond;
  while ((counters.live_structs != 0 || counters.live_tasks != 0) && steps > 0) {
    struct timespec end = After(0);
    end.tv_nsec += 1000000000 / kStepsPerSecond;
    end.tv_sec += end.tv_nsec / 1000000000;
    end.tv_nsec %= 1000000000;
    if (pthread_cond_timedwait(&changed, &lock, &end) != 0) --steps;
  }
}

int WaitForTasks(void) {
  const struct timespec end = After(PatienceSeconds());
  pthread_mutex_lock(&lock);
  while (counters.live_tasks != 0 && pthread_cond_timedwait(&changed, &lock, &end) == 0) {
  }
  const int none = counters.live_tasks == 0;
  pthread_mutex_unlock(&lock);
  return none;
}

void CountHandlers(int64_t change) {
  pthread_mutex_lock(&lock);
  counters.live_handlers += change;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
}

void FletchingHostileReadCounters(struct FletchingHostileCounters* out) {
  pthread_mutex_lock(&lock);
  *out = counters;
  pthread_mutex_unlock(&lock);
}

/* --- Threads --- */

static void* RunBody(void* argument) {
  struct Body body = *(struct Body*)argument;
  free(argument);
  body.run(body.argument);
  pthread_mutex_lock(&lock);
  --running_threads;
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&lock);
  return NULL;
}

static int CreateThread(pthread_t* thread, void (*run)(void* argument), void* argument) {
  struct Body* body = malloc(sizeof *body);
  if (body == NULL) return EAGAIN;
  *body = (struct Body){run, argument};
  pthread_mutex_lock(&lock);
  ++running_threads;
  pthread_mutex_unlock(&lock);
  if (pthread_create(thread, NULL, RunBody, body) == 0) return 0;
  free(body);
  pthread_mutex_lock(&lock);
  --running_threads;
  pthread_mutex_unlock(&lock);
  return EAGAIN;
}

int StartThread(void (*body)(void* argument), void* argument) {
  pthread_t thread;
  if (CreateThread(&thread, body, argument) != 0) return EAGAIN;
  pthread_detach(thread);
  return 0;
}

void RunOnThreads(int count, void (*body)(void* argument), void* argument) {
  pthread_t threads[kMaxThreads];
  int started = 0;
  while (started < count && started < kMaxThreads &&
         CreateThread(&threads[started], body, argument) == 0) {
    ++started;
  }
  if (started == 0) body(argument);
  for (int i = 0; i < started; ++i) pthread_join(threads[i], NULL);
}

void RunOnFreshThread(void (*body)(void* argument), void* argument) {
  RunOnThreads(1, body, argument);
}

/* --- A case from Begin to Finish --- */

int BeginAsync(struct FletchingMessage* message) {
  pthread_mutex_lock(&lock);
  const int busy = running_threads != 0 || counters.live_handlers != 0;
  pthread_mutex_unlock(&lock);
  if (busy) return Fail(message, EINVAL, "the last async case is still running: call Finish first");
  return Fail(message, 0, "%s", "");
}

/* The caller holds the lock. */
static int WhatIsWrong(struct FletchingMessage* message) {
  if (counters.mistakes != 0) {
    return Fail(message, EBADMSG, "%s (mistakes: %" PRId64 ")", first_mistake, counters.mistakes);
  }
  if (counters.live_handlers != 0) {
    return Fail(message, EBADMSG, "not released: %" PRId64 " handlers", counters.live_handlers);
  }
  if (running_threads != 0) {
    return Fail(message, EBADMSG, "still waiting: %" PRId64 " threads", running_threads);
  }
  if (counters.live_tasks != 0) {
    return Fail(message, EBADMSG, "not extracted: %" PRId64 " tasks", counters.live_tasks);
  }
  if (counters.live_structs != 0) {
    return Fail(message, EBADMSG, "not released: %" PRId64 " structs", counters.live_structs);
  }
  return Fail(message, 0, "%s", "");
}

int FletchingHostileFinish(struct FletchingMessage* message) {
  FinishHandlers();
  const struct timespec end = After(PatienceSeconds());
  pthread_mutex_lock(&lock);
  while ((running_threads != 0 || counters.live_handlers != 0) &&
         pthread_cond_timedwait(&changed, &lock, &end) == 0) {
  }
  const int patience = PatienceSeconds();
  WaitForReleases(patience < kReleaseSeconds ? patience : kReleaseSeconds);
  const int code = WhatIsWrong(message);
  FinishTensors();
  counters = (struct FletchingHostileCounters){0};
  ++period;
  pthread_mutex_unlock(&lock);
  return code;
}
