// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// closeFunc calls a function on Close.
type closeFunc func()

func (c closeFunc) Close() { c() }

// Runs the examples: one exports behind a gate, the other waits, reads, and releases afterwards.
func TestStandinExamples(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		freed := newReleases()
		raw := new(abi.ArrowDeviceArray)
		succeed(t, exportFromGPU(4096, 3, closeFunc(freed.add), api.Type, gated.Producer, unsafe.Pointer(raw)))
		var launched uintptr
		launch := func(values uintptr, length int64) error {
			launched = values
			return nil
		}
		succeed(t, sumOnGPU(unsafe.Pointer(raw), gated.Consumer, launch))
		if launched != 4096 || !gated.IsBlocked(gated.Consumer) {
			t.Errorf("launched with %#x, which does not wait for the producer", launched)
		}
		expectCount(t, "memory that a kernel reads", freed, 0)
		gated.OpenGate()
		freed.waitFor(1)
		gated.End()
	})
}
