// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package oracle lets tests query libfletching_oracle for the C layout of the structs, and exchange
// callbacks with it. The library is opened at run time. It stores the current call in global state, so
// it may be used by one goroutine at a time.
package oracle

// #cgo CFLAGS: -I${SRCDIR}/../forward -I${SRCDIR}/../headers
// #cgo linux LDFLAGS: -ldl
// #include <stdlib.h>
//
// #include "library.h"
import "C"

import (
	"errors"
	"fmt"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Callback is a callback of a struct, with the functions to call it and to be called.
type Callback struct {
	Struct, Name string  // names in C
	GoName       string  // the Go field
	Function     uintptr // the stub: a C function that enters Go
	// Call calls the object's callback; called is false if it is NULL.
	Call func(object unsafe.Pointer, arguments *Arguments) (result uint64, called bool)
}

// maxArguments is the maximum number of arguments of a callback.
const maxArguments = 8

// Arguments holds the bits of each argument, zero-extended from its width.
type Arguments [maxArguments]uint64

// Open loads the library. It must be called first.
func Open(path string) error {
	if problem := C.fletching_go_oracle_open(text(path)); problem != nil {
		return fmt.Errorf("cannot use the oracle %s: %s; run `make`", path, C.GoString(problem))
	}
	return nil
}

// Structs lists the upstream structs.
func Structs() []string {
	var names []string
	for i := range C.fletching_go_oracle_StructCount() {
		names = append(names, C.GoString(C.fletching_go_oracle_StructName(i)))
	}
	return names
}

// Size returns the upstream size of a struct, -1 for an unknown struct.
func Size(owner string) int {
	return int(C.fletching_go_oracle_Size(text(owner)))
}

// Align returns the upstream alignment of a struct, -1 for an unknown struct.
func Align(owner string) int {
	return int(C.fletching_go_oracle_Align(text(owner)))
}

// Variants returns the number of variants of each call.
func Variants() int {
	return int(C.fletching_go_oracle_VariantCount())
}

// CheckStruct compares the size and the alignment of a struct.
func CheckStruct(owner string, size uintptr, align int) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckStruct(text(owner), C.int64_t(size), C.int64_t(align), line, room)
	})
}

// CheckFieldNames compares the names of the fields, joined by commas, in order.
func CheckFieldNames(owner, names string) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckFieldNames(text(owner), text(names), line, room)
	})
}

// CheckField compares the offset and the size of a field.
func CheckField(owner, path string, offset, size uintptr) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckField(text(owner), text(path), C.int64_t(offset), C.int64_t(size), line, room)
	})
}

// CheckConstant compares the value of a macro.
func CheckConstant(name string, value int64) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckConstant(text(name), C.int64_t(value), line, room)
	})
}

// CheckConstantNames compares the names of the integer macros, joined by commas, in any order.
func CheckConstantNames(names string) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckConstantNames(text(names), line, room)
	})
}

// CheckEnumerators compares the enumerators of an enum, "kDLCPU=1,kDLCUDA=2", in any order.
func CheckEnumerators(owner, values string) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckEnumerators(text(owner), text(values), line, room)
	})
}

// Canary returns the value of a field in a filled object.
func Canary(owner, path string, element int) uint64 {
	return uint64(C.fletching_go_oracle_Canary(text(owner), text(path), C.int32_t(element)))
}

// Fill writes every canary of the struct to the object.
func Fill(owner string, object unsafe.Pointer) error {
	return failure("Fill", owner, C.fletching_go_oracle_Fill(text(owner), object))
}

// CheckRead compares a value that was read from a filled object.
func CheckRead(owner, path string, element int, seen uint64) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckRead(text(owner), text(path), C.int32_t(element), C.uint64_t(seen), line, room)
	})
}

// CheckWritten compares an object with every canary of the struct.
func CheckWritten(owner string, object unsafe.Pointer) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckWritten(text(owner), object, line, room)
	})
}

// CheckCallbackNames compares the names of the callbacks, joined by commas, in any order.
func CheckCallbackNames(owner, names string) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckCallbackNames(text(owner), text(names), line, room)
	})
}

// CheckSignature compares the widths of a callback's arguments and result, as oracle.h spells them.
func CheckSignature(owner, callback, signature string) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_CheckSignature(text(owner), text(callback), text(signature), line, room)
	})
}

// CallFromC makes C call a callback of the object.
func CallFromC(owner, callback string, variant int, object unsafe.Pointer) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_Call(text(owner), text(callback), C.int32_t(variant), object, line, room)
	})
}

// Install sets every callback of the object to a function of the oracle.
func Install(owner string, object unsafe.Pointer) error {
	return failure("Install", owner, C.fletching_go_oracle_Install(text(owner), object))
}

// BeginCall announces a call from Go and returns the arguments to pass.
func BeginCall(owner, callback string, variant int, object unsafe.Pointer) Arguments {
	C.fletching_go_oracle_BeginCall(text(owner), text(callback), C.int32_t(variant), object)
	var arguments Arguments
	for i := range arguments {
		arguments[i] = uint64(C.fletching_go_oracle_Argument(C.int32_t(i)))
	}
	return arguments
}

// EndCall compares the announced call with the call that arrived.
func EndCall(result uint64) error {
	return check(func(line *C.char, room C.size_t) C.int {
		return C.fletching_go_oracle_EndCall(C.uint64_t(result), line, room)
	})
}

// at returns the value at a C address.
func at[T any](address uint64) *T {
	return (*T)(abi.Pointer(uintptr(address)))
}

func address[T any](value *T) uint64 {
	return uint64(uintptr(unsafe.Pointer(value)))
}

// enter is the body of every callback in Go. It reports the arguments and returns the expected result.
func enter(owner, callback string, arguments ...uint64) uint64 {
	for i, argument := range arguments {
		C.fletching_go_oracle_SawArgument(text(owner), text(callback), C.int32_t(i), C.uint64_t(argument))
	}
	return uint64(C.fletching_go_oracle_ExpectedResult())
}

// check returns the line written by a check of the oracle as an error.
func check(run func(line *C.char, room C.size_t) C.int) error {
	var line [1024]C.char
	if run(&line[0], C.size_t(len(line))) == 0 {
		return nil
	}
	return errors.New(C.GoString(&line[0]))
}

func failure(verb, owner string, code C.int) error {
	if code == 0 {
		return nil
	}
	return fmt.Errorf("%s %s: %w", verb, owner, syscall.Errno(code))
}

// text returns a NUL-terminated copy in Go memory, for use during one call.
func text(s string) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s + "\x00")))
}

// Allocate returns zeroed C memory that is never freed: the objects of the tests contain values that are not
// addresses, and C may keep the objects.
func Allocate(size int) unsafe.Pointer {
	return C.calloc(1, C.size_t(size))
}
