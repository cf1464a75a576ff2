// SPDX-License-Identifier: Apache-2.0
//
// Code shared by the C and C++ benchmarks: an opaque peer that the compiler cannot inline, and the
// table of cases.
#ifndef FLETCHING_BENCHMARKS_PEER_H
#define FLETCHING_BENCHMARKS_PEER_H

#include <stdint.h>

#include "fletching/abi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The columns of a batch, or the batches of a stream: kColumns, or the last argument. */
extern int peer_size;

/* Produces an array without data. */
void peer_produce(struct ArrowDeviceArray* out);

/* The data of a case's producer: `columns` addresses. Release it with peer_drop. */
const void* const* peer_data(void);
void peer_drop(const void* const* data);

/* Consumes a value, so that the compiler cannot drop the read. */
void peer_use(int64_t value);

/* A C consumer: moves the batch, reads every child, and releases it. */
void peer_consume(struct ArrowDeviceArray* source);

/* A C consumer: reads the schema and every batch, and releases the stream. */
void peer_read(struct ArrowDeviceArrayStream* stream);

/* Memory for a batch that stays until the program ends. */
struct ArrowDeviceArray* peer_keep(void);

enum { kColumns = 1000, kMostColumns = 100000, kKept = 1000, kRows = 64 };

struct Case {
  const char* name;
  void (*run)(void);
};

/* The main function of all programs: `program CASE N [SIZE]` runs the case N times. A case named
 * "hold_..." keeps a batch in each round, and the program prints the bytes of each. */
int peer_main(int argc, char** argv, const struct Case* cases, int n_cases);

#ifdef __cplusplus
}
#endif

#endif /* FLETCHING_BENCHMARKS_PEER_H */
