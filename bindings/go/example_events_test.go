// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"

	"github.com/fletching/fletching/bindings/go"
)

// The host waits, but no longer than a request lives.
func ExampleDeviceArray_Synchronize() {
	copyOut := func(ctx context.Context, array *fletching.DeviceArray) error {
		defer array.Close()
		if err := array.Synchronize(ctx); err != nil {
			return fmt.Errorf("waiting for the data: %w", err)
		}
		return nil // and copy what is at array.Buffer(1)
	}
	_ = copyOut
}
