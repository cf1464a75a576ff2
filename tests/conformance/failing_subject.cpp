// SPDX-License-Identifier: Apache-2.0
//
// A subject that crashes in one case and hangs in another, and otherwise passes structs on.
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <utility>

#include "fletching/conformance.h"

namespace {

/// The first call in a process crashes or hangs.
int schema(void* /*context*/, ArrowSchema* in, ArrowSchema* out, FletchingMessage* /*message*/) {
  static bool is_first = true;
  if (std::exchange(is_first, false) && in->release != nullptr) {
    if (in->n_children == 0) std::abort();
    while (true) pause();
  }
  *out = *in;
  in->release = nullptr;
  return 0;
}

}  // namespace

extern "C" FLETCHING_CONFORMANCE_EXPORT const FletchingSubject* FletchingConformanceSubject(
    std::int32_t index) {
  static const FletchingSubject subject = [] {
    FletchingSubject made{};
    made.size = sizeof made;
    made.name = "that-ends";
    made.schema = schema;
    return made;
  }();
  return index == 0 ? &subject : nullptr;
}
