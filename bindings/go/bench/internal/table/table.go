// SPDX-License-Identifier: Apache-2.0

// Package table contains the table that two programs of `make bench-go` import.
package table

import (
	"strconv"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/bench/internal/peer"
)

const columns = 100

// New returns a struct array of 100 columns. It owns no memory, so a copy is a separate array.
func New() abi.ArrowDeviceArray {
	table := peer.Leaf()
	builder := fletching.ArrayBuilder{Length: peer.Rows, Buffers: []uintptr{0}}
	for _, address := range peer.Data()[:columns] {
		builder.Children = append(builder.Children, fletching.ArrayBuilder{Length: peer.Rows, Buffers: []uintptr{0, address}})
	}
	array, err := builder.Build(nil)
	peer.Check(err)
	release, data := table.Array.Release, table.Array.PrivateData
	peer.Check(array.Export(unsafe.Pointer(&table.Array)))
	table.Array.Release, table.Array.PrivateData = release, data // the block is never freed
	return table
}

// Fields returns the fields of the table.
func Fields() []arrow.Field {
	fields := make([]arrow.Field, columns)
	for i := range fields {
		fields[i] = arrow.Field{Name: strconv.Itoa(i), Type: arrow.PrimitiveTypes.Int64, Nullable: true}
	}
	return fields
}
