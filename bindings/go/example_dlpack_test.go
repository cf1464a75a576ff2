// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"fmt"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// Converts a column to a tensor, and a tensor back to a column.
func ExampleDeviceArray_Tensor() {
	schema, column, err := prices()
	if err != nil {
		panic(err)
	}
	defer schema.Close()
	tensor, err := column.Tensor(schema, fletching.TensorOptions{})
	if err != nil {
		panic(err) // the caller still owns the column
	}
	fmt.Println(tensor.Shape(), tensor.Strides(), tensor.DataType().Bits, tensor.DeviceType(), tensor.DeviceID())
	fmt.Println(tensor.IsReleased(), tensor.Data() != 0, tensor.ByteOffset(), tensor.Version().Major, tensor.Flags())

	address, err := tensor.Export() // for the capsule "dltensor_versioned", or another library
	if err != nil {
		panic(err)
	}
	tensor, err = fletching.ImportTensor(address)
	if err != nil {
		panic(err)
	}
	imported, err := tensor.DeviceArray(fletching.TensorImportOptions{})
	if err != nil {
		panic(err)
	}
	defer imported.Close()
	fmt.Println(imported.Schema.Format(), imported.Array.Length(), imported.ReadOnly)
	// Output:
	// [3] [1] 64 cpu 0
	// false true 0 1 1
	// g 3 true
}

func prices() (*fletching.Schema, *fletching.DeviceArray, error) {
	schema, err := (&fletching.SchemaBuilder{Format: "g"}).Build()
	if err != nil {
		return nil, nil, err
	}
	values, err := fletching.FromValues([]float64{1.5, 2.5, 3.5})
	if err != nil {
		return nil, nil, err
	}
	column, err := values.ToDevice()
	return schema, column, err
}

// Exports the struct from before DLPack 1.0, whose missing flags cannot mark memory as read-only.
func ExampleDeviceArray_LegacyTensor() {
	schema, column, err := prices()
	if err != nil {
		panic(err)
	}
	defer schema.Close()
	tensor, err := column.LegacyTensor(schema, fletching.TensorOptions{Writable: true})
	if err != nil {
		panic(err)
	}
	address, err := tensor.Export()
	if err != nil {
		panic(err)
	}
	legacy, err := fletching.ImportLegacyTensor(address)
	if err != nil {
		panic(err)
	}
	fmt.Println(legacy.IsLegacy(), legacy.Shape())
	legacy.Close()
	// Output: true [3]
}

// Exports memory that has no Arrow schema.
func ExampleTensorOf() {
	matrix, err := fletching.TensorOf([]float32{1, 2, 3, 4, 5, 6}, 2, 3)
	if err != nil {
		panic(err)
	}
	fmt.Println(matrix.Shape(), matrix.Strides())
	imported, err := matrix.DeviceArray(fletching.TensorImportOptions{Lists: true})
	if err != nil {
		panic(err)
	}
	fmt.Println(imported.Schema.Format(), imported.Array.Length(), imported.Array.Child(0).Length())
	imported.Close()

	onDevice, err := fletching.NewTensor(fletching.TensorData{
		Data: 0x7f000000, Shape: []int64{1024}, DeviceType: abi.DeviceCUDA, DeviceID: 1,
		DataType: abi.DLDataType{Code: uint8(abi.DataTypeBfloat), Bits: 16, Lanes: 1},
	}, closes("device memory"))
	if err != nil {
		panic(err)
	}
	onDevice.Close()
	// Output:
	// [2 3] [3 1]
	// +w:3 2 6
	// device memory is closed
}

// Reads the argument that a consumer passes to Python's __dlpack__ for data on a device.
func ExampleReadConsumerStream() {
	perThread := int64(2)
	stream, err := fletching.ReadConsumerStream(abi.DeviceCUDA, &perThread)
	if err != nil {
		panic(err)
	}
	fmt.Println(stream.Ordering == fletching.OrderStream, stream.Stream.Handle())
	// Output: true 2
}

// Allocates a tensor through a framework's table and queries the framework's work stream.
func ExampleFindExchange() {
	exchange, err := fletching.FindExchange(tableOfFramework())
	if err != nil {
		panic(err)
	}
	result, err := exchange.Allocate(fletching.TensorData{
		Shape: []int64{2, 2}, DeviceType: abi.DeviceCPU, DataType: abi.DLDataType{Code: uint8(abi.DataTypeFloat), Bits: 32, Lanes: 1},
	})
	if err != nil {
		panic(err)
	}
	fmt.Println(result.Shape(), exchange.Table().Header.Version.Major)
	result.Close()
	_, err = exchange.WorkStream(abi.DeviceCUDA, 0)
	fmt.Println(err)
	// Output:
	// [2 2] 1
	// WorkStream: exchange: the table lacks current_work_stream
}

// framework is a table with the allocator of this package. The framework's code provides the functions for Python
// objects.
var framework = abi.DLPackExchangeAPI{
	Header:                 abi.DLPackExchangeAPIHeader{Version: abi.DLPackVersion{Major: abi.DLPackMajorVersion}},
	ManagedTensorAllocator: abi.DLPackExchangeAPIManagedTensorAllocatorFunc(fletching.ExchangeAllocator()),
}

func tableOfFramework() unsafe.Pointer { return unsafe.Pointer(&framework) }
