// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"context"
	"slices"
	"syscall"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// ImportSchema returns the schema of record batches, and closes what it is made from.
//
// Errors: EINVAL for a schema that is closed or of no struct, and for what arrow-go does not know.
func ImportSchema(schema *fletching.Schema) (*arrow.Schema, error) {
	field, err := ImportField(schema)
	if err != nil {
		return nil, err
	}
	table, ok := field.Type.(*arrow.StructType)
	if !ok {
		return nil, invalid("import schema: wrong type: expected a struct, got %v", field.Type)
	}
	return arrow.NewSchema(table.Fields(), &field.Metadata), nil
}

// ImportField is ImportSchema for a schema of any type.
func ImportField(schema *fletching.Schema) (arrow.Field, error) {
	raw := new(abi.ArrowSchema)
	if err := schema.Export(unsafe.Pointer(raw)); err != nil {
		return arrow.Field{}, err
	}
	return guarded("import schema", func() (arrow.Field, error) {
		return cdata.ImportCArrowField((*cdata.CArrowSchema)(unsafe.Pointer(raw)))
	})
}

// ImportArray returns an array of the type, of the memory of the device array, which is consumed. An
// Array becomes a device array with ToDevice.
//
// The memory has to be one that the CPU can access: cpu, cuda_host, cuda_managed, rocm_host. An event is
// waited for, with the context, as DeviceArray.Synchronize does; nothing is waited for where there is
// none.
//
// The structs are checked against the type, and the addresses of the buffers as Options.Alignment says.
// Offsets and the contents of buffers are not checked: they are the producer's promise.
//
// Errors: EINVAL for an array that is closed, on another device or not of the type, and for a buffer that is
// not aligned; those of Synchronize.
func ImportArray(ctx context.Context, source *fletching.DeviceArray, dataType arrow.DataType, options Options) (arrow.Array, error) {
	host, err := onHost(ctx, source)
	if err != nil {
		return nil, err
	}
	aligned, err := align(host, dataType, options)
	if err != nil {
		return nil, err
	}
	raw := new(abi.ArrowArray)
	if err := aligned.Export(unsafe.Pointer(raw)); err != nil {
		return nil, err
	}
	return guarded("import array", func() (arrow.Array, error) {
		return cdata.ImportCArrayWithType((*cdata.CArrowArray)(unsafe.Pointer(raw)), dataType)
	})
}

// ImportRecordBatch is ImportArray for a struct without nulls.
func ImportRecordBatch(ctx context.Context, source *fletching.DeviceArray, schema *arrow.Schema, options Options) (arrow.RecordBatch, error) {
	if nulls := source.NullCount(); nulls > 0 {
		source.Close()
		return nil, invalid("import record batch: %d rows are null: expected nulls in columns only", nulls)
	}
	imported, err := ImportArray(ctx, source, arrow.StructOf(schema.Fields()...), options)
	if err != nil {
		return nil, err
	}
	defer imported.Release()
	table := imported.(*array.Struct)
	columns := make([]arrow.Array, table.NumField())
	for i := range columns {
		columns[i] = table.Field(i)
	}
	return array.NewRecordBatch(schema, columns, int64(table.Len())), nil
}

// onHost returns the array when its data is there. It consumes the source.
func onHost(ctx context.Context, source *fletching.DeviceArray) (*fletching.Array, error) {
	defer source.Close() // which does nothing after the export
	if source.IsReleased() {
		return nil, fletching.NewError(syscall.EINVAL, "import array: closed: expected a live array", fletching.ErrClosed)
	}
	if found := source.DeviceType(); !slices.Contains(found.AccessibleFrom(), abi.DeviceCPU) {
		return nil, invalid("import array: memory of %v: expected memory that the CPU can access; hint: copy it to the host", found)
	}
	if err := source.Synchronize(ctx); err != nil {
		return nil, err
	}
	raw := new(abi.ArrowDeviceArray)
	if err := source.Export(unsafe.Pointer(raw)); err != nil {
		return nil, err
	}
	return fletching.ImportArray(unsafe.Pointer(&raw.Array))
}
