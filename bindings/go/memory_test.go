// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// withoutMemory runs the operation with each of its allocations in C failing once. After ENOMEM nothing has
// changed: the operation works the next time.
func withoutMemory(t *testing.T, operation func() error) {
	t.Helper()
	for nth := 0; ; nth++ {
		var err error
		failed, can := peer.WithoutMemory(nth, func() { err = operation() })
		if !can {
			t.Skip("no allocation can be made to fail with this C library")
		}
		if !failed {
			succeed(t, err)
			if nth == 0 {
				t.Error("nothing was allocated: the test is blind")
			}
			return
		}
		expectError(t, err, syscall.ENOMEM, "no memory")
	}
}

func TestBuildersWithoutMemory(t *testing.T) {
	var log log
	owner := &note{&log, "owner"}
	withoutMemory(t, func() error {
		array, err := batch(2).Build(owner)
		if err == nil {
			array.Close()
		} else if array != nil {
			t.Error("an array with an error")
		}
		return err
	})
	log.expect(t, "owner")
	withoutMemory(t, func() error {
		array, err := batch(2).BuildOn(abi.DeviceCUDA, 0, 0, owner)
		if err == nil {
			array.Close()
		}
		return err
	})
	log.expect(t, "owner")
	withoutMemory(t, func() error {
		schema, err := (&fletching.SchemaBuilder{Format: "i", Name: "a"}).Build()
		if err == nil {
			schema.Close()
		}
		return err
	})
}

func TestAttachAndSharesWithoutMemory(t *testing.T) {
	var log log
	array := importArray(t, rawArray(&log, "a", 1, false))
	withoutMemory(t, func() error { return array.Attach(&note{&log, "attached"}) })
	var shared *fletching.Shared[*fletching.Array]
	withoutMemory(t, func() (err error) { shared, err = array.Share(); return err })
	log.expect(t)
	var view *fletching.Array
	withoutMemory(t, func() (err error) { view, err = shared.View(); return err })
	shared.Close()
	log.expect(t)
	view.Close()
	log.expect(t, "a0", "a", "attached")
}

func TestChildrenWithoutMemory(t *testing.T) {
	var log log
	array := importDeviceArray(t, rawDeviceArray(&log, "a", 2, true))
	var taken [3]*fletching.DeviceArray
	withoutMemory(t, func() (err error) { taken[0], err = array.TakeChild(0); return err })
	withoutMemory(t, func() (err error) { taken[1], err = array.TakeChild(1); return err })
	withoutMemory(t, func() (err error) { taken[2], err = array.TakeDictionary(); return err })
	array.Close()
	log.expect(t)
	for _, child := range taken {
		child.Close()
	}
	log.expect(t, "a0", "a1", "ad", "a", "event")
}

// What an operation leaves behind in C shows when it is repeated.
func expectNoGrowth(t *testing.T, what string, operation func()) {
	t.Helper()
	const rounds, most = 2000, 16 << 10 // less than a leak of 8 bytes each time; others allocate as well
	for range 100 {
		operation()
	}
	before := peer.InUse()
	if before == 0 {
		t.Skip("this C library does not report what is allocated")
	}
	for range rounds {
		operation()
	}
	if after := peer.InUse(); after > before+most {
		t.Errorf("%s: %d bytes are left behind in each of %d rounds", what, (after-before)/rounds, rounds)
	}
}

func TestNothingIsLeftBehindInC(t *testing.T) {
	expectNoGrowth(t, "import and export", func() {
		var log log
		array := importArray(t, rawArray(&log, "a", 1, true))
		shared := must(array.Share())
		must(shared.View()).Close()
		shared.Close()
	})
	runtime.GC()
	_ = unsafe.Pointer(nil)
}
