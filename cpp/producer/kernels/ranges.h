// What a launch of kernels.cu gets, by value: the parameters of a kernel have at most 4 KB.
#ifndef FLETCHING_PRODUCER_KERNELS_RANGES_H
#define FLETCHING_PRODUCER_KERNELS_RANGES_H

#include <stdint.h>

// Each entry is done by one block.
struct Ranges {
  enum { kMost = 128 };
  struct {
    unsigned char* to;
    const unsigned char* from;
    uint64_t bytes;
  } entries[kMost];
};

#endif  // FLETCHING_PRODUCER_KERNELS_RANGES_H
