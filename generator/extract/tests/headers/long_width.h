#define FAR (1UL << 33)
#define LONG_MINUS_ONE (0UL - 1)
