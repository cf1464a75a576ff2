// Uses libfletching and the C++ headers in one program.
#include <iostream>

#include "fletching/c_api.h"
#include "fletching/owner.hpp"

int main() {
  fletching::DeviceArray owner;
  owner->array.release = [](ArrowArray* array) { array->release = nullptr; };
  ArrowDeviceArray moved;
  FletchingDeviceArrayMove(owner.get(), &moved);
  FletchingDeviceArrayRelease(&moved);
  std::cout << FletchingVersion() << '\n';
  return owner.is_released() ? 0 : 1;
}
