// SPDX-License-Identifier: Apache-2.0
//
// What the benchmarks in C and C++ share: the other side, which no compiler sees through, and the
// cases by name.
#ifndef FLETCHING_BENCHMARKS_PEER_H
#define FLETCHING_BENCHMARKS_PEER_H

#include <stdint.h>

#include "fletching/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An array that owns nothing. */
void peer_produce(struct ArrowDeviceArray* out);

/* The data that the producer of a case owns: `columns` addresses, given back with peer_drop. */
const void* const* peer_data(void);
void peer_drop(const void* const* data);

/* Takes what the consumer has read. */
void peer_use(int64_t value);

/* A consumer in C: moves the batch, reads every child, and releases. */
void peer_consume(struct ArrowDeviceArray* source);

enum { kColumns = 1000, kRows = 64 };

struct Case {
  const char* name;
  void (*run)(void);
};

/* The main function of both programs: `program CASE N` runs the case N times. */
int peer_main(int argc, char** argv, const struct Case* cases, int n_cases);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_BENCHMARKS_PEER_H */
