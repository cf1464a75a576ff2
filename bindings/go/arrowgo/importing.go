// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"encoding/binary"
	"fmt"
	"math"
	"sync/atomic"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// Alignment says how an import treats a buffer at an address that is not a multiple of its value size.
// The specification recommends multiples of 8 and allows any address. arrow-go reads values in place,
// which Go does not guarantee to work for misaligned values and some processors do not support.
type Alignment int

const (
	RefuseMisaligned Alignment = iota // returns an error that names the buffer
	CopyMisaligned                    // copies that buffer; see Options.OnCopy
	AcceptMisaligned                  // uses the buffer in place
)

// Options configures an import.
type Options struct {
	// Alignment defaults to RefuseMisaligned.
	Alignment Alignment

	// OnCopy is called for every buffer that is copied. It may be nil.
	OnCopy func(message string)
}

// maxDepth is the maximum number of nested structs.
const maxDepth = 256

// imported is the allocator of the buffers of one array. It releases the struct when the last buffer is freed.
type imported struct {
	raw     abi.ArrowArray
	uses    atomic.Int64 // the buffers, plus the import while it runs
	options Options
}

func (*imported) Allocate(int) []byte           { panic("imported memory cannot grow") }
func (*imported) Reallocate(int, []byte) []byte { panic("imported memory cannot grow") }

// Free is called for each buffer.
func (i *imported) Free([]byte) {
	if i.uses.Add(-1) == 0 {
		callbacks.ReleaseArrowArray(&i.raw)
	}
}

// place is the position of a struct in the tree, for messages.
type place struct {
	above *place
	index int // in the parent; -1 for its dictionary
	depth int
}

func (p *place) below(index int) *place { return &place{p, index, p.depth + 1} }

func (p *place) String() string {
	switch {
	case p.above == nil:
		return "ArrowArray"
	case p.index < 0:
		return p.above.String() + ".dictionary"
	}
	return fmt.Sprintf("%v.children[%d]", p.above, p.index)
}

// importArray consumes the array. finish converts its data to the result. After a failed import only the
// struct is released: the data and buffers are garbage-collected.
func importArray[T any](operation string, source *fletching.Array, dataType arrow.DataType, options Options, finish func(*array.Data) (T, error)) (result T, err error) {
	i := &imported{options: options}
	i.uses.Store(1)
	if err := source.Export(unsafe.Pointer(&i.raw)); err != nil {
		return result, err
	}
	done := false
	defer func() { // also if OnCopy panics
		if !done {
			callbacks.ReleaseArrowArray(&i.raw)
		}
	}()
	data, err := i.data(&i.raw, dataType, &place{}, 0)
	if err != nil {
		return result, err
	}
	result, err = guarded(operation, func() (T, error) { return finish(data) })
	if done = err == nil; done {
		data.Release()
		i.Free(nil)
	}
	return result, err
}

// data checks all properties of the structs against the type and returns the array for arrow-go.
func (i *imported) data(raw *abi.ArrowArray, dataType arrow.DataType, at *place, least int64) (*array.Data, error) {
	if raw == nil || raw.IsReleased() {
		return nil, invalid("%v: NULL or released: expected an array", at)
	}
	if at.depth == maxDepth {
		return nil, invalid("%v: nested too deep: expected at most %d levels", at, maxDepth)
	}
	storage := storageOf(dataType)
	is := layoutOf(storage)
	if !is.known {
		return nil, invalid("%v: type %v: not supported", at, dataType)
	}
	if err := checkCounts(raw, storage, is, at, least); err != nil {
		return nil, err
	}
	length, offset, nulls := raw.Length, raw.Offset, raw.NullCount
	if length == 0 { // no buffer is read: any buffer may be NULL, or shorter than the offset
		offset, nulls = 0, 0
	}
	buffers, err := i.buffers(raw, is, length, offset, at)
	if err != nil {
		return nil, err
	}
	switch storage.ID() {
	case arrow.NULL, arrow.RUN_END_ENCODED:
		buffers = nil
	case arrow.SPARSE_UNION, arrow.DENSE_UNION:
		nulls = 0
	default:
		if buffers[0] == nil { // no nulls; the producer need not have counted them
			nulls = 0
		}
	}
	children, err := i.children(raw, storage, is, length+offset, at)
	if err != nil {
		return nil, err
	}
	dictionary, err := i.dictionary(raw, storage, at)
	if err != nil {
		return nil, err
	}
	data := array.NewData(dataType, int(length), buffers, children, int(nulls), int(offset))
	if dictionary != nil {
		data.SetDictionary(dictionary)
		dictionary.Release()
	}
	memory.ReleaseBuffers(buffers)
	for _, child := range children {
		child.Release()
	}
	return data, nil
}

// checkCounts checks the counts and lists of one struct.
func checkCounts(raw *abi.ArrowArray, storage arrow.DataType, is layout, at *place, least int64) error {
	rows := raw.Length + raw.Offset
	if raw.Length < 0 || raw.Offset < 0 || rows < 0 || rows > math.MaxInt-8 {
		return invalid("%v: length or offset out of range: expected 0 or more, got %d and %d", at, raw.Length, raw.Offset)
	}
	if raw.Length < least {
		return invalid("%v.length: too small for the parent: expected %d or more, got %d", at, least, raw.Length)
	}
	if raw.NullCount < -1 || raw.NullCount > raw.Length {
		return invalid("%v.null_count: out of range: expected -1 to %d, got %d", at, raw.Length, raw.NullCount)
	}
	if id := storage.ID(); !is.validity && id != arrow.NULL && raw.NullCount > 0 {
		return invalid("%v.null_count: not zero for %v, which has no validity buffer: expected 0, got %d", at, storage, raw.NullCount)
	}
	expected := int64(is.fixed)
	if is.validity {
		expected++
	}
	_, union := storage.(arrow.UnionType)
	switch {
	case is.views && raw.NBuffers == expected:
		return invalid("%v.n_buffers: wrong for %v: expected one with sizes at the end, got none", at, storage)
	case is.views && raw.NBuffers > expected && raw.NBuffers < 1<<22:
	case union && raw.NBuffers == expected+1:
		return invalid("%v.n_buffers: union layout before Arrow 1.0, with a validity buffer: expected %d, got %d", at, expected, raw.NBuffers)
	case raw.NBuffers != expected:
		return invalid("%v.n_buffers: wrong for %v: expected %d, got %d", at, storage, expected, raw.NBuffers)
	}
	switch {
	case raw.NBuffers > 0 && raw.Buffers == 0:
		return invalid("%v.buffers: NULL: expected a list of %d", at, raw.NBuffers)
	case raw.NChildren != int64(is.children):
		return invalid("%v.n_children: wrong for %v: expected %d, got %d", at, storage, is.children, raw.NChildren)
	case raw.NChildren > 0 && raw.Children == 0:
		return invalid("%v.children: NULL: expected a list of %d", at, raw.NChildren)
	}
	switch encoded := storage.ID() == arrow.DICTIONARY; {
	case encoded && raw.Dictionary == 0:
		return invalid("%v.dictionary: NULL: expected one for %v", at, storage)
	case !encoded && raw.Dictionary != 0:
		return invalid("%v.dictionary: not NULL: expected none for %v", at, storage)
	}
	return nil
}

// zeroOffsets are the offsets of an array without values.
var zeroOffsets [8]byte

// buffers returns the buffers for arrow-go, which has a validity buffer for unions too.
func (i *imported) buffers(raw *abi.ArrowArray, is layout, length, offset int64, at *place) ([]*memory.Buffer, error) {
	addresses := raw.BufferAddresses()
	rows := length + offset
	result := make([]*memory.Buffer, 1, len(addresses)+1)
	first := 0
	if is.validity {
		first = 1
		if addresses[0] != 0 {
			result[0] = i.buffer(addresses[0], (rows+7)/8)
		} else if length > 0 && raw.NullCount > 0 {
			return nil, invalid("%v.buffers[0]: NULL: expected a validity buffer, because null_count is %d", at, raw.NullCount)
		}
	}
	var dataSize int64
	for position := range is.fixed {
		spec, index := is.buffers[position], first+position
		if spec.offsets && length == 0 {
			result = append(result, memory.NewBufferBytes(zeroOffsets[:spec.bits/8]))
			continue
		}
		size := dataSize
		if !spec.data {
			count := rows
			if spec.offsets {
				count++
			}
			if spec.bits > 0 && count > (math.MaxInt-7)/spec.bits {
				return nil, invalid("%v: length or offset out of range: got %d rows of %d bits", at, rows, spec.bits)
			}
			size = (count*spec.bits + 7) / 8
		}
		next, err := i.fixedBuffer(addresses[index], spec, size, at, index)
		if err != nil {
			return nil, err
		}
		if spec.offsets {
			if dataSize = lastOffset(next.Bytes(), spec); dataSize < 0 || dataSize > math.MaxInt {
				return nil, invalid("%v.buffers[%d]: last offset out of range: expected 0 or more, got %d", at, index, dataSize)
			}
		}
		result = append(result, next)
	}
	if !is.views {
		return result, nil
	}
	return i.viewed(addresses, first+is.fixed, result, at)
}

// viewed appends the variadic buffers of a view array.
func (i *imported) viewed(addresses []uintptr, first int, result []*memory.Buffer, at *place) ([]*memory.Buffer, error) {
	last := len(addresses) - 1
	count := last - first
	sizes, err := i.fixedBuffer(addresses[last], values(64, 8), int64(count)*8, at, last)
	if err != nil {
		return nil, err
	}
	for position := range count {
		size := int64(binary.NativeEndian.Uint64(sizes.Bytes()[position*8:]))
		if size < 0 || size > math.MaxInt {
			return nil, invalid("%v.buffers[%d]: size out of range: expected 0 or more, got %d", at, last, size)
		}
		next, err := i.fixedBuffer(addresses[first+position], values(8, 1), size, at, first+position)
		if err != nil {
			return nil, err
		}
		result = append(result, next)
	}
	sizes.Release()
	return result, nil
}

func lastOffset(offsets []byte, spec buffer) int64 {
	last := offsets[len(offsets)-int(spec.bits/8):] // may be misaligned
	if spec.bits == 32 {
		return int64(int32(binary.NativeEndian.Uint32(last)))
	}
	return int64(binary.NativeEndian.Uint64(last))
}

// fixedBuffer returns a buffer of the size, and applies the alignment option.
func (i *imported) fixedBuffer(address uintptr, spec buffer, size int64, at *place, index int) (*memory.Buffer, error) {
	if size == 0 {
		return memory.NewBufferBytes([]byte{}), nil
	}
	if address == 0 {
		return nil, invalid("%v.buffers[%d]: NULL: expected %d bytes", at, index, size)
	}
	if address%spec.alignment == 0 || i.options.Alignment == AcceptMisaligned {
		return i.buffer(address, size), nil
	}
	message := fmt.Sprintf("%v.buffers[%d]: not aligned: expected a multiple of %d, got %#x", at, index, spec.alignment, address)
	if i.options.Alignment == RefuseMisaligned {
		return nil, invalid("%s; hint: set Options.Alignment to CopyMisaligned", message)
	}
	words := make([]uint64, (size+7)/8)
	copied := unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(words))), size)
	copy(copied, unsafe.Slice((*byte)(abi.Pointer(address)), size))
	if i.options.OnCopy != nil {
		i.options.OnCopy(message)
	}
	return memory.NewBufferBytes(copied), nil
}

// buffer returns memory of the array; freeing it counts toward the release of the array.
func (i *imported) buffer(address uintptr, size int64) *memory.Buffer {
	if size == 0 {
		return memory.NewBufferBytes([]byte{})
	}
	i.uses.Add(1)
	return memory.NewBufferWithAllocator(unsafe.Slice((*byte)(abi.Pointer(address)), size), i)
}

func (i *imported) children(raw *abi.ArrowArray, storage arrow.DataType, is layout, rows int64, at *place) ([]arrow.ArrayData, error) {
	if is.children == 0 {
		return nil, nil
	}
	result := make([]arrow.ArrayData, 0, is.children)
	below := at.below(0)
	for index, address := range unsafe.Slice((*uintptr)(abi.Pointer(raw.Children)), is.children) {
		below.index = index
		child := (*abi.ArrowArray)(abi.Pointer(address))
		dataType, perRow := childOf(storage, index)
		if perRow > 0 && rows > math.MaxInt64/perRow {
			return nil, invalid("%v: length or offset out of range: got %d rows of %d values", at, rows, perRow)
		}
		data, err := i.data(child, dataType, below, rows*perRow)
		if err != nil {
			return nil, err
		}
		result = append(result, data)
	}
	return result, checkSpecial(result, storage, rows, at)
}

// checkSpecial checks the requirements of maps and run-end encoded arrays on their children.
func checkSpecial(children []arrow.ArrayData, storage arrow.DataType, rows int64, at *place) error {
	switch storage.ID() {
	case arrow.MAP:
		entries := children[0].(*array.Data)
		for _, each := range []struct {
			data *array.Data
			name string
		}{{entries, "children[0]"}, {entries.Children()[0].(*array.Data), "children[0].children[0]"}} {
			if countNulls(each.data) != 0 {
				return invalid("%v.%s: null entries or keys of a map: expected no nulls", at, each.name)
			}
		}
	case arrow.RUN_END_ENCODED:
		ends, values := children[0], children[1]
		switch {
		case countNulls(ends.(*array.Data)) != 0:
			return invalid("%v.children[0]: null run ends: expected no nulls", at)
		case rows > 0 && ends.Len() == 0:
			return invalid("%v.children[0].length: too small for the parent: expected 1 or more, got 0", at)
		case values.Len() < ends.Len():
			return invalid("%v.children[1].length: less than the run ends': expected %d or more, got %d", at, ends.Len(), values.Len())
		}
	}
	return nil
}

// countNulls counts the nulls if the producer has not, and stores the result.
func countNulls(data *array.Data) int {
	if data.NullN() < 0 { // implies a validity buffer
		set := bitutil.CountSetBits(data.Buffers()[0].Bytes(), data.Offset(), data.Len())
		data.SetNullN(data.Len() - set)
	}
	return data.NullN()
}

func (i *imported) dictionary(raw *abi.ArrowArray, storage arrow.DataType, at *place) (*array.Data, error) {
	dictionary, ok := storage.(*arrow.DictionaryType)
	if !ok {
		return nil, nil
	}
	return i.data((*abi.ArrowArray)(abi.Pointer(raw.Dictionary)), dictionary.ValueType, at.below(-1), 0)
}
