// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package gpu lets tests call the functions of the libraries that stand in for the vendors' libraries (tests/standin).
package gpu

/*
#cgo linux LDFLAGS: -ldl
#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>

// All arguments of the functions that tests call are integers and addresses, which these targets
// pass in registers of one width.
typedef uintptr_t (*Function)(uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t, uintptr_t);
static uintptr_t call(void* function, const uintptr_t* a) {
  return ((Function)function)(a[0], a[1], a[2], a[3], a[4], a[5]);
}
*/
import "C"

import (
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// Library is a test library, which is never unloaded.
type Library struct {
	tb     testing.TB
	handle unsafe.Pointer
}

// Open loads a library by its path in the library folder, before another part of the process looks it up by name.
func Open(tb testing.TB, path string) Library {
	tb.Helper()
	repository.Need(tb)
	text := C.CString(filepath.Join(repository.Libraries(), path))
	defer C.free(unsafe.Pointer(text))
	handle := C.dlopen(text, C.RTLD_NOW|C.RTLD_LOCAL)
	if handle == nil {
		tb.Fatalf("%s; run `make`, or set FLETCHING_LIB_DIR", C.GoString(C.dlerror()))
	}
	return Library{tb, handle}
}

// Exists reports whether the loader finds a library.
func Exists(name string) bool {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return C.dlopen(text, C.RTLD_LAZY) != nil
}

// Call calls a function with up to 6 integers and C addresses.
func (l Library) Call(name string, arguments ...uintptr) uintptr {
	l.tb.Helper()
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	function := C.dlsym(l.handle, text)
	if function == nil {
		l.tb.Fatalf("no function %s", name)
	}
	var all [6]C.uintptr_t
	for i, argument := range arguments {
		all[i] = C.uintptr_t(argument)
	}
	return uintptr(C.call(function, &all[0]))
}

// OK calls a function that must return 0 as an int.
func (l Library) OK(name string, arguments ...uintptr) {
	l.tb.Helper()
	if code := int32(l.Call(name, arguments...)); code != 0 {
		l.tb.Fatalf("%s: %d", name, code)
	}
}

// Get calls a function that writes up to 8 bytes to an address, its argument `at`, and returns them.
func (l Library) Get(name string, at int, arguments ...uintptr) uintptr {
	l.tb.Helper()
	out := Alloc(8)
	defer Free(out)
	arguments = append(arguments[:at:at], append([]uintptr{out}, arguments[at:]...)...)
	l.OK(name, arguments...)
	return *(*uintptr)(At(out))
}

// CallText calls a function whose first argument is a string.
func (l Library) CallText(name, text string, arguments ...uintptr) uintptr {
	l.tb.Helper()
	address := Text(text)
	defer Free(address)
	return l.Call(name, append([]uintptr{address}, arguments...)...)
}

// Alloc returns zeroed C memory.
func Alloc(size int) uintptr { return uintptr(C.calloc(1, C.size_t(size))) }

// Free frees memory returned by Alloc and Text.
func Free(address uintptr) { C.free(At(address)) }

// Text returns a string in C memory.
func Text(text string) uintptr { return uintptr(unsafe.Pointer(C.CString(text))) }

// At converts a C address to a pointer.
func At(address uintptr) unsafe.Pointer {
	return *(*unsafe.Pointer)(unsafe.Pointer(&address))
}
