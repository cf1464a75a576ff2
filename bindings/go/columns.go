// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"fmt"
	"math"
	"syscall"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Column is a column for NewRecordBatch: a nullable field and its values.
type Column struct {
	name, format string
	length       int
	nulls        int64
	buffers      []unsafe.Pointer // in Go memory, or nil; the first is the validity
	problem      error
}

// NumberColumn returns a column that uses the values without a copy. They must not be modified until the batch is
// released.
func NumberColumn[T Primitive](name string, values []T) Column {
	return Column{name: name, format: FormatOf[T](), length: len(values), buffers: []unsafe.Pointer{nil, first(values)}}
}

// BoolColumn returns a bool column. It copies the values.
func BoolColumn(name string, values []bool) Column {
	return Column{name: name, format: "b", length: len(values), buffers: []unsafe.Pointer{nil, first(bitmap(values))}}
}

// StringColumn returns a utf8 column. It copies the values. NewRecordBatch rejects strings that are not UTF-8, and more
// than 2^31-1 bytes.
func StringColumn(name string, values []string) Column {
	column := bytesColumn(name, "u", values)
	for row, value := range values {
		if !utf8.ValidString(value) {
			column.problem = invalid("NewRecordBatch: column %q: row %d: expected UTF-8, got %q", name, row, value)
			break
		}
	}
	return column
}

// BinaryColumn returns a binary column. It copies the values. NewRecordBatch rejects more than 2^31-1 bytes.
func BinaryColumn(name string, values [][]byte) Column { return bytesColumn(name, "z", values) }

func bytesColumn[T string | []byte](name, format string, values []T) Column {
	size := 0
	for _, value := range values {
		if len(value) > math.MaxInt32-size {
			return Column{problem: NewError(syscall.EOVERFLOW, fmt.Sprintf(
				"NewRecordBatch: column %q: more than 2147483647 bytes: expected a smaller batch; hint: make several", name), nil)}
		}
		size += len(value)
	}
	offsets := make([]int32, 1, len(values)+1)
	data := make([]byte, 0, max(size, 1)) // some consumers reject NULL even without bytes
	for _, value := range values {
		data = append(data, value...)
		offsets = append(offsets, int32(len(data)))
	}
	return Column{name: name, format: format, length: len(values), buffers: []unsafe.Pointer{nil, first(offsets), unsafe.Pointer(unsafe.SliceData(data))}}
}

// WithValidity returns the column with nulls in the rows where valid is false.
func (c Column) WithValidity(valid []bool) Column {
	if len(valid) != c.length && c.problem == nil {
		c.problem = invalid("NewRecordBatch: column %q: validity: expected %d values, got %d", c.name, c.length, len(valid))
	}
	c.nulls = 0
	for _, isValid := range valid {
		if !isValid {
			c.nulls++
		}
	}
	c.buffers = append([]unsafe.Pointer{first(bitmap(valid))}, c.buffers[min(1, len(c.buffers)):]...)
	return c
}

// NewRecordBatch returns a struct array of the columns, and its schema. The columns' memory is pinned until the last
// struct of the array is released.
//
// Errors: EINVAL for columns or validities of different lengths, for strings that are not UTF-8, and for a name that
// SchemaBuilder rejects; EOVERFLOW for too many bytes; ENOMEM.
func NewRecordBatch(columns ...Column) (*Schema, *Array, error) {
	types := &SchemaBuilder{Format: "+s"}
	builder := ArrayBuilder{Buffers: []uintptr{0}}
	var owner pinned
	for i, column := range columns {
		switch {
		case column.problem != nil:
			owner.Close()
			return nil, nil, column.problem
		case i > 0 && column.length != columns[0].length:
			owner.Close()
			return nil, nil, invalid("NewRecordBatch: column %q: expected %d rows, got %d", column.name, columns[0].length, column.length)
		}
		builder.Length = int64(column.length)
		child := ArrayBuilder{Length: int64(column.length), NullCount: column.nulls}
		for _, buffer := range column.buffers {
			if buffer != nil {
				owner.pinner.Pin(buffer)
			}
			child.Buffers = append(child.Buffers, uintptr(buffer))
		}
		builder.Children = append(builder.Children, child)
		types.Children = append(types.Children, SchemaBuilder{Format: column.format, Name: column.name, Flags: abi.FlagNullable})
	}
	schema, err := types.Build()
	if err != nil {
		owner.Close()
		return nil, nil, err
	}
	array, err := builder.Build(owner)
	if err != nil {
		owner.Close()
		schema.Close()
		return nil, nil, err
	}
	array.DeclareType(func() (*SchemaBuilder, error) { return types, nil })
	return schema, array, nil
}

// first returns nil for an empty slice.
func first[T any](values []T) unsafe.Pointer {
	if len(values) == 0 {
		return nil
	}
	return unsafe.Pointer(unsafe.SliceData(values))
}

// bitmap stores the first value in the lowest bit.
func bitmap(values []bool) []byte {
	bits := make([]byte, (len(values)+7)/8)
	for i, value := range values {
		if value {
			bits[i/8] |= 1 << (i % 8)
		}
	}
	return bits
}
