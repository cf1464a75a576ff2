// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"math"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// ColumnReader reads the values of an array in memory that the CPU can access. The results are copies, except the
// slice of NumbersOf. It trusts the producer that buffers are as long as type and offsets say, since the structs do
// not contain buffer sizes.
type ColumnReader struct {
	format         string
	array          ArrayView
	length, offset int
	nulls          int64
}

// ReadArray returns a reader for the array with the schema's type.
//
// Errors: EINVAL for a closed array or schema, for an array with an event or on a device that the CPU cannot read,
// and for a length, an offset or a null count out of range.
func ReadArray(array ArrayView, schema SchemaView) (ColumnReader, error) {
	return columnReaderOf("ReadArray", array, schema)
}

func columnReaderOf(operation string, array ArrayView, schema SchemaView) (ColumnReader, error) {
	if array.IsReleased() || schema.IsReleased() {
		return ColumnReader{}, closed(operation)
	}
	if err := array.readable(operation); err != nil {
		return ColumnReader{}, err
	}
	const most = math.MaxInt/8 - 1 // no size may overflow
	length, offset := array.Length(), array.Offset()
	if length < 0 || offset < 0 || length > most-offset {
		return ColumnReader{}, invalid("%s: length or offset out of range: expected 0 or more, got %d and %d", operation, length, offset)
	}
	nulls := array.NullCount()
	if nulls < -1 || nulls > length {
		return ColumnReader{}, invalid("%s: null_count: out of range: expected -1 to %d, got %d", operation, length, nulls)
	}
	return ColumnReader{schema.Format(), array, int(length), int(offset), nulls}, nil
}

// ReadColumn returns a reader for a struct array's child, with the struct's offset and length.
//
// Errors: as ReadArray; EINVAL also if there is no such child, if the child is shorter than the struct, and if the
// struct has null rows, which ReadColumn counts if the producer has not.
func ReadColumn(batch ArrayView, schema SchemaView, index int) (ColumnReader, error) {
	const operation = "ReadColumn"
	parent, err := columnReaderOf(operation, batch, schema)
	if err != nil {
		return ColumnReader{}, err
	}
	switch {
	case parent.format != "+s" || index < 0 || index >= batch.NumChildren() || index >= schema.NumChildren():
		return ColumnReader{}, invalid("ReadColumn: child %d: no such child of format %q", index, parent.format)
	}
	if parent.nulls != 0 { // or -1
		valid, err := parent.valid(operation)
		switch {
		case err != nil:
			return ColumnReader{}, err
		case slices.Contains(valid, false):
			return ColumnReader{}, invalid("ReadColumn: null rows in the struct: expected nulls in columns only")
		}
	}
	column, err := columnReaderOf(operation, batch.Child(index), schema.Child(index))
	if err != nil {
		return ColumnReader{}, err
	}
	if parent.offset+parent.length > column.length {
		return ColumnReader{}, invalid("ReadColumn: child %d: length: expected %d or more, got %d",
			index, parent.offset+parent.length, column.length)
	}
	if column.length != parent.length && column.nulls > 0 {
		column.nulls = -1 // the nulls of a part are not counted
	}
	column.length = parent.length
	column.offset += parent.offset
	return column, nil
}

// Len returns the number of values.
func (c ColumnReader) Len() int { return c.length }

// Valid returns for each row whether it has a value. Errors: EINVAL for nulls without a validity buffer, and for
// a closed array.
func (c ColumnReader) Valid() ([]bool, error) { return c.valid("Valid") }

func (c ColumnReader) valid(operation string) ([]bool, error) {
	defer runtime.KeepAlive(c.array.owner) // reads use C addresses
	if c.array.IsReleased() {
		return nil, closed(operation)
	}
	valid := slices.Repeat([]bool{true}, c.length)
	switch c.format[:min(2, len(c.format))] {
	case "n":
		return make([]bool, c.length), nil
	case "+u", "+r": // unions and run-end encoded arrays have no validity buffer
		return valid, nil
	}
	address := c.array.Buffer(0)
	switch {
	case c.nulls > 0 && address == 0:
		return nil, invalid("%s: validity buffer: NULL: expected one, because null_count is %d", operation, c.nulls)
	case c.nulls == 0 || address == 0:
		return valid, nil
	}
	return c.bits(address), nil
}

// NumbersOf returns the values without a copy. The slice is valid until the array's owner is closed and does not
// keep the owner alive, so close the owner after the last read. Null rows have unspecified values.
//
// Errors: EINVAL for another type, and for a NULL or misaligned buffer. Dates and times are returned as their
// storage integers, a dictionary-encoded array as its indices.
func NumbersOf[T Primitive](c ColumnReader) ([]T, error) {
	const operation = "NumbersOf"
	if expected := FormatOf[T](); storageOf(c.format) != expected {
		return nil, invalid("%s: format: expected %q, got %q", operation, expected, c.format)
	}
	address, err := c.buffer(operation, 1, 2)
	if err != nil || c.length == 0 {
		return nil, err
	}
	if address%unsafe.Alignof(*new(T)) != 0 {
		return nil, invalid("%s: buffer 1: expected an aligned address, got %#x", operation, address)
	}
	return unsafe.Slice((*T)(abi.Pointer(address)), c.offset+c.length)[c.offset:], nil
}

// storageOf returns the integer format of dates, times, durations and months, and any other format unchanged.
func storageOf(format string) string {
	switch name, _, _ := strings.Cut(format, ":"); name {
	case "tdD", "tts", "ttm", "tiM":
		return "i"
	case "tdm", "ttu", "ttn", "tDs", "tDm", "tDu", "tDn", "tss", "tsm", "tsu", "tsn":
		return "l"
	}
	return format
}

// Bools returns the values. Errors: as NumbersOf.
func (c ColumnReader) Bools() ([]bool, error) {
	defer runtime.KeepAlive(c.array.owner)
	const operation = "Bools"
	if c.format != "b" {
		return nil, invalid(`%s: format: expected "b", got %q`, operation, c.format)
	}
	address, err := c.buffer(operation, 1, 2)
	if err != nil || c.length == 0 {
		return nil, err
	}
	return c.bits(address), nil
}

// Strings returns the values of a utf8 or large utf8 column. Errors: as NumbersOf; EINVAL also for negative or
// decreasing offsets.
func (c ColumnReader) Strings() ([]string, error) {
	return texts("Strings", c, "u", "U", func(value []byte) string { return string(value) })
}

// Binaries returns the values of a binary or large binary column; see Strings.
func (c ColumnReader) Binaries() ([][]byte, error) {
	return texts("Binaries", c, "z", "Z", func(value []byte) []byte { return append([]byte{}, value...) })
}

func texts[T any](operation string, c ColumnReader, small, large string, copied func([]byte) T) ([]T, error) {
	defer runtime.KeepAlive(c.array.owner)
	switch c.format {
	case small:
		return textsOf[int32](operation, c, copied)
	case large:
		return textsOf[int64](operation, c, copied)
	}
	return nil, invalid("%s: format: expected %q or %q, got %q", operation, small, large, c.format)
}

func textsOf[O int32 | int64, T any](operation string, c ColumnReader, copied func([]byte) T) ([]T, error) {
	address, err := c.buffer(operation, 1, 3)
	if err != nil || c.length == 0 { // without rows the offsets may be NULL
		return nil, err
	}
	if address%unsafe.Alignof(O(0)) != 0 {
		return nil, invalid("%s: buffer 1: expected an aligned address, got %#x", operation, address)
	}
	offsets := unsafe.Slice((*O)(abi.Pointer(address)), c.offset+c.length+1)[c.offset:]
	if least := offsets[0]; least < 0 || !slices.IsSorted(offsets) || int64(offsets[c.length]) > math.MaxInt {
		return nil, invalid("%s: offsets: expected 0 or more, in ascending order", operation)
	}
	data := c.array.Buffer(2)
	if data == 0 && offsets[c.length] > offsets[0] {
		return nil, invalid("%s: buffer 2: NULL: expected %d bytes", operation, offsets[c.length])
	}
	var bytes []byte
	if data != 0 {
		bytes = unsafe.Slice((*byte)(abi.Pointer(data)), int(offsets[c.length]))
	}
	values := make([]T, c.length)
	for i := range values {
		if offsets[i] == offsets[i+1] {
			values[i] = copied(nil)
			continue
		}
		values[i] = copied(bytes[offsets[i]:offsets[i+1]])
	}
	return values, nil
}

// buffer returns the address of one of the count buffers of a type. It is not NULL if there are values.
func (c ColumnReader) buffer(operation string, index, count int) (uintptr, error) {
	switch found := c.array.NumBuffers(); {
	case c.array.IsReleased():
		return 0, closed(operation)
	case found != count:
		return 0, invalid("%s: n_buffers: wrong for format %q: expected %d, got %d", operation, c.format, count, found)
	case c.length > 0 && c.array.Buffer(index) == 0:
		return 0, invalid("%s: buffer %d: NULL: expected an address", operation, index)
	}
	return c.array.Buffer(index), nil
}

func (c ColumnReader) bits(address uintptr) []bool {
	values := make([]bool, c.length)
	if c.length == 0 {
		return values
	}
	bytes := unsafe.Slice((*byte)(abi.Pointer(address)), (c.offset+c.length+7)/8)
	for i := range values {
		row := c.offset + i
		values[i] = bytes[row/8]&(1<<(row%8)) != 0
	}
	return values
}

// readable returns an error if the CPU cannot read the buffers of the owner.
func (v ArrayView) readable(operation string) error {
	owner := v.owner
	for below, isView := owner.(view[abi.ArrowArray]); isView; below, isView = owner.(view[abi.ArrowArray]) {
		owner = below.owner
	}
	device, isDevice := owner.(*arrayOwner[abi.ArrowDeviceArray])
	if !isDevice {
		return nil
	}
	raw := device.get()
	switch {
	case raw == nil:
		return closed(operation)
	case !slices.Contains(raw.DeviceType.AccessibleFrom(), abi.DeviceCPU):
		return invalid("%s: memory of %v: expected memory that the CPU can access; hint: copy it to the host", operation, raw.DeviceType)
	case raw.SyncEvent != 0:
		return invalid("%s: sync_event not NULL: expected none; hint: call Synchronize, then read the buffers by their addresses", operation)
	}
	return nil
}
