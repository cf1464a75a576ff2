// SPDX-License-Identifier: Apache-2.0

// Package peer has what the programs of `make bench-go` share: the other side, in C, and the main function.
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

// Leaf returns an array of Rows integers of 64 bits, which owns nothing: a copy of it is another one.
func Leaf() abi.ArrowDeviceArray {
	leaf := new(abi.ArrowDeviceArray)
	C.bench_leaf((*C.struct_ArrowDeviceArray)(unsafe.Pointer(leaf)))
	return *leaf
}

// Data returns the addresses of the columns: one value each, in memory of C.
func Data() []uintptr {
	return unsafe.Slice((*uintptr)(unsafe.Pointer(C.peer_data())), Columns)
}

// Consume is a consumer in C: it moves the batch, reads every child, and releases.
func Consume(array *abi.ArrowDeviceArray) {
	C.peer_consume((*C.struct_ArrowDeviceArray)(unsafe.Pointer(array)))
}

// Main runs a case so often: PROGRAM CASE ROUNDS. It prints what a round costs: nanoseconds of the
// processor, the garbage collector's among them, and allocations of Go.
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

// Check ends the program at an error.
func Check(err error) {
	if err != nil {
		panic(err)
	}
}
