#include "repeated_part.h"

#define BASE 2

#include "repeated_part.h"
