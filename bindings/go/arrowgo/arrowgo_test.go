// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/arrowgo"
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// counter counts calls of Close.
type counter int

func (c *counter) Close() { *c++ }

// checked returns an allocator that reports leaks at the end of the test.
func checked(t *testing.T) memory.Allocator {
	allocator := memory.NewCheckedAllocator(memory.NewGoAllocator())
	t.Cleanup(func() { allocator.AssertSize(t, 0) })
	return allocator
}

var types = []struct {
	name     string
	dataType arrow.DataType
	values   string
}{
	{"null", arrow.Null, `[null, null, null]`},
	{"bool", arrow.FixedWidthTypes.Boolean, `[true, null, false]`},
	{"int8", arrow.PrimitiveTypes.Int8, `[1, null, 3]`},
	{"float64", arrow.PrimitiveTypes.Float64, `[0.5, null, 2.5]`},
	{"decimal128", &arrow.Decimal128Type{Precision: 10, Scale: 2}, `["1.25", null, "3.00"]`},
	{"decimal256", &arrow.Decimal256Type{Precision: 50, Scale: 2}, `["1.25", null, "3.00"]`},
	{"timestamp", &arrow.TimestampType{Unit: arrow.Second, TimeZone: "UTC"}, `[1, null, 3]`},
	{"interval", arrow.FixedWidthTypes.MonthDayNanoInterval, `[{"months": 1, "days": 2, "nanoseconds": 3}, null, {"months": 0, "days": 0, "nanoseconds": 1}]`},
	{"fixed size binary", &arrow.FixedSizeBinaryType{ByteWidth: 3}, `["AAEC", null, "AwQF"]`},
	{"string", arrow.BinaryTypes.String, `["a", null, "ccc"]`},
	{"large binary", arrow.BinaryTypes.LargeBinary, `["YQ==", null, "Y2Nj"]`},
	{"string view", arrow.BinaryTypes.StringView, `["a", null, "longer than twelve bytes"]`},
	{"list", arrow.ListOf(arrow.PrimitiveTypes.Int32), `[[1, 2], null, [3]]`},
	{"large list", arrow.LargeListOf(arrow.BinaryTypes.String), `[["a"], null, []]`},
	{"list view", arrow.ListViewOf(arrow.PrimitiveTypes.Int32), `[[1, 2], null, [3]]`},
	{"fixed size list", arrow.FixedSizeListOf(2, arrow.PrimitiveTypes.Int32), `[[1, 2], null, [3, 4]]`},
	{"struct", arrow.StructOf(
		arrow.Field{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		arrow.Field{Name: "b", Type: arrow.BinaryTypes.String, Nullable: true},
	), `[{"a": 1, "b": "x"}, null, {"a": null, "b": "z"}]`},
	{"map", arrow.MapOf(arrow.BinaryTypes.String, arrow.PrimitiveTypes.Int32), `[[{"key": "a", "value": 1}], null, []]`},
	{"dictionary", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int8, ValueType: arrow.BinaryTypes.String}, `["a", "b", "a"]`},
}

func build(t *testing.T, allocator memory.Allocator, dataType arrow.DataType, values string) arrow.Array {
	t.Helper()
	built, _, err := array.FromJSON(allocator, dataType, strings.NewReader(values))
	if err != nil {
		t.Fatal(err)
	}
	return built
}

// others returns arrays of types that FromJSON does not support.
func others(t *testing.T, allocator memory.Allocator) map[string]arrow.Array {
	ints := build(t, allocator, arrow.PrimitiveTypes.Int32, `[1, 2, 3]`)
	texts := build(t, allocator, arrow.BinaryTypes.String, `["a", "b", "c"]`)
	ids := build(t, allocator, arrow.PrimitiveTypes.Int8, `[0, 1, 0]`)
	offsets := build(t, allocator, arrow.PrimitiveTypes.Int32, `[0, 1, 2]`)
	ends := build(t, allocator, arrow.PrimitiveTypes.Int32, `[2, 3, 7]`)
	defer func() {
		for _, each := range []arrow.Array{ints, texts, ids, offsets, ends} {
			each.Release()
		}
	}()
	return map[string]arrow.Array{
		"sparse union":    must(array.NewSparseUnionFromArrays(ids, []arrow.Array{ints, texts})),
		"dense union":     must(array.NewDenseUnionFromArrays(ids, offsets, []arrow.Array{ints, texts})),
		"run-end encoded": array.NewRunEndEncodedArray(ends, texts, 7, 0),
	}
}

// roundTrip exports an array and imports it again.
func roundTrip(source arrow.Array, options arrowgo.Options) (arrow.Array, error) {
	exported := must(must(arrowgo.ExportArray(source)).ToDevice())
	return arrowgo.ImportArray(context.Background(), exported, source.DataType(), options)
}

func TestEveryTypeRoundTrips(t *testing.T) {
	allocator := checked(t)
	sources := others(t, allocator)
	for _, each := range types {
		sources[each.name] = build(t, allocator, each.dataType, each.values)
	}
	for name, source := range sources {
		for _, part := range []arrow.Array{source, array.NewSlice(source, 1, 3), array.NewSlice(source, 1, 1)} {
			t.Run(name, func(t *testing.T) {
				back, err := roundTrip(part, arrowgo.Options{})
				if err != nil {
					t.Fatal(err)
				}
				runtime.GC() // may collect or move memory that is not pinned
				if !array.Equal(part, back) {
					t.Errorf("expected %v, got %v", part, back)
				}
				back.Release()
			})
			part.Release()
		}
	}
}

func TestExportPinsBuffers(t *testing.T) {
	allocator := checked(t)
	sources := others(t, allocator)
	for _, each := range types {
		sources[each.name] = build(t, allocator, each.dataType, each.values)
	}
	for name, source := range sources {
		raw := new(abi.ArrowArray)
		must(0, must(arrowgo.ExportArray(source)).Export(unsafe.Pointer(raw)))
		if err := callbacks.CheckPinned(raw); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		callbacks.ReleaseArrowArray(raw)
		source.Release()
	}
}

func TestExportKeepsArrayMemory(t *testing.T) {
	allocator := memory.NewCheckedAllocator(memory.NewGoAllocator())
	source := build(t, allocator, arrow.PrimitiveTypes.Int32, `[1]`)
	exported := must(arrowgo.ExportArray(source))
	source.Release()
	if allocator.CurrentAlloc() == 0 {
		t.Error("freed under the export")
	}
	exported.Close()
	allocator.AssertSize(t, 0)
}

// arrow-go's own import functions return an equal array.
func TestCdataImportsExportedArray(t *testing.T) {
	allocator := checked(t)
	for _, each := range types {
		t.Run(each.name, func(t *testing.T) {
			source := build(t, allocator, each.dataType, each.values)
			defer source.Release()
			raw := new(cdata.CArrowArray)
			if err := must(arrowgo.ExportArray(source)).Export(unsafe.Pointer(raw)); err != nil {
				t.Fatal(err)
			}
			back := must(cdata.ImportCArrayWithType(raw, each.dataType))
			defer back.Release()
			if !array.Equal(source, back) {
				t.Errorf("expected %v, got %v", source, back)
			}
		})
	}
}

func TestSchemasRoundTrip(t *testing.T) {
	metadata := arrow.NewMetadata([]string{"k"}, []string{"v"})
	var fields []arrow.Field
	for _, each := range types {
		fields = append(fields, arrow.Field{Name: each.name, Type: each.dataType, Nullable: true, Metadata: metadata})
	}
	schema := arrow.NewSchema(fields, &metadata)
	if back := must(arrowgo.ImportSchema(must(arrowgo.ExportSchema(schema)))); !back.Equal(schema) || !back.Metadata().Equal(metadata) {
		t.Errorf("expected %v, got %v", schema, back)
	}
	for _, field := range fields {
		if back := must(arrowgo.ImportField(must(arrowgo.ExportField(field)))); !back.Equal(field) {
			t.Errorf("expected %v, got %v", field, back)
		}
	}
}

func TestImportRejectsInvalidSchemas(t *testing.T) {
	unknown := must((&fletching.SchemaBuilder{Format: "unknown"}).Build())
	_, err := arrowgo.ImportField(unknown)
	if !errors.Is(err, syscall.EINVAL) || !unknown.IsReleased() {
		t.Error(err, unknown.IsReleased())
	}
	if _, err = arrowgo.ImportField(unknown); !errors.Is(err, fletching.ErrClosed) {
		t.Error(err)
	}
	if _, err = arrowgo.ImportSchema(unknown); !errors.Is(err, fletching.ErrClosed) {
		t.Error(err)
	}
	zero := must((&fletching.SchemaBuilder{Format: "+w:0", Children: []fletching.SchemaBuilder{{Format: "i"}}}).Build())
	if _, err = arrowgo.ImportField(zero); err == nil || !strings.Contains(err.Error(), "no lists of zero items") {
		t.Error(err)
	}
	notStruct := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	if _, err = arrowgo.ImportSchema(notStruct); !errors.Is(err, syscall.EINVAL) {
		t.Error(err)
	}
}

func TestRecordBatchRoundTrips(t *testing.T) {
	allocator := checked(t)
	schema := arrow.NewSchema([]arrow.Field{{Name: "a", Type: arrow.PrimitiveTypes.Int32, Nullable: true}}, nil)
	column := build(t, allocator, arrow.PrimitiveTypes.Int32, `[1, null, 3]`)
	batch := array.NewRecordBatch(schema, []arrow.Array{column}, 3)
	column.Release()
	exported := must(must(arrowgo.ExportRecordBatch(batch)).ToDevice())
	if buffers := exported.Root().BufferAddresses(); len(buffers) != 1 || buffers[0] != 0 {
		t.Errorf("a record batch has no nulls: got the buffers %#x", buffers)
	}
	back := must(arrowgo.ImportRecordBatch(context.Background(), exported, schema, arrowgo.Options{}))
	if !array.RecordEqual(batch, back) {
		t.Errorf("expected %v, got %v", batch, back)
	}
	batch.Release() // the memory lives on
	runtime.GC()
	if values := back.Column(0).(*array.Int32); values.Value(2) != 3 {
		t.Error(values)
	}
	back.Release()
}

func TestImportRejectsOtherDevices(t *testing.T) {
	for _, device := range []abi.DeviceType{abi.DeviceCUDA, abi.DeviceVulkan, abi.DeviceExtDev, 21} {
		releases := new(counter)
		source := must((&fletching.ArrayBuilder{Buffers: []uintptr{0, 0}}).BuildOn(device, 0, 0, releases))
		_, err := arrowgo.ImportArray(context.Background(), source, arrow.PrimitiveTypes.Int32, arrowgo.Options{})
		if !errors.Is(err, syscall.EINVAL) || !strings.Contains(err.Error(), "memory of "+device.String()) || *releases != 1 {
			t.Error(device, err, *releases)
		}
		if _, err = arrowgo.ImportArray(context.Background(), source, arrow.PrimitiveTypes.Int32, arrowgo.Options{}); !errors.Is(err, fletching.ErrClosed) {
			t.Error(err)
		}
		if _, err = arrowgo.ImportRecordBatch(context.Background(), source, schemaOfA, arrowgo.Options{}); !errors.Is(err, fletching.ErrClosed) {
			t.Error(err)
		}
	}
	pinned := must((&fletching.ArrayBuilder{Buffers: []uintptr{0, 0}}).BuildOn(abi.DeviceCUDAHost, 0, 0, nil))
	must(arrowgo.ImportArray(context.Background(), pinned, arrow.PrimitiveTypes.Int32, arrowgo.Options{})).Release()
}

func TestImportRecordBatchCountsNullRows(t *testing.T) {
	var validity [8]byte
	var pinner runtime.Pinner
	pinner.Pin(&validity)
	defer pinner.Unpin()
	for _, each := range []struct {
		nulls   int64
		bits    byte
		refused bool
	}{{1, 1, true}, {-1, 1, true}, {-1, 3, false}, {0, 3, false}} {
		validity[0] = each.bits
		releases := new(counter)
		builder := fletching.ArrayBuilder{Length: 2, NullCount: each.nulls, Buffers: []uintptr{uintptr(unsafe.Pointer(&validity))}}
		source := must(must(builder.Build(releases)).ToDevice())
		batch, err := arrowgo.ImportRecordBatch(context.Background(), source, arrow.NewSchema(nil, nil), arrowgo.Options{})
		if errors.Is(err, syscall.EINVAL) != each.refused || (err != nil) != each.refused {
			t.Errorf("%+v: %v", each, err)
		}
		if err == nil {
			batch.Release()
		}
		if *releases != 1 {
			t.Errorf("%+v: %d releases", each, *releases)
		}
	}
}

// A column without a validity buffer has no nulls.
func TestExportWritesZeroForUncountedNulls(t *testing.T) {
	values := memory.NewBufferBytes(make([]byte, 8))
	data := array.NewData(arrow.PrimitiveTypes.Int32, 2, []*memory.Buffer{nil, values}, nil, array.UnknownNullCount, 0)
	source := array.MakeFromData(data)
	exported := must(arrowgo.ExportArray(source))
	defer exported.Close()
	if exported.NullCount() != 0 || exported.Buffer(0) != 0 {
		t.Errorf("null_count %d, validity %#x", exported.NullCount(), exported.Buffer(0))
	}
}

// gateWaiter is a waiter whose events complete when it is opened.
type gateWaiter struct {
	fletching.UnsupportedWaiter
	waiting, open chan struct{}
}

func (g *gateWaiter) Synchronize(ctx context.Context, _ fletching.SyncEvent) error {
	close(g.waiting)
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func withEvent(t *testing.T, releases *counter) (*fletching.DeviceArray, *gateWaiter) {
	waiter := &gateWaiter{waiting: make(chan struct{}), open: make(chan struct{})}
	must(0, fletching.RegisterWaiter(abi.DeviceCPU, waiter))
	t.Cleanup(func() { fletching.UnregisterWaiter(abi.DeviceCPU) })
	raw := new(abi.ArrowDeviceArray)
	source := must((&fletching.ArrayBuilder{Buffers: []uintptr{0, 0}}).BuildOn(abi.DeviceCPU, -1, 0, releases))
	must(0, source.Export(unsafe.Pointer(raw)))
	raw.SyncEvent = 4096
	return must(fletching.ImportDeviceArray(unsafe.Pointer(raw))), waiter
}

func TestImportWaitsForEvent(t *testing.T) {
	releases := new(counter)
	source, waiter := withEvent(t, releases)
	done := make(chan struct{})
	var opened bool
	go func() {
		defer close(done)
		found := must(arrowgo.ImportArray(context.Background(), source, arrow.PrimitiveTypes.Int32, arrowgo.Options{}))
		if !opened { // opened is written before the gate opens
			t.Error("read before the event")
		}
		found.Release()
	}()
	select {
	case <-waiter.waiting:
	case <-done:
		t.Fatal("not waited for")
	}
	opened = true
	close(waiter.open)
	if <-done; *releases != 1 {
		t.Error(*releases)
	}
}

func TestImportCanceledDuringWait(t *testing.T) {
	releases := new(counter)
	source, waiter := withEvent(t, releases)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		<-waiter.waiting
		cancel()
	}()
	_, err := arrowgo.ImportArray(ctx, source, arrow.PrimitiveTypes.Int32, arrowgo.Options{})
	if !errors.Is(err, context.Canceled) || !source.IsReleased() {
		t.Error(err)
	}
}
