// SPDX-License-Identifier: Apache-2.0

// Package peer contains the common parts of the programs of `make bench-go`: the C peer and the main function.
package peer

// #cgo CFLAGS: -O2 -I${SRCDIR}/../../../../../cpp/bench/c -I${SRCDIR}/../../../../../cpp/include
// #include <time.h>
//
// #include "native.h"
//
// static int64_t cpu_time(void) {
//   struct timespec now;
//   clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
//   return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
// }
import "C"

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// The size of the batch.
const (
	Columns = C.kColumns
	Rows    = C.kRows
)

// Leaf returns an array of Rows 64-bit integers. It owns no memory, so a copy is a separate array.
func Leaf() abi.ArrowDeviceArray {
	leaf := new(abi.ArrowDeviceArray)
	C.bench_leaf((*C.struct_ArrowDeviceArray)(unsafe.Pointer(leaf)))
	return *leaf
}

// Data returns the addresses of the columns, which have one value each in C memory.
func Data() []uintptr {
	return unsafe.Slice((*uintptr)(unsafe.Pointer(C.peer_data())), Columns)
}

// Consume is a C consumer: it moves the batch, reads every child, and releases the batch.
func Consume(array *abi.ArrowDeviceArray) {
	C.peer_consume((*C.struct_ArrowDeviceArray)(unsafe.Pointer(array)))
}

// Main runs a case a number of times: PROGRAM CASE ROUNDS. It prints the cost of a round: CPU time in
// nanoseconds, including the garbage collector's, and Go allocations.
func Main(cases map[string]func()) {
	runtime.GOMAXPROCS(1)
	if len(os.Args) != 3 || cases[os.Args[1]] == nil {
		usage()
	}
	rounds, err := strconv.Atoi(os.Args[2])
	if err != nil || rounds < 1 {
		usage()
	}
	run := cases[os.Args[1]]
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := C.cpu_time()
	for range rounds {
		run()
	}
	elapsed := C.cpu_time() - start
	runtime.ReadMemStats(&after)
	per := float64(rounds)
	fmt.Printf("{\"ns\": %g, \"allocations\": %g}\n", float64(elapsed)/per, float64(after.Mallocs-before.Mallocs)/per)
}

func usage() {
	fmt.Fprintf(os.Stderr, "usage: %s CASE ROUNDS\n", os.Args[0])
	os.Exit(2)
}

// Check terminates the program if there is an error.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}
