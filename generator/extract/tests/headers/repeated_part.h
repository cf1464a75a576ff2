#undef PART
#define PART (BASE + 1)
#ifdef NOT_DEFINED
#define HIDDEN 4
#endif
