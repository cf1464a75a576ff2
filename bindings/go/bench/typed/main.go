// SPDX-License-Identifier: Apache-2.0

// Benchmarks of imports into arrow-go arrays with package arrowgo, for `make bench-go`. Program arrowgo uses cdata.
package main

import (
	"context"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/arrowgo"
	"github.com/fletching/fletching/bindings/go/bench/internal/peer"
	"github.com/fletching/fletching/bindings/go/bench/internal/table"
)

var (
	leaf  = peer.Leaf()
	batch = table.New()
	raw   = new(abi.ArrowDeviceArray)
)

func take(source abi.ArrowDeviceArray, dataType arrow.DataType) {
	*raw = source
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(raw))
	peer.Check(err)
	imported, err := arrowgo.ImportArray(context.Background(), array, dataType, arrowgo.Options{})
	peer.Check(err)
	imported.Release()
}

func main() {
	columns := arrow.StructOf(table.Fields()...)
	peer.Main(map[string]func(){
		"import":       func() { take(leaf, arrow.PrimitiveTypes.Int64) },
		"import_table": func() { take(batch, columns) },
	})
}
