#include "library.h"

#define FUNCTIONS FLETCHING_GO_CORPUS_FUNCTIONS
#define THEIRS(name) FletchingCorpus##name
#define OURS(name) fletching_go_corpus_##name
#include "forward.h"
