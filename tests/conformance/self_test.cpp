// SPDX-License-Identifier: Apache-2.0
//
// Subjects with one fault each. The suite finds each fault in a case that shows it.
#include <gtest/gtest.h>

#include <cerrno>
#include <cstddef>
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
  const char* shown_by;  // a case
  const char* message;   // a regular expression
  std::function<void(FletchingSubject&)> plant;
};

template <class Plant>
auto replaces_stream(Plant plant) {
  return [plant](FletchingSubject& subject) { subject = device_streams_with(plant); };
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

TEST(Conformance, FindsNothingInTheCppLibrary) { EXPECT_EQ(run(good(), nullptr), Wrong()); }

TEST(Conformance, SaysWhatIsNotSupported) {
  FletchingSubject subject{};
  subject.size = offsetof(FletchingSubject, synchronize);  // of the first version
  subject.name = "empty";
  std::map<std::string, int> verdicts;
  const FletchingConformanceOptions options{
      sizeof options,
      nullptr,
      nullptr,
      [](void* context, const FletchingConformanceResult* result) {
        ++(*static_cast<std::map<std::string, int>*>(context))[result->verdict];
      },
      &verdicts,
      nullptr};
  std::int64_t wrong = -1;
  EXPECT_EQ(FletchingConformanceRun(&subject, &options, &wrong, nullptr), 0);
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(verdicts.size(), 1U);
  EXPECT_GT(verdicts["not-supported"], 500);
}

TEST(Conformance, HasEachNameOnceInItsGroup) {
  std::map<std::string, int> counts;
  const FletchingConformanceOptions options{
      sizeof options,
      nullptr,
      nullptr,
      nullptr,
      &counts,
      [](void* context, const char* group, const char* name) {
        return ++(*static_cast<std::map<std::string, int>*>(context))[std::string(group) + name];
      }};
  EXPECT_EQ(FletchingConformanceRun(&good(), &options, nullptr, nullptr), 0);
  EXPECT_GT(counts.size(), 500U);
  for (const auto& [name, count] : counts) EXPECT_EQ(count, 1) << name;
}

TEST(Conformance, RefusesWhatItDoesNotKnow) {
  FletchingMessage message{};
  const auto refused = [&](const FletchingSubject* subject, const char* group, const char* name) {
    const FletchingConformanceOptions options{sizeof options, group,   name,
                                              nullptr,        nullptr, nullptr};
    EXPECT_EQ(FletchingConformanceRun(subject, &options, nullptr, &message), EINVAL);
    return std::string(message.text);
  };
  EXPECT_EQ(refused(nullptr, nullptr, nullptr), "subject: expected a table, got NULL");
  FletchingSubject subject = good();
  EXPECT_EQ(refused(&subject, "quiver", nullptr), "options: group is unknown");
  EXPECT_EQ(refused(&subject, "schemas", "quiver"), "options: case_name is unknown");
  ++subject.size;
  EXPECT_EQ(refused(&subject, nullptr, nullptr), "subject: size is unknown");
  const FletchingConformanceOptions later{sizeof later + 1, nullptr, nullptr,
                                          nullptr,          nullptr, nullptr};
  EXPECT_EQ(FletchingConformanceRun(&good(), &later, nullptr, &message), EINVAL);
  EXPECT_STREQ(message.text, "options: size is unknown");
  EXPECT_STREQ(FletchingConformanceGroup(0), "schemas");
  EXPECT_EQ(FletchingConformanceGroup(-1), nullptr);
  EXPECT_EQ(FletchingConformanceGroup(1000), nullptr);
}

}  // namespace
}  // namespace fletching::conformance
