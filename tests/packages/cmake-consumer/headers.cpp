// Uses only the headers, in C++.
#include <string_view>
#include <thread>

#include "fletching/owner.hpp"
#include "fletching/tables.hpp"

int main() {
  fletching::DeviceArray array;
  array.out()->device_type = ARROW_DEVICE_CUDA;
  bool named = false;
  std::thread([&] { named = fletching::device_name(array->device_type) == "cuda"; }).join();
  return named && array.is_released() ? 0 : 1;
}
