#ifndef OUTER_H
// Only a comment between.
#define OUTER_H

// clang-format off
#ifndef INNER_A
#  define INNER_A
#  define A_VALUE 1
struct A {
  int a;
};
#endif
// clang-format on

#if !defined(INNER_B)
#define INNER_B
#define B_VALUE 2
struct B {
  int b;
};
#endif

#ifndef NO_GUARD
int no_guard(void);
#define NO_GUARD
#endif

#ifndef OTHER_NAME
#define ANOTHER_NAME
#endif

#endif
