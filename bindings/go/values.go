// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"reflect"
	"runtime"
	"unsafe"
)

// Primitive is a number type with the same layout in Arrow and Go.
type Primitive interface {
	~int8 | ~uint8 | ~int16 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// FromValues returns an array of a slice's values without nulls and without a copy. The slice
// is pinned until the array is released, and must not be modified until then.
//
// Errors: ENOMEM.
func FromValues[T Primitive](values []T) (*Array, error) {
	builder := ArrayBuilder{Length: int64(len(values)), Buffers: []uintptr{0, 0}}
	var owner pinned
	if len(values) > 0 {
		first := unsafe.SliceData(values)
		owner.pinner.Pin(first)
		builder.Buffers[1] = uintptr(unsafe.Pointer(first))
	}
	array, err := builder.Build(owner)
	if err != nil {
		owner.Close()
		return nil, err
	}
	array.DeclareType(primitiveType[T])
	return array, nil
}

var formats = map[reflect.Kind]string{
	reflect.Int8: "c", reflect.Uint8: "C", reflect.Int16: "s", reflect.Uint16: "S", reflect.Int32: "i",
	reflect.Uint32: "I", reflect.Int64: "l", reflect.Uint64: "L", reflect.Float32: "f", reflect.Float64: "g",
}

// FormatOf returns the format string of the type.
func FormatOf[T Primitive]() string { return formats[reflect.TypeFor[T]().Kind()] }

func primitiveType[T Primitive]() (*SchemaBuilder, error) {
	return &SchemaBuilder{Format: FormatOf[T]()}, nil
}

// pinned has the size of a pointer, so that storing it in an interface needs no allocation.
type pinned struct {
	pinner runtime.Pinner
}

func (p pinned) Close() { p.pinner.Unpin() }
