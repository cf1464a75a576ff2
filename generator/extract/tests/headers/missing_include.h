#include "not_there.h"

#define STILL_THERE 1

struct StillThere {
  int a;
};
