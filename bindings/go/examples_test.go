// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/examples"
)

func TestEveryOperationHasExample(t *testing.T) {
	needGPU := []string{
		"DeviceArray_ExportWithEvent", "DeviceArray_ReleaseAfter", "DeviceArray_SynchronizeVulkan", "Stream_OnDevice", "Stream_With",
		"Array_Check", "DeviceArrayStream_Validate", "ValidateHandler", // need libfletching
	}
	examples.Check(t, needGPU, []string{"owner", "arrayOwner", "stream", "view"})
}
