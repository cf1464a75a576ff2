// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"bytes"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
)

// overwritten returns an array of equal strings, which its release overwrites.
func overwritten(text string, rows int) *fletching.Array {
	offsets, data := make([]int32, rows+1), bytes.Repeat([]byte(text), rows)
	for i := range offsets {
		offsets[i] = int32(i * len(text))
	}
	first := uintptr(unsafe.Pointer(&data[0]))
	builder := fletching.ArrayBuilder{Length: int64(rows), NullCount: -1, Buffers: []uintptr{first, uintptr(unsafe.Pointer(&offsets[0])), first}}
	return must(builder.Build(onClose(func() { // keeps the buffers alive
		clear(offsets)
		copy(data, bytes.Repeat([]byte{0xff}, len(data)))
	})))
}

// collecting runs the garbage collector until the test ends.
func collecting(t *testing.T) {
	stop, done := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() {
		close(stop)
		<-done
	})
	go func() {
		defer close(done)
		for {
			select {
			case <-stop:
				return
			default:
				runtime.GC()
			}
		}
	}()
}

// Uses a reader after the last use of its owner.
func TestReadKeepsUnreferencedOwner(t *testing.T) {
	const text, rows = "sixteen bytes...", 1 << 20
	schema := must((&fletching.SchemaBuilder{Format: "u"}).Build())
	defer schema.Close()
	collecting(t)
	read := func() fletching.ColumnReader {
		return must(fletching.ReadArray(overwritten(text, rows).Root(), schema.Root()))
	}
	for range 4 {
		texts := must(read().Strings())
		if slices.ContainsFunc(texts, func(found string) bool { return found != text }) {
			t.Fatalf("strings of a released array, the last one %q", texts[rows-1])
		}
		valid := must(read().Valid())
		if !slices.Contains(valid[rows-8:], false) { // the validity buffer contains the bits of "."
			t.Fatal("validity of a released array")
		}
	}
}
