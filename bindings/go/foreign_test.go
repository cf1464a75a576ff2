// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// log is what happened, in order.
type log struct {
	mutex sync.Mutex
	lines []string
}

func (l *log) add(line string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.lines = append(l.lines, line)
}

func (l *log) contains(line string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	return slices.Contains(l.lines, line)
}

// expect compares the lines since the last call.
func (l *log) expect(t *testing.T, lines ...string) {
	t.Helper()
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if !slices.Equal(l.lines, lines) {
		t.Errorf("log: expected %q, got %q", lines, l.lines)
	}
	l.lines = nil
}

// note is written down when it is closed.
type note struct {
	log  *log
	text string
}

func (n *note) Close() { n.log.add(n.text) }

// foreign is a producer that knows nothing of the package: it writes down what is released.
type foreign struct {
	log      *log
	name     string
	buffers  []uintptr
	children []abi.ArrowArray
	list     []uintptr
	event    []uint64
}

func (f *foreign) Release(self *abi.ArrowArray) {
	for _, child := range f.list {
		callbacks.ReleaseArrowArray((*abi.ArrowArray)(abi.Pointer(child)))
	}
	callbacks.ReleaseArrowArray((*abi.ArrowArray)(abi.Pointer(self.Dictionary)))
	f.log.add(f.name)
	peer.Free(f.buffers)
	peer.Free(f.children)
	peer.Free(f.list)
	if f.event != nil {
		f.log.add("event")
		peer.Free(f.event)
	}
	callbacks.DeleteHandle(self.PrivateData)
}

// rawArray is an array of one value with so many children, "a0", "a1", and the dictionary "ad".
func rawArray(log *log, name string, children int, withDictionary bool) abi.ArrowArray {
	f := &foreign{
		log: log, name: name, buffers: peer.New[uintptr](2),
		children: peer.New[abi.ArrowArray](children + 1), list: peer.New[uintptr](children),
	}
	for i := range children {
		f.children[i] = rawArray(log, fmt.Sprint(name, i), 0, false)
		f.list[i] = uintptr(unsafe.Pointer(&f.children[i]))
	}
	raw := abi.ArrowArray{
		Length: 1, NBuffers: 2, Buffers: uintptr(unsafe.Pointer(&f.buffers[0])),
		NChildren: int64(children), Release: callbacks.ArrowArrayReleaseStub(), PrivateData: callbacks.NewHandle(f),
	}
	if children > 0 {
		raw.Children = uintptr(unsafe.Pointer(&f.list[0]))
	}
	if withDictionary {
		f.children[children] = rawArray(log, name+"d", 0, false)
		raw.Dictionary = uintptr(unsafe.Pointer(&f.children[children]))
	}
	return raw
}

// rawDeviceArray is the same on device 3 of CUDA's, with an event that the release of the array
// destroys.
func rawDeviceArray(log *log, name string, children int, withDictionary bool) abi.ArrowDeviceArray {
	raw := abi.ArrowDeviceArray{
		Array: rawArray(log, name, children, withDictionary), DeviceType: abi.DeviceCUDA, DeviceID: 3,
	}
	value, _ := callbacks.HandleValue(raw.Array.PrivateData)
	value.(*foreign).event = peer.New[uint64](1)
	raw.SyncEvent = uintptr(unsafe.Pointer(&value.(*foreign).event[0]))
	return raw
}

func importArray(t *testing.T, raw abi.ArrowArray) *fletching.Array {
	t.Helper()
	array, err := fletching.ImportArray(unsafe.Pointer(&raw))
	if err != nil || !raw.IsReleased() {
		t.Fatalf("import: %v, source is released: %v", err, raw.IsReleased())
	}
	return array
}

func importDeviceArray(t *testing.T, raw abi.ArrowDeviceArray) *fletching.DeviceArray {
	t.Helper()
	array, err := fletching.ImportDeviceArray(unsafe.Pointer(&raw))
	if err != nil || !raw.IsReleased() {
		t.Fatalf("import: %v, source is released: %v", err, raw.IsReleased())
	}
	return array
}

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}
