// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package conformance runs the conformance suite, whose library is opened at run time, on the Go module.
package conformance

// #cgo CFLAGS: -I${SRCDIR}/../forward -I${SRCDIR}/../headers
// #cgo linux LDFLAGS: -ldl
// #include "library.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// The subjects.
const (
	Views = iota // returns views of shared data, and streams over readers
	Moves        // moves data, and returns streams over iterators
	Drops        // Views without the first batch of a device stream, which the suite must report
)

// Result is the result of one case.
type Result struct{ Name, Verdict, Answer, Rule, Message string }

// Open loads the suite.
var Open = sync.OnceValue(func() error {
	path := filepath.Join(repository.Libraries(), "libfletching_conformance.so")
	if problem := C.fletching_go_conformance_open(text(path)); problem != nil {
		return fmt.Errorf("cannot use the suite %s: %s; run `make`", path, C.GoString(problem))
	}
	return nil
})

// Name returns the name of a subject.
func Name(subject int) string {
	return C.GoString(C.fletching_go_conformance_subject(C.int32_t(subject)))
}

// Groups returns the names of the groups.
func Groups() (names []string) {
	for name := C.fletching_go_conformance_Group(0); name != nil; name = C.fletching_go_conformance_Group(C.int32_t(len(names))) {
		names = append(names, C.GoString(name))
	}
	return names
}

var results []Result // of the current run

// Play runs a group on a subject. Only one call may run at a time.
func Play(subject int, group string) ([]Result, error) {
	results = nil
	var message C.struct_FletchingMessage
	if code := C.fletching_go_conformance_play(C.int32_t(subject), text(group), &message); code != 0 {
		return nil, fletching.NewError(syscall.Errno(code), C.GoString(&message.text[0]), nil)
	}
	return results, nil
}

//export fletching_go_conformance_report
func fletching_go_conformance_report(result *C.struct_FletchingConformanceResult) {
	results = append(results, Result{
		C.GoString(result.name), C.GoString(result.verdict), C.GoString(result.answer), C.GoString(result.rule), C.GoString(result.message),
	})
}

// text returns a NUL-terminated copy in Go memory, for use during one call.
func text(s string) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s + "\x00")))
}
