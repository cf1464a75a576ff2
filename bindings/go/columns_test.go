// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

type celsius float64

// nowhere is an invalid address: a read through it crashes.
const nowhere = 1

func column(t *testing.T, schema *fletching.Schema, batch *fletching.Array, index int) fletching.ColumnReader {
	t.Helper()
	reader, err := fletching.ReadColumn(batch.Root(), schema.Root(), index)
	if err != nil {
		t.Fatal(err)
	}
	return reader
}

func expectValues[T any](t *testing.T, values []T, err error, expected ...T) {
	t.Helper()
	if err != nil || !reflect.DeepEqual(values, expected) {
		t.Errorf("expected %v, got %v, %v", expected, values, err)
	}
}

// throughC moves the batch through a C struct, as if to another library.
func throughC(t *testing.T, batch *fletching.Array) *fletching.Array {
	raw := new(abi.ArrowArray)
	if err := batch.Export(unsafe.Pointer(raw)); err != nil {
		t.Fatal(err)
	}
	if err := callbacks.CheckPinned(raw); err != nil {
		t.Error(err)
	}
	return must(fletching.ImportArray(unsafe.Pointer(raw)))
}

func TestNewRecordBatchRoundTripsEachType(t *testing.T) {
	valid := []bool{true, false, true}
	schema, batch, err := fletching.NewRecordBatch(
		fletching.NumberColumn("t", []celsius{1.5, 0, -2}).WithValidity(valid),
		fletching.NumberColumn("i", []int8{1, 2, 3}),
		fletching.BoolColumn("b", []bool{true, false, true}),
		fletching.StringColumn("s", []string{"a", "", "bc"}).WithValidity(valid),
		fletching.BinaryColumn("z", [][]byte{{0}, {}, {0xff, 1}}),
	)
	if err != nil {
		t.Fatal(err)
	}
	batch = throughC(t, batch)
	defer batch.Close()
	defer schema.Close()
	if formats := []string{schema.Child(0).Format(), schema.Child(1).Format(), schema.Child(3).Format()}; !slices.Equal(formats, []string{"g", "c", "u"}) {
		t.Error(formats)
	}
	if nulls := []int64{batch.Child(0).NullCount(), batch.Child(1).NullCount(), batch.NullCount()}; !slices.Equal(nulls, []int64{1, 0, 0}) {
		t.Error(nulls)
	}
	first := column(t, schema, batch, 0)
	temperatures, err := fletching.NumbersOf[celsius](first)
	expectValues(t, temperatures, err, 1.5, 0, -2)
	isValid, err := first.Valid()
	expectValues(t, isValid, err, valid...)
	small, err := fletching.NumbersOf[int8](column(t, schema, batch, 1))
	expectValues(t, small, err, 1, 2, 3)
	isValid, err = column(t, schema, batch, 1).Valid()
	expectValues(t, isValid, err, true, true, true)
	bools, err := column(t, schema, batch, 2).Bools()
	expectValues(t, bools, err, true, false, true)
	names, err := column(t, schema, batch, 3).Strings()
	expectValues(t, names, err, "a", "", "bc")
	binaries, err := column(t, schema, batch, 4).Binaries()
	expectValues(t, binaries, err, []byte{0}, []byte{}, []byte{0xff, 1})
	_, err = fletching.NumbersOf[int64](first)
	expectError(t, err, syscall.EINVAL, `NumbersOf: format: expected "l", got "g"`)
	if _, err := first.Strings(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("strings of a float64: expected EINVAL, got %v", err)
	}
}

func TestNewRecordBatchWithoutRowsHasOffsets(t *testing.T) {
	schema, batch, err := fletching.NewRecordBatch(fletching.StringColumn("s", nil).WithValidity(nil))
	if err != nil {
		t.Fatal(err)
	}
	defer schema.Close()
	defer batch.Close()
	offsets := batch.Child(0).Buffer(1)
	if offsets == 0 || *(*int32)(abi.Pointer(offsets)) != 0 {
		t.Errorf("expected the address of a 0, got %#x", offsets)
	}
	if names, err := column(t, schema, batch, 0).Strings(); err != nil || len(names) != 0 {
		t.Error(names, err)
	}
}

func TestNewRecordBatchHasBitForEachRow(t *testing.T) {
	for _, rows := range []int{1, 10} {
		values := slices.Repeat([]bool{true}, rows)
		schema, batch, err := fletching.NewRecordBatch(fletching.BoolColumn("b", values).WithValidity(values))
		if err != nil {
			t.Fatal(err)
		}
		batch = throughC(t, batch)
		bools, err := column(t, schema, batch, 0).Bools()
		expectValues(t, bools, err, values...)
		if batch.Buffer(0) != 0 {
			t.Errorf("validity of the struct: expected NULL, got %#x", batch.Buffer(0))
		}
		batch.Close()
		schema.Close()
	}
}

func TestNewRecordBatchRejectsInvalidColumns(t *testing.T) {
	big := strings.Repeat("x", 1<<26)
	for name, each := range map[string]struct {
		columns []fletching.Column
		code    syscall.Errno
		text    string
	}{
		"lengths":  {[]fletching.Column{fletching.NumberColumn("a", []int8{1}), fletching.BoolColumn("b", nil)}, syscall.EINVAL, `"b": expected 1 rows, got 0`},
		"validity": {[]fletching.Column{fletching.NumberColumn("a", []int8{1}).WithValidity(nil)}, syscall.EINVAL, `"a": validity: expected 1 values, got 0`},
		"after":    {[]fletching.Column{fletching.NumberColumn("a", []int8{1}), fletching.NumberColumn("b", []int8{1}).WithValidity(nil)}, syscall.EINVAL, `"b": validity: expected 1 values, got 0`},
		"name":     {[]fletching.Column{fletching.NumberColumn("a\x00b", []int8{1})}, syscall.EINVAL, "NUL"},
		"UTF-8":    {[]fletching.Column{fletching.StringColumn("a", []string{"a", "\xff"})}, syscall.EINVAL, `"a": row 1: expected UTF-8`},
		"bytes":    {[]fletching.Column{fletching.StringColumn("a", slices.Repeat([]string{big}, 32)).WithValidity(nil)}, syscall.EOVERFLOW, "2147483647"},
	} {
		_, _, err := fletching.NewRecordBatch(each.columns...)
		if !errors.Is(err, each.code) || !strings.Contains(err.Error(), each.text) {
			t.Errorf("%s: expected %v with %q, got %v", name, each.code, each.text, err)
		}
	}
	for range 2 { // the finalizer of a leaked pin terminates the process, in the first round
		collected := make(chan struct{})
		runtime.SetFinalizer(new([64]byte), func(*[64]byte) { close(collected) })
		runtime.GC()
		<-collected
	}
}

func TestReadColumnRejectsInvalidChildren(t *testing.T) {
	child := fletching.ArrayBuilder{Length: 2, Buffers: []uintptr{0, nowhere}}
	types := fletching.SchemaBuilder{Format: "i"}
	const missing = "ReadColumn: child %d: no such child of format %q"
	for _, each := range []struct {
		index, fields, children int
		rows                    int64
		format, message         string
	}{
		{-1, 1, 1, 2, "+s", fmt.Sprintf(missing, -1, "+s")},
		{1, 1, 2, 2, "+s", fmt.Sprintf(missing, 1, "+s")},
		{1, 2, 1, 2, "+s", fmt.Sprintf(missing, 1, "+s")},
		{0, 1, 1, 2, "+l", fmt.Sprintf(missing, 0, "+l")},
		{0, 1, 1, 3, "+s", "ReadColumn: child 0: length: expected 3 or more, got 2"},
	} {
		schema := must((&fletching.SchemaBuilder{Format: each.format, Children: slices.Repeat([]fletching.SchemaBuilder{types}, each.fields)}).Build())
		batch := must((&fletching.ArrayBuilder{Length: each.rows, Buffers: []uintptr{0}, Children: slices.Repeat([]fletching.ArrayBuilder{child}, each.children)}).Build(nil))
		_, err := fletching.ReadColumn(batch.Root(), schema.Root(), each.index)
		expectError(t, err, syscall.EINVAL, each.message)
		batch.Close()
		schema.Close()
	}
}

// The data buffer may be NULL because no byte is read.
func TestStringsAcceptsNullDataOfEmptyStrings(t *testing.T) {
	offsets := []int32{3, 3}
	array := must((&fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, pin(t, &offsets[0]), 0}}).Build(nil))
	schema := must((&fletching.SchemaBuilder{Format: "u"}).Build())
	defer array.Close()
	defer schema.Close()
	texts, err := must(fletching.ReadArray(array.Root(), schema.Root())).Strings()
	expectValues(t, texts, err, "")
}

func TestReadColumnAppliesStructOffset(t *testing.T) {
	values, bits := []int32{0, 1, 2, 3, 4, 5}, []byte{0b101011}
	child := fletching.ArrayBuilder{Length: 5, NullCount: 2, Offset: 1, Buffers: []uintptr{pin(t, &bits[0]), pin(t, &values[0])}}
	batch := must((&fletching.ArrayBuilder{Length: 3, Offset: 2, Buffers: []uintptr{0}, Children: []fletching.ArrayBuilder{child}}).Build(nil))
	schema := must((&fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{{Format: "tdD"}}}).Build())
	defer batch.Close()
	defer schema.Close()
	reader := column(t, schema, batch, 0)
	dates, err := fletching.NumbersOf[int32](reader)
	expectValues(t, dates, err, 3, 4, 5)
	valid, err := reader.Valid()
	expectValues(t, valid, err, true, false, true)
}

func TestReadColumnCountsStructNulls(t *testing.T) {
	bits := []byte{0b1011}
	child := fletching.ArrayBuilder{Length: 5, Buffers: []uintptr{0, nowhere}}
	schema := must((&fletching.SchemaBuilder{Format: "+s", Children: []fletching.SchemaBuilder{{Format: "i"}}}).Build())
	defer schema.Close()
	for name, each := range map[string]struct {
		rows, offset, nulls int64
		validity            uintptr
		refused             bool
	}{
		"all valid":               {2, 0, -1, pin(t, &bits[0]), false},
		"one is null":             {2, 1, -1, pin(t, &bits[0]), true},
		"no validity buffer":      {2, 0, -1, 0, false},
		"nulls without a buffer":  {2, 0, 1, 0, true},
		"no nulls in spite of it": {3, 0, 0, pin(t, &bits[0]), false},
	} {
		builder := fletching.ArrayBuilder{Length: each.rows, Offset: each.offset, NullCount: each.nulls, Buffers: []uintptr{each.validity}, Children: []fletching.ArrayBuilder{child}}
		batch := must(builder.Build(nil))
		_, err := fletching.ReadColumn(batch.Root(), schema.Root(), 0)
		if errors.Is(err, syscall.EINVAL) != each.refused || (err != nil) != each.refused {
			t.Errorf("%s: %v", name, err)
		}
		batch.Close()
	}
}

func TestReadArrayRejectsNumbersOutOfRange(t *testing.T) {
	var log log
	schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	defer schema.Close()
	for _, each := range []struct {
		length, offset, nulls int64
		message               string
	}{
		{1, 0, -2, "ReadArray: null_count: out of range: expected -1 to 1, got -2"},
		{1, 0, 2, "ReadArray: null_count: out of range: expected -1 to 1, got 2"},
		{-3, 5, 0, "ReadArray: length or offset out of range: expected 0 or more, got -3 and 5"},
		{1<<60 - 2, 1, 0, "ReadArray: length or offset out of range: expected 0 or more, got 1152921504606846974 and 1"},
	} {
		raw := rawArray(&log, "a", 0, false)
		raw.Length, raw.Offset, raw.NullCount = each.length, each.offset, each.nulls
		array := importArray(t, raw)
		_, err := fletching.ReadArray(array.Root(), schema.Root())
		expectError(t, err, syscall.EINVAL, each.message)
		array.Close()
	}
}

func TestReadArrayRejectsMalformedBuffers(t *testing.T) {
	offsets, numbers := []int32{0, 2, 1}, make([]int64, 4)
	text := func(offsets, data uintptr) fletching.ArrayBuilder {
		return fletching.ArrayBuilder{Length: 2, Buffers: []uintptr{0, offsets, data}}
	}
	read := func(reader fletching.ColumnReader) error {
		_, err := reader.Strings()
		return err
	}
	numbersOf := func(reader fletching.ColumnReader) error {
		_, err := fletching.NumbersOf[int64](reader)
		return err
	}
	valid := func(reader fletching.ColumnReader) error {
		_, err := reader.Valid()
		return err
	}
	for name, each := range map[string]struct {
		format  string
		builder fletching.ArrayBuilder
		read    func(fletching.ColumnReader) error
	}{
		"offsets that decrease": {"u", text(pin(t, &offsets[0]), pin(t, &numbers[0])), read},
		"offsets that are NULL": {"u", text(0, pin(t, &numbers[0])), read},
		"data that is NULL":     {"u", fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, pin(t, &offsets[0]), 0}}, read},
		"values that are NULL":  {"l", fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, 0}}, numbersOf},
		"misaligned values":     {"l", fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, pin(t, &numbers[0]) + 1}}, numbersOf},
		"buffers of a string":   {"l", text(pin(t, &offsets[0]), pin(t, &numbers[0])), numbersOf},
		"nulls without bits":    {"l", fletching.ArrayBuilder{Length: 1, NullCount: 1, Buffers: []uintptr{0, 0}}, valid},
		"length":                {"l", fletching.ArrayBuilder{Length: math.MaxInt64, Buffers: []uintptr{0, nowhere}}, numbersOf},
	} {
		array := must(each.builder.Build(nil))
		schema := must((&fletching.SchemaBuilder{Format: each.format}).Build())
		reader, err := fletching.ReadArray(array.Root(), schema.Root())
		if err == nil {
			err = each.read(reader)
		}
		if !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%s: expected EINVAL, got %v", name, err)
		}
		array.Close()
		schema.Close()
	}
}

func TestColumnReaderOfClosedArrayReturnsErrClosed(t *testing.T) {
	schema, batch, err := fletching.NewRecordBatch(fletching.StringColumn("a", []string{"b"}).WithValidity([]bool{false}))
	if err != nil {
		t.Fatal(err)
	}
	defer schema.Close()
	reader := column(t, schema, batch, 0)
	batch.Close()
	_, texts := reader.Strings()
	expectClosed(t, "Strings", texts)
	_, valid := reader.Valid()
	expectClosed(t, "Valid", valid)
}

// The CPU must not read memory that it cannot access, or that a device has not finished.
func TestReadArrayRejectsDeviceMemoryAndEvents(t *testing.T) {
	schema := must((&fletching.SchemaBuilder{Format: "l"}).Build())
	defer schema.Close()
	builder := fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, nowhere}}
	for _, array := range []*fletching.DeviceArray{
		must(builder.BuildOn(abi.DeviceCUDA, 0, 0, nil)), must(builder.BuildOn(abi.DeviceCUDAManaged, 0, nowhere, nil)),
	} {
		if _, err := fletching.ReadArray(array.Root(), schema.Root()); !errors.Is(err, syscall.EINVAL) {
			t.Errorf("%v: expected EINVAL, got %v", array.DeviceType(), err)
		}
		array.Close()
	}
	host := must(must(fletching.FromValues([]int64{7})).ToDevice())
	defer host.Close()
	values, err := fletching.NumbersOf[int64](must(fletching.ReadArray(host.Root(), schema.Root())))
	expectValues(t, values, err, 7)
}

// pin pins Go memory until the end of the test and returns its address.
func pin[T any](t *testing.T, value *T) uintptr {
	pinner := new(runtime.Pinner)
	pinner.Pin(value)
	t.Cleanup(pinner.Unpin)
	return uintptr(unsafe.Pointer(value))
}
