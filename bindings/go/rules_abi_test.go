// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"reflect"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// The rules about the declarations, where pages and headers of the interfaces differ. A call of a callback has
// the types of its arguments, a field of the struct only an address.

// Five members one behind the other and nothing after them: no release.
func TestRuleAsyncHeaderProducerFields(t *testing.T) {
	var fields []string
	for _, field := range reflect.VisibleFields(reflect.TypeFor[abi.ArrowAsyncProducer]()) {
		if field.IsExported() {
			fields = append(fields, field.Name)
		}
	}
	expected := []string{"DeviceType", "Request", "Cancel", "AdditionalMetadata", "PrivateData"}
	if !reflect.DeepEqual(fields, expected) || unsafe.Sizeof(abi.ArrowAsyncProducer{}) != 5*unsafe.Sizeof(uintptr(0)) {
		t.Error(fields, unsafe.Sizeof(abi.ArrowAsyncProducer{}))
	}
}

func TestRuleAsyncHeaderTaskSelf(t *testing.T) {
	var extract func(self *abi.ArrowAsyncTask, out *abi.ArrowDeviceArray) (int32, bool) = callbacks.CallArrowAsyncTaskExtractData
	if _, called := extract(&abi.ArrowAsyncTask{}, nil); called {
		t.Error("NULL was called")
	}
}

func TestRuleAsyncHeaderRequestSigned(t *testing.T) {
	var request func(self *abi.ArrowAsyncProducer, n int64) bool = callbacks.CallArrowAsyncProducerRequest
	if request(&abi.ArrowAsyncProducer{}, -1) {
		t.Error("NULL was called")
	}
}

// The code is a number, the texts are addresses.
func TestRuleAsyncHeaderOnErrorPointer(t *testing.T) {
	var onError func(self *abi.ArrowAsyncDeviceStreamHandler, code int32, message, metadata uintptr) bool = callbacks.CallArrowAsyncDeviceStreamHandlerOnError
	if onError(&abi.ArrowAsyncDeviceStreamHandler{}, 1, 0, 0) {
		t.Error("NULL was called")
	}
}

func TestRuleAsyncHeaderProducerPointer(t *testing.T) {
	producer := peer.New[abi.ArrowAsyncProducer](1)
	defer peer.Free(producer)
	handler := abi.ArrowAsyncDeviceStreamHandler{Producer: uintptr(unsafe.Pointer(&producer[0])), Release: 1}
	if handler.ProducerStruct() != &producer[0] {
		t.Error("producer is not the address of the struct")
	}
}

func TestRuleDeviceHeaderTypeIsInt32(t *testing.T) {
	if kind := reflect.TypeOf(abi.ArrowDeviceArray{}.DeviceType).Kind(); kind != reflect.Int32 {
		t.Error(kind)
	}
}

// The numbers of DLDeviceType in version 1.3 of dlpack.h.
var ofDLPack = map[abi.DeviceType]string{
	1: "kDLCPU", 2: "kDLCUDA", 3: "kDLCUDAHost", 4: "kDLOpenCL", 7: "kDLVulkan", 8: "kDLMetal", 9: "kDLVPI", 10: "kDLROCM",
	11: "kDLROCMHost", 12: "kDLExtDev", 13: "kDLCUDAManaged", 14: "kDLOneAPI", 15: "kDLWebGPU", 16: "kDLHexagon",
	17: "kDLMAIA", 18: "kDLTrn",
}

func TestRuleDeviceTypeValuesOfDlpack(t *testing.T) {
	for number, name := range ofDLPack {
		if info, known := number.Info(); !known || info.DLPackName != name {
			t.Errorf("%d: expected %s, got %+v", number, name, info)
		}
	}
}

func TestRuleDeviceTypeDlpackFirst(t *testing.T) {
	count := 0
	for device := range abi.Devices() {
		if count++; ofDLPack[device.Type] == "" {
			t.Errorf("%v: not in dlpack.h", device.Type)
		}
	}
	if count != len(ofDLPack) {
		t.Error(count)
	}
}
