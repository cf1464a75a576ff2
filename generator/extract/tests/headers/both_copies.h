#include "first_copy.h"

#include "second_copy.h"

#include "first_copy.h"
