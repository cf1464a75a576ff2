// SPDX-License-Identifier: Apache-2.0

// The cases of `make bench-go` as a user of arrow-go writes them. arrow-go has no device array, so the
// device fields are set separately. The arrays are created in advance: only the handoff is measured.
package main

import (
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/cdata"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/bench/internal/peer"
	"github.com/fletching/fletching/bindings/go/bench/internal/table"
)

var (
	leaf   = peer.Leaf()
	raw    = new(abi.ArrowDeviceArray)
	target = (*cdata.CArrowArray)(unsafe.Pointer(&raw.Array))
	column = newColumn()
	batch  = newBatch()
	source = table.New()
	fields = arrow.StructOf(table.Fields()...)
)

func newColumn() arrow.Array {
	bytes := unsafe.Slice((*byte)(abi.Pointer(peer.Data()[0])), 8*peer.Rows)
	buffers := []*memory.Buffer{nil, memory.NewBufferBytes(bytes)} // in C memory: no unpinned Go memory is exported
	return array.NewInt64Data(array.NewData(arrow.PrimitiveTypes.Int64, peer.Rows, buffers, nil, 0, 0))
}

func newBatch() arrow.RecordBatch {
	fields := make([]arrow.Field, peer.Columns)
	columns := make([]arrow.Array, peer.Columns)
	for i := range fields {
		fields[i] = arrow.Field{Type: arrow.PrimitiveTypes.Int64, Nullable: true}
		columns[i] = column
	}
	return array.NewRecordBatch(arrow.NewSchema(fields, nil), columns, peer.Rows)
}

func take(dataType arrow.DataType) {
	imported, err := cdata.ImportCArrayWithType(target, dataType)
	peer.Check(err)
	imported.Release()
}

func importLeaf() {
	*raw = leaf
	take(arrow.PrimitiveTypes.Int64)
}

func importTable() {
	*raw = source
	take(fields)
}

func exportLeaf() {
	cdata.ExportArrowArray(column, target, nil)
	take(arrow.PrimitiveTypes.Int64)
}

func handoff() {
	cdata.ExportArrowRecordBatch(batch, target, nil)
	raw.DeviceID, raw.DeviceType = -1, abi.DeviceCPU
	peer.Consume(raw)
}

func main() {
	peer.Main(map[string]func(){"import": importLeaf, "import_table": importTable, "export": exportLeaf, "handoff": handoff})
}
