// SPDX-License-Identifier: Apache-2.0
//
// Ownership of the five structs: init, move, release.
#include <cstring>

#include "fletching/c_api.h"
#include "fletching/owner.hpp"

namespace {

using fletching::detail::base;

template <class Raw>
void init(Raw* raw) noexcept {
  std::memset(raw, 0, sizeof *raw);
}

template <class Raw>
void move(Raw* source, Raw* target) noexcept {
  if (source == target) return;
  std::memcpy(target, source, sizeof *target);
  base(*source).release = nullptr;
}

template <class Raw>
int is_released(const Raw* raw) noexcept {
  return raw == nullptr || base(*raw).release == nullptr ? 1 : 0;
}

template <class Raw>
void release(Raw* raw) noexcept {
  if (is_released(raw) == 0) fletching::detail::release_moved_out(&base(*raw));
}

}  // namespace

const char* FletchingVersion() { return FLETCHING_VERSION; }

void FletchingSchemaInit(ArrowSchema* schema) { init(schema); }
void FletchingSchemaMove(ArrowSchema* source, ArrowSchema* target) { move(source, target); }
void FletchingSchemaRelease(ArrowSchema* schema) { release(schema); }
int FletchingSchemaIsReleased(const ArrowSchema* schema) { return is_released(schema); }

void FletchingArrayInit(ArrowArray* array) { init(array); }
void FletchingArrayMove(ArrowArray* source, ArrowArray* target) { move(source, target); }
void FletchingArrayRelease(ArrowArray* array) { release(array); }
int FletchingArrayIsReleased(const ArrowArray* array) { return is_released(array); }

void FletchingDeviceArrayInit(ArrowDeviceArray* array) { init(array); }
void FletchingDeviceArrayMove(ArrowDeviceArray* source, ArrowDeviceArray* target) {
  move(source, target);
}
void FletchingDeviceArrayRelease(ArrowDeviceArray* array) { release(array); }
int FletchingDeviceArrayIsReleased(const ArrowDeviceArray* array) { return is_released(array); }

void FletchingArrayStreamInit(ArrowArrayStream* stream) { init(stream); }
void FletchingArrayStreamMove(ArrowArrayStream* source, ArrowArrayStream* target) {
  move(source, target);
}
void FletchingArrayStreamRelease(ArrowArrayStream* stream) { release(stream); }
int FletchingArrayStreamIsReleased(const ArrowArrayStream* stream) { return is_released(stream); }

void FletchingDeviceArrayStreamInit(ArrowDeviceArrayStream* stream) { init(stream); }
void FletchingDeviceArrayStreamMove(ArrowDeviceArrayStream* source,
                                    ArrowDeviceArrayStream* target) {
  move(source, target);
}
void FletchingDeviceArrayStreamRelease(ArrowDeviceArrayStream* stream) { release(stream); }
int FletchingDeviceArrayStreamIsReleased(const ArrowDeviceArrayStream* stream) {
  return is_released(stream);
}
