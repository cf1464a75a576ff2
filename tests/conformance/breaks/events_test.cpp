// SPDX-License-Identifier: Apache-2.0
//
// The rules of ArrowDeviceArray.sync_event, on the stand-in's OpenCL.
#include "breaks.hpp"
#include "gate.h"

namespace fletching::conformance {
namespace {

TEST(Events, SyncEventWaitedBeforeAccess) {
  FletchingSubject subject = good();
  subject.wait_on = [](void*, ArrowDeviceArray*, void*, FletchingMessage*) { return 0; };
  finds(subject, "opencl.wait-on", "byte 0 is old|an idle one");
}

TEST(Events, SyncEventNullMeansReady) {
  FletchingSubject subject = good();
  subject.export_with_event = [](void*, ArrowDeviceArray*, void*, FletchingMessage*) { return 0; };
  finds(subject, "opencl.export-with-event", "byte 0 is old|an idle one");
}

// The event is recorded on a different stream than the work.
TEST(Events, SyncEventDataReadyWhenTriggered) {
  FletchingSubject subject = good();
  subject.export_with_event = [](void* context, ArrowDeviceArray* array, void*,
                                 FletchingMessage* message) {
    FletchingProducerQueue* idle = nullptr;
    const int code = FletchingProducerQueueCreate("opencl", &idle, message);
    if (code != 0) return code;
    const int exported =
        good().export_with_event(context, array, FletchingProducerQueueHandle(idle), message);
    FletchingProducerQueueDestroy(idle, nullptr);
    return exported;
  };
  finds(subject, "opencl.export-with-event", "byte 0 is old|an idle one");
}

}  // namespace
}  // namespace fletching::conformance
