// SPDX-License-Identifier: Apache-2.0
//
// Subjects with one fault each. The suite must find each fault in a case that exposes it.
#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <regex>
#include <string>

#include "breaks/streams.hpp"
#include "fletching/conformance.h"
#include "fletching/detail/message.hpp"
#include "fletching/owner.hpp"

namespace fletching::conformance {
namespace {

int refuse(FletchingMessage* message) {
  fletching::detail::write_message(message, "no");
  return EINVAL;
}

struct Fault {
  const char* name;
  const char* group;
  const char* shown_by;  // name of a case
  const char* message;   // a regular expression
  std::function<void(FletchingSubject&)> plant;
};

template <class Plant>
auto replaces_stream(Plant plant) {
  return [plant](FletchingSubject& subject) { subject = device_streams_with(plant); };
}

// The library's unmodified stream of a trace.
ArrowAsyncDeviceStreamHandler* g_handler;
void (*g_request)(ArrowAsyncProducer*, std::int64_t);
FletchingSubjectProducer g_producer;
FletchingSubjectNotify g_notify;
FletchingSubjectConsumer g_consumer;
ArrowAsyncDeviceStreamHandler g_consumer_handler;

/// `Plant`, without captures, adds the fault to the table.
template <class Plant>
auto replaces_producer(Plant /*plant*/) {
  return [](FletchingSubject& subject) {
    subject.producer = [](void* context, ArrowAsyncDeviceStreamHandler* handler,
                          FletchingSubjectProducer* out, FletchingMessage* message) {
      const int code = good().producer(context, handler, out, message);
      g_handler = handler;
      g_request = handler->producer->request;
      g_producer = *out;
      Plant()(*out);
      return code;
    };
  };
}

template <class Plant>
auto replaces_consumer(Plant /*plant*/, FletchingSubjectNotify notify = nullptr) {
  return [notify](FletchingSubject& subject) {
    static FletchingSubjectNotify changed;
    changed = notify;
    subject.consumer = [](void* context, FletchingSubjectNotify notify, void* notify_context,
                          FletchingSubjectConsumer* out, FletchingMessage* message) {
      g_notify = notify;
      const int code = good().consumer(context, changed != nullptr ? changed : notify,
                                       notify_context, out, message);
      g_consumer = *out;
      g_consumer_handler = *out->handler;
      Plant()(*out);
      return code;
    };
  };
}

auto replaces_notify(FletchingSubjectNotify notify) {
  return replaces_consumer([](FletchingSubjectConsumer&) {}, notify);
}

const Fault kFaults[] = {
    {"schema that is lost", "schemas", "schema.good", "not released",
     [](FletchingSubject& subject) {
       subject.schema = [](void*, ArrowSchema* in, ArrowSchema*, FletchingMessage*) {
         in->release = nullptr;
         return 0;
       };
     }},
    {"every schema refused", "schemas", "schema.good", "expected success, got errno 22: no",
     [](FletchingSubject& subject) {
       subject.schema = [](void*, ArrowSchema*, ArrowSchema*, FletchingMessage* message) {
         return refuse(message);
       };
     }},
    {"refusal without a text", "schemas", "schema.format-null", "expected a text",
     [](FletchingSubject& subject) {
       subject.schema = [](void* context, ArrowSchema* in, ArrowSchema* out, FletchingMessage*) {
         return good().schema(context, in, out, nullptr);
       };
     }},
    {"schema that is not looked at", "schemas", "schema.children-null", "expected an error",
     [](FletchingSubject& subject) {
       subject.schema = [](void*, ArrowSchema* in, ArrowSchema* out, FletchingMessage*) {
         Schema(in).move_to(out);
         return 0;
       };
     }},
    {"format that is not looked at", "schemas", "format.plus", "expected an error",
     [](FletchingSubject& subject) {
       subject.schema = [](void*, ArrowSchema* in, ArrowSchema* out, FletchingMessage*) {
         Schema(in).move_to(out);
         return 0;
       };
     }},
    {"negative code", "schemas", "schema.format-null", "expected a positive errno",
     [](FletchingSubject& subject) {
       subject.schema = [](void* context, ArrowSchema* in, ArrowSchema* out,
                           FletchingMessage* message) {
         return -good().schema(context, in, out, message);
       };
     }},
    {"array with another offset", "arrays", "array.good", "1, 2, 3",
     [](FletchingSubject& subject) {
       subject.array = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in,
                          ArrowSchema* out_schema, ArrowDeviceArray* out,
                          FletchingMessage* message) {
         const int code = good().array(context, schema, in, out_schema, out, message);
         if (code == 0) ++out->array.offset;
         return code;
       };
     }},
    {"child beyond the last", "children", "array.good-children", "child -1",
     [](FletchingSubject& subject) {
       subject.child = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in,
                          std::int64_t /*index*/, ArrowDeviceArray* out,
                          FletchingMessage* message) {
         return good().child(context, schema, in, 0, out, message);
       };
     }},
    {"batch that is dropped", "device-streams", "stream.good", "expected 3 batches, got 2",
     replaces_stream([](ArrowDeviceArrayStream& stream) {
       ArrowDeviceArray first{};
       inner_of(&stream)->get_next(inner_of(&stream), &first);
       if (first.array.release != nullptr) first.array.release(&first.array);
     })},
    {"another code", "device-streams", "stream.next-fails", "expected errno",
     replaces_stream([](ArrowDeviceArrayStream& stream) {
       stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
         return inner_of(self)->get_next(inner_of(self), out) == 0 ? 0 : ENOSYS;
       };
     })},
    {"end for an error", "catalogue-streams", "int32.failure", "stream",
     replaces_stream([](ArrowDeviceArrayStream& stream) {
       stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
         if (inner_of(self)->get_next(inner_of(self), out) != 0) *out = {};
         return 0;
       };
     })},
    {"schema only once", "stream-consumers", "stream-consumer.schema-often", "get_schema",
     replaces_stream([](ArrowDeviceArrayStream& stream) {
       stream.get_schema = [](ArrowDeviceArrayStream* self, ArrowSchema* out) {
         const int code = inner_of(self)->get_schema(inner_of(self), out);
         self->get_schema = [](ArrowDeviceArrayStream*, ArrowSchema*) { return EINVAL; };
         return code;
       };
     })},
    {"tensor without a deleter", "tensors", "tensor.good", "not released",
     [](FletchingSubject& subject) {
       subject.tensor = [](void*, DLManagedTensorVersioned* in, DLManagedTensorVersioned** out,
                           FletchingMessage*) {
         in->deleter = nullptr;
         *out = in;
         return 0;
       };
     }},
    {"tensor of another length", "tensors", "tensor.good", "items",
     [](FletchingSubject& subject) {
       subject.tensor = [](void* context, DLManagedTensorVersioned* in,
                           DLManagedTensorVersioned** out, FletchingMessage* message) {
         const int code = good().tensor(context, in, out, message);
         if (code == 0 && (*out)->dl_tensor.ndim > 0) --(*out)->dl_tensor.shape[0];
         return code;
       };
     }},
    {"batch that is not received", "receivers", "producer.good", "expected 3 batches, got 2",
     [](FletchingSubject& subject) {
       subject.receive = [](void* context, FletchingSubjectConnect connect, void* connect_context,
                            ArrowDeviceArrayStream* out, FletchingMessage* message) {
         const int code = good().receive(context, connect, connect_context, out, message);
         ArrowDeviceArray first{};
         if (code == 0 && out->get_next(out, &first) == 0 && first.array.release != nullptr) {
           first.array.release(&first.array);
         }
         return code;
       };
     }},
    {"wait of the host that returns at once", "events", "opencl.synchronize", "before",
     [](FletchingSubject& subject) {
       subject.synchronize = [](void*, ArrowDeviceArray*, FletchingMessage*) { return 0; };
     }},
    {"event that is always ready", "events", "opencl.is-ready", "shut gate: expected 0, got 1",
     [](FletchingSubject& subject) {
       subject.is_ready = [](void*, ArrowDeviceArray*, std::int32_t* ready, FletchingMessage*) {
         *ready = 1;
         return 0;
       };
     }},
    {"release at once", "events", "opencl.release-after", "expected no release before",
     [](FletchingSubject& subject) {
       subject.release_after = [](void*, ArrowDeviceArray* array, void*, FletchingMessage*) {
         array->array.release(&array->array);
         return 0;
       };
     }},
    {"wait for nothing of a device", "devices", "opencl.int32.stream", "byte 0 is old|an idle one",
     [](FletchingSubject& subject) {
       subject.wait_on = [](void*, ArrowDeviceArray*, void*, FletchingMessage*) { return 0; };
     }},
    {"batch that has lost its event", "devices", "opencl.utf8.stream",
     "expected an event, got NULL", replaces_stream([](ArrowDeviceArrayStream& stream) {
       stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
         const int code = inner_of(self)->get_next(inner_of(self), out);
         out->sync_event = nullptr;
         return code;
       };
     })},
    {"text of a failure lost", "devices", "opencl.list.stream-failure", "got errno 5: no",
     replaces_stream([](ArrowDeviceArrayStream& stream) {
       stream.get_last_error = [](ArrowDeviceArrayStream*) { return "no"; };
     })},
    {"event that is ready behind a shut gate", "devices", "vulkan.int32.array",
     "is_ready: expected 0, got 1",
     [](FletchingSubject& subject) {
       subject.is_ready = [](void*, ArrowDeviceArray*, std::int32_t* ready, FletchingMessage*) {
         *ready = 1;
         return 0;
       };
     }},
    {"good handler refused", "senders", "handler.good", "expected success, got errno 22: no",
     [](FletchingSubject& subject) {
       subject.send = [](void*, ArrowDeviceArrayStream*, ArrowAsyncDeviceStreamHandler*,
                         FletchingMessage* message) { return refuse(message); };
     }},
    {"call of a handler too many", "producer-traces", "one-batch", "expected no call, got .*null",
     replaces_producer([](FletchingSubjectProducer& out) {
       out.run = [](void* self) {
         const int ran = g_producer.run(self);
         if (ran != 0) g_handler->on_next_task(g_handler, nullptr, nullptr);
         return ran;
       };
     })},
    {"call of a handler inside request", "producer-traces", "request-is-not-synchronous",
     "request: expected no call, got .*on_next_task", replaces_producer([](auto&) {
       g_handler->producer->request = [](ArrowAsyncProducer* self, std::int64_t n) {
         g_request(self, n);
         g_producer.run(g_producer.self);
       };
     })},
    {"demand that is doubled", "producer-traces", "no-more-than-asked-for",
     "step: expected no call, got .*on_next_task", replaces_producer([](auto&) {
       g_handler->producer->request = [](ArrowAsyncProducer* self, std::int64_t n) {
         g_request(self, 2 * n);
       };
     })},
    {"batch that is lost", "producer-traces", "one-batch", "on_next_task.*got no call",
     replaces_producer([](FletchingSubjectProducer& out) {
       out.batch = [](void*, ArrowDeviceArray* batch) { batch->array.release(&batch->array); };
     })},
    {"extraction that does not fail", "producer-traces", "extraction-fails",
     "expected no array, got one", replaces_producer([](FletchingSubjectProducer& out) {
       out.failing_batch = [](void* self, ArrowDeviceArray* batch, int) {
         g_producer.batch(self, batch);
       };
     })},
    {"another error of the source", "producer-traces", "fails-between-tasks",
     "expected .*on_error.*code", replaces_producer([](FletchingSubjectProducer& out) {
       out.fail = [](void* self, int code) { g_producer.fail(self, code + 1); };
     })},
    {"another state", "producer-traces", "one-batch", "expected the state streaming, got in_task",
     replaces_producer([](FletchingSubjectProducer& out) {
       out.state = [](void* self) {
         const std::int32_t state = g_producer.state(self);
         return state == 3 ? 4 : state;
       };
     })},
    {"notification that is lost", "consumer-traces", "one-batch", "on_end: expected .*got no call",
     replaces_notify([](void* context, const char* what, int code) {
       if (std::string_view(what) != "end") g_notify(context, what, code);
     })},
    {"notification of another code", "consumer-traces", "error-between-tasks", "expected .*code",
     replaces_notify([](void* context, const char* what, int code) {
       g_notify(context, what, code == 0 ? 0 : code + 1);
     })},
    {"task that is extracted twice", "consumer-traces", "one-batch",
     "on_task: expected .*notify.*got .*extract_data",
     replaces_consumer([](FletchingSubjectConsumer& out) {
       out.handler->on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                                      const char* metadata) {
         if (task != nullptr) task->extract_data(task, nullptr);
         return g_consumer_handler.on_next_task(self, task, metadata);
       };
     })},
    {"take with another code", "consumer-traces", "extraction-fails", "take: expected 12, got 13",
     replaces_consumer([](FletchingSubjectConsumer& out) {
       out.take = [](void* self) {
         const int code = g_consumer.take(self);
         return code == 0 ? 0 : code + 1;
       };
     })},
    {"cancel that is not passed on", "consumer-traces", "cancel-twice",
     "expected .*cancel.*got no call",
     replaces_consumer([](FletchingSubjectConsumer& out) { out.cancel = [](void*) {}; })},
    {"schema that is taken and refused", "consumer-traces", "one-batch", "got both",
     replaces_consumer([](FletchingSubjectConsumer& out) {
       out.handler->on_schema = [](ArrowAsyncDeviceStreamHandler* self, ArrowSchema* schema) {
         return g_consumer_handler.on_schema(self, schema) + EINVAL;
       };
     })},
    {"batch that is not released", "consumer-traces", "one-batch", "expected 1 releases, got 0",
     replaces_consumer([](FletchingSubjectConsumer& out) {
       out.handler->on_next_task = [](ArrowAsyncDeviceStreamHandler* self, ArrowAsyncTask* task,
                                      const char* metadata) {
         static ArrowAsyncTask inner;
         if (task == nullptr) return g_consumer_handler.on_next_task(self, task, metadata);
         inner = *task;
         ArrowAsyncTask outer{[](ArrowAsyncTask*, ArrowDeviceArray* to) {
                                const int code = inner.extract_data(&inner, to);
                                to->array.release = [](ArrowArray* array) {
                                  array->release = nullptr;
                                };
                                return code;
                              },
                              nullptr};
         return g_consumer_handler.on_next_task(self, &outer, metadata);
       };
     })},
    {"release that does not wait", "consumer-traces", "release-waits-for-extraction",
     "expected a release that waits", replaces_consumer([](FletchingSubjectConsumer& out) {
       out.handler->release = [](ArrowAsyncDeviceStreamHandler*) {};
       out.release = [](void* self) {
         g_consumer_handler.release(g_consumer.handler);
         g_consumer.release(self);
       };
     })},
};

TEST(Conformance, FindsEachFault) {
  for (const Fault& fault : kFaults) {
    FletchingSubject subject = good();
    fault.plant(subject);
    const Wrong wrong = run(subject, fault.group, fault.shown_by);
    const auto found = wrong.find(fault.shown_by);
    EXPECT_NE(found, wrong.end()) << fault.name << ": not in " << fault.shown_by;
    if (found == wrong.end()) continue;
    EXPECT_TRUE(std::regex_search(found->second, std::regex(fault.message)))
        << fault.name << ": " << found->second;
  }
}

/// The number of results for each verdict; "wrong" must not occur.
std::map<std::string, int> verdicts(const FletchingSubject& subject, const char* group,
                                    const char* name = nullptr) {
  std::map<std::string, int> counts;
  const FletchingConformanceOptions options{
      sizeof options,
      group,
      name,
      [](void* context, const FletchingConformanceResult* result) {
        ++(*static_cast<std::map<std::string, int>*>(context))[result->verdict];
      },
      &counts,
      nullptr,
      nullptr,
      nullptr};
  std::int64_t wrong = -1;
  EXPECT_EQ(FletchingConformanceRun(&subject, &options, &wrong, nullptr), 0);
  EXPECT_EQ(wrong, 0);
  return counts;
}

TEST(Conformance, AcceptsCppLibrary) {
  EXPECT_EQ(run(good(), nullptr), Wrong());
  for (std::int32_t i = 0; const char* group = FletchingConformanceGroup(i); ++i) {
    std::map<std::string, int> counts = verdicts(good(), group);
    EXPECT_GT(counts["right"], 0) << group;
    EXPECT_EQ(counts["not-supported"], 0) << group;
  }
}

TEST(Conformance, FindsStoredAddressUnderStress) {
  FletchingSubject subject = device_streams_with([](ArrowDeviceArrayStream& stream) {
    stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
      static ArrowDeviceArray* stored = nullptr;
      if (stored != nullptr) stored->array.null_count = 1;
      stored = out;
      return inner_of(self)->get_next(inner_of(self), out);
    };
  });
  setenv("FLETCHING_CONFORMANCE_STRESS", "1", 1);
  const Wrong wrong = run(subject, "catalogue-streams", "int32");
  unsetenv("FLETCHING_CONFORMANCE_STRESS");
  ASSERT_EQ(wrong.count("int32"), 1U);
  EXPECT_TRUE(wrong.at("int32").find("no pointer to it") != std::string::npos) << wrong.at("int32");
}

/// A subject that rebuilds arrays: `change` alters each result.
template <class Change>
FletchingSubject rebuilding(Change /*change*/) {
  FletchingSubject subject = good();
  subject.promises |= FLETCHING_SUBJECT_REBUILDS;
  subject.array = [](void* context, ArrowSchema* schema, ArrowDeviceArray* in,
                     ArrowSchema* out_schema, ArrowDeviceArray* out, FletchingMessage* message) {
    const int code = good().array(context, schema, in, out_schema, out, message);
    if (code == 0) Change()(*out_schema, out->array);
    return code;
  };
  return subject;
}

TEST(Conformance, AcceptsRebuiltArrays) {
  const FletchingSubject subject = rebuilding([](ArrowSchema& schema, ArrowArray& array) {
    if (array.null_count == 0 && array.n_buffers == 2) array.buffers[0] = nullptr;
    if (array.null_count == -1 && array.buffers[0] == nullptr) array.null_count = 0;
    if (schema.dictionary != nullptr) schema.dictionary->flags = 0;
    if (schema.format == std::string_view("d:20,0,128")) schema.format = "d:20,0";
  });
  for (const char* name : {"nulls_none_with_validity", "nulls_uncounted_without_validity",
                           "dictionary", "decimal128_bits"}) {
    EXPECT_EQ(run(subject, "catalogue-arrays", name), Wrong{}) << name;
    FletchingSubject keeping = subject;
    keeping.promises &= ~FLETCHING_SUBJECT_REBUILDS;
    EXPECT_EQ(run(keeping, "catalogue-arrays", name).size(), 1U) << name;
  }
}

TEST(Conformance, FindsDataLostInRebuiltArray) {
  const FletchingSubject subject = rebuilding([](ArrowSchema& schema, ArrowArray& array) {
    if (array.null_count > 0) array.buffers[0] = nullptr;
    array.null_count = array.null_count > 0 ? 0 : array.null_count + 1;
    if (schema.format == std::string_view("d:20,0,128")) schema.format = "d:20,1";
  });
  for (const char* name : {"nulls", "int32", "decimal128_bits"}) {
    EXPECT_EQ(run(subject, "catalogue-arrays", name).size(), 1U) << name;
  }
}

TEST(Conformance, AllowsReadAheadOnlyForRebuildingSubject) {
  FletchingSubject subject = good();
  subject.stream = [](void*, ArrowArrayStream* in, ArrowArrayStream*, FletchingMessage*) {
    ArrowArray batch{};
    int code = in->get_next(in, &batch);
    while (code == 0 && batch.release != nullptr) {
      batch.release(&batch);
      code = in->get_next(in, &batch);
    }
    return code;
  };
  EXPECT_EQ(run(subject, "streams", "stream.error-fills-array").size(), 1U);
  subject.promises |= FLETCHING_SUBJECT_REBUILDS;
  EXPECT_EQ(run(subject, "streams", "stream.error-fills-array"), Wrong{});
}

TEST(Conformance, FindsChildAddedToRebuiltArray) {
  const FletchingSubject subject = rebuilding([](ArrowSchema& /*schema*/, ArrowArray& array) {
    static ArrowArray child{};
    static std::array<ArrowArray*, 1> children{&child};
    array.n_children = 1;
    array.children = children.data();
  });
  EXPECT_EQ(run(subject, "catalogue-arrays", "int32").size(), 1U);
}

TEST(Conformance, FindsNullsAddedToRebuiltArray) {
  const FletchingSubject subject = rebuilding([](ArrowSchema& /*schema*/, ArrowArray& array) {
    static constexpr std::array<std::uint8_t, 1> kFirstIsNull{0xFE};
    array.buffers[0] = kFirstIsNull.data();
    array.null_count = 1;
  });
  EXPECT_EQ(run(subject, "catalogue-arrays", "int32").size(), 1U);
}

TEST(Conformance, EnotsupIsReportedAsNotSupported) {
  FletchingSubject subject = good();
  subject.array = [](void*, ArrowSchema*, ArrowDeviceArray*, ArrowSchema*, ArrowDeviceArray*,
                     FletchingMessage*) { return ENOTSUP; };
  EXPECT_EQ(verdicts(subject, "catalogue-arrays", "int32"),
            (std::map<std::string, int>{{"not-supported", 1}}));
}

TEST(Conformance, MissingFunctionsAreNotSupported) {
  FletchingSubject subject{};
  subject.size = offsetof(FletchingSubject, synchronize);  // the first version's size
  subject.name = "empty";
  const std::map<std::string, int> found = verdicts(subject, nullptr);
  EXPECT_EQ(found.size(), 1U);
  EXPECT_GT(found.at("not-supported"), 500);
}

TEST(Conformance, CaseNamesAreUniquePerGroup) {
  std::map<std::string, int> counts;
  const FletchingConformanceOptions options{
      sizeof options,
      nullptr,
      nullptr,
      nullptr,
      &counts,
      [](void* context, const char* group, const char* name) {
        return ++(*static_cast<std::map<std::string, int>*>(context))[std::string(group) + name];
      },
      nullptr,
      nullptr};
  EXPECT_EQ(FletchingConformanceRun(&good(), &options, nullptr, nullptr), 0);
  EXPECT_GT(counts.size(), 500U);
  int traces = 0;
  for (const auto& [name, count] : counts) {
    EXPECT_EQ(count, 1) << name;
    traces += name.find("-traces") == std::string::npos ? 0 : 1;
  }
  EXPECT_EQ(traces, 246 + 195);
}

/// Traces that need a missing function are not supported; the others are right.
TEST(Conformance, PlaysTracesWithAvailableFunctions) {
  FletchingSubject subject = good();
  replaces_producer([](FletchingSubjectProducer& out) {
    out.failing_batch = nullptr;
    out.state = nullptr;
  })(subject);
  replaces_consumer([](FletchingSubjectConsumer& out) {
    out.drop = nullptr;
    out.refuse_next = nullptr;
    out.state = nullptr;
  })(subject);
  EXPECT_EQ(verdicts(subject, "producer-traces"),
            (std::map<std::string, int>{{"right", 229}, {"not-supported", 17}}));
  EXPECT_EQ(verdicts(subject, "consumer-traces"),
            (std::map<std::string, int>{{"right", 157}, {"not-supported", 38}}));
}

TEST(Conformance, SelectsCases) {
  EXPECT_EQ(verdicts(good(), "streams", "stream.good"), (std::map<std::string, int>{{"right", 1}}));
  const int all = verdicts(good(), "streams")["right"];
  const int failing = verdicts(good(), "streams", "stream.next-f*")["right"];
  EXPECT_GT(failing, 0);
  EXPECT_LT(failing, all);
  EXPECT_EQ(verdicts(good(), "streams", "*")["right"], all);
}

TEST(Conformance, RejectsUnknownOptions) {
  FletchingMessage message{};
  const auto refused = [&](const FletchingSubject* subject, const char* group, const char* name) {
    const FletchingConformanceOptions options{sizeof options, group,   name,    nullptr,
                                              nullptr,        nullptr, nullptr, nullptr};
    EXPECT_EQ(FletchingConformanceRun(subject, &options, nullptr, &message), EINVAL);
    return std::string(message.text);
  };
  EXPECT_EQ(refused(nullptr, nullptr, nullptr), "subject: expected a table, got NULL");
  FletchingSubject subject = good();
  EXPECT_EQ(refused(&subject, "quiver", nullptr), "options: group is unknown");
  EXPECT_EQ(refused(&subject, "schemas", "schema.goose"),
            "options: case_name (--case) is unknown: expected a name such as 'schema.good', got "
            "'schema.goose'");
  EXPECT_TRUE(refused(&subject, "schemas", "quiver*").ends_with(", got 'quiver*'"));
  ++subject.size;
  EXPECT_EQ(refused(&subject, nullptr, nullptr), "subject: size is unknown");
  const FletchingConformanceOptions later{sizeof later + 1, nullptr, nullptr, nullptr,
                                          nullptr,          nullptr, nullptr, nullptr};
  EXPECT_EQ(FletchingConformanceRun(&good(), &later, nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "options: size is unknown");
  EXPECT_STREQ(FletchingConformanceGroup(0), "schemas");
  EXPECT_EQ(FletchingConformanceGroup(-1), nullptr);
  EXPECT_EQ(FletchingConformanceGroup(1000), nullptr);
}

}  // namespace
}  // namespace fletching::conformance
