// SPDX-License-Identifier: Apache-2.0

//go:build cgo

// Package corpus runs the cases of tests/corpus, whose library is opened at run time.
package corpus

// #cgo CFLAGS: -I${SRCDIR}/../forward
// #cgo linux LDFLAGS: -ldl
// #include "library.h"
import "C"

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// The kind of data in a case.
const (
	Schema = 1
	Array  = 2
)

const accept = 1

// Case is one case.
type Case struct {
	Name     string
	Accepted bool
	index    C.int32_t
}

var open = sync.OnceValue(func() error {
	path := filepath.Join(repository.Libraries(), "libfletching_corpus.so")
	if problem := C.fletching_go_corpus_open(text(path)); problem != nil {
		return fmt.Errorf("cannot use the corpus %s: %s; run `make`", path, C.GoString(problem))
	}
	return nil
})

// Each runs every case of a kind and checks that the case released each export once.
func Each(t *testing.T, kind int32, play func(t *testing.T, c Case)) {
	t.Helper()
	repository.Need(t)
	if err := open(); err != nil {
		t.Fatal(err)
	}
	played := 0
	for i := range C.fletching_go_corpus_Count() {
		if int32(C.fletching_go_corpus_Kind(i)) != kind {
			continue
		}
		c := Case{C.GoString(C.fletching_go_corpus_Name(i)), C.fletching_go_corpus_Verdict(i) == accept, i}
		t.Run(c.Name, func(t *testing.T) {
			play(t, c)
			run(t, func(message unsafe.Pointer) C.int { return C.fletching_go_corpus_Finish(message) })
		})
		played++
	}
	if played == 0 {
		t.Error("no case")
	}
}

// IsException reports whether a library is known to differ from the verdict.
func (c Case) IsException(library string) bool {
	return C.fletching_go_corpus_Exception(c.index, text(library)) != nil
}

// Rule returns the rule that a rejected case breaks, or "" if the case names none.
func (c Case) Rule() string {
	return C.GoString(C.fletching_go_corpus_Text(c.index, text("rule")))
}

// NeedsData reports whether the case can be rejected only by reading the buffers.
func (c Case) NeedsData() bool {
	return C.fletching_go_corpus_Text(c.index, text("level")) != nil
}

// ExportSchema returns the schema of the case.
func (c Case) ExportSchema(t *testing.T) *abi.ArrowSchema {
	t.Helper()
	out := new(abi.ArrowSchema)
	run(t, func(message unsafe.Pointer) C.int {
		return C.fletching_go_corpus_ExportSchema(text(c.Name), unsafe.Pointer(out), message)
	})
	return out
}

// ExportArray returns the array of the case.
func (c Case) ExportArray(t *testing.T) *abi.ArrowDeviceArray {
	t.Helper()
	out := new(abi.ArrowDeviceArray)
	run(t, func(message unsafe.Pointer) C.int {
		return C.fletching_go_corpus_ExportArray(text(c.Name), unsafe.Pointer(out), message)
	})
	return out
}

func run(t *testing.T, call func(message unsafe.Pointer) C.int) {
	t.Helper()
	var message [1024]C.char
	if code := call(unsafe.Pointer(&message)); code != 0 {
		t.Errorf("code %d: %s", code, C.GoString(&message[0]))
	}
}

// text returns a NUL-terminated copy in Go memory, for use during one call.
func text(s string) *C.char {
	return (*C.char)(unsafe.Pointer(unsafe.StringData(s + "\x00")))
}
