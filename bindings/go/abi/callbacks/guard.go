// SPDX-License-Identifier: Apache-2.0

package callbacks

// #include <stdint.h>
// #include <stdlib.h>
//
// static void report_error(uintptr_t function, uintptr_t context, const char* text) {
//   ((void (*)(uintptr_t, const char*, const char*))function)(context, "RuntimeError", text);
// }
import "C"

import (
	"fmt"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

var observer atomic.Pointer[func(callback string, value any)]

// OnPanic sets a function that is called, from any thread, with every panic that a stub recovers and
// with the name of the callback, such as "ArrowArray.release". It is the only report of a panic in a
// release callback. nil removes the function.
func OnPanic(observe func(callback string, value any)) {
	if observe == nil {
		observer.Store(nil)
		return
	}
	observer.Store(&observe)
}

// observed calls the observer and recovers its panics.
func observed(callback string, value any) {
	defer func() { _ = recover() }()
	if observe := observer.Load(); observe != nil {
		(*observe)(callback, value)
	}
}

// The functions that stubs defer, one for each way in which a callback can report a failure.

func ignore(callback string) {
	if value := recover(); value != nil {
		observed(callback, value)
	}
}

func fail[T any](callback string, result *T, failure T) {
	if value := recover(); value != nil {
		*result = failure
		observed(callback, value)
	}
}

func keepText[T any](callback string, handle *uintptr, result *T, failure T) {
	if value := recover(); value != nil {
		*result = failure
		setText(*handle, text(callback, value))
		observed(callback, value)
	}
}

func report[T any](callback string, function, context uintptr, result *T, failure T) {
	if value := recover(); value != nil {
		*result = failure
		if function != 0 {
			message := C.CString(text(callback, value))
			C.report_error(C.uintptr_t(function), C.uintptr_t(context), message)
			C.free(unsafe.Pointer(message))
		}
		observed(callback, value)
	}
}

// text describes a panic; fmt catches panics of its value's methods.
func text(callback string, value any) string {
	described := fmt.Sprintf("%s: panic in Go: %v", callback, value)
	return strings.ReplaceAll(described, "\x00", "?")
}

// static holds the implementation of a table whose functions receive no pointer to it.
type static[T any] struct{ value atomic.Pointer[T] }

func (s *static[T]) set(value T) { s.value.Store(&value) }

func (s *static[T]) get() T {
	value := s.value.Load()
	if value == nil || any(*value) == nil {
		panic("no value has been set")
	}
	return *value
}

// at returns the struct at an address passed by C.
func at[T any](address uintptr) *T {
	return (*T)(abi.Pointer(address))
}
