/* Async producers that go wrong: a script of handler calls, played on threads of the peer. */
#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data.h"
#include "producer_cases.h"

struct Run {
  struct ArrowAsyncProducer producer;
  struct ArrowAsyncDeviceStreamHandler* handler;
  int32_t behaviour;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Guarded by `lock`. */
  int64_t demand;
  int cancelled;
  int refused;   /* a handler call has returned an error */
  int last_call; /* on_error or release is running, on `last_thread` */
  pthread_t last_thread;
  int nested; /* request has called the handler */
  /* Lent to a handler call, and overwritten after it. */
  int32_t pairs;
  char text[32];
};

struct Task {
  int32_t behaviour;
};

/* --- What the consumer may call --- */

/* NULL, and a mistake, when it may not be called. */
static struct Run* FindRun(struct ArrowAsyncProducer* self, const char* callback) {
  struct Run* run = FindId(self->private_data, callback);
  if (run == NULL) return NULL;
  pthread_mutex_lock(&run->lock);
  const int inside = run->last_call && pthread_equal(run->last_thread, pthread_self());
  pthread_mutex_unlock(&run->lock);
  if (inside) Mistake("%s was called from inside on_error or release", callback);
  return inside ? NULL : run;
}

static void DeliverTask(void* argument);
static void DeliverEnd(void* argument);

static void Request(struct ArrowAsyncProducer* self, int64_t n) {
  struct Run* run = FindRun(self, "request");
  if (run == NULL) return;
  if (n <= 0) {
    Mistake("request was called with %" PRId64, n);
    return;
  }
  pthread_mutex_lock(&run->lock);
  int nests = !run->nested &&
              (run->behaviour == kReentrantRequest || run->behaviour == kOverlappingRequest);
  if (nests) run->nested = 1;
  run->demand = n > INT64_MAX - run->demand ? INT64_MAX : run->demand + n;
  if (nests) --run->demand;
  pthread_cond_broadcast(&run->changed);
  pthread_mutex_unlock(&run->lock);
  if (nests && run->behaviour == kReentrantRequest) DeliverTask(run);
  if (nests && run->behaviour == kOverlappingRequest) RunOnFreshThread(DeliverTask, run);
}

static void Cancel(struct ArrowAsyncProducer* self) {
  struct Run* run = FindRun(self, "cancel");
  if (run == NULL) return;
  pthread_mutex_lock(&run->lock);
  const int nests = run->behaviour == kReentrantCancel && !run->cancelled;
  run->cancelled = 1;
  pthread_cond_broadcast(&run->changed);
  pthread_mutex_unlock(&run->lock);
  if (nests) DeliverEnd(run);
}

static int Extract(struct ArrowAsyncTask* self, struct ArrowDeviceArray* out) {
  const struct Task* task = FindId(self->private_data, "extract_data");
  if (task == NULL) return EINVAL;
  const int32_t behaviour = task->behaviour;
  if (!CloseId(self->private_data, "extract_data")) return EINVAL;
  if (out == NULL) return 0;
  switch (behaviour) {
    case kExtractFails:
      return ENODATA;
    case kExtractNegative:
      return -5;
    case kExtractPartial:
      LeaveDeviceArray(out);
      return ENODATA;
    case kExtractReleased:
      memset(out, 0, sizeof *out);
      return 0;
    default:
      break;
  }
  const int made = MakeDeviceArray(0, out);
  if (made == 0 && behaviour == kExtractUnknownDevice) out->device_type = 9999;
  if (made == 0 && behaviour == kExtractReserved) memset(out->reserved, 0xA5, sizeof out->reserved);
  return made;
}

/* --- What the producer calls --- */

static const int32_t kNoPairs[] = {0};

static const char* Metadata(int32_t behaviour, int32_t spoiled) {
  if (behaviour == spoiled) return (const char*)kNegativeCount;
  return behaviour == kMetadata ? (const char*)kNoPairs : NULL;
}

static void NoteResult(struct Run* run, int code) {
  if (code == 0) return;
  pthread_mutex_lock(&run->lock);
  run->refused = 1;
  pthread_mutex_unlock(&run->lock);
}

static void DeliverSchema(void* argument) {
  struct Run* run = argument;
  struct ArrowSchema schema;
  memset(&schema, 0, sizeof schema);
  if (run->behaviour != kSchemaReleased && run->behaviour != kSchemaNull &&
      MakeSchema(0, &schema) != 0)
    return;
  NoteResult(run,
             run->handler->on_schema(run->handler, run->behaviour == kSchemaNull ? NULL : &schema));
  /* A caller that refuses it leaves it here. */
  if (schema.release != NULL) schema.release(&schema);
}

static void DeliverTask(void* argument) {
  struct Run* run = argument;
  struct Task* task = malloc(sizeof *task);
  if (task == NULL) return;
  task->behaviour = run->behaviour;
  const int can_extract = run->behaviour != kExtractNull;
  void* id = OpenId(kCountsAsTask, task, free);
  if (id == NULL) {
    free(task);
    return;
  }
  struct ArrowAsyncTask handed = {can_extract ? Extract : NULL, id};
  const char* metadata = Metadata(run->behaviour, kTaskMetadataNegative);
  run->pairs = 0;
  if (run->behaviour == kMetadata) metadata = (const char*)&run->pairs;
  const int code = run->handler->on_next_task(run->handler, &handed, metadata);
  run->pairs = -1;
  NoteResult(run, code);
  if ((code != 0 || !can_extract) && !CloseId(id, NULL) && code != 0) {
    Mistake("on_next_task has returned %d, and the task was extracted", code);
  }
  memset(&handed, 0xA5, sizeof handed); /* a copy is what may be extracted later */
}

static void DeliverEnd(void* argument) {
  struct Run* run = argument;
  NoteResult(run, run->handler->on_next_task(run->handler, NULL, NULL));
}

static void SetLastCall(struct Run* run, int running) {
  pthread_mutex_lock(&run->lock);
  run->last_call = running;
  run->last_thread = pthread_self();
  pthread_mutex_unlock(&run->lock);
}

static void DeliverError(void* argument) {
  struct Run* run = argument;
  const int32_t behaviour = run->behaviour;
  const char* shown = strcpy(run->text, "the source has failed");
  if (behaviour == kErrorTextNull) shown = NULL;
  if (behaviour == kErrorTextNotUtf8) shown = kNotUtf8;
  if (behaviour == kErrorTextLong) shown = LongText();
  int code = EIO;
  if (behaviour == kErrorZero) code = 0;
  if (behaviour == kErrorNegative) code = -5;
  if (behaviour == kExtractFails || behaviour == kExtractPartial) code = ENODATA;
  SetLastCall(run, 1);
  run->handler->on_error(run->handler, code, shown, Metadata(behaviour, kErrorMetadataNegative));
  SetLastCall(run, 0);
  memset(run->text, '#', sizeof run->text - 1);
}

static void DeliverRelease(void* argument) {
  struct Run* run = argument;
  SetLastCall(run, 1);
  run->handler->release(run->handler);
  SetLastCall(run, 0);
}

/* --- The script --- */

static int IgnoresCancel(const struct Run* run) {
  return run->behaviour == kIgnoresCancel || run->behaviour == kTaskAfterCancel;
}

/* Until there is demand, when it is waited for, or the stream is over. Takes one off the demand; 0
 * when no task may be delivered. */
static int Wait(struct Run* run, int for_demand) {
  struct timespec end;
  timespec_get(&end, TIME_UTC);
  end.tv_sec += PatienceSeconds();
  pthread_mutex_lock(&run->lock);
  int in_time = 1;
  while (in_time && !run->refused && !run->cancelled && !(for_demand && run->demand > 0)) {
    in_time = pthread_cond_timedwait(&run->changed, &run->lock, &end) == 0;
  }
  const int stops = run->refused || (run->cancelled && !IgnoresCancel(run));
  const int goes_on = !stops && for_demand && run->demand > 0;
  if (goes_on) --run->demand;
  pthread_mutex_unlock(&run->lock);
  if (!in_time) {
    Mistake("the consumer has neither asked for a task nor cancelled");
    NoteResult(run, EIO);
  }
  return goes_on;
}

/* Whether only release may follow. */
static int IsOver(struct Run* run) {
  pthread_mutex_lock(&run->lock);
  const int over = run->refused || (run->cancelled && !IgnoresCancel(run));
  pthread_mutex_unlock(&run->lock);
  return over;
}

static void Call(struct Run* run, void (*body)(void* argument)) {
  if (run->behaviour == kFreshThreads) {
    RunOnFreshThread(body, run);
  } else {
    body(run);
  }
}

/* 0 when the next step is release. */
static int Step(struct Run* run, char step) {
  switch (step) {
    case 'S':
      Call(run, DeliverSchema);
      return !IsOver(run);
    case 'T':
      if (Wait(run, 1)) Call(run, DeliverTask);
      return !IsOver(run);
    case 't':
      Call(run, DeliverTask);
      return !IsOver(run);
    case 'E':
      Call(run, DeliverEnd);
      return !IsOver(run);
    case 'X':
      Call(run, DeliverError);
      return 1;
    case 'C':
      Wait(run, 0);
      return 1;
    default:
      return 0;
  }
}

static struct Run* last_run; /* kept, so that a late call finds it and is a mistake, not a crash */

static void FreeRun(struct Run* run) {
  if (run == NULL) return;
  pthread_cond_destroy(&run->changed);
  pthread_mutex_destroy(&run->lock);
  memset(run, 0xA5, sizeof *run);
  free(run);
}

static void CloseNothing(void* object) { (void)object; }

static void Play(void* argument) {
  struct Run* run = argument;
  const char* script = kProducerScripts[run->behaviour];
  while (Step(run, *script)) ++script;
  if (*script != 'r' && !WaitForTasks()) Mistake("a task was never extracted");
  Call(run, DeliverRelease);
  CloseId(run->producer.private_data, NULL);
  if (run->behaviour == kFreed) {
    FreeRun(run);
  } else {
    last_run = run;
  }
  CountHandlers(-1);
}

static int HasEveryCallback(const struct ArrowAsyncDeviceStreamHandler* handler) {
  return handler->on_schema != NULL && handler->on_next_task != NULL && handler->on_error != NULL &&
         handler->release != NULL;
}

static struct Run* OpenRun(int32_t behaviour, struct ArrowAsyncDeviceStreamHandler* handler) {
  struct Run* run = calloc(1, sizeof *run);
  if (run == NULL) return NULL;
  void* id = OpenId(kCountsAsNothing, run, CloseNothing);
  if (id == NULL) {
    free(run);
    return NULL;
  }
  pthread_mutex_init(&run->lock, NULL);
  pthread_cond_init(&run->changed, NULL);
  run->handler = handler;
  run->behaviour = behaviour;
  run->producer = (struct ArrowAsyncProducer){
      .device_type = ARROW_DEVICE_CPU,
      .request = behaviour == kRequestNull ? NULL : Request,
      .cancel = behaviour == kCancelNull ? NULL : Cancel,
      .additional_metadata = Metadata(behaviour, kAdditionalMetadataNegative),
      .private_data = id};
  return run;
}

int FletchingHostileStartProducer(const char* name, struct ArrowAsyncDeviceStreamHandler* handler,
                                  struct FletchingMessage* message) {
  const int code = BeginAsync(message);
  if (code != 0) return code;
  const struct Case* found = FindCase(&kProducerParty, name, message);
  if (found == NULL) return EINVAL;
  if (handler == NULL || !HasEveryCallback(handler))
    return Fail(message, EINVAL, "the handler or one of its callbacks is NULL");
  FreeRun(last_run);
  last_run = NULL;
  struct Run* run = OpenRun(found->behaviour, handler);
  if (run == NULL) return Fail(message, ENOMEM, "out of memory");
  handler->producer = found->behaviour == kProducerNull ? NULL : &run->producer;
  CountHandlers(1);
  if (StartThread(Play, run) == 0) return 0;
  CountHandlers(-1);
  CloseId(run->producer.private_data, NULL);
  FreeRun(run);
  return Fail(message, EAGAIN, "no thread could be started");
}
