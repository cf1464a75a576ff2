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

// log records events in order.
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

// note logs its Close.
type note struct {
	log  *log
	text string
}

func (n *note) Close() { n.log.add(n.text) }

// foreignData is a producer in C memory that does not use the package.
type foreignData struct {
	onRelease  func()
	buffers    []uintptr
	children   []abi.ArrowArray
	list       []uintptr
	dictionary []abi.ArrowArray
	event      []uint64
}

func (f *foreignData) Release(self *abi.ArrowArray) {
	for _, child := range f.list {
		callbacks.ReleaseArrowArray((*abi.ArrowArray)(abi.Pointer(child)))
	}
	callbacks.ReleaseArrowArray((*abi.ArrowArray)(abi.Pointer(self.Dictionary)))
	callbacks.DeleteHandle(self.PrivateData)
	peer.Free(f.buffers)
	peer.Free(f.children)
	peer.Free(f.list)
	peer.Free(f.dictionary)
	peer.Free(f.event)
	f.onRelease()
}

// foreignArray returns an array with one value.
func foreignArray(onRelease func(), children ...abi.ArrowArray) abi.ArrowArray {
	f := &foreignData{
		onRelease: onRelease, buffers: peer.New[uintptr](2),
		children: peer.New[abi.ArrowArray](len(children)), list: peer.New[uintptr](len(children)),
	}
	raw := abi.ArrowArray{
		Length: 1, NBuffers: 2, Buffers: uintptr(unsafe.Pointer(&f.buffers[0])),
		NChildren: int64(len(children)), Release: callbacks.ArrowArrayReleaseStub(), PrivateData: callbacks.NewHandle(f),
	}
	for i, child := range children {
		f.children[i] = child
		f.list[i] = uintptr(unsafe.Pointer(&f.children[i]))
		raw.Children = uintptr(unsafe.Pointer(&f.list[0]))
	}
	return raw
}

func foreignOf(raw abi.ArrowArray) *foreignData {
	value, _ := callbacks.HandleValue(raw.PrivateData)
	return value.(*foreignData)
}

// rawArray returns a foreign array "a" with the children "a0", "a1" and the dictionary "ad", which log their releases.
func rawArray(log *log, name string, children int, withDictionary bool) abi.ArrowArray {
	var below []abi.ArrowArray
	for i := range children {
		below = append(below, rawArray(log, fmt.Sprint(name, i), 0, false))
	}
	raw := foreignArray(func() { log.add(name) }, below...)
	if withDictionary {
		f := foreignOf(raw)
		f.dictionary = peer.New[abi.ArrowArray](1)
		f.dictionary[0] = rawArray(log, name+"d", 0, false)
		raw.Dictionary = uintptr(unsafe.Pointer(&f.dictionary[0]))
	}
	return raw
}

// rawDeviceArray is like rawArray, but on CUDA device 3 and with an event that is destroyed when the
// array is released.
func rawDeviceArray(log *log, name string, children int, withDictionary bool) abi.ArrowDeviceArray {
	raw := abi.ArrowDeviceArray{
		Array: rawArray(log, name, children, withDictionary), DeviceType: abi.DeviceCUDA, DeviceID: 3,
	}
	f := foreignOf(raw.Array)
	f.event = peer.New[uint64](1)
	f.onRelease = func() {
		log.add(name)
		log.add("event")
	}
	raw.SyncEvent = uintptr(unsafe.Pointer(&f.event[0]))
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
