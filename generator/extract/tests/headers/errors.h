#include <stdint.h>

#define BEFORE 1

struct Good {
  int64_t a;
};

struct Bad {
  int64_t a;
  unknown_t b;
};

missing_type one;
missing_type two;
missing_type three;

struct AlsoGood {
  struct Good good;
};

#define AFTER 2
