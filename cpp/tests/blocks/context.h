// Declarations that the C pages assume: a received device array and the vendors' types.
#include <stdint.h>

#include "fletching/c_api.h"

#define STATUS static int
#define OK 0

typedef struct CUevent_st* cudaEvent_t;

extern struct ArrowDeviceArray array;
extern struct FletchingMessage message;
extern void *device, *queue, *commands;
