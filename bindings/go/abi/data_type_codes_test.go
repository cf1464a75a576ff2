// SPDX-License-Identifier: Apache-2.0

package abi_test

import (
	"slices"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
)

func TestDataTypeCodeStringReturnsName(t *testing.T) {
	for code := range abi.DataTypeCodes() {
		if printed := code.Code.String(); printed != code.Name {
			t.Errorf("data-type code %d prints as %s, its name is %s", uint8(code.Code), printed, code.Name)
		}
	}
	for number, expected := range map[abi.DLDataTypeCode]string{
		abi.DataTypeInt: "int", abi.DataTypeFloat8E4M3FN: "float8_e4m3fn", 18: "unreleased(bcomplex, 18)", 99: "unknown(99)",
	} {
		if printed := number.String(); printed != expected {
			t.Errorf("data-type code %d prints as %s, not as %s", uint8(number), printed, expected)
		}
	}
}

func TestDataTypeCodeTable(t *testing.T) {
	expected := abi.DataTypeCodeInfo{Code: abi.DataTypeBfloat, Name: "bfloat", DLPackName: "kDLBfloat"}
	if found, known := abi.DataTypeBfloat.Info(); !known || found != expected {
		t.Errorf("bfloat is %+v, expected %+v", found, expected)
	}
	if _, known := abi.DLDataTypeCode(99).Info(); known {
		t.Error("data-type code 99 is known")
	}
}

func TestDataTypeCodesAreSorted(t *testing.T) {
	var numbers []abi.DLDataTypeCode
	for code := range abi.DataTypeCodes() {
		numbers = append(numbers, code.Code)
		if code.Code == abi.DataTypeBool {
			break
		}
	}
	if !slices.IsSorted(numbers) || numbers[len(numbers)-1] != abi.DataTypeBool {
		t.Errorf("not by number: %d", numbers)
	}
}

// DLPack and Arrow devices share the names of the device types.
func TestDLDeviceTypeIsDeviceType(t *testing.T) {
	device := abi.DLDevice{DeviceType: abi.DeviceCUDAManaged}
	if device.DeviceType.String() != "cuda_managed" {
		t.Errorf("%d prints as %s", int32(device.DeviceType), device.DeviceType)
	}
}
