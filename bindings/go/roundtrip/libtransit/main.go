// The library libfletching_transit_go is what tests/roundtrip/transit.h declares; build it with
// -buildmode=c-shared.
//
// Like every Go library it is never unloaded: dlclose of it, or of a library that embeds it, leaves it in
// the process, and what it exported stays valid.
package main

// #cgo CFLAGS: -I${SRCDIR}/../../../../tests/roundtrip
// #include "transit.h"
import "C"

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
)

// No message is longer, whatever the capacity is.
const maxMessage = 4096

//export FletchingTransitArray
func FletchingTransitArray(schema *C.struct_ArrowSchema, array *C.struct_ArrowDeviceArray,
	outSchema *C.struct_ArrowSchema, outArray *C.struct_ArrowDeviceArray, message *C.char, capacity C.size_t) C.int {
	err := transit(
		(*abi.ArrowSchema)(unsafe.Pointer(schema)), (*abi.ArrowDeviceArray)(unsafe.Pointer(array)),
		(*abi.ArrowSchema)(unsafe.Pointer(outSchema)), (*abi.ArrowDeviceArray)(unsafe.Pointer(outArray)))
	if message != nil {
		writeMessage(err, unsafe.Slice((*byte)(unsafe.Pointer(message)), min(capacity, maxMessage)))
	}
	return C.int(codeOf(err))
}

//export FletchingTransitExported
func FletchingTransitExported() C.int64_t { return C.int64_t(reexport.Exported()) }

//export FletchingTransitReleased
func FletchingTransitReleased() C.int64_t { return C.int64_t(reexport.Released()) }

func transit(schema *abi.ArrowSchema, array *abi.ArrowDeviceArray, outSchema *abi.ArrowSchema, outArray *abi.ArrowDeviceArray) (err error) {
	defer func() {
		if problem := recover(); problem != nil {
			err = fletching.NewError(syscall.EIO, fmt.Sprintf("panic in Go: %v", problem), nil)
		}
	}()
	for _, argument := range []struct {
		name    string
		missing bool
	}{
		{"schema", schema == nil}, {"array", array == nil}, {"out_schema", outSchema == nil}, {"out_array", outArray == nil},
	} {
		if argument.missing {
			return errors.New(argument.name + ": NULL: expected an address")
		}
	}
	return reexport.Structs(schema, array, outSchema, outArray)
}

// writeMessage writes one line, NUL-terminated and empty for nil, which ends with a whole character.
func writeMessage(err error, room []byte) {
	if len(room) == 0 {
		return
	}
	line := ""
	if err != nil {
		line = strings.ToValidUTF8(strings.ReplaceAll(err.Error(), "\n", "; "), "\uFFFD")
	}
	end := min(len(line), len(room)-1)
	for end < len(line) && !utf8.RuneStart(line[end]) {
		end--
	}
	room[copy(room, line[:end])] = 0
}

// codeOf is EINVAL for an error without a code: that of a struct that is refused.
func codeOf(err error) int {
	var code syscall.Errno
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	return int(syscall.EINVAL)
}

func main() {}
