// SPDX-License-Identifier: Apache-2.0
//
// For each rule that the checker of async streams reports: a call that breaks it, and the closest
// valid call.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "async_bench.hpp"
#include "findings.hpp"
#include "fletching/validate.h"
#include "places.hpp"

namespace fletching::testing {
namespace {

using Bench = AsyncBench;
using Handler = Bench::Handler;
using Expected = std::vector<std::string>;

/// A script for both sides, and a change to them before the handler is wrapped.
struct Side {
  Bench::Script script = nullptr;
  Bench::Script prepare = nullptr;
};
struct Case {
  Expected findings;  // "rule severity party path"
  Side broken;
  Side valid;
  std::int32_t level = FLETCHING_VALIDATE_PROTOCOL;
};

/// Runs `what` once, inside the call with this name.
Bench::Script inside(const std::string& name, const Bench::Script& what,
                     const Bench::Script& script) {
  return [=](Bench& b) {
    b.consumer.inside = [&b, name, what](const std::string& call) {
      if (call != name) return;
      const auto self = std::exchange(b.consumer.inside, nullptr);
      what(b);
    };
    script(b);
  };
}

Bench::Script on_thread(const Bench::Script& what) {
  return [=](Bench& b) { std::thread([&] { what(b); }).join(); };
}

/// A handler call that returns a code and does not use its arguments.
template <int code>
int schema_result(Handler* /*self*/, ArrowSchema* /*schema*/) {
  return code;
}
template <int code>
int task_result(Handler* /*self*/, ArrowAsyncTask* /*task*/, const char* /*metadata*/) {
  return code;
}
void ignore_error(Handler* /*self*/, int /*code*/, const char* /*text*/, const char* /*metadata*/) {
}
int take_end_only(Handler* /*self*/, ArrowAsyncTask* task, const char* /*metadata*/) {
  if (task != nullptr) task->extract_data(task, nullptr);
  return 0;
}

ArrowSchema* kept_schema = nullptr;
int keep_schema(Handler* self, ArrowSchema* schema) {
  kept_schema = schema;
  PeerHandler::of(self).schema = Schema(schema);
  return 0;
}
ArrowAsyncTask* kept_task = nullptr;
template <int code>
int keep_task(Handler* /*self*/, ArrowAsyncTask* task, const char* /*metadata*/) {
  kept_task = task;
  return code;
}

template <class Make>
int fill(ArrowAsyncTask* self, ArrowDeviceArray* out, const Make& make) {
  if (out == nullptr) return 0;
  a_batch(static_cast<Bench*>(self->private_data)->producer.ledger).move_to(out);
  make(*out);
  return 0;
}
int int32_array(ArrowAsyncTask* self, ArrowDeviceArray* out) {
  static const void* buffers[2] = {};
  return fill(self, out, [](ArrowDeviceArray& array) {
    array.array.n_buffers = 2;
    array.array.buffers = buffers;
  });
}
int null_array(ArrowAsyncTask* self, ArrowDeviceArray* out) {
  return fill(self, out, [](ArrowDeviceArray&) {});
}
int cuda_array(ArrowAsyncTask* self, ArrowDeviceArray* out) {
  return fill(self, out, [](ArrowDeviceArray& array) { array.device_type = ARROW_DEVICE_CUDA; });
}
int released_array(ArrowAsyncTask* /*self*/, ArrowDeviceArray* /*out*/) { return 0; }
/// Fails, and delivers the error before the result.
int error_inside(ArrowAsyncTask* self, ArrowDeviceArray* /*out*/) {
  Bench& b = *static_cast<Bench*>(self->private_data);
  b.cancel();
  b.fail();
  return EIO;
}
int released_inside(ArrowAsyncTask* self, ArrowDeviceArray* /*out*/) {
  static_cast<Bench*>(self->private_data)->release();
  return 0;
}

void give_schema(Bench& b) { b.start(); }
void two_tasks(Bench& b) {
  b.start();
  b.task();
  b.task();
}
void end_of_stream(Bench& b) {
  b.start();
  b.end();
}
void end_and_release(Bench& b) {
  end_of_stream(b);
  b.release();
}
void one_error(Bench& b) {
  b.start();
  b.fail();
}
/// A task whose extraction fails.
void failed_extraction(Bench& b) {
  b.start();
  b.task(EIO);
  EXPECT_EQ(b.extract(), EIO);
}
Bench::Script extract_custom(int (*extract)(ArrowAsyncTask*, ArrowDeviceArray*)) {
  return [=](Bench& b) {
    b.start();
    b.custom_task(extract);
    b.extract();
  };
}

std::vector<Case> cases_of_handlers() {
  return {
      {{"async-schema.set error consumer handler.on_schema"},
       {nullptr, [](Bench& b) { b.consumer.raw.on_schema = nullptr; }},
       {}},
      {{"async-next.set error consumer handler.on_next_task"},
       {nullptr, [](Bench& b) { b.consumer.raw.on_next_task = nullptr; }},
       {}},
      {{"async-error.set error consumer handler.on_error"},
       {nullptr, [](Bench& b) { b.consumer.raw.on_error = nullptr; }},
       {}},
      {{"async-release.set error consumer handler.release"},
       {nullptr, [](Bench& b) { b.consumer.raw.release = nullptr; }},
       {}},
      {{"async-handler.ready-when-passed error consumer on_schema[0]"},
       {[](Bench& b) {
         b.consumer.raw.on_error = ignore_error;
         b.start();
       }},
       {give_schema, [](Bench& b) { b.consumer.raw.on_error = ignore_error; }}},
      {{"async-handler.producer-set-first error producer handler.producer"},
       {[](Bench& b) {
         b.wrapped->producer = nullptr;
         b.fail();
       }},
       {[](Bench& b) { b.fail(); }}},
      {{"async-handler.private-data-untouched error producer handler"},
       {[](Bench& b) {
         void* const kept = std::exchange(b.wrapped->private_data, &b);
         b.start();
         b.wrapped->private_data = kept;
       }},
       {give_schema}},
      {{"async-request.set error producer producer.request"},
       {one_error, [](Bench& b) { b.producer.raw.request = nullptr; }},
       {one_error}},
      {{"async-cancel.set error producer producer.cancel"},
       {one_error, [](Bench& b) { b.producer.raw.cancel = nullptr; }},
       {one_error}},
      {{"async-producer.device-type-set error producer producer.device_type"},
       {give_schema, [](Bench& b) { b.producer.raw.device_type = 0; }},
       {give_schema, [](Bench& b) { b.producer.raw.device_type = ARROW_DEVICE_CUDA; }}},
      {{"async-producer.metadata-encoding error producer producer.additional_metadata"},
       {give_schema, [](Bench& b) { b.producer.raw.additional_metadata = "\xff\xff\xff\xff"; }},
       {give_schema, [](Bench& b) { b.producer.raw.additional_metadata = "\0\0\0\0"; }}},
      {{"async-producer.private-data-untouched error consumer producer"},
       {[](Bench& b) {
         b.start(0);
         void* const kept = std::exchange(b.consumer.raw.producer->private_data, &b);
         b.consumer.request(1);
         b.consumer.raw.producer->private_data = kept;
       }},
       {give_schema}},
  };
}

std::vector<Case> cases_of_schemas() {
  return {
      {{"async-schema.first-and-once error producer on_schema[1]"},
       {[](Bench& b) {
         b.start();
         b.start();
       }},
       {give_schema}},
      {{"async-schema.first-and-once error producer on_next_task[0]"},
       {[](Bench& b) { b.task(); }},
       {[](Bench& b) { b.fail(); }}},
      {{"async-schema.first-and-once error producer release"},
       {[](Bench& b) { b.release(); }},
       {[](Bench& b) {
         b.fail();
         b.release();
       }}},
      {{"async-schema.returns-errno warning consumer on_schema[0]"},
       {[](Bench& b) { b.start(0); },
        [](Bench& b) { b.consumer.raw.on_schema = schema_result<-1>; }},
       {[](Bench& b) { b.start(0); },
        [](Bench& b) { b.consumer.raw.on_schema = schema_result<4095>; }}},
      {{"async-schema.only-release-after-failure error producer on_next_task[0]"},
       {[](Bench& b) {
         b.consumer.refuse = "on_schema";
         b.start();
         b.task();
       }},
       {[](Bench& b) {
         b.consumer.refuse = "on_schema";
         b.start();
         b.release();
       }}},
      {{"async-schema.moved-or-released error consumer on_schema[0].schema"},
       {[](Bench& b) {
          Schema schema = a_schema(b.producer.ledger);
          EXPECT_EQ(b.wrapped->on_schema(b.wrapped, schema.get()), 0);
          EXPECT_EQ(schema->private_data, &b.producer.ledger);
        },
        [](Bench& b) { b.consumer.raw.on_schema = schema_result<0>; }},
       {give_schema}},
      {{"async-schema.released-independently error consumer on_schema[0].schema"},
       {[](Bench& b) {
         end_and_release(b);
         EXPECT_EQ(FletchingValidateLive(), 1);
       }},
       {[](Bench& b) {
         end_and_release(b);
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 0);
       }}},
      {{"async-schema.pointer-not-kept error consumer on_schema[0].schema"},
       {[](Bench& b) {
          b.start();
          kept_schema->release(kept_schema);
        },
        [](Bench& b) { b.consumer.raw.on_schema = keep_schema; }},
       {[](Bench& b) {
          b.start();
          b.consumer.schema.release();
        },
        [](Bench& b) { b.consumer.raw.on_schema = keep_schema; }}},
      {{"schema.release-set error producer on_schema[0].schema"},
       {[](Bench& b) {
          ArrowSchema schema{};
          EXPECT_EQ(b.wrapped->on_schema(b.wrapped, &schema), 0);
        },
        [](Bench& b) { b.consumer.raw.on_schema = schema_result<0>; }},
       {give_schema}},
  };
}

std::vector<Case> cases_of_order() {
  return {
      {{"async.handlers-serialized error producer on_error[0]"},
       {inside(
           "on_schema", [](Bench& b) { b.fail(); },
           [](Bench& b) {
             b.start(0);
             b.is_over = true;
           })},
       {one_error}},
      {{"async.handlers-serialized error producer release"},
       {inside("end", on_thread([](Bench& b) { b.release(); }),
               [](Bench& b) {
                 end_of_stream(b);
                 EXPECT_EQ(b.consumer.log.back(), "release") << "after the call";
               })},
       {end_and_release}},
      {{"async.handlers-serialized error producer release"},
       {[](Bench& b) {
         b.start();
         b.custom_task(released_inside);
         b.end();
         b.drop();
       }},
       {[](Bench& b) {
         b.start();
         b.custom_task(null_array);
         b.end();
         b.drop();
         b.release();
       }}},
      {{"async.error-ends-stream error producer release"},
       {[](Bench& b) {
         b.start();
         b.release();
       }},
       {end_and_release}},
      {{"async.handler-failure-ends-stream error producer on_error[0]"},
       {[](Bench& b) {
         b.consumer.refuse = "task";
         b.start();
         b.task();
         b.fail();
       }},
       {[](Bench& b) {
         b.consumer.refuse = "task";
         b.start();
         b.task();
         b.release();
       }}},
      {{"async-next.only-release-after-failure error producer on_next_task[1]"},
       {[](Bench& b) {
         b.consumer.refuse = "task";
         b.start();
         b.task();
         b.end();
       }},
       {[](Bench& b) {
         b.consumer.refuse = "end";
         b.start();
         b.task();
         b.end();
       }}},
      {{"async-next.not-concurrent error producer on_next_task[1]"},
       {inside("task", on_thread([](Bench& b) { b.task(); }),
               [](Bench& b) {
                 b.start();
                 b.task();
                 EXPECT_EQ(b.consumer.tasks.size(), 1U);
               })},
       {two_tasks}},
      {{"async-next.null-task-is-end error producer on_next_task[1]"},
       {[](Bench& b) {
         end_of_stream(b);
         b.task();
       }},
       {[](Bench& b) {
         b.start();
         b.task();
         b.end();
       }}},
      {{"async-next.null-task-is-end error producer on_error[0]"},
       {[](Bench& b) {
         end_of_stream(b);
         b.fail();
       }},
       {[](Bench& b) {
         b.start();
         b.task(EIO);
         b.end();
         b.extract();
         b.fail();
       }}},
      {{"async-error.then-release-only error producer on_error[1]"},
       {[](Bench& b) {
         one_error(b);
         b.fail();
       }},
       {one_error}},
      {{"async-release.always-called error producer handler"},
       {[](Bench& b) {
         end_of_stream(b);
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 1);
       }},
       {[](Bench& b) {
         end_and_release(b);
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 0);
       }}},
      {{"async-release.last error producer on_error[0]"},
       {[](Bench& b) {
         end_and_release(b);
         b.fail();
       }},
       {end_and_release}},
      {{"async-release.last error producer on_next_task[1]"},
       {[](Bench& b) {
         end_and_release(b);
         EXPECT_EQ(b.producer.end(), EINVAL);
       }},
       {end_and_release}},
      {{"async-release.like-array error producer release"},
       {[](Bench& b) {
         end_and_release(b);
         b.release();
         EXPECT_EQ(b.consumer.log.back(), "release");
         EXPECT_EQ(b.consumer.log.size(), 3U);
       }},
       {end_and_release}},
      {{"async-release.like-array error producer release"},
       {inside(
           "release", [](Bench& b) { b.producer.release(); }, end_and_release)},
       {end_and_release}},
  };
}

std::vector<Case> cases_of_tasks() {
  return {
      {{"array.n-buffers-of-type error producer on_next_task[0].array",
        "async-next.same-schema error producer on_next_task[0].array"},
       {extract_custom(null_array)},
       {extract_custom(int32_array)},
       FLETCHING_VALIDATE_SHAPE},
      {{"async-next.returns-errno warning consumer on_next_task[0]"},
       {[](Bench& b) {
          b.start();
          b.task();
        },
        [](Bench& b) { b.consumer.raw.on_next_task = task_result<4096>; }},
       {[](Bench& b) {
          b.start();
          b.task();
        },
        [](Bench& b) { b.consumer.raw.on_next_task = task_result<4095>; }}},
      {{"async-next.null-task-is-end error producer on_next_task[0].array"},
       {extract_custom(released_array)},
       {extract_custom(null_array)}},
      {{"async-next.task-copied error consumer on_next_task[0].task"},
       {[](Bench& b) {
          b.start();
          b.task();
          EXPECT_EQ(kept_task->extract_data(kept_task, nullptr), 0);
        },
        [](Bench& b) { b.consumer.raw.on_next_task = keep_task<0>; }},
       {[](Bench& b) {
         b.start();
         b.task();
         b.drop();
       }}},
      {{"async-next.task-lives-during-call error producer on_next_task[0].task"},
       {[](Bench& b) {
         b.start();
         ArrowAsyncTask task{null_array, &b};
         b.consumer.inside = [&](const std::string&) { task.extract_data = released_array; };
         EXPECT_EQ(b.wrapped->on_next_task(b.wrapped, &task, nullptr), 0);
         b.drop();
       }},
       {[](Bench& b) {
         b.start();
         ArrowAsyncTask task{null_array, &b};
         EXPECT_EQ(b.wrapped->on_next_task(b.wrapped, &task, nullptr), 0);
         task = {};
         b.drop();
         auto freed = std::make_unique<ArrowAsyncTask>(ArrowAsyncTask{null_array, &b});
         b.consumer.inside = [&](const std::string&) {
           b.drop(1);
           freed.reset();  // by the producer, when the consumer extracts it inside the call
         };
         EXPECT_EQ(b.wrapped->on_next_task(b.wrapped, freed.get(), nullptr), 0);
       }}},
      {{"async-next.task-lives-during-call error producer on_next_task[0].metadata"},
       {[](Bench& b) {
         b.start();
         std::string block = a_block();
         b.consumer.inside = [&](const std::string&) { block.back() = '!'; };
         b.task(0, block.data());
       }},
       {[](Bench& b) {
         b.start();
         b.task(0, a_block().data());
       }}},
      {{"async-next.metadata-encoding warning producer on_next_task[0].metadata"},
       {[](Bench& b) {
          b.start();
          b.task(0, "\xff\xff\xff\xff");
        },
        [](Bench& b) { b.consumer.raw.on_next_task = take_end_only; }},
       {[](Bench& b) {
          b.start();
          b.task(0, "\0\0\0\0");
        },
        [](Bench& b) { b.consumer.raw.on_next_task = take_end_only; }}},
      {{"async-task.extract-set error producer on_next_task[0].task.extract_data"},
       {[](Bench& b) {
         b.consumer.refuse = "task";
         b.start();
         b.custom_task(nullptr);
       }},
       {[](Bench& b) {
         b.consumer.refuse = "task";
         b.start();
         b.custom_task(null_array);
       }}},
      {{"async-task.extracted-once error consumer on_next_task[0].task"},
       {[](Bench& b) {
         b.start();
         b.task();
         EXPECT_EQ(b.drop(), 0);
         EXPECT_EQ(b.drop(), EINVAL);
         EXPECT_EQ(b.producer.tasks[0]->extracted, 1);
       }},
       {[](Bench& b) {
         b.start();
         b.task();
         EXPECT_EQ(b.drop(), 0);
       }}},
      {{"async-task.extracted-once error consumer on_next_task[0].task"},
       {[](Bench& b) {
         b.start();
         b.task();
         b.end();
         b.release();
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 1);
       }},
       {[](Bench& b) {
         b.start();
         b.task();
         b.end();
         b.release();
         b.drop();
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 0);
       }}},
      {{"async-next.task-copied error consumer on_next_task[0].task",
        "async-task.extracted-once error consumer on_next_task[0].task"},
       {[](Bench& b) {
          b.start();
          b.task();
          EXPECT_EQ(kept_task->extract_data(kept_task, nullptr), EINVAL);
        },
        [](Bench& b) { b.consumer.raw.on_next_task = keep_task<EIO>; }},
       {[](Bench& b) {
          b.start();
          b.task();
        },
        [](Bench& b) { b.consumer.raw.on_next_task = keep_task<EIO>; }}},
      {{"async-task.null-accepted error producer on_next_task[0].extract_data"},
       {[](Bench& b) {
         b.start();
         b.task(EIO);
         b.drop();
         b.fail();
       }},
       {[](Bench& b) {
         b.start();
         b.task(EIO);
         b.extract();
         b.fail();
       }}},
      {{"async-task.failure-then-on-error error producer on_next_task[1]"},
       {[](Bench& b) {
         failed_extraction(b);
         b.task();
       }},
       {[](Bench& b) {
         failed_extraction(b);
         b.fail();
       }}},
      {{"async-task.failure-then-on-error error producer release"},
       {[](Bench& b) {
         failed_extraction(b);
         b.release();
       }},
       {[](Bench& b) {
         failed_extraction(b);
         b.cancel();
         b.release();
       }}},
      {{"async-task.failure-then-on-error error producer on_next_task[2]"},
       {[](Bench& b) {
         on_thread(failed_extraction)(b);
         b.task();  // may have begun before the extraction failed
         b.task();
       }},
       {[](Bench& b) {
         on_thread(failed_extraction)(b);
         b.task();
         b.fail();
       }}},
      {{"async-task.returns-errno warning producer on_next_task[0].extract_data"},
       {[](Bench& b) {
         b.start();
         b.task(-1);
         b.extract();
       }},
       {[](Bench& b) {
         b.start();
         b.task(1);
         b.extract();
       }}},
      {{"async-task.array-released-separately error consumer on_next_task[0].array"},
       {[](Bench& b) {
         b.start();
         b.task();
         b.consumer.schema.release();
         DeviceArray array;
         b.consumer.extract(0, array.out());
         b.end();
         b.release();
         EXPECT_EQ(FletchingValidateLive(), 1);
       }},
       {[](Bench& b) {
         b.start();
         b.task();
         b.consumer.schema.release();
         b.extract();
         b.end();
         b.release();
         EXPECT_EQ(FletchingValidateLive(), 0);
       }}},
      {{"async-task.private-data-untouched error consumer on_next_task[0].task"},
       {[](Bench& b) {
          b.start();
          b.task();
          EXPECT_EQ(b.producer.tasks[0]->extracted, 1);
        },
        [](Bench& b) {
          b.consumer.raw.on_next_task = [](Handler*, ArrowAsyncTask* task, const char*) {
            task->private_data = task;
            return task->extract_data(task, nullptr);
          };
        }},
       {[](Bench& b) {
          b.start();
          b.task();
        },
        [](Bench& b) { b.consumer.raw.on_next_task = take_end_only; }}},
      {{"async-producer.one-device-type error producer on_next_task[0].array"},
       {extract_custom(cuda_array)},
       {extract_custom(cuda_array),
        [](Bench& b) { b.producer.raw.device_type = ARROW_DEVICE_CUDA; }}},
  };
}

std::vector<Case> cases_of_errors() {
  const auto ignores = [](Bench& b) { b.consumer.raw.on_error = ignore_error; };
  const auto fails_with = [](int code) { return [code](Bench& b) { b.fail(code); }; };
  const auto changes_text = [](Bench& b) {
    std::string text = "it broke";
    b.consumer.inside = [&](const std::string&) { text[0] = 'I'; };
    b.fail(EIO, text.c_str());
  };
  return {
      {{"async-error.errno-codes warning producer on_error[0]"}, {fails_with(0)}, {fails_with(1)}},
      {{"async-error.errno-codes warning producer on_error[0]"}, {fails_with(-5)}, {fails_with(5)}},
      {{"async-error.errno-codes warning producer on_error[0]"},
       {fails_with(4096)},
       {fails_with(4095)}},
      {{"async-error.texts-live-during-call error producer on_error[0]"},
       {changes_text},
       {one_error}},
      {{"async-error.metadata-encoding warning producer on_error[0].metadata"},
       {[](Bench& b) { b.fail(EIO, nullptr, "\xff\xff\xff\xff"); }, ignores},
       {[](Bench& b) { b.fail(EIO, nullptr, nullptr); }, ignores}},
      {{"async-error.calls-no-producer error consumer request[1]"},
       {inside(
           "on_error", [](Bench& b) { b.consumer.request(1); }, one_error)},
       {inside(
           "on_schema", [](Bench& b) { b.consumer.request(1); }, one_error)}},
      {{"async-release.calls-no-producer error consumer cancel[0]"},
       {inside(
           "release", [](Bench& b) { b.consumer.cancel(); },
           [](Bench& b) {
             end_and_release(b);
             EXPECT_EQ(b.producer.log, Log{"request 9"});
           })},
       {inside(
           "end", [](Bench& b) { b.consumer.cancel(); }, end_and_release)}},
  };
}

std::vector<Case> cases_of_requests() {
  const auto request_again = [](Bench& b) { b.consumer.request(1); };
  return {
      {{"async-handler.producer-not-before-schema error consumer request[0]"},
       {[](Bench& b) {
         b.consumer.request(1);
         EXPECT_EQ(b.producer.log, Log{"request 1"});
         b.start(0);
         b.task();
       }},
       {[](Bench& b) {
         b.start(1);
         b.task();
       }}},
      {{"async-handler.producer-not-before-schema error consumer cancel[0]"},
       {[](Bench& b) {
         b.consumer.cancel();
         EXPECT_EQ(b.producer.log, Log{"cancel"});
         b.release();
       }},
       {[](Bench& b) {
         b.start(0);
         b.consumer.cancel();
         b.release();
       }}},
      {{"async-request.not-synchronous error producer on_next_task[0]"},
       {[](Bench& b) {
         b.producer.in_request = [&] { b.task(); };
         b.start();
       }},
       {[](Bench& b) {
         b.start();
         b.task();
       }}},
      {{"async-request.not-synchronous error producer on_error[0]"},
       {[](Bench& b) {
         b.producer.in_request = [&] { b.fail(); };
         b.start();
       }},
       {one_error}},
      {{"async-request.scheduled warning producer release"},
       {[=](Bench& b) {
         end_of_stream(b);
         b.producer.in_request = [&] { b.release(); };
         request_again(b);
       }},
       {[=](Bench& b) {
         end_of_stream(b);
         request_again(b);
         b.release();
       }}},
      {{"async-request.not-exceeded error producer on_next_task[1]"},
       {[](Bench& b) {
         b.start(1);
         b.task();
         b.task();
       }},
       {[=](Bench& b) {
         b.start(1);
         request_again(b);
         b.task();
         b.task();
       }}},
      {{"async-request.positive error consumer request[0]"},
       {[](Bench& b) {
         b.start(-1);
         b.fail(EINVAL);
       }},
       {[](Bench& b) {
         b.start(1);
         b.fail(EINVAL);
       }}},
      {{"async-request.positive error consumer request[0]",
        "async-request.refused-when-not-positive warning producer on_next_task[0]"},
       {[](Bench& b) {
         b.start(-1);
         b.end();
       }},
       {end_of_stream}},
      {{"async-request.positive error consumer request[0]",
        "async-request.refused-when-not-positive warning producer release"},
       {[](Bench& b) {
         b.start(-1);
         b.release();
       }},
       {end_and_release}},
      {{"async-request.nothing-after-cancel error producer on_next_task[1]"},
       {[=](Bench& b) {
         b.start(1);
         b.cancel();
         request_again(b);
         b.task();
         b.task();
       }},
       {[=](Bench& b) {
         b.start(1);
         b.cancel();
         request_again(b);
         b.task();
       }}},
      {{"async-producer.outlives-handler error consumer request[1]"},
       {[=](Bench& b) {
         end_and_release(b);
         request_again(b);
         EXPECT_EQ(b.producer.log, Log{"request 9"});
       }},
       {[=](Bench& b) {
         end_of_stream(b);
         request_again(b);
       }}},
  };
}

/// The producer calls a handler function inside this cancel.
Bench::Script handler_in_cancel(int number, void (*call)(Bench&)) {
  return [=](Bench& b) {
    static int calls;
    static void (*inner)(Bench&);
    static int number_of_call;
    calls = 0;
    inner = call;
    number_of_call = number;
    b.producer.raw.cancel = [](ArrowAsyncProducer*) {
      if (++calls == number_of_call) inner(Bench::current());
    };
    b.start();
    for (int i = 0; i < number; ++i) b.cancel();
  };
}

std::vector<Case> cases_of_cancel() {
  const auto cancel = [](Bench& b) {
    b.start();
    b.cancel();
  };
  return {
      {{"async-cancel.stops error producer handler"},
       {[=](Bench& b) {
         cancel(b);
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 1);
       }},
       {[=](Bench& b) {
         cancel(b);
         b.release();
         b.consumer.schema.release();
         EXPECT_EQ(FletchingValidateLive(), 0);
       }}},
      {{"async-cancel.calls-no-handler error producer on_next_task[0]"},
       {handler_in_cancel(1, [](Bench& b) { b.end(); })},
       {handler_in_cancel(1, [](Bench& b) { b.fail(); })}},
      {{"async-cancel.idempotent error producer on_next_task[0]"},
       {handler_in_cancel(2, [](Bench& b) { b.end(); })},
       {handler_in_cancel(2, [](Bench&) {})}},
      {{"async-cancel.no-on-error error producer on_error[0]"},
       {[=](Bench& b) {
         cancel(b);
         b.fail();
       }},
       {[=](Bench& b) {
         cancel(b);
         b.end();
       }}},
      {{"async-cancel.no-on-error error producer on_error[0]"},
       {[=](Bench& b) {
         cancel(b);
         b.fail();
       }},
       {extract_custom(error_inside)}},
      {{"async-cancel.no-on-error error producer on_error[0]"},
       {[=](Bench& b) {
         cancel(b);
         b.fail();
       }},
       {[](Bench& b) {
         failed_extraction(b);
         b.cancel();
         b.fail();
       }}},
  };
}

std::vector<Case> all_cases() {
  std::vector<Case> all;
  for (const auto& cases :
       {cases_of_handlers(), cases_of_schemas(), cases_of_order(), cases_of_tasks(),
        cases_of_errors(), cases_of_requests(), cases_of_cancel()}) {
    all.insert(all.end(), cases.begin(), cases.end());
  }
  return all;
}

TEST(ValidateAsyncTest, ReportsEachBrokenRuleAndNoValidCall) {
  for (const Case& given : all_cases()) {
    SCOPED_TRACE(given.findings.back());
    EXPECT_EQ(Bench::run(given.broken.script, given.broken.prepare, given.level).list,
              given.findings);
    EXPECT_EQ(Bench::run(given.valid.script, given.valid.prepare, given.level).list, Expected{});
  }
}

TEST(ValidateAsyncTest, HasCaseForEachRule) {
  std::set<std::string> tested;
  for (const Case& given : all_cases()) {
    for (const std::string& finding : given.findings) {
      tested.insert(finding.substr(0, finding.find(' ')));
    }
  }
  for (const validate::Rule rule : validate::kAsyncRules) {
    EXPECT_TRUE(tested.contains(validate::facts(rule).id)) << validate::facts(rule).id;
  }
}

}  // namespace
}  // namespace fletching::testing
