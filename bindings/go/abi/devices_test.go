// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/fields"
)

func TestDeviceTypeStringReturnsName(t *testing.T) {
	for device := range abi.Devices() {
		if printed := device.Type.String(); printed != device.Name {
			t.Errorf("device type %d prints as %s, its name is %s", int64(device.Type), printed, device.Name)
		}
	}
	for number, expected := range map[abi.DeviceType]string{
		abi.DeviceCPU: "cpu", abi.DeviceCUDAHost: "cuda_host", abi.DeviceTrn: "trn",
		20: "unreleased(tpu_host, 20)", 0: "unknown(0)", 1000: "unknown(1000)", -1: "unknown(-1)",
	} {
		if printed := number.String(); printed != expected {
			t.Errorf("device type %d prints as %s, not as %s", int64(number), printed, expected)
		}
	}
}

func TestDeviceTable(t *testing.T) {
	for _, expected := range []abi.DeviceInfo{
		{abi.DeviceCPU, "cpu", "ARROW_DEVICE_CPU", "kDLCPU", abi.EventNone, ""},
		{abi.DeviceCUDAHost, "cuda_host", "ARROW_DEVICE_CUDA_HOST", "kDLCUDAHost", abi.EventAddressOfHandle, "cudaEvent_t*"},
		{abi.DeviceMetal, "metal", "ARROW_DEVICE_METAL", "kDLMetal", abi.EventObject, "MTLEvent*"},
		{abi.DeviceExtDev, "ext_dev", "ARROW_DEVICE_EXT_DEV", "kDLExtDev", abi.EventProducerDefined, ""},
		{abi.DeviceMAIA, "maia", "", "kDLMAIA", abi.EventNone, ""},
	} {
		if found, known := expected.Type.Info(); !known || found != expected {
			t.Errorf("%v is %+v, expected %+v", expected.Type, found, expected)
		}
	}
	if _, known := abi.DeviceType(1000).Info(); known {
		t.Error("device type 1000 is known")
	}
}

func TestDeviceTypeAccessibleFrom(t *testing.T) {
	for device, expected := range map[abi.DeviceType][]abi.DeviceType{
		abi.DeviceCUDAHost: {abi.DeviceCPU, abi.DeviceCUDA}, abi.DeviceVulkan: {abi.DeviceVulkan},
		abi.DeviceMAIA: nil, 1000: nil,
	} {
		if found := device.AccessibleFrom(); !slices.Equal(found, expected) {
			t.Errorf("memory of %v is accessible from %v, expected %v", device, found, expected)
		}
	}
}

// The tests of internal/oracle compare both tables with dlpack.h and with Arrow's header.
var ofDLPack, macros = func() (enum, constants map[string]int64) {
	enum, constants = map[string]int64{}, map[string]int64{}
	for _, enumerator := range fields.Enums["DLDeviceType"] {
		enum[enumerator.Name] = enumerator.Value
	}
	for _, constant := range fields.Integers {
		constants[constant.Name] = constant.Value
	}
	return enum, constants
}()

func TestRuleDeviceTypeValuesOfDlpack(t *testing.T) {
	for device := range abi.Devices() {
		if number, found := ofDLPack[device.DLPackName]; !found || number != int64(device.Type) {
			t.Errorf("%s is %d in the table, %d in dlpack.h", device.DLPackName, int64(device.Type), number)
		}
		if number, found := macros[device.ArrowMacro]; device.ArrowMacro != "" && (!found || number != int64(device.Type)) {
			t.Errorf("%s is %d in the table, %d as a constant", device.ArrowMacro, int64(device.Type), number)
		}
	}
}

func TestRuleDeviceTypeDlpackFirst(t *testing.T) {
	numbers := slices.Collect(maps.Values(ofDLPack))
	for macro, number := range macros {
		if strings.HasPrefix(macro, "ARROW_DEVICE_") && !slices.Contains(numbers, number) {
			t.Errorf("%s: no device of dlpack.h has the number %d", macro, number)
		}
	}
}

func TestDevicesStopsAfterReturn(t *testing.T) {
	for device := range abi.Devices() {
		if device.Type == abi.DeviceCUDA {
			return
		}
		if device.Type > abi.DeviceCUDA {
			t.Fatalf("%v came before cuda", device.Type)
		}
	}
	t.Fatal("cuda is not in the table")
}

func TestDevicesAreSorted(t *testing.T) {
	var numbers []abi.DeviceType
	for device := range abi.Devices() {
		numbers = append(numbers, device.Type)
	}
	if !slices.IsSorted(numbers) {
		t.Errorf("not by number: %d", numbers)
	}
}
