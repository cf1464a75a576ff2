// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"
	"time"

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
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	array := must(must(fletching.FromValues([]int32{1, 2})).ToDevice()) // in a real program of a producer in C
	fmt.Println(copyOut(ctx, array), array.IsReleased())
	// Output: <nil> true
}
