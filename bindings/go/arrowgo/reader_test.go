// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/arrow-go/v18/arrow/memory/mallocator"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

var schemaOfA = arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)

// tables returns a reader of count batches with the rows 0; 0, 1; ...
func tables(t *testing.T, count int) array.RecordReader {
	return tablesIn(checked(t), count)
}

func tablesIn(allocator memory.Allocator, count int) array.RecordReader {
	var batches []arrow.RecordBatch
	for i := range count {
		builder := array.NewInt32Builder(allocator)
		for value := range i + 1 {
			builder.Append(int32(value))
		}
		column := builder.NewArray()
		builder.Release()
		batches = append(batches, array.NewRecordBatch(schemaOfA, []arrow.Array{column}, int64(i+1)))
		column.Release()
	}
	reader := must(array.NewRecordReader(schemaOfA, batches))
	for _, batch := range batches {
		batch.Release()
	}
	return reader
}

func checkTables(t *testing.T, reader array.RecordReader, count int) {
	t.Helper()
	if !reader.Schema().Equal(schemaOfA) {
		t.Error(reader.Schema())
	}
	read := 0
	for ; reader.Next(); read++ {
		runtime.GC()
		values := reader.RecordBatch().Column(0).(*array.Int32).Int32Values()
		if len(values) != read+1 || values[read] != int32(read) {
			t.Errorf("batch %d: got %v", read, values)
		}
	}
	if reader.Err() != nil || read != count || reader.Next() {
		t.Errorf("%d batches, %v", read, reader.Err())
	}
}

func TestReaderRoundTrips(t *testing.T) {
	source := tables(t, 3)
	stream := must(arrowgo.ExportReader(source))
	source.Release() // the stream retains it
	reader := must(arrowgo.ImportHostReader(context.Background(), stream, arrowgo.Options{}))
	reader.Retain()
	reader.Release()
	checkTables(t, reader, 3)
	if reader.Release(); !stream.IsReleased() {
		t.Error("the stream is open: expected that the last release closes it")
	}
}

// A reader releases its current batch if the caller stops early.
func TestReaderReleasedBeforeEnd(t *testing.T) {
	source := tables(t, 3)
	stream := must(arrowgo.ExportReader(source))
	source.Release()
	reader := must(arrowgo.ImportHostReader(context.Background(), stream, arrowgo.Options{}))
	if !reader.Next() {
		t.Fatal(reader.Err())
	}
	if old, ok := reader.(interface{ Record() arrow.RecordBatch }); !ok || old.Record() != reader.RecordBatch() {
		t.Error("the old name returns another batch")
	}
	reader.Release()
}

func TestReadersRoundTripThroughCdata(t *testing.T) {
	raw := new(cdata.CArrowArrayStream)
	source := tables(t, 3)
	must(0, must(arrowgo.ExportReader(source)).Export(unsafe.Pointer(raw)))
	source.Release()
	reader := must(cdata.ImportCRecordReader(raw, nil)).(array.RecordReader)
	checkTables(t, reader, 3)
	reader.Release()

	// In C memory: cdata writes addresses of unpinned Go memory into C memory, for which
	// GOEXPERIMENT=cgocheck2 terminates the process.
	ofC := mallocator.NewMallocator()
	source = tablesIn(ofC, 2)
	cdata.ExportRecordReader(source, raw)
	source.Release()
	stream := must(fletching.ImportArrayStream(unsafe.Pointer(raw)))
	reader = must(arrowgo.ImportHostReader(context.Background(), stream, arrowgo.Options{}))
	checkTables(t, reader, 2)
	reader.Release()
	ofC.AssertSize(t, 0)
}

// failingReader is a device stream reader that ends with an error.
type failingReader struct {
	batches []*fletching.DeviceArray
	err     error
}

func (f *failingReader) Next() (*fletching.DeviceArray, error) {
	if len(f.batches) == 0 {
		return nil, f.err
	}
	batch := f.batches[0]
	f.batches = f.batches[1:]
	return batch, nil
}

func (f *failingReader) Close() {}

func TestImportReaderReturnsStreamError(t *testing.T) {
	batch := func() *fletching.DeviceArray {
		source := tables(t, 1)
		defer source.Release()
		source.Next()
		return must(must(arrowgo.ExportRecordBatch(source.RecordBatch())).ToDevice())
	}
	stream := must(fletching.NewDeviceArrayStreamFrom(must(arrowgo.ExportSchema(schemaOfA)), abi.DeviceCPU,
		&failingReader{[]*fletching.DeviceArray{batch()}, syscall.ENOSPC}))
	reader := must(arrowgo.ImportReader(context.Background(), stream, arrowgo.Options{}))
	if !reader.Next() || reader.Next() || !errors.Is(reader.Err(), syscall.ENOSPC) || reader.Next() {
		t.Error(reader.Err())
	}
	reader.Release()
}

func TestImportReaderRejectsInvalidStreams(t *testing.T) {
	stream := must(fletching.NewDeviceArrayStreamFrom(must((&fletching.SchemaBuilder{Format: "i"}).Build()), abi.DeviceCPU, &failingReader{err: io.EOF}))
	if _, err := arrowgo.ImportReader(context.Background(), stream, arrowgo.Options{}); !errors.Is(err, syscall.EINVAL) || !stream.IsReleased() {
		t.Error(err)
	}
	if _, err := arrowgo.ImportReader(context.Background(), stream, arrowgo.Options{}); !errors.Is(err, fletching.ErrClosed) {
		t.Error(err)
	}
	raw := new(abi.ArrowDeviceArrayStream)
	stream = must(fletching.NewDeviceArrayStreamFrom(must(arrowgo.ExportSchema(schemaOfA)), abi.DeviceCPU, &failingReader{err: io.EOF}))
	must(0, stream.Export(unsafe.Pointer(raw)))
	raw.GetSchema = 0
	stream = must(fletching.ImportDeviceArrayStream(unsafe.Pointer(raw)))
	if _, err := arrowgo.ImportReader(context.Background(), stream, arrowgo.Options{}); !errors.Is(err, syscall.EINVAL) || !stream.IsReleased() {
		t.Error(err)
	}
	source := &brokenReader{tables(t, 1)}
	failed := must(arrowgo.ExportReader(source))
	if _, err := failed.Next(); !errors.Is(err, syscall.EIO) {
		t.Error(err)
	}
	failed.Close()
	source.RecordReader.Release()
}

// brokenReader is a reader that fails at once.
type brokenReader struct{ array.RecordReader }

func (*brokenReader) Next() bool { return false }
func (*brokenReader) Err() error { return errors.New("broken") }
