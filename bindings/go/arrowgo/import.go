// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// ImportArray converts the device array to an arrow-go array of the type, which uses the same memory. It
// consumes the device array. Use ToDevice to convert an Array to a device array.
//
// The CPU must be able to access the memory: cpu, cuda_host, cuda_managed, rocm_host. If there is an
// event, ImportArray waits for it with the context, as DeviceArray.Synchronize does.
//
// All properties that the structs expose are checked against the type before arrow-go gets the array:
// the numbers of buffers and children, their lengths, NULL buffers, and addresses according to
// Options.Alignment. An array without values may have NULL offsets. A NULL validity buffer with a null
// count of -1 means no nulls. The contents of buffers are not checked.
//
// Errors: EINVAL for an array that is closed, on another device or not of the type, and for a misaligned buffer; and
// the errors of Synchronize.
func ImportArray(ctx context.Context, source *fletching.DeviceArray, dataType arrow.DataType, options Options) (arrow.Array, error) {
	const operation = "ImportArray"
	host, err := onHost(ctx, operation, source)
	if err != nil {
		return nil, err
	}
	if dataType == nil {
		host.Close()
		return nil, missing(operation, "type")
	}
	return importArray(operation, host, dataType, options, func(data *array.Data) (arrow.Array, error) { return array.MakeFromData(data), nil })
}

// ImportRecordBatch is ImportArray for a struct array without null rows. It counts them if the producer has not.
func ImportRecordBatch(ctx context.Context, source *fletching.DeviceArray, schema *arrow.Schema, options Options) (arrow.RecordBatch, error) {
	return importRecordBatch(ctx, "ImportRecordBatch", source, schema, options)
}

func importRecordBatch(ctx context.Context, operation string, source *fletching.DeviceArray, schema *arrow.Schema, options Options) (arrow.RecordBatch, error) {
	host, err := onHost(ctx, operation, source)
	if err != nil {
		return nil, err
	}
	defer host.Close() // no effect after the import
	if schema == nil {
		return nil, missing(operation, "schema")
	}
	return importArray(operation, host, arrow.StructOf(schema.Fields()...), options, func(data *array.Data) (arrow.RecordBatch, error) {
		if nulls := countNulls(data); nulls > 0 {
			return nil, fmt.Errorf("%d rows are null: expected nulls in columns only", nulls)
		}
		table := array.NewStructData(data)
		defer table.Release()
		columns := make([]arrow.Array, table.NumField())
		for i := range columns {
			columns[i] = table.Field(i)
		}
		return array.NewRecordBatch(schema, columns, int64(table.Len())), nil
	})
}

// ImportBatch is ImportRecordBatch for an array that comes with its schema. It consumes both.
//
// Errors: also the errors of ImportSchema.
func ImportBatch(ctx context.Context, source *fletching.DeviceArray, schema *fletching.Schema, options Options) (arrow.RecordBatch, error) {
	if source != nil {
		defer source.Close() // no effect after the import
	}
	const operation = "ImportBatch"
	imported, err := importSchema(operation, schema)
	if err != nil {
		return nil, err
	}
	return importRecordBatch(ctx, operation, source, imported, options)
}

// onHost waits for the data and returns the array. It consumes the source.
func onHost(ctx context.Context, operation string, source *fletching.DeviceArray) (*fletching.Array, error) {
	if source == nil {
		return nil, missing(operation, "array")
	}
	defer source.Close() // no effect after the export
	if source.IsReleased() {
		return nil, fletching.NewError(syscall.EINVAL, operation+": closed: expected a live array", fletching.ErrClosed)
	}
	if found := source.DeviceType(); !slices.Contains(found.AccessibleFrom(), abi.DeviceCPU) {
		return nil, invalid("%s: memory of %v: expected memory that the CPU can access; hint: copy it to the host", operation, found)
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
