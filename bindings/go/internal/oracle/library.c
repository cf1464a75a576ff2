#include "library.h"

#define FUNCTIONS FLETCHING_GO_ORACLE_FUNCTIONS
#define THEIRS(name) FletchingOracle##name
#define OURS(name) fletching_go_oracle_##name
#include "forward.h"
