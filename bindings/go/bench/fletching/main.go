// SPDX-License-Identifier: Apache-2.0

// The cases of `make bench-go` on package fletching.
package main

import (
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/bench/internal/peer"
)

var (
	leaf   = peer.Leaf()
	raw    = new(abi.ArrowDeviceArray)
	values = make([]int64, peer.Rows)
)

func importLeaf() {
	*raw = leaf
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(raw))
	peer.Check(err)
	array.Close()
}

func exportLeaf() {
	exported, err := fletching.FromValues(values)
	peer.Check(err)
	peer.Check(exported.Export(unsafe.Pointer(&raw.Array)))
	array, err := fletching.ImportArray(unsafe.Pointer(&raw.Array))
	peer.Check(err)
	array.Close()
}

type owner struct{}

func (*owner) Close() {}

func handoff() {
	children := make([]fletching.ArrayBuilder, peer.Columns)
	buffers := make([]uintptr, 2*peer.Columns)
	for i, address := range peer.Data() {
		buffers[2*i+1] = address
		children[i] = fletching.ArrayBuilder{Length: peer.Rows, Buffers: buffers[2*i : 2*i+2]}
	}
	batch := fletching.ArrayBuilder{Length: peer.Rows, Buffers: []uintptr{0}, Children: children}
	array, err := batch.BuildOn(abi.DeviceCPU, -1, 0, new(owner))
	peer.Check(err)
	peer.Check(array.Export(unsafe.Pointer(raw)))
	peer.Consume(raw)
}

var schema *fletching.Schema // the leaf's schema, which the user already has

func tensor() {
	*raw = leaf
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(raw))
	peer.Check(err)
	tensor, err := array.Tensor(schema, fletching.TensorOptions{})
	peer.Check(err)
	imported, err := tensor.DeviceArray(fletching.TensorImportOptions{})
	peer.Check(err)
	imported.Close()
}

func main() {
	var err error
	schema, err = (&fletching.SchemaBuilder{Format: "l"}).Build()
	peer.Check(err)
	peer.Main(map[string]func(){"import": importLeaf, "export": exportLeaf, "handoff": handoff, "tensor": tensor})
}
