// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"runtime"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go"
)

// ExportArray returns the array in one C allocation. It retains the array, and pins its Go memory,
// until the last struct is released.
//
// Errors: as fletching.ArrayBuilder.Build.
func ExportArray(source arrow.Array) (*fletching.Array, error) {
	if source == nil {
		return nil, missing("ExportArray", "array")
	}
	data := source.Data()
	data.Retain()
	result, err := export(data.Release, func(pins *runtime.Pinner) fletching.ArrayBuilder { return builderOf(pins, data) })
	if err == nil {
		field := arrow.Field{Type: data.DataType()}
		result.DeclareType(func() (*fletching.SchemaBuilder, error) { return schemaOf(field) })
	}
	return result, err
}

// ExportRecordBatch is ExportArray for a record batch, which becomes a struct array.
func ExportRecordBatch(batch arrow.RecordBatch) (*fletching.Array, error) {
	if batch == nil {
		return nil, missing("ExportRecordBatch", "batch")
	}
	batch.Retain()
	result, err := export(batch.Release, func(pins *runtime.Pinner) fletching.ArrayBuilder {
		builder := fletching.ArrayBuilder{Length: batch.NumRows(), Buffers: []uintptr{0}}
		for _, column := range batch.Columns() {
			builder.Children = append(builder.Children, builderOf(pins, column.Data()))
		}
		return builder
	})
	if err == nil {
		schema := batch.Schema()
		result.DeclareType(func() (*fletching.SchemaBuilder, error) { return tableOf(schema) })
	}
	return result, err
}

// exported keeps the memory of the buffers alive.
type exported struct {
	release func()
	pins    runtime.Pinner
}

func (e *exported) Close() {
	e.pins.Unpin()
	e.release()
}

func export(release func(), build func(*runtime.Pinner) fletching.ArrayBuilder) (*fletching.Array, error) {
	owner := &exported{release: release}
	built := false
	defer func() { // also if an array with too few buffers panics
		if !built {
			owner.Close()
		}
	}()
	builder := build(&owner.pins)
	result, err := builder.Build(owner)
	built = err == nil
	return result, err
}

// zeros is the address of empty buffers: some consumers reject NULL.
var zeros [8]uint64

func builderOf(pins *runtime.Pinner, data arrow.ArrayData) fletching.ArrayBuilder {
	storage := storageOf(data.DataType())
	is := layoutOf(storage)
	builder := fletching.ArrayBuilder{
		Length: int64(data.Len()), NullCount: int64(data.NullN()), Offset: int64(data.Offset()),
	}
	buffers := data.Buffers()
	unknown := builder.NullCount < 0 && (len(buffers) == 0 || buffers[0] == nil || buffers[0].Len() == 0)
	if storage.ID() != arrow.NULL && (unknown || !is.validity) { // a NULL validity buffer means no nulls
		builder.NullCount = 0
	}
	first := 0
	if len(buffers) > 0 && !is.validity {
		first = 1
	}
	for i, buffer := range buffers[first:] {
		builder.Buffers = append(builder.Buffers, addressOf(pins, buffer, i == 0 && first == 0))
	}
	if is.views {
		const first = 2
		sizes := make([]int64, len(buffers)-first+1) // one extra element, so that sizes[0] exists
		for i, buffer := range buffers[first:] {
			sizes[i] = int64(buffer.Len())
		}
		pins.Pin(&sizes[0])
		builder.Buffers = append(builder.Buffers, uintptr(unsafe.Pointer(&sizes[0])))
	}
	for _, child := range data.Children() {
		builder.Children = append(builder.Children, builderOf(pins, child))
	}
	if _, ok := storage.(*arrow.DictionaryType); ok {
		dictionary := builderOf(pins, data.Dictionary())
		builder.Dictionary = &dictionary
	}
	return builder
}

func addressOf(pins *runtime.Pinner, buffer *memory.Buffer, validity bool) uintptr {
	if buffer != nil && buffer.Len() > 0 {
		first := unsafe.SliceData(buffer.Bytes())
		pins.Pin(first) // no effect on C memory
		return uintptr(unsafe.Pointer(first))
	}
	if validity {
		return 0
	}
	return uintptr(unsafe.Pointer(&zeros))
}
