// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"errors"
	"reflect"
	"syscall"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

// extension is an extension type with int storage.
type extension struct{ arrow.ExtensionBase }

type extensionArray struct{ array.ExtensionArrayBase }

func (*extension) ArrayType() reflect.Type { return reflect.TypeFor[extensionArray]() }
func (*extension) ExtensionName() string   { return "test" }
func (*extension) Serialize() string       { return "" }

func (*extension) ExtensionEquals(other arrow.ExtensionType) bool {
	return other.ExtensionName() == "test"
}

func (e *extension) Deserialize(arrow.DataType, string) (arrow.ExtensionType, error) { return e, nil }

// An export uses the storage type. An import uses the type that the caller passes.
func TestExtensionTypesRoundTrip(t *testing.T) {
	ints := build(t, checked(t), arrow.PrimitiveTypes.Int32, `[1, null, 3]`)
	defer ints.Release()
	ofInts := &extension{arrow.ExtensionBase{Storage: arrow.PrimitiveTypes.Int32}}
	source := array.NewExtensionArrayWithStorage(ofInts, ints)
	defer source.Release()
	exported := must(must(arrowgo.ExportArray(source)).ToDevice())
	back := must(arrowgo.ImportArray(context.Background(), exported, arrow.PrimitiveTypes.Int32, arrowgo.Options{}))
	defer back.Release()
	if !array.Equal(ints, back) {
		t.Errorf("expected %v, got %v", ints, back)
	}
	extended := must(roundTrip(source, arrowgo.Options{}))
	defer extended.Release()
	if !array.Equal(source, extended) {
		t.Errorf("expected %v, got %v", source, extended)
	}
}

// Some consumers reject NULL for an empty buffer. A validity buffer may be NULL.
func TestExportedEmptyBuffersHaveAddress(t *testing.T) {
	data := array.NewData(arrow.PrimitiveTypes.Int32, 0, []*memory.Buffer{nil, nil}, nil, 0, 0)
	defer data.Release()
	source := array.MakeFromData(data)
	defer source.Release()
	exported := must(arrowgo.ExportArray(source))
	defer exported.Close()
	if exported.Buffer(0) != 0 || exported.Buffer(1) == 0 {
		t.Errorf("buffers: %#x", exported.BufferAddresses())
	}
}

func TestRejectedExportReleasesArray(t *testing.T) {
	numbers := build(t, checked(t), arrow.PrimitiveTypes.Int32, "[1, 2]")
	data := array.NewData(numbers.DataType(), 2, numbers.Data().Buffers(), nil, 3, 0) // more nulls than rows
	numbers.Release()
	exported, err := arrowgo.ExportArray(dataOnly{data: data})
	if !errors.Is(err, syscall.EINVAL) || exported != nil {
		t.Errorf("%v, %v", exported, err)
	}
	data.Release()
}

// arrow-go's null array has one buffer, which C does not have, or no buffer.
func TestExportedNullTypeHasNoBuffers(t *testing.T) {
	for _, buffers := range [][]*memory.Buffer{nil, {nil}} {
		data := array.NewData(arrow.Null, 3, buffers, nil, 3, 0)
		source := array.MakeFromData(data)
		exported := must(arrowgo.ExportArray(source))
		if exported.NumBuffers() != 0 || exported.Length() != 3 {
			t.Errorf("%d buffers, %d rows", exported.NumBuffers(), exported.Length())
		}
		exported.Close()
		source.Release()
		data.Release()
	}
}
