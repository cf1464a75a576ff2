// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"fmt"
	"time"

	"github.com/fletching/fletching/bindings/go"
)

// Waits on the host, with the timeout of a request.
func ExampleDeviceArray_Synchronize() {
	copyOut := func(ctx context.Context, array *fletching.DeviceArray) error {
		defer array.Close()
		if err := array.Synchronize(ctx); err != nil {
			return fmt.Errorf("waiting for the data: %w", err)
		}
		return nil // a real program copies the data at array.Buffer(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	array := must(must(fletching.FromValues([]int32{1, 2})).ToDevice()) // in a real program from a C producer
	fmt.Println(copyOut(ctx, array), array.IsReleased())
	// Output: <nil> true
}
