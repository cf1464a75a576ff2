// Prints how C++ names device types: each number goes through a device array.
#include <cstdlib>
#include <iostream>

#include "fletching/abi.h"
#include "fletching/tables.hpp"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    ArrowDeviceArray array{};
    array.device_type = static_cast<ArrowDeviceType>(std::strtol(argv[i], nullptr, 10));
    std::cout << fletching::device_name(array.device_type) << '\n';
  }
}
