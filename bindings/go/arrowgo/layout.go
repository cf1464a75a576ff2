// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import "github.com/apache/arrow-go/v18/arrow"

// layout describes the buffers and children that a type has in the C data interface.
type layout struct {
	validity bool
	fixed    int       // the number of buffers after the validity that every array has
	buffers  [2]buffer // those buffers
	views    bool      // variadic buffers follow, and a buffer with their sizes
	children int
	known    bool // false for a type that this package does not support
}

// buffer describes one buffer. bits is set for values of a fixed size.
type buffer struct {
	bits      int64
	alignment uintptr
	offsets   bool // one more value than rows
	data      bool // the target of the preceding offsets
}

var (
	offsets32 = buffer{bits: 32, alignment: 4, offsets: true}
	offsets64 = buffer{bits: 64, alignment: 8, offsets: true}
	bytes     = buffer{alignment: 1, data: true}
)

// storageOf returns the storage type of an extension type, and any other type unchanged.
func storageOf(dataType arrow.DataType) arrow.DataType {
	for {
		extension, ok := dataType.(arrow.ExtensionType)
		if !ok {
			return dataType
		}
		dataType = extension.StorageType()
	}
}

// layoutOf returns the layout of a storage type.
func layoutOf(dataType arrow.DataType) layout {
	switch dataType.ID() {
	case arrow.NULL:
		return layout{known: true}
	case arrow.STRING, arrow.BINARY:
		return layout{validity: true, fixed: 2, buffers: [2]buffer{offsets32, bytes}, known: true}
	case arrow.LARGE_STRING, arrow.LARGE_BINARY:
		return layout{validity: true, fixed: 2, buffers: [2]buffer{offsets64, bytes}, known: true}
	case arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return layout{validity: true, fixed: 1, buffers: [2]buffer{{bits: 128, alignment: 4}}, views: true, known: true}
	case arrow.LIST, arrow.MAP:
		return layout{validity: true, fixed: 1, buffers: [2]buffer{offsets32}, children: 1, known: true}
	case arrow.LARGE_LIST:
		return layout{validity: true, fixed: 1, buffers: [2]buffer{offsets64}, children: 1, known: true}
	case arrow.LIST_VIEW:
		return layout{validity: true, fixed: 2, buffers: [2]buffer{values(32, 4), values(32, 4)}, children: 1, known: true}
	case arrow.LARGE_LIST_VIEW:
		return layout{validity: true, fixed: 2, buffers: [2]buffer{values(64, 8), values(64, 8)}, children: 1, known: true}
	case arrow.FIXED_SIZE_LIST:
		return layout{validity: true, children: 1, known: true}
	case arrow.STRUCT:
		return layout{validity: true, children: dataType.(*arrow.StructType).NumFields(), known: true}
	case arrow.RUN_END_ENCODED:
		return layout{children: 2, known: true}
	case arrow.SPARSE_UNION:
		return layout{fixed: 1, buffers: [2]buffer{values(8, 1)}, children: len(dataType.(arrow.UnionType).TypeCodes()), known: true}
	case arrow.DENSE_UNION:
		return layout{fixed: 2, buffers: [2]buffer{values(8, 1), values(32, 4)}, children: len(dataType.(arrow.UnionType).TypeCodes()), known: true}
	}
	fixed, known := dataType.(arrow.FixedWidthDataType)
	if !known {
		return layout{}
	}
	bits := int64(fixed.BitWidth())
	return layout{validity: true, fixed: 1, buffers: [2]buffer{values(bits, alignmentOf(dataType, bits))}, known: true}
}

func values(bits int64, alignment uintptr) buffer { return buffer{bits: bits, alignment: alignment} }

// alignmentOf returns the alignment of the Go type through which arrow-go reads the values.
func alignmentOf(dataType arrow.DataType, bits int64) uintptr {
	switch dataType.ID() {
	case arrow.FIXED_SIZE_BINARY, arrow.BOOL:
		return 1
	case arrow.INTERVAL_DAY_TIME:
		return 4
	}
	return uintptr(max(min(bits/8, 8), 1))
}

// childOf returns the type of a child and its number of values per parent row, 0 if buffers determine the number.
func childOf(dataType arrow.DataType, index int) (child arrow.DataType, perRow int64) {
	switch dataType := dataType.(type) {
	case *arrow.StructType:
		return dataType.Field(index).Type, 1
	case *arrow.FixedSizeListType:
		return dataType.Elem(), int64(dataType.Len())
	case *arrow.MapType:
		return dataType.Elem(), 0
	case *arrow.RunEndEncodedType:
		if index == 0 {
			return dataType.RunEnds(), 0
		}
		return dataType.Encoded(), 0
	case arrow.UnionType:
		if dataType.Mode() == arrow.SparseMode {
			perRow = 1
		}
		return dataType.Fields()[index].Type, perRow
	case arrow.ListLikeType:
		return dataType.Elem(), 0
	}
	return nil, 0
}
