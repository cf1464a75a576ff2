#include <stdint.h>

struct Member {
  char c;
  int64_t v;
};
