// The argument of the kernels in kernels.cu and of the stand-ins' built-in ones. It is passed by
// value: kernel parameters are limited to 4 KB.
#ifndef FLETCHING_PRODUCER_KERNELS_RANGES_H
#define FLETCHING_PRODUCER_KERNELS_RANGES_H

#include <stdint.h>

// One thread block handles one entry.
struct Ranges {
  enum { kMost = 128, kThreads = 256 };
  struct Entry {
    unsigned char* to;
    const unsigned char* from;
    uint64_t bytes;
  };
  Entry entries[kMost];
};

#endif  // FLETCHING_PRODUCER_KERNELS_RANGES_H
