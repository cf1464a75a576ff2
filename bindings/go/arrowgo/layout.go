// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package arrowgo

import "github.com/apache/arrow-go/v18/arrow"

// layout is what the C data interface has of an array of a type.
type layout struct {
	dataType arrow.DataType // the type of the storage
	buffers  []buffer
	views    bool // as many more buffers as there are, and one with their sizes
	children []arrow.DataType
}

// buffer has a width for values of a known size.
type buffer struct {
	width     int
	alignment uintptr
	end       bool // one value more than rows: offsets
}

func layoutOf(dataType arrow.DataType) layout {
	for {
		extension, ok := dataType.(arrow.ExtensionType)
		if !ok {
			break
		}
		dataType = extension.StorageType()
	}
	result := layout{dataType: dataType, views: hasViews(dataType)}
	for i, spec := range dataType.Layout().Buffers {
		switch spec.Kind {
		case arrow.KindAlwaysNull: // which C does not have
		case arrow.KindFixedWidth:
			end := i == 1 && hasOffsets(dataType)
			result.buffers = append(result.buffers, buffer{spec.ByteWidth, alignmentOf(dataType, spec.ByteWidth), end})
		default:
			result.buffers = append(result.buffers, buffer{alignment: 1})
		}
	}
	if nested, ok := dataType.(arrow.NestedType); ok {
		for _, field := range nested.Fields() {
			result.children = append(result.children, field.Type)
		}
	}
	return result
}

// hasValidity reports whether the first buffer of arrow-go is one in C.
func hasValidity(dataType arrow.DataType) bool {
	switch dataType.ID() {
	case arrow.NULL, arrow.SPARSE_UNION, arrow.DENSE_UNION, arrow.RUN_END_ENCODED:
		return false
	}
	return true
}

func hasViews(dataType arrow.DataType) bool {
	return dataType.ID() == arrow.STRING_VIEW || dataType.ID() == arrow.BINARY_VIEW
}

// hasOffsets reports whether the second buffer has one offset more than there are rows.
func hasOffsets(dataType arrow.DataType) bool {
	switch dataType.ID() {
	case arrow.STRING, arrow.BINARY, arrow.LARGE_STRING, arrow.LARGE_BINARY, arrow.LIST, arrow.LARGE_LIST, arrow.MAP:
		return true
	}
	return false
}

// alignmentOf is that of the type of Go through which arrow-go reads the values.
func alignmentOf(dataType arrow.DataType, width int) uintptr {
	switch dataType.ID() {
	case arrow.FIXED_SIZE_BINARY:
		return 1
	case arrow.INTERVAL_DAY_TIME, arrow.STRING_VIEW, arrow.BINARY_VIEW:
		return 4
	}
	return uintptr(min(width, 8))
}
