#ifndef CONDITIONS_H
#define CONDITIONS_H

#define ALWAYS 1

// clang-format off
#if defined(OTHER) && ALWAYS
#define FIRST 1
#elif defined OTHER
#define SECOND 2
#elif !defined ( MORE )
#define THIRD 3
#else
#define FOURTH 4
#endif
// clang-format on

#ifdef __cplusplus
#define CPLUSPLUS 1
#else
#define CPLUSPLUS 0
#endif

#if 0
It's not even code, "so
#define IN_PROSE 5
#define IN_PROSE_CALL(x) 6
#endif

#endif  // CONDITIONS_H
