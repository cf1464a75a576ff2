// Prints how C++ names device types and data-type codes: each number passes through a struct.
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string_view>

#include "fletching/abi.h"
#include "fletching/dlpack.h"
#include "fletching/tables.hpp"

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const long number = std::strtol(argv[i] + argument.find(':') + 1, nullptr, 10);
    if (argument.starts_with("code:")) {
      const DLDataType type{static_cast<std::uint8_t>(number), 8, 1};
      std::cout << fletching::data_type_code_name(type.code) << '\n';
      continue;
    }
    ArrowDeviceArray array{};
    array.device_type = static_cast<ArrowDeviceType>(number);
    std::cout << fletching::device_name(array.device_type) << '\n';
  }
}
