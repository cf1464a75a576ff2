// Uses only abi.h, in C.
#include "fletching/abi.h"

int main(void) {
  struct ArrowDeviceArray array = {0};
  array.device_type = ARROW_DEVICE_CUDA;
  return array.array.release == 0 && array.device_type == 2 ? 0 : 1;
}
