// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import (
	"fmt"
	"math"
	"runtime"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// Alignment is what happens to a buffer at an address that is not a multiple of the size of its values.
// The texts recommend multiples of 8 and allow any; arrow-go reads the values in place, which Go does not
// promise to work and some processors refuse.
type Alignment int

const (
	RefuseMisaligned Alignment = iota // an error that names the buffer
	CopyMisaligned                    // a copy of that buffer; see Options.OnCopy
	AcceptMisaligned                  // as it is
)

// Options are those of an import.
type Options struct {
	// Alignment is RefuseMisaligned unless it is set.
	Alignment Alignment

	// OnCopy is called with every buffer that is copied. It may be nil.
	OnCopy func(message string)
}

// importing is one import: it checks the array, and builds another one around what it replaces.
type importing struct {
	options  Options
	owner    *replacement
	replaced bool
}

// replacement owns the array that it replaces, and the buffers that are its own.
type replacement struct {
	array  *fletching.Array
	pinner runtime.Pinner
}

func (r *replacement) Close() {
	r.pinner.Unpin()
	r.array.Close()
}

// align returns the array as arrow-go can read it. It consumes the array.
func align(array *fletching.Array, dataType arrow.DataType, options Options) (*fletching.Array, error) {
	work := importing{options: options, owner: &replacement{array: array}}
	owner := work.owner
	defer func() { // also when OnCopy panics: the runtime ends a process that forgets a pin
		if owner != nil {
			owner.Close()
		}
	}()
	builder, err := work.check(array.Root(), layoutOf(dataType), "ArrowArray")
	if err != nil {
		return nil, err
	}
	if !work.replaced {
		owner = nil
		return array, nil
	}
	aligned, err := builder.Build(owner)
	if err == nil {
		owner = nil
	}
	return aligned, err
}

// check says whether the array is one of the type, which arrow-go does not in every version, and returns
// how to build it.
func (w *importing) check(view fletching.ArrayView, is layout, path string) (fletching.ArrayBuilder, error) {
	built := fletching.ArrayBuilder{
		Length: view.Length(), NullCount: view.NullCount(), Offset: view.Offset(), Buffers: view.BufferAddresses(),
	}
	rows := built.Length + built.Offset
	if built.Length < 0 || built.Offset < 0 || rows < 0 || rows > math.MaxInt/64 {
		return built, invalid("%s: length or offset out of range: expected 0 or more, got %d and %d", path, built.Length, built.Offset)
	}
	if found, expected := len(built.Buffers), len(is.buffers); found < expected || (found != expected && !is.views) {
		return built, invalid("%s.n_buffers: wrong for %v: expected %d, got %d", path, is.dataType, expected, found)
	}
	if err := w.checkBuffers(built.Buffers, is, int(rows), path); err != nil {
		return built, err
	}
	if found, expected := view.NumChildren(), len(is.children); found != expected {
		return built, invalid("%s.n_children: wrong for %v: expected %d, got %d", path, is.dataType, expected, found)
	}
	for i, dataType := range is.children {
		below := fmt.Sprintf("%s.children[%d]", path, i)
		child, err := w.checkBelow(view.Child(i), dataType, below)
		if err != nil {
			return built, err
		}
		built.Children = append(built.Children, child)
	}
	if dictionary, ok := is.dataType.(*arrow.DictionaryType); ok {
		child, err := w.checkBelow(view.Dictionary(), dictionary.ValueType, path+".dictionary")
		if err != nil {
			return built, err
		}
		built.Dictionary = &child
	}
	return built, nil
}

func (w *importing) checkBelow(view fletching.ArrayView, dataType arrow.DataType, path string) (fletching.ArrayBuilder, error) {
	if view.IsReleased() {
		return fletching.ArrayBuilder{}, invalid("%s: NULL or released: expected an array", path)
	}
	return w.check(view, layoutOf(dataType), path)
}

// checkBuffers changes the addresses of buffers that are replaced.
func (w *importing) checkBuffers(addresses []uintptr, is layout, rows int, path string) error {
	for i, spec := range is.buffers {
		name := fmt.Sprintf("%s.buffers[%d]", path, i)
		values := rows
		if spec.end {
			values++
		}
		if spec.end && rows == 0 && addresses[i] == 0 { // which the columnar format allows, and arrow-go reads
			addresses[i] = w.room(spec.width)
		}
		if spec.width > 0 && values > 0 && addresses[i] == 0 {
			return invalid("%s: NULL: expected %d values of %v", name, values, is.dataType)
		}
		if err := w.checkAddress(&addresses[i], values*spec.width, spec.alignment, is, name); err != nil {
			return err
		}
	}
	if last := len(addresses) - 1; is.views {
		if last == len(is.buffers)-1 {
			return invalid("%s.n_buffers: wrong for %v: expected one with sizes at the end, got none", path, is.dataType)
		}
		size := int(unsafe.Sizeof(int64(0)))
		return w.checkAddress(&addresses[last], (last-len(is.buffers))*size, 8, is, fmt.Sprintf("%s.buffers[%d]", path, last))
	}
	return nil
}

func (w *importing) checkAddress(address *uintptr, size int, alignment uintptr, is layout, name string) error {
	if size == 0 || *address%alignment == 0 {
		return nil
	}
	message := fmt.Sprintf("%s: not aligned for %v: expected a multiple of %d, got %#x", name, is.dataType, alignment, *address)
	switch w.options.Alignment {
	case AcceptMisaligned:
		return nil
	case CopyMisaligned:
		source := unsafe.Slice((*byte)(abi.Pointer(*address)), size)
		*address = w.room(size)
		copy(unsafe.Slice((*byte)(abi.Pointer(*address)), size), source)
		if w.options.OnCopy != nil {
			w.options.OnCopy(message)
		}
		return nil
	}
	return invalid("%s; hint: set Options.Alignment to CopyMisaligned", message)
}

// room is zeroed memory that lives as long as the array.
func (w *importing) room(size int) uintptr {
	memory := make([]uint64, (size+7)/8)
	first := unsafe.SliceData(memory)
	w.owner.pinner.Pin(first)
	w.replaced = true
	return uintptr(unsafe.Pointer(first))
}
