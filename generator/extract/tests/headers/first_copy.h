#ifndef SHARED_GUARD
#define SHARED_GUARD
#define SHARED_VALUE 1
struct Shared {
  int first;
};
#endif
