// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"errors"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
)

// releaseCount counts the releases of foreign arrays.
type releaseCount struct {
	mutex   sync.Mutex
	changed sync.Cond
	count   int
}

func newReleases() *releaseCount {
	r := &releaseCount{}
	r.changed.L = &r.mutex
	return r
}

func (r *releaseCount) add() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.count++
	r.changed.Broadcast()
}

func (r *releaseCount) got() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.count
}

func (r *releaseCount) waitFor(count int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for r.count < count {
		r.changed.Wait()
	}
}

func imported(t *testing.T, raw abi.ArrowDeviceArray) *fletching.DeviceArray {
	t.Helper()
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(&raw))
	if err != nil {
		t.Fatal(err)
	}
	return array
}

// plainArray returns an array without children and without an event.
func plainArray(t *testing.T, deviceType abi.DeviceType, onRelease func()) *fletching.DeviceArray {
	t.Helper()
	return imported(t, abi.ArrowDeviceArray{Array: foreignArray(onRelease), DeviceType: deviceType})
}

// countedArray returns an array with two children, and the release counts of the array and of the children.
func countedArray(t *testing.T, deviceType abi.DeviceType) (array *fletching.DeviceArray, parents, children *releaseCount) {
	t.Helper()
	parents, children = newReleases(), newReleases()
	raw := foreignArray(parents.add, foreignArray(children.add), foreignArray(children.add))
	return imported(t, abi.ArrowDeviceArray{Array: raw, DeviceType: deviceType}), parents, children
}

// awaited returns an array with an event, which may be invalid.
func awaited(t *testing.T, deviceType abi.DeviceType, event uintptr) *fletching.DeviceArray {
	t.Helper()
	return imported(t, abi.ArrowDeviceArray{Array: foreignArray(func() {}), DeviceType: deviceType, SyncEvent: event})
}

func succeed(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// expectCode expects an error with a code and parts of a message.
func expectCode(t *testing.T, err error, code syscall.Errno, parts ...string) {
	t.Helper()
	if !errors.Is(err, code) {
		t.Errorf("expected %v, got %v", code, err)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("expected %q in %q", part, err)
		}
	}
}

func expectReady(t *testing.T, array *fletching.DeviceArray, expected bool) {
	t.Helper()
	ready, err := array.Ready()
	if err != nil || ready != expected {
		t.Errorf("ready: expected %v, got %v, %v", expected, ready, err)
	}
}

func expectCount(t *testing.T, what string, r *releaseCount, expected int) {
	t.Helper()
	if got := r.got(); got != expected {
		t.Errorf("releases of %s: expected %d, got %d", what, expected, got)
	}
}
