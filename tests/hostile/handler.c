/* Async consumers that misbehave and check the producer of the code under test. */
#include "handler.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#include "handler_cases.h"

enum { kStormThreads = 8, kStormCalls = 1000, kMaxKept = 256 };

struct Handler {
  struct ArrowAsyncDeviceStreamHandler base;
  const struct Case* played;
  int64_t batches;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Guarded by `lock`. */
  int calls;   /* running handler calls */
  int callers; /* threads inside calls of the producer */
  int schemas;
  int64_t demand;
  int64_t tasks;
  int64_t open; /* tasks whose extraction has not begun */
  int cancelled;
  int refused;
  int ended;
  int error; /* the code of on_error; 0 before */
  int released;
  int finishing;
  int kept_count;
  struct ArrowAsyncTask kept[kMaxKept];
  struct Handler* next_unreleased; /* used by the thread that opens handlers */
};

/* --- Checks of the producer --- */

static struct Handler* Enter(struct ArrowAsyncDeviceStreamHandler* self, const char* callback) {
  struct Handler* handler = self->private_data;
  pthread_mutex_lock(&handler->lock);
  const int overlaps = handler->calls++ != 0;
  const int late = handler->released;
  const int over = handler->refused || handler->error != 0;
  const int last = handler->ended;
  pthread_mutex_unlock(&handler->lock);
  const int is_release = strcmp(callback, "release") == 0;
  if (overlaps) Mistake("%s was called while another handler call was running", callback);
  if (late) Mistake("%s was called after release", callback);
  if (!late && over && !is_release) Mistake("%s was called after an error", callback);
  if (!late && last && !is_release) Mistake("%s was called after the end", callback);
  return handler;
}

static int Leave(struct Handler* handler, int code) {
  pthread_mutex_lock(&handler->lock);
  --handler->calls;
  if (code != 0) handler->refused = 1;
  pthread_mutex_unlock(&handler->lock);
  return code;
}

/* --- Calling the producer --- */

static void Request(struct Handler* handler, int64_t n) {
  struct ArrowAsyncProducer* producer = handler->base.producer;
  pthread_mutex_lock(&handler->lock);
  if (n > 0) handler->demand = n > INT64_MAX - handler->demand ? INT64_MAX : handler->demand + n;
  pthread_mutex_unlock(&handler->lock);
  producer->request(producer, n);
}

static void Cancel(struct Handler* handler) {
  struct ArrowAsyncProducer* producer = handler->base.producer;
  pthread_mutex_lock(&handler->lock);
  handler->cancelled = 1;
  pthread_mutex_unlock(&handler->lock);
  producer->cancel(producer);
}

static void Storm(void* argument) {
  struct Handler* handler = argument;
  const int cancels = handler->played->behaviour == kCancelStorm;
  for (int i = 0; i < kStormCalls; ++i) {
    if (cancels) {
      Cancel(handler);
    } else {
      Request(handler, 1);
    }
  }
  pthread_mutex_lock(&handler->lock);
  --handler->callers;
  pthread_cond_broadcast(&handler->changed);
  pthread_mutex_unlock(&handler->lock);
}

static void StartStorm(struct Handler* handler) {
  for (int i = 0; i < kStormThreads; ++i) {
    pthread_mutex_lock(&handler->lock);
    ++handler->callers;
    pthread_mutex_unlock(&handler->lock);
    if (StartThread(Storm, handler) != 0) Storm(handler);
  }
}

static void ExtractOnce(struct ArrowAsyncTask* task, int drops) {
  struct ArrowDeviceArray array;
  memset(&array, 0, sizeof array);
  const int code = task->extract_data(task, drops ? NULL : &array);
  if (code != 0) Mistake("extract_data has returned %d", code);
  if (drops || code != 0) return;
  if (array.array.release == NULL) {
    Mistake("extract_data: returned a released array");
  } else {
    array.array.release(&array.array);
  }
}

static void Extract(struct Handler* handler, struct ArrowAsyncTask* task) {
  const int32_t behaviour = handler->played->behaviour;
  pthread_mutex_lock(&handler->lock);
  --handler->open;
  pthread_mutex_unlock(&handler->lock);
  ExtractOnce(task, behaviour == kExtractNothing);
  if (behaviour != kExtractTwice) return;
  struct ArrowDeviceArray array;
  memset(&array, 0, sizeof array);
  if (task->extract_data == NULL) return; /* a producer may say so this way */
  if (task->extract_data(task, &array) == 0) Mistake("a task could be extracted twice");
}

struct Extraction {
  struct Handler* handler;
  struct ArrowAsyncTask task;
};

static void ExtractHere(void* argument) {
  struct Extraction* extraction = argument;
  Extract(extraction->handler, &extraction->task);
}

static void ExtractKept(void* argument) {
  struct Handler* handler = argument;
  for (;;) {
    pthread_mutex_lock(&handler->lock);
    const int has_one = handler->kept_count > 0;
    struct ArrowAsyncTask task = {NULL, NULL};
    if (has_one) task = handler->kept[--handler->kept_count];
    pthread_mutex_unlock(&handler->lock);
    if (!has_one) return;
    Extract(handler, &task);
    if (handler->played->behaviour == kExtractAllAtOnce) return;
  }
}

static void StartExtractions(struct Handler* handler) {
  pthread_mutex_lock(&handler->lock);
  const int count = handler->kept_count;
  pthread_mutex_unlock(&handler->lock);
  for (int i = 0; i < count; ++i) {
    if (StartThread(ExtractKept, handler) != 0) ExtractKept(handler);
  }
}

/* --- The callbacks --- */

static void TakeSchema(struct ArrowSchema* schema) {
  if (schema == NULL || schema->release == NULL) {
    Mistake("on_schema: schema is NULL or released: expected a schema");
    return;
  }
  struct ArrowSchema moved = *schema;
  schema->release = NULL;
  moved.release(&moved);
}

static int OnSchema(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowSchema* schema) {
  struct Handler* handler = Enter(self, "on_schema");
  pthread_mutex_lock(&handler->lock);
  const int is_second = handler->schemas++ > 0;
  const int finishing = handler->finishing;
  pthread_mutex_unlock(&handler->lock);
  if (is_second) Mistake("on_schema was called twice");
  const int32_t behaviour = handler->played->behaviour;
  if (behaviour == kSchemaRefused) return Leave(handler, EINVAL);
  if (behaviour == kSchemaRefusedNegative) return Leave(handler, -1);
  TakeSchema(schema);
  switch (behaviour) {
    case kSchemaRefusedTaken:
      return Leave(handler, ENOMEM);
    case kRequestZero:
    case kCallsInError:
    case kOnErrorNull:
      Request(handler, 0);
      break;
    case kRequestNegative:
      Request(handler, -1);
      break;
    case kRequestMin:
      Request(handler, INT64_MIN);
      break;
    case kRequestMany:
      Request(handler, INT64_MAX);
      Request(handler, INT64_MAX);
      break;
    case kExtractLate:
    case kExtractAllAtOnce:
    case kCancelInTask:
      Request(handler, INT64_MAX);
      break;
    case kRequestStorm:
      StartStorm(handler);
      break;
    case kCancelStorm:
      Request(handler, 1);
      StartStorm(handler);
      break;
    case kNeverAsks:
      if (finishing) Cancel(handler);
      break;
    case kCancelInSchema:
    case kCancelInRelease:
      Cancel(handler);
      break;
    case kRequestAfterCancel:
      Cancel(handler);
      Request(handler, 5);
      break;
    default:
      Request(handler, 1);
  }
  return Leave(handler, 0);
}

/* Returns 1 if the task is kept for later. */
static int Keep(struct Handler* handler, const struct ArrowAsyncTask* task) {
  const int32_t behaviour = handler->played->behaviour;
  if (behaviour != kExtractLate && behaviour != kExtractAllAtOnce) return 0;
  pthread_mutex_lock(&handler->lock);
  const int keeps = !handler->finishing && handler->kept_count < kMaxKept;
  if (keeps) handler->kept[handler->kept_count++] = *task;
  pthread_mutex_unlock(&handler->lock);
  return keeps;
}

static int OnTask(struct Handler* handler, struct ArrowAsyncTask* task) {
  pthread_mutex_lock(&handler->lock);
  const int unasked = handler->demand <= 0;
  const int schemaless = handler->schemas == 0 && handler->base.on_schema != NULL;
  if (!unasked) --handler->demand;
  ++handler->tasks;
  pthread_mutex_unlock(&handler->lock);
  if (unasked) Mistake("on_next_task: called without demand");
  if (schemaless) Mistake("on_next_task: called before on_schema");
  const int32_t behaviour = handler->played->behaviour;
  if (behaviour == kTaskRefused) return ENOMEM;
  if (behaviour == kTaskRefusedNegative) return -1;
  pthread_mutex_lock(&handler->lock);
  ++handler->open;
  pthread_mutex_unlock(&handler->lock);
  if (Keep(handler, task)) return 0;
  struct Extraction extraction = {handler, *task};
  if (behaviour == kExtractElsewhere) {
    RunOnFreshThread(ExtractHere, &extraction);
  } else {
    ExtractHere(&extraction);
  }
  if (behaviour == kCancelInTask) {
    Cancel(handler);
  } else if (behaviour != kRequestMany && behaviour != kRequestStorm && behaviour != kCancelStorm) {
    Request(handler, 1);
  }
  return 0;
}

static int OnNextTask(struct ArrowAsyncDeviceStreamHandler* self, struct ArrowAsyncTask* task,
                      const char* metadata) {
  (void)metadata;
  struct Handler* handler = Enter(self, "on_next_task");
  if (task != NULL) return Leave(handler, OnTask(handler, task));
  if (handler->played->behaviour == kEndRefused) return Leave(handler, EIO);
  pthread_mutex_lock(&handler->lock);
  handler->ended = 1;
  pthread_mutex_unlock(&handler->lock);
  if (handler->played->behaviour == kExtractAllAtOnce) StartExtractions(handler);
  return Leave(handler, 0);
}

static void OnError(struct ArrowAsyncDeviceStreamHandler* self, int code, const char* message,
                    const char* metadata) {
  (void)message;
  (void)metadata;
  struct Handler* handler = Enter(self, "on_error");
  if (code <= 0) Mistake("on_error was called with %d, which is not an errno", code);
  if (handler->played->behaviour == kCallsInError) {
    Request(handler, 1);
    Cancel(handler);
  }
  Leave(handler, 0);
  pthread_mutex_lock(&handler->lock);
  handler->error = code > 0 ? code : EIO;
  pthread_mutex_unlock(&handler->lock);
}

/* Returns the first requirement for release that is not met. The caller holds the lock. */
static const char* WhatIsMissing(const struct Handler* handler) {
  const int32_t outcome = handler->played->outcome;
  if (handler->open != 0) return "release was called before every task was extracted";
  if (outcome == kFletchingHostileRefused && handler->error != EINVAL) {
    return "on_error: expected EINVAL for a request of 0 tasks";
  }
  if (outcome == kFletchingHostileAccepted && !handler->ended)
    return "release: called before the end";
  const int is_known = handler->batches >= 0;
  if (outcome == kFletchingHostileAccepted && is_known && handler->tasks != handler->batches) {
    return "on_next_task: end before all tasks";
  }
  if (outcome == kFletchingHostileTolerated && handler->cancelled && handler->error != 0) {
    return "on_error: called after cancel";
  }
  return NULL;
}

static void Release(struct ArrowAsyncDeviceStreamHandler* self) {
  struct Handler* handler = Enter(self, "release");
  if (handler->played->behaviour == kCancelInRelease) Cancel(handler);
  pthread_mutex_lock(&handler->lock);
  while (handler->callers != 0) pthread_cond_wait(&handler->changed, &handler->lock);
  const int first = !handler->released;
  handler->released = 1;
  --handler->calls;
  const char* missing = first && handler->base.on_schema != NULL ? WhatIsMissing(handler) : NULL;
  pthread_mutex_unlock(&handler->lock);
  if (missing != NULL) Mistake("%s", missing);
  if (first) CountHandlers(-1);
}

/* --- Opening and finishing --- */

static struct Handler* last_handler; /* kept, so that a late call is a mistake instead of a crash */

void FinishHandlers(void) {
  struct Handler* handler = last_handler;
  if (handler == NULL) return;
  pthread_mutex_lock(&handler->lock);
  const int idles =
      handler->schemas != 0 && !handler->released && handler->played->behaviour == kNeverAsks;
  /* Counting as a caller delays release, so that the producer stays valid. */
  handler->callers += idles;
  handler->finishing = 1;
  pthread_mutex_unlock(&handler->lock);
  if (handler->played->behaviour == kExtractLate) RunOnFreshThread(ExtractKept, handler);
  if (!idles) return;
  Cancel(handler);
  pthread_mutex_lock(&handler->lock);
  --handler->callers;
  pthread_cond_broadcast(&handler->changed);
  pthread_mutex_unlock(&handler->lock);
}

/* A producer that has not released its handler may still call it, so the handler is kept. */
static void RetireLastHandler(void) {
  static struct Handler* unreleased;
  struct Handler* handler = last_handler;
  if (handler == NULL) return;
  pthread_mutex_lock(&handler->lock);
  const int released = handler->released;
  pthread_mutex_unlock(&handler->lock);
  if (!released) {
    handler->next_unreleased = unreleased;
    unreleased = handler;
    return;
  }
  pthread_cond_destroy(&handler->changed);
  pthread_mutex_destroy(&handler->lock);
  free(handler);
}

int FletchingHostileOpenHandler(const char* name, int64_t batches,
                                struct ArrowAsyncDeviceStreamHandler** out,
                                struct FletchingMessage* message) {
  const int code = BeginAsync(message);
  if (code != 0) return code;
  const struct Case* found = FindCase(&kHandlerParty, name, message);
  if (found == NULL) return EINVAL;
  if (out == NULL) return Fail(message, EINVAL, "out is NULL");
  struct Handler* handler = calloc(1, sizeof *handler);
  if (handler == NULL) return Fail(message, ENOMEM, "out of memory");
  RetireLastHandler();
  last_handler = handler;
  handler->played = found;
  handler->batches = batches;
  pthread_mutex_init(&handler->lock, NULL);
  pthread_cond_init(&handler->changed, NULL);
  const int32_t behaviour = found->behaviour;
  handler->base = (struct ArrowAsyncDeviceStreamHandler){
      .on_schema = behaviour == kOnSchemaNull ? NULL : OnSchema,
      .on_next_task = behaviour == kOnTaskNull ? NULL : OnNextTask,
      .on_error = behaviour == kOnErrorNull ? NULL : OnError,
      .release = behaviour == kReleaseNull ? NULL : Release,
      .private_data = handler};
  if (behaviour != kReleaseNull) CountHandlers(1);
  *out = &handler->base;
  return 0;
}
