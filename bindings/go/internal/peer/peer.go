// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package peer lets tests allocate in C and call the hostile peer, which is opened at run time.
package peer

// #cgo CFLAGS: -I${SRCDIR}/../forward -I${SRCDIR}/../headers
// #cgo linux LDFLAGS: -ldl -lpthread
// #include <malloc.h>
// #include <stdlib.h>
//
// #include "library.h"
import "C"

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// Open loads the peer.
var Open = sync.OnceValue(func() error {
	path := filepath.Join(repository.Libraries(), "libfletching_hostile.so")
	if problem := C.fletching_go_peer_open(text(path)); problem != nil {
		return fmt.Errorf("cannot use the peer %s: %s; run `make`", path, C.GoString(problem))
	}
	return nil
})

// Producers lists the cases of an async producer.
func Producers() (names []string) {
	for i := range C.fletching_go_peer_CaseCount() {
		if C.fletching_go_peer_CaseParty(i) == C.kFletchingHostileProducer {
			names = append(names, C.GoString(C.fletching_go_peer_CaseName(i)))
		}
	}
	return names
}

// StartProducer makes threads of the peer run an async producer.
func StartProducer(name string, handler unsafe.Pointer) error {
	return check(func(message *C.struct_FletchingMessage) C.int {
		return C.fletching_go_peer_StartProducer(text(name), (*C.struct_ArrowAsyncDeviceStreamHandler)(handler), message)
	})
}

// Finish ends a case. It returns an error for live objects and for every mistake.
func Finish() error {
	return check(func(message *C.struct_FletchingMessage) C.int { return C.fletching_go_peer_Finish(message) })
}

// Leaf fills in an array of one value, whose release does not enter Go.
func Leaf(out *abi.ArrowDeviceArray) {
	C.fletching_go_peer_leaf((*C.struct_ArrowDeviceArray)(unsafe.Pointer(out)))
}

// Release calls the release callback of an array count times.
func Release(array *abi.ArrowArray, count int) {
	C.fletching_go_peer_release((*C.struct_ArrowArray)(unsafe.Pointer(array)), C.int(count))
}

// ReleaseOnThreads releases the arrays, in C memory, on two threads at once. It returns false if there is no thread.
func ReleaseOnThreads(arrays []abi.ArrowArray) bool {
	first := (*C.struct_ArrowArray)(unsafe.Pointer(unsafe.SliceData(arrays)))
	return C.fletching_go_peer_release_on_threads(first, C.size_t(len(arrays))) == 0
}

// WithoutMemory runs the body while one malloc or calloc, after nth successful ones, returns NULL. failed reports
// whether it was reached, can whether the C library supports this.
func WithoutMemory(nth int, body func()) (failed, can bool) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	C.fletching_go_peer_fail_allocation(C.int(nth))
	body()
	left := C.fletching_go_peer_fail_allocation(-1)
	return left == -1, left != -2
}

// ErrNotReported is returned by Growth if the C library does not report allocated memory.
var ErrNotReported = errors.New("this C library does not report what is in use")

// Growth returns an error if repetitions of the operation leak C memory.
func Growth(operation func()) error {
	const rounds, most = 3000, 48 << 10 // 16 bytes per round; other code, and new threads, allocate as well
	for range 200 {
		operation()
	}
	before := int64(C.fletching_go_peer_in_use())
	if before == 0 {
		return ErrNotReported
	}
	for range rounds {
		operation()
	}
	if growth := int64(C.fletching_go_peer_in_use()) - before; growth >= most {
		return fmt.Errorf("%d bytes are left behind in C after %d times", growth, rounds)
	}
	return nil
}

// SizeOf returns the size of the allocation at an address, which is at least the requested size.
func SizeOf(address uintptr) uintptr {
	return uintptr(C.malloc_usable_size(abi.Pointer(address)))
}

// New returns zeroed C memory.
func New[T any](count int) []T {
	var element T
	return unsafe.Slice((*T)(C.calloc(C.size_t(count+1), C.size_t(unsafe.Sizeof(element)))), count)
}

// Free frees memory returned by New.
func Free[T any](memory []T) { C.free(unsafe.Pointer(unsafe.SliceData(memory))) }

func check(call func(message *C.struct_FletchingMessage) C.int) error {
	var message C.struct_FletchingMessage
	if code := call(&message); code != 0 {
		return fmt.Errorf("code %d: %s", code, C.GoString(&message.text[0]))
	}
	return nil
}

// text returns a NUL-terminated copy in Go memory, for use during one call.
func text(s string) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s + "\x00")))
}
