#ifndef SHARED_GUARD
#define SHARED_GUARD
#define SHARED_VALUE 2
struct Shared {
  int second;
};
#endif
