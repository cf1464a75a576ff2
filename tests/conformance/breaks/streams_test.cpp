// SPDX-License-Identifier: Apache-2.0
#include "streams.hpp"

#include <cerrno>

namespace fletching::conformance {
namespace {

TEST(DeviceStreams, DeviceStreamReleaseLikeArray) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) {
          stream.release = [](ArrowDeviceArrayStream* self) {
            inner_of(self)->release(inner_of(self));
            delete inner_of(self);
          };
        }),
        "stream.good", "\\[device-stream.release-like-array\\]");
}

TEST(DeviceStreams, DeviceStreamErrnoCodes) {
  finds(device_streams_with([](ArrowDeviceArrayStream& stream) {
          stream.get_next = [](ArrowDeviceArrayStream* self, ArrowDeviceArray* out) {
            return -inner_of(self)->get_next(inner_of(self), out);
          };
        }),
        "stream.next-fails", "\\[device-stream.errno-codes\\]");
}

}  // namespace
}  // namespace fletching::conformance
