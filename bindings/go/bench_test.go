// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// A call of C that does nothing.
func BenchmarkCallOfC(b *testing.B) {
	for b.Loop() {
		peer.Nothing()
	}
}

// What a leaf costs without the package: C makes it, C releases it.
func BenchmarkLeafFloor(b *testing.B) {
	raw := new(abi.ArrowDeviceArray)
	b.ReportAllocs()
	for b.Loop() {
		peer.Leaf(raw)
		callbacks.CallArrowArrayRelease(&raw.Array)
	}
}

func BenchmarkLeaf(b *testing.B) {
	raw := new(abi.ArrowDeviceArray)
	b.ReportAllocs()
	for b.Loop() {
		peer.Leaf(raw)
		array, err := fletching.ImportDeviceArray(unsafe.Pointer(raw))
		if err != nil || array.Length() != 1 {
			b.Fatal(err)
		}
		array.Close()
	}
}

func BenchmarkBuildLeaf(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		builder := fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, 8}}
		must(builder.Build(nil)).Close()
	}
}

func BenchmarkFromValues(b *testing.B) {
	values := make([]int32, 8)
	b.ReportAllocs()
	for b.Loop() {
		must(fletching.FromValues(values)).Close()
	}
}

func BenchmarkTake1000Columns(b *testing.B) {
	builder := batch(1000)
	b.ReportAllocs()
	for b.Loop() {
		array := must(builder.Build(nil))
		for i := range 1000 {
			must(array.TakeChild(i)).Close()
		}
		array.Close()
	}
}

func BenchmarkShare1000Columns(b *testing.B) {
	builder := batch(1000)
	b.ReportAllocs()
	for b.Loop() {
		shared := must(must(builder.Build(nil)).Share())
		for i := range 1000 {
			must(shared.Column(i)).Close()
		}
		shared.Close()
	}
}

type endless struct{}

func (endless) Next() (*fletching.DeviceArray, error) {
	return (&fletching.ArrayBuilder{Length: 1}).BuildOn(abi.DeviceCUDA, 0, 0, nil)
}

func (endless) Close() {}

// A stream of Go that is read by Go, over C: one batch.
func BenchmarkStreamOfAReader(b *testing.B) {
	stream := overC(must(fletching.NewDeviceArrayStreamFrom(intSchema(), abi.DeviceCUDA, endless{})))
	b.ReportAllocs()
	for b.Loop() {
		must(stream.Next()).Close()
	}
	stream.Close()
}

// The same with an iterator: each batch is a switch between threads.
func BenchmarkStreamOfAnIterator(b *testing.B) {
	stream := overC(newStream(func(yield func(*fletching.DeviceArray, error) bool) {
		for yield(must((&fletching.ArrayBuilder{Length: 1}).BuildOn(abi.DeviceCUDA, 0, 0, nil)), nil) {
		}
	}))
	b.ReportAllocs()
	for b.Loop() {
		must(stream.Next()).Close()
	}
	stream.Close()
}
