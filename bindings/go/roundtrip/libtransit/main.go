// The library libfletching_transit_go is what tests/roundtrip/transit.h declares; build it with
// -buildmode=c-shared.
package main

// #cgo CFLAGS: -I${SRCDIR}/../../../../tests/roundtrip
// #include "transit.h"
import "C"

import (
	"errors"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

// No line is longer, whatever room there is said to be.
const maxMessage = 4096

//export FletchingTransitArray
func FletchingTransitArray(schema *C.struct_ArrowSchema, array *C.struct_ArrowDeviceArray,
	outSchema *C.struct_ArrowSchema, outArray *C.struct_ArrowDeviceArray, message *C.char, capacity C.size_t) C.int {
	err := transit(
		(*abi.ArrowSchema)(unsafe.Pointer(schema)), (*abi.ArrowDeviceArray)(unsafe.Pointer(array)),
		(*abi.ArrowSchema)(unsafe.Pointer(outSchema)), (*abi.ArrowDeviceArray)(unsafe.Pointer(outArray)))
	if message != nil {
		say(err, unsafe.Slice((*byte)(unsafe.Pointer(message)), min(capacity, maxMessage)))
	}
	return C.int(errno(err))
}

//export FletchingTransitExported
func FletchingTransitExported() C.int64_t { return C.int64_t(reexport.Exported()) }

//export FletchingTransitReleased
func FletchingTransitReleased() C.int64_t { return C.int64_t(reexport.Released()) }

func transit(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray, outSchema *abi.ArrowSchema, outArray *abi.ArrowDeviceArray) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = walk.Errorf(syscall.EIO, "panic in Go: %v", problem)
		}
	}()
	for _, argument := range []struct {
		name    string
		missing bool
	}{
		{"schema", schema == nil}, {"array", array == nil}, {"out_schema", outSchema == nil}, {"out_array", outArray == nil},
	} {
		if argument.missing {
			return walk.Errorf(syscall.EINVAL, "%s is NULL", argument.name)
		}
	}
	// The array first: it needs the schema as it is, and checks both, so that the second one cannot fail.
	if err := reexport.Array(schema, array, outArray); err != nil {
		return err
	}
	return reexport.Schema(schema, outSchema)
}

// say writes one line, NUL-terminated, empty for nil.
func say(err error, room []byte) {
	if len(room) == 0 {
		return
	}
	line := ""
	if err != nil {
		line = walk.Fit(walk.Printable(err.Error()), len(room)-1)
	}
	room[copy(room, line)] = 0
}

func errno(err error) int {
	var known *walk.Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &known) && known.Code != 0:
		return known.Code
	}
	return int(syscall.EIO)
}

func main() {}
