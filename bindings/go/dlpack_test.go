// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

var (
	float32s  = abi.DLDataType{Code: uint8(abi.DataTypeFloat), Bits: 32, Lanes: 1}
	bfloat16s = abi.DLDataType{Code: uint8(abi.DataTypeBfloat), Bits: 16, Lanes: 1}
)

func numbers(t *testing.T, values ...int32) (*fletching.Schema, *fletching.DeviceArray) {
	t.Helper()
	schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
	builder := fletching.ArrayBuilder{Length: int64(len(values)), Buffers: []uintptr{0, 0}}
	var pinner runtime.Pinner
	if len(values) > 0 {
		pinner.Pin(&values[0])
		builder.Buffers[1] = uintptr(unsafe.Pointer(&values[0]))
	}
	return schema, must(builder.BuildOn(abi.DeviceCPU, -1, 0, onClose(pinner.Unpin)))
}

// awaitedNumbers returns a device array with one number and an event.
func awaitedNumbers(deviceType abi.DeviceType, event uintptr) *fletching.DeviceArray {
	builder := fletching.ArrayBuilder{Length: 1, Buffers: []uintptr{0, 0x1000}}
	return must(builder.BuildOn(deviceType, 0, event, nil))
}

// elements reads the values of a tensor on the CPU in row-major order.
func elements[T any](tensor *fletching.Tensor) (values []T) {
	shape, strides := tensor.Shape(), tensor.Strides()
	first := tensor.Data() + uintptr(tensor.ByteOffset()) // not a pointer: Data may be outside the allocation
	var visit func(axis int, at int64)
	visit = func(axis int, at int64) {
		if axis == len(shape) {
			var value T
			values = append(values, *(*T)(abi.Pointer(first + uintptr(at)*unsafe.Sizeof(value))))
			return
		}
		for i := range shape[axis] {
			visit(axis+1, at+i*strides[axis])
		}
	}
	visit(0, 0)
	runtime.KeepAlive(tensor)
	return values
}

func expectEqual[T any](t *testing.T, what string, got, expected []T) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(expected) {
		t.Errorf("%s: expected %v, got %v", what, expected, got)
	}
}

func TestTensorDescribesArray(t *testing.T) {
	schema, array := numbers(t, 1, 2, 3)
	defer schema.Close()
	tensor := must(array.Tensor(schema, fletching.TensorOptions{}))
	if !array.IsReleased() || tensor.IsReleased() || tensor.IsLegacy() {
		t.Error("expected the array to move into a versioned tensor")
	}
	expectEqual(t, "shape", tensor.Shape(), []int64{3})
	expectEqual(t, "strides", tensor.Strides(), []int64{1})
	expectEqual(t, "values", elements[int32](tensor), []int32{1, 2, 3})
	if got := tensor.DataType(); got != (abi.DLDataType{Code: uint8(abi.DataTypeInt), Bits: 32, Lanes: 1}) {
		t.Errorf("dtype: got %v", got)
	}
	if tensor.DeviceType() != abi.DeviceCPU || tensor.DeviceID() != 0 || tensor.Version().Major != 1 {
		t.Errorf("got device %v %d, version %v", tensor.DeviceType(), tensor.DeviceID(), tensor.Version())
	}
	if tensor.Flags() != abi.DLPackFlagBitmaskReadOnly {
		t.Errorf("flags: expected read-only, got %d", tensor.Flags())
	}
	imported := must(tensor.DeviceArray(fletching.TensorImportOptions{}))
	if imported.Schema.Format() != "i" || imported.Array.Length() != 3 || !imported.ReadOnly || imported.Copied {
		t.Errorf("got %q of length %d, %v", imported.Schema.Format(), imported.Array.Length(), imported)
	}
	imported.Close()
}

func TestTensorOptionsSetFlags(t *testing.T) {
	for _, options := range []fletching.TensorOptions{{}, {Writable: true}, {Copied: true}, {Writable: true, Copied: true}} {
		schema, array := numbers(t, 1)
		tensor := must(array.Tensor(schema, options))
		isReadOnly, isCopied := tensor.Flags()&abi.DLPackFlagBitmaskReadOnly != 0, tensor.Flags()&abi.DLPackFlagBitmaskIsCopied != 0
		imported := must(tensor.DeviceArray(fletching.TensorImportOptions{}))
		if isReadOnly == options.Writable || isCopied != options.Copied || imported.ReadOnly != isReadOnly || imported.Copied != isCopied {
			t.Errorf("%+v: got %t, %t, and %t, %t after the import", options, isReadOnly, isCopied, imported.ReadOnly, imported.Copied)
		}
		imported.Close()
		schema.Close()
	}
}

func TestTensorAlignsData(t *testing.T) {
	schema, array := numbers(t, 1, 2, 3)
	defer schema.Close()
	tensor := must(array.Tensor(schema, fletching.TensorOptions{Aligned: true}))
	if tensor.Data()%256 != 0 || tensor.ByteOffset() >= 256 {
		t.Errorf("expected a multiple of 256 and an offset below it, got %#x and %d", tensor.Data(), tensor.ByteOffset())
	}
	expectEqual(t, "values", elements[int32](tensor), []int32{1, 2, 3})
	tensor.Close()
}

// Unknown orderings must be rejected, not treated as no stream.
var unknownOrderings = []*fletching.ConsumerStream{{}, {Ordering: -1}, {Ordering: 9}}

func TestTensorImportRejectsUnknownOrderings(t *testing.T) {
	for _, stream := range unknownOrderings {
		tensor := must(fletching.NewTensor(fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCPU, Shape: []int64{0}}, nil))
		_, err := tensor.DeviceArray(fletching.TensorImportOptions{Stream: stream})
		expectError(t, err, syscall.EINVAL, "unknown ordering")
	}
}

func TestTensorRejectsUnsupportedArrays(t *testing.T) {
	text := must((&fletching.SchemaBuilder{Format: "u"}).Build())
	date := must((&fletching.SchemaBuilder{Format: "tdD"}).Build())
	schema, array := numbers(t, 1, 2, 3)
	expect := func(schema *fletching.Schema, options fletching.TensorOptions, code syscall.Errno, part string) {
		t.Helper()
		_, err := array.Tensor(schema, options)
		expectError(t, err, code, part)
		if array.IsReleased() {
			t.Fatal("expected the array to be the caller's after an error")
		}
	}
	expect(text, fletching.TensorOptions{}, syscall.ENOTSUP, "the values are not contiguous in one buffer")
	expect(date, fletching.TensorOptions{}, syscall.ENOTSUP, "the unit would be lost; hint: pass AsStorage")
	_, err := array.LegacyTensor(schema, fletching.TensorOptions{})
	expectError(t, err, syscall.EINVAL, "no flag for read-only memory")
	_, err = array.Tensor(nil, fletching.TensorOptions{})
	expectError(t, err, syscall.EINVAL, "Tensor: closed")
	tensor := must(array.Tensor(date, fletching.TensorOptions{AsStorage: true}))
	_, err = array.Tensor(schema, fletching.TensorOptions{})
	expectError(t, err, syscall.EINVAL, "Tensor: closed")
	tensor.Close()
	for _, schema := range []*fletching.Schema{text, date, schema} {
		schema.Close()
	}

	event := uintptr(1)
	awaiting := awaited(t, abi.DeviceCUDA, event)
	schema, _ = numbers(t)
	for _, stream := range unknownOrderings {
		_, err = awaiting.Tensor(schema, fletching.TensorOptions{Stream: stream})
		expectError(t, err, syscall.EINVAL, "unknown ordering")
	}
	_, err = awaiting.Tensor(schema, fletching.TensorOptions{})
	expectError(t, err, syscall.EINVAL, "or wait and pass EventHandled")
	awaiting.Close()
	schema.Close()
}

func TestTensorRejectsNulls(t *testing.T) {
	bits := []byte{0b101}
	values := []int32{1, 2, 3}
	for _, nulls := range []int64{1, -1} {
		var pinner runtime.Pinner
		pinner.Pin(&bits[0])
		pinner.Pin(&values[0])
		builder := fletching.ArrayBuilder{Length: 3, NullCount: nulls,
			Buffers: []uintptr{uintptr(unsafe.Pointer(&bits[0])), uintptr(unsafe.Pointer(&values[0]))}}
		array := must(builder.BuildOn(abi.DeviceCPU, -1, 0, onClose(pinner.Unpin)))
		schema := must((&fletching.SchemaBuilder{Format: "i"}).Build())
		_, err := array.Tensor(schema, fletching.TensorOptions{})
		expectError(t, err, syscall.ENOTSUP, "has nulls")
		must(array.Tensor(schema, fletching.TensorOptions{IgnoreNulls: true})).Close()
		schema.Close()
	}
}

func TestLegacyTensor(t *testing.T) {
	schema, array := numbers(t, 4, 5)
	defer schema.Close()
	tensor := must(array.LegacyTensor(schema, fletching.TensorOptions{Writable: true}))
	if !tensor.IsLegacy() || tensor.Flags() != abi.DLPackFlagBitmaskReadOnly || tensor.Version() != (abi.DLPackVersion{}) {
		t.Errorf("got %t, flags %d, version %v", tensor.IsLegacy(), tensor.Flags(), tensor.Version())
	}
	again := must(fletching.ImportLegacyTensor(must(tensor.Export())))
	expectEqual(t, "values", elements[int32](again), []int32{4, 5})
	imported := must(again.DeviceArray(fletching.TensorImportOptions{}))
	if !imported.ReadOnly {
		t.Error("expected the memory of a legacy tensor to be read-only")
	}
	imported.Close()
}

// --- Owners of tensors ---

// countedTensor returns a tensor and the number of Close calls of its owner.
func countedTensor(t *testing.T, data fletching.TensorData) (*fletching.Tensor, *int) {
	t.Helper()
	closed := new(int)
	return must(fletching.NewTensor(data, onClose(func() { *closed++ }))), closed
}

func TestTensorIsDeletedOnce(t *testing.T) {
	data := fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCUDA, DeviceID: 1, Data: 0x1000, Shape: []int64{2}}
	tensor, closed := countedTensor(t, data)
	copied := reflect.New(reflect.TypeFor[fletching.Tensor]())
	copied.Elem().Set(reflect.ValueOf(tensor).Elem()) // a copy that go vet does not detect
	owner := copied.Interface().(*fletching.Tensor)
	owner.Close()
	if !owner.IsReleased() || *closed != 0 {
		t.Error("expected a copy to own nothing")
	}
	tensor.Close()
	tensor.Close()
	if *closed != 1 || !tensor.IsReleased() || tensor.Shape() != nil || tensor.Data() != 0 {
		t.Errorf("expected 1 release, got %d", *closed)
	}
	_, err := tensor.Export()
	expectError(t, err, syscall.EINVAL, "Export: closed")
	_, err = tensor.DeviceArray(fletching.TensorImportOptions{})
	expectError(t, err, syscall.EINVAL, "DeviceArray: closed")
	_, err = fletching.ImportTensor(nil)
	expectError(t, err, syscall.EINVAL, "tensor is nil")

	tensor, closed = countedTensor(t, data)
	imported := must(tensor.DeviceArray(fletching.TensorImportOptions{}))
	if imported.Array.DeviceType() != abi.DeviceCUDA || imported.Array.DeviceID() != 1 || *closed != 0 {
		t.Errorf("got %v %d", imported.Array.DeviceType(), imported.Array.DeviceID())
	}
	imported.Close()
	if *closed != 1 {
		t.Errorf("expected 1 release, got %d", *closed)
	}
}

func TestCollectedTensorIsDeleted(t *testing.T) {
	before := fletching.Leaks()
	deleted := make(chan struct{})
	func() {
		must(fletching.NewTensor(fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCPU}, onClose(func() { close(deleted) })))
	}()
	for done := false; !done; {
		runtime.GC()
		select {
		case <-deleted:
			done = true
		default:
			runtime.Gosched()
		}
	}
	if fletching.Leaks() == before {
		t.Error("expected the leak to be counted")
	}
}

func TestTensorOfOtherMajorVersionIsNotRead(t *testing.T) {
	tensor, closed := countedTensor(t, fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCPU})
	address := must(tensor.Export())
	(*abi.DLManagedTensorVersioned)(address).Version.Major = 2
	tensor = must(fletching.ImportTensor(address))
	if tensor.Shape() != nil || tensor.Flags() != 0 || tensor.Version().Major != 2 {
		t.Error("expected nothing to be read of another major version")
	}
	_, err := tensor.DeviceArray(fletching.TensorImportOptions{})
	expectError(t, err, syscall.ENOTSUP, "expected major version 1, got 2.")
	if *closed != 1 {
		t.Errorf("expected 1 release, got %d", *closed)
	}
}

func TestNewTensorRejectsInvalidData(t *testing.T) {
	released := 0
	for _, data := range []fletching.TensorData{
		{Shape: []int64{2}, Strides: []int64{}},
		{Shape: []int64{-1}},
		{Shape: make([]int64, 65)},
	} {
		_, err := fletching.NewTensor(data, onClose(func() { released++ }))
		expectError(t, err, syscall.EINVAL, "expected")
	}
	if released != 0 {
		t.Error("expected the owner to be the caller's after an error")
	}
	_, err := fletching.TensorOf([]int8{1, 2, 3}, 2, 2)
	expectError(t, err, syscall.EINVAL, "expected as many elements as there are values, 3")
	_, err = fletching.TensorOf([]int8{}, 1<<32, 1<<32)
	expectError(t, err, syscall.EINVAL, "as many elements")
	must(fletching.TensorOf([]int8{}, 1<<62, 0, 8)).Close()
	single := must(fletching.TensorOf([]int32{7}))
	if single.Data() == 0 || single.DataType() != (abi.DLDataType{Code: uint8(abi.DataTypeInt), Bits: 32, Lanes: 1}) {
		t.Error("expected an int32, got", single.DataType(), single.Data())
	}
	single.Close()
	if version := single.Version(); version != (abi.DLPackVersion{}) {
		t.Error("expected no version of a closed tensor, got", version)
	}
	if (&fletching.Tensor{}).IsLegacy() || !(&fletching.Tensor{}).IsReleased() {
		t.Error("expected a zero tensor to be a closed owner")
	}
	_, err = fletching.TensorOf([]int8{1}, 1<<62, 8)
	expectError(t, err, syscall.EINVAL, "as many elements")
}

// --- Types and layouts ---

func TestTypesMissingInArrowRoundTrip(t *testing.T) {
	data := fletching.TensorData{DataType: bfloat16s, DeviceType: abi.DeviceCPU, Data: 0x1000, Shape: []int64{3}}
	imported := must(must(fletching.NewTensor(data, nil)).DeviceArray(fletching.TensorImportOptions{}))
	metadata := must(imported.Schema.Metadata())
	expectEqual(t, "metadata", metadata, fletching.Metadata{
		{Key: "ARROW:extension:name", Value: "arrow.opaque"},
		{Key: "ARROW:extension:metadata", Value: `{"type_name":"bfloat16","vendor_name":"DLPack"}`},
	})
	if imported.Schema.Format() != "S" {
		t.Errorf("format: expected \"S\", got %q", imported.Schema.Format())
	}
	back := must(imported.Array.Tensor(imported.Schema, fletching.TensorOptions{}))
	if back.DataType() != bfloat16s {
		t.Errorf("dtype: expected %v, got %v", bfloat16s, back.DataType())
	}
	back.Close()
	imported.Close()

	data.DataType.Code = 99
	_, err := must(fletching.NewTensor(data, nil)).DeviceArray(fletching.TensorImportOptions{})
	expectError(t, err, syscall.ENOTSUP, "no Arrow type for unknown(99) of 16 bits")
}

// random returns a tensor of random shape, in an order that Arrow can express unless isStrided.
func random(source *rand.Rand, isStrided bool) fletching.TensorData {
	data := fletching.TensorData{DeviceType: abi.DeviceCPU, Shape: make([]int64, source.IntN(5))}
	for i := range data.Shape {
		data.Shape[i] = source.Int64N(4)
	}
	data.Strides = make([]int64, len(data.Shape))
	order := source.Perm(len(data.Shape))
	if first := slices.Index(order, 0); !isStrided && first > 0 {
		order[0], order[first] = order[first], order[0]
	}
	step := int64(1)
	if isStrided {
		step += source.Int64N(3)
	}
	for i := len(order) - 1; i >= 0; i-- {
		data.Strides[order[i]] = step
		step *= max(data.Shape[order[i]], 1)
	}
	return data
}

func TestRandomTensorsKeepElements(t *testing.T) {
	const most = 4 * 4 * 4 * 4 * 4
	memory := make([]int16, most)
	for i := range memory {
		memory[i] = int16(i)
	}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(&memory[0])
	source := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		isStrided := source.IntN(2) == 0
		data := random(source, isStrided)
		data.DataType = []abi.DLDataType{{Code: uint8(abi.DataTypeInt), Bits: 16, Lanes: 1}, bfloat16s}[source.IntN(2)]
		data.Data, data.ByteOffset = uintptr(unsafe.Pointer(&memory[0])), 2*source.Uint64N(8)
		tensor := must(fletching.NewTensor(data, nil))
		expected := elements[int16](tensor)
		imported, err := tensor.DeviceArray(fletching.TensorImportOptions{Copy: true, Lists: source.IntN(2) == 0})
		if err != nil {
			t.Fatalf("%+v: %v", data, err)
		}
		back := must(imported.Array.Tensor(imported.Schema, fletching.TensorOptions{Aligned: source.IntN(2) == 0}))
		expectEqual(t, fmt.Sprintf("%+v", data), elements[int16](back), expected)
		if shape := back.Shape(); len(data.Shape) > 0 && !slices.Equal(shape, data.Shape) {
			t.Errorf("shape: expected %v, got %v", data.Shape, shape)
		}
		back.Close()
		imported.Close()
	}
}

// --- Streams ---

func TestReadConsumerStream(t *testing.T) {
	number := func(value int64) *int64 { return &value }
	for _, row := range []struct {
		deviceType abi.DeviceType
		argument   *int64
		ordering   fletching.Ordering
		handle     uintptr
		refused    string
	}{
		{abi.DeviceCPU, nil, fletching.OrderHost, 0, ""},
		{abi.DeviceCPU, number(1), 0, 0, "invalid on cpu: expected None"},
		{abi.DeviceCUDA, nil, fletching.OrderStream, 1, ""},
		{abi.DeviceCUDA, number(2), fletching.OrderStream, 2, ""},
		{abi.DeviceCUDA, number(-1), fletching.OrderNothing, 0, ""},
		{abi.DeviceCUDA, number(0), 0, 0, "1 for the legacy default stream"},
		{abi.DeviceCUDAManaged, nil, fletching.OrderHost, 0, ""},
		{abi.DeviceROCM, nil, fletching.OrderStream, 0, ""},
		{abi.DeviceROCM, number(1), 0, 0, "0 for the default stream"},
		{abi.DeviceROCM, number(0x1000), fletching.OrderStream, 0x1000, ""},
	} {
		read, err := fletching.ReadConsumerStream(row.deviceType, row.argument)
		if row.refused != "" {
			expectError(t, err, syscall.EINVAL, row.refused)
			continue
		}
		succeed(t, err)
		if read.Ordering != row.ordering || read.Stream.Handle() != row.handle {
			t.Errorf("%v: expected %v %#x, got %v %#x", row.deviceType, row.ordering, row.handle, read.Ordering, read.Stream.Handle())
		}
	}
}

// A consumer's stream waits for the array's event, and the event of an import waits for the producer's stream.
func TestStandinTensorsAreOrdered(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		schema, _ := numbers(t)
		gated.Shut()
		api.RecordEvent(event, gated.Producer)
		array := awaitedNumbers(api.Type, event)
		stream := &fletching.ConsumerStream{Ordering: fletching.OrderStream, Stream: streamOf(api, gated.Consumer)}
		tensor := must(array.Tensor(schema, fletching.TensorOptions{Stream: stream}))
		if !gated.IsBlocked(gated.Consumer) {
			t.Error("expected the consumer's stream to wait")
		}
		stream.Stream = streamOf(api, gated.Producer)
		imported := must(tensor.DeviceArray(fletching.TensorImportOptions{Stream: stream}))
		expectReady(t, imported.Array, false)
		gated.OpenGate()
		succeed(t, imported.Array.Synchronize(background))
		expectReady(t, imported.Array, true)
		imported.Close()
		schema.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}

// A Go waiter orders a stream that the core does not know.
func TestTensorWaitsThroughWaiter(t *testing.T) {
	waiter := &countingWaiter{}
	succeed(t, fletching.RegisterWaiter(abi.DeviceOneAPI, waiter))
	defer fletching.UnregisterWaiter(abi.DeviceOneAPI)
	schema, _ := numbers(t)
	defer schema.Close()
	for _, ordering := range []fletching.Ordering{fletching.OrderHost, fletching.OrderStream, fletching.OrderNothing} {
		array := awaitedNumbers(abi.DeviceOneAPI, 1)
		stream := &fletching.ConsumerStream{Ordering: ordering, Stream: fletching.NewStream(abi.DeviceOneAPI, 7)}
		must(array.Tensor(schema, fletching.TensorOptions{Stream: stream})).Close()
	}
	if waiter.synchronized != 1 || waiter.waits != 1 {
		t.Errorf("expected one wait of each kind, got %+v", waiter)
	}
}

func TestTensorReturnsWaiterError(t *testing.T) {
	succeed(t, fletching.RegisterWaiter(abi.DeviceOneAPI, fletching.UnsupportedWaiter{}))
	defer fletching.UnregisterWaiter(abi.DeviceOneAPI)
	schema, _ := numbers(t)
	defer schema.Close()
	for _, ordering := range []fletching.Ordering{fletching.OrderHost, fletching.OrderStream} {
		array := awaitedNumbers(abi.DeviceOneAPI, 1)
		stream := &fletching.ConsumerStream{Ordering: ordering, Stream: fletching.NewStream(abi.DeviceOneAPI, 7)}
		_, err := array.Tensor(schema, fletching.TensorOptions{Stream: stream})
		expectError(t, err, syscall.ENOTSUP, "")
		array.Close()
	}
	for _, stream := range unknownOrderings {
		array := awaitedNumbers(abi.DeviceOneAPI, 1)
		_, err := array.Tensor(schema, fletching.TensorOptions{Stream: stream})
		expectError(t, err, syscall.EINVAL, "unknown ordering")
		array.Close()
	}
}

type countingWaiter struct{ synchronized, waits int }

func (w *countingWaiter) Synchronize(context.Context, fletching.SyncEvent) error {
	w.synchronized++
	return nil
}
func (w *countingWaiter) WaitOn(fletching.SyncEvent, fletching.Stream) error { w.waits++; return nil }
func (w *countingWaiter) Ready(fletching.SyncEvent) (bool, error)            { return true, nil }

// --- The function table ---

func TestExchange(t *testing.T) {
	table := &abi.DLPackExchangeAPI{ManagedTensorAllocator: abi.DLPackExchangeAPIManagedTensorAllocatorFunc(fletching.ExchangeAllocator())}
	table.Header.Version = abi.DLPackVersion{Major: abi.DLPackMajorVersion}
	newer := &abi.DLPackExchangeAPIHeader{Version: abi.DLPackVersion{Major: 2}, PrevApi: uintptr(unsafe.Pointer(table))}
	var pinner runtime.Pinner
	defer pinner.Unpin()
	pinner.Pin(table)
	exchange := must(fletching.FindExchange(unsafe.Pointer(newer)))
	if exchange.Table() != table {
		t.Error("expected the table of version 1")
	}
	tensor := must(exchange.Allocate(fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCPU, Shape: []int64{2, 3}}))
	expectEqual(t, "strides", tensor.Strides(), []int64{3, 1})
	if tensor.Data() == 0 || tensor.Data()%256 != 0 {
		t.Errorf("expected aligned memory, got %#x", tensor.Data())
	}
	tensor.Close()
	_, err := exchange.Allocate(fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCUDA, Shape: []int64{2}})
	expectError(t, err, syscall.EIO, "BufferError: DLTensor.device: not supported: expected the CPU, got cuda")
	_, err = exchange.WorkStream(abi.DeviceCUDA, 0)
	expectError(t, err, syscall.ENOSYS, "the table lacks current_work_stream")
	table.CurrentWorkStream = 1 // not called for a device without events
	if stream := must(exchange.WorkStream(abi.DeviceCPU, 0)); stream.Ordering != fletching.OrderNothing {
		t.Error("expected no order on the CPU, got", stream.Ordering)
	}
	newer.PrevApi = 0
	_, err = fletching.FindExchange(unsafe.Pointer(newer))
	expectError(t, err, syscall.ENOTSUP, "expected a table of major version 1")
	_, err = fletching.FindExchange(nil)
	expectError(t, err, syscall.EINVAL, "table is nil")
}

func TestMovesOfTensorAllocateOnlyItsOwner(t *testing.T) {
	if testing.CoverMode() != "" {
		t.Skip("counters of coverage allocate")
	}
	tensor := must(fletching.TensorOf([]int32{1, 2}))
	count := testing.AllocsPerRun(1000, func() {
		tensor = must(fletching.ImportTensor(must(tensor.Export())))
	})
	tensor.Close()
	if count > 4 && !raceEnabled {
		t.Errorf("expected 4 allocations of Go for an export and an import, got %v", count)
	}
}

// The program runs again, because FLETCHING_VALIDATE is read at its start.
func TestAllocatedTensorIsValidated(t *testing.T) {
	repository.Need(t)
	const inside = "FLETCHING_TEST_VALIDATED"
	if os.Getenv(inside) == "" {
		command := strings.Fields(os.Getenv("RUNNER")) // an emulator, or none
		command = append(command, os.Args[0], "-test.run=^TestAllocatedTensorIsValidated$")
		again := exec.Command(command[0], command[1:]...)
		library := filepath.Join(repository.Libraries(), "libfletching.so")
		again.Env = append(os.Environ(), inside+"=1", "FLETCHING_VALIDATE=log", "FLETCHING_LIBRARY="+library)
		output, err := again.CombinedOutput()
		if err != nil || !strings.Contains(string(output), "fletching: import: tensor: the deleter was called again") {
			t.Errorf("%v, %s", err, output)
		}
		return
	}
	exchange := must(fletching.FindExchange(tableOfFramework()))
	tensor := must(exchange.Allocate(fletching.TensorData{DataType: float32s, DeviceType: abi.DeviceCPU, Shape: []int64{2}}))
	address := must(tensor.Export())
	for range 2 {
		must(fletching.ImportTensor(address)).Close()
	}
}
