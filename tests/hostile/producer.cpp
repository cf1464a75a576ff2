// Async producers that misbehave: a script of handler calls, played on threads of the peer. Its
// steps: S schema; T a task, once it is requested; t a task immediately; E end; X error; C wait for
// cancel; R release, once every task is extracted; r release immediately.
#include <pthread.h>

#include <cerrno>
#include <cinttypes>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string_view>

#include "cases.hpp"
#include "data.h"

namespace {

struct Run {
  ArrowAsyncProducer producer;
  ArrowAsyncDeviceStreamHandler* handler;
  const json* set;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Guarded by `lock`. */
  int64_t demand;
  int cancelled;
  int refused;   /* a handler call returned an error */
  int last_call; /* on_error or release is running, on `last_thread` */
  pthread_t last_thread;
  int nested; /* request has called the handler */
  /* Lent to a handler call, and overwritten after it. */
  int32_t pairs;
  char text[32];
};

struct Task {
  const json* extract; /* fields of what is extracted, or how it fails */
};

// --- Callbacks of the producer ---

/* Returns NULL, and records a mistake, if the producer must not be called. */
Run* FindRun(ArrowAsyncProducer* self, const char* callback) {
  auto* const run = static_cast<Run*>(FindId(self->private_data, callback));
  if (run == nullptr) return nullptr;
  pthread_mutex_lock(&run->lock);
  const int inside = run->last_call && pthread_equal(run->last_thread, pthread_self());
  pthread_mutex_unlock(&run->lock);
  if (inside) Mistake("%s was called from inside on_error or release", callback);
  return inside ? nullptr : run;
}

void DeliverTask(void* argument);
void DeliverEnd(void* argument);

std::string_view NestedCall(const Run* run) {
  const char* nested = "";
  assign(*run->set, "nested_call", nested);
  return nested;
}

void Request(ArrowAsyncProducer* self, int64_t n) {
  Run* run = FindRun(self, "request");
  if (run == nullptr) return;
  if (n <= 0) {
    Mistake("request was called with %" PRId64, n);
    return;
  }
  pthread_mutex_lock(&run->lock);
  const std::string_view nested = NestedCall(run);
  const bool nests = !run->nested && (nested == "request" || nested == "request on a thread");
  if (nests) run->nested = 1;
  run->demand = n > INT64_MAX - run->demand ? INT64_MAX : run->demand + n;
  if (nests) --run->demand;
  pthread_cond_broadcast(&run->changed);
  pthread_mutex_unlock(&run->lock);
  if (nests && nested == "request") DeliverTask(run);
  if (nests && nested != "request") RunOnFreshThread(DeliverTask, run);
}

void Cancel(ArrowAsyncProducer* self) {
  Run* run = FindRun(self, "cancel");
  if (run == nullptr) return;
  pthread_mutex_lock(&run->lock);
  const bool nests = NestedCall(run) == "cancel" && !run->cancelled;
  run->cancelled = 1;
  pthread_cond_broadcast(&run->changed);
  pthread_mutex_unlock(&run->lock);
  if (nests) DeliverEnd(run);
}

int Extract(ArrowAsyncTask* self, ArrowDeviceArray* out) {
  const auto* const task = static_cast<const Task*>(FindId(self->private_data, "extract_data"));
  if (task == nullptr) return EINVAL;
  const json& set = *task->extract;
  if (!CloseId(self->private_data, "extract_data")) return EINVAL;
  if (out == nullptr) return 0;
  return guarded(nullptr, [&] {
    if (set.contains("partial")) LeaveDeviceArray(out);
    if (set.contains("error")) return error_of(set);
    *out = {};
    if (set.contains("release")) return 0;
    const int made = MakeDeviceArray(0, out);
    if (made == 0) change_device(out, set);
    return made;
  });
}

// --- Calls of the handler ---

/// The metadata of a key, or the metadata for all calls, or NULL.
const char* Metadata(const json& set, const char* key) {
  const char* metadata = nullptr;
  assign(set, "metadata", metadata);
  assign(set, key, metadata);
  return metadata;
}

void NoteResult(Run* run, int code) {
  if (code == 0) return;
  pthread_mutex_lock(&run->lock);
  run->refused = 1;
  pthread_cond_broadcast(&run->changed); /* the script may wait on another thread */
  pthread_mutex_unlock(&run->lock);
}

void DeliverSchema(void* argument) {
  auto* const run = static_cast<Run*>(argument);
  const char* replacement = "";
  assign(*run->set, "schema", replacement);
  const std::string_view given = replacement;
  ArrowSchema schema{};
  if (given.empty() && MakeSchema(0, &schema) != 0) return;
  NoteResult(run, run->handler->on_schema(run->handler, given == "null" ? nullptr : &schema));
  /* A handler that rejects the schema leaves it here. */
  if (schema.release != nullptr) schema.release(&schema);
}

void DeliverTask(void* argument) {
  auto* const run = static_cast<Run*>(argument);
  static const json none;
  const bool can_extract = !run->set->contains("extract_data");
  auto* const task = static_cast<Task*>(std::malloc(sizeof(Task)));
  if (task == nullptr) return;
  task->extract = run->set->contains("extract") ? &(*run->set)["extract"] : &none;
  void* const id = OpenId(kCountsAsTask, task, std::free);
  if (id == nullptr) {
    std::free(task);
    return;
  }
  ArrowAsyncTask handed = {can_extract ? Extract : nullptr, id};
  const char* metadata = Metadata(*run->set, "task_metadata");
  run->pairs = 0;
  if (run->set->contains("metadata")) metadata = reinterpret_cast<const char*>(&run->pairs);
  const int code = run->handler->on_next_task(run->handler, &handed, metadata);
  run->pairs = -1;
  NoteResult(run, code);
  if ((code != 0 || !can_extract) && !CloseId(id, nullptr) && code != 0) {
    Mistake("on_next_task has returned %d, and the task was extracted", code);
  }
  std::memset(&handed, 0xA5, sizeof handed); /* a copy is what may be extracted later */
}

void DeliverEnd(void* argument) {
  auto* const run = static_cast<Run*>(argument);
  NoteResult(run, run->handler->on_next_task(run->handler, nullptr, nullptr));
}

void SetLastCall(Run* run, int running) {
  pthread_mutex_lock(&run->lock);
  run->last_call = running;
  run->last_thread = pthread_self();
  pthread_mutex_unlock(&run->lock);
}

void DeliverError(void* argument) {
  auto* const run = static_cast<Run*>(argument);
  const char* shown = std::strcpy(run->text, "the source has failed");
  assign(*run->set, "text", shown);
  SetLastCall(run, 1);
  run->handler->on_error(run->handler, error_of(*run->set), shown,
                         Metadata(*run->set, "error_metadata"));
  SetLastCall(run, 0);
  std::memset(run->text, '#', sizeof run->text - 1);
}

void DeliverRelease(void* argument) {
  auto* const run = static_cast<Run*>(argument);
  SetLastCall(run, 1);
  run->handler->release(run->handler);
  SetLastCall(run, 0);
}

// --- The script ---

int IgnoresCancel(const Run* run) { return run->set->contains("ignores_cancel"); }

/* Waits for demand, if `for_demand`, or for the end of the stream. Consumes one unit of demand.
 * Returns 0 if no task may be delivered. */
int Wait(Run* run, int for_demand) {
  timespec end;
  timespec_get(&end, TIME_UTC);
  end.tv_sec += PatienceSeconds();
  pthread_mutex_lock(&run->lock);
  int in_time = 1;
  while (in_time && !run->refused && !run->cancelled && (!for_demand || run->demand <= 0)) {
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
int IsOver(Run* run) {
  pthread_mutex_lock(&run->lock);
  const int over = run->refused || (run->cancelled && !IgnoresCancel(run));
  pthread_mutex_unlock(&run->lock);
  return over;
}

void Call(Run* run, void (*body)(void* argument)) {
  if (run->set->contains("fresh_threads")) {
    RunOnFreshThread(body, run);
  } else {
    body(run);
  }
}

/* Returns 0 if the next step is release. */
int Step(Run* run, char step) {
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

Run* last_run; /* kept, so that a late call finds it and is a mistake, not a crash */

void FreeRun(Run* run) {
  if (run == nullptr) return;
  pthread_cond_destroy(&run->changed);
  pthread_mutex_destroy(&run->lock);
  std::memset(run, 0xA5, sizeof *run);
  std::free(run);
}

void CloseNothing(void* object) { (void)object; }

void Play(void* argument) {
  auto* const run = static_cast<Run*>(argument);
  const char* script = text((*run->set)["script"]);
  while (Step(run, *script)) ++script;
  if (*script != 'r' && !WaitForTasks()) Mistake("a task was never extracted");
  Call(run, DeliverRelease);
  CloseId(run->producer.private_data, nullptr);
  if (run->set->contains("freed")) {
    FreeRun(run);
  } else {
    last_run = run;
  }
  CountHandlers(-1);
}

int HasEveryCallback(const ArrowAsyncDeviceStreamHandler* handler) {
  return handler->on_schema != nullptr && handler->on_next_task != nullptr &&
         handler->on_error != nullptr && handler->release != nullptr;
}

Run* OpenRun(const json& set, ArrowAsyncDeviceStreamHandler* handler) {
  auto* const run = static_cast<Run*>(std::calloc(1, sizeof(Run)));
  if (run == nullptr) return nullptr;
  void* id = OpenId(kCountsAsNothing, run, CloseNothing);
  if (id == nullptr) {
    std::free(run);
    return nullptr;
  }
  pthread_mutex_init(&run->lock, nullptr);
  pthread_cond_init(&run->changed, nullptr);
  run->handler = handler;
  run->set = &set;
  run->producer = {.device_type = ARROW_DEVICE_CPU,
                   .request = set.contains("request") ? nullptr : Request,
                   .cancel = set.contains("cancel") ? nullptr : Cancel,
                   .additional_metadata = Metadata(set, "additional_metadata"),
                   .private_data = id};
  return run;
}

}  // namespace

int FletchingHostileStartProducer(const char* name, ArrowAsyncDeviceStreamHandler* handler,
                                  FletchingMessage* message) {
  const int code = BeginAsync(message);
  if (code != 0) return code;
  const Case* found = FindCase(&kProducerParty, name, message);
  if (found == nullptr) return EINVAL;
  if (handler == nullptr || !HasEveryCallback(handler))
    return Fail(message, EINVAL, "the handler or one of its callbacks is nullptr");
  FreeRun(last_run);
  last_run = nullptr;
  Run* run = OpenRun(changes_of(found), handler);
  if (run == nullptr) return Fail(message, ENOMEM, "out of memory");
  handler->producer = run->set->contains("producer") ? nullptr : &run->producer;
  CountHandlers(1);
  if (StartThread(Play, run) == 0) return 0;
  CountHandlers(-1);
  CloseId(run->producer.private_data, nullptr);
  FreeRun(run);
  return Fail(message, EAGAIN, "no thread could be started");
}
