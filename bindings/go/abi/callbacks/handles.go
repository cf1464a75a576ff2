// SPDX-License-Identifier: Apache-2.0

package callbacks

// #include <stdlib.h>
import "C"

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"unsafe"
)

// A handle consists of, from the lowest bit, a shard number, a slot index in the shard and the generation
// of the slot. On 64-bit targets the highest bit is set, which no user-space address has.
const (
	shardBits      = 4
	indexBits      = 16 + 16*wide
	generationBits = 32*(1+wide) - shardBits - indexBits - wide
	mark           = wide << (64*wide - wide)
	wide           = ^uintptr(0) >> 63 // 1 on 64-bit targets, else 0
)

type slot struct {
	value      any
	text       unsafe.Pointer // a panic's message, in C memory
	generation uintptr
	live       bool
}

type shard struct {
	mutex sync.Mutex
	slots []slot
	free  []uintptr
	_     [64]byte // keeps the next shard in another cache line
}

var shards [1 << shardBits]shard

// mostInShard is a variable so that tests can lower it.
var mostInShard = 1 << indexBits

// NewHandle returns a number for the value, which stays reachable until [DeleteHandle]. The value's
// Release method must call DeleteHandle. The number is not an address and never 0. C may store it anywhere, for
// example in private_data. A number is reused after 134,217,726 others at the earliest (4,094 on 32-bit
// targets), so that stale handles are detected. NewHandle panics if all numbers are in use: 1,048,576
// on 32-bit targets.
func NewHandle(value any) uintptr {
	handle, ok := TryNewHandle(value)
	if !ok {
		panic("callbacks: out of handles")
	}
	return handle
}

// TryNewHandle is NewHandle without the panic: ok is false if all numbers are in use.
func TryNewHandle(value any) (handle uintptr, ok bool) {
	first := uintptr(rand.Uint32())
	for i := range uintptr(len(shards)) {
		if handle, ok = newIn((first+i)%uintptr(len(shards)), value); ok {
			break
		}
	}
	return handle, ok
}

func newIn(number uintptr, value any) (handle uintptr, ok bool) {
	s := &shards[number]
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.free) == 0 {
		if len(s.slots) >= mostInShard {
			return 0, false
		}
		s.free = append(s.free, uintptr(len(s.slots)))
		s.slots = append(s.slots, slot{})
	}
	index := s.free[len(s.free)-1]
	s.free = s.free[:len(s.free)-1]
	generation := s.slots[index].generation%(1<<generationBits-1) + 1
	s.slots[index] = slot{value: value, generation: generation, live: true}
	return mark | generation<<(shardBits+indexBits) | index<<shardBits | number, true
}

// HandleValue returns the value of a handle. live is false if the number is not a handle or was deleted.
func HandleValue(handle uintptr) (value any, live bool) {
	s, slot := lock(handle)
	defer s.mutex.Unlock()
	if slot == nil {
		return nil, false
	}
	return slot.value, true
}

// DeleteHandle invalidates the handle and returns its value. live is false if the handle is not valid.
// Of several calls with the same handle, only one returns the value.
func DeleteHandle(handle uintptr) (value any, live bool) {
	s, slot := lock(handle)
	defer s.mutex.Unlock()
	if slot == nil {
		return nil, false
	}
	value = slot.value
	if slot.text != nil { // avoids a useless C call
		C.free(slot.text)
	}
	slot.value, slot.text, slot.live = nil, nil, false
	s.free = append(s.free, handle>>shardBits%(1<<indexBits))
	return value, true
}

// lock locks and returns the shard of a number; nil if the number is not a handle.
func lock(handle uintptr) (*shard, *slot) {
	s := &shards[handle%uintptr(len(shards))]
	s.mutex.Lock()
	index := handle >> shardBits % (1 << indexBits)
	if index >= uintptr(len(s.slots)) {
		return s, nil
	}
	slot := &s.slots[index]
	generation := handle >> (shardBits + indexBits) % (1 << generationBits)
	if !slot.live || slot.generation != generation || handle&mark != mark {
		return s, nil
	}
	return s, slot
}

// find returns the implementation of a struct. It panics if there is none.
func find[T any](handle uintptr) T {
	value, live := HandleValue(handle)
	if !live {
		panic(fmt.Sprintf("private_data: invalid handle: expected one of NewHandle, got %#x", handle))
	}
	return value.(T)
}

// setText keeps a panic's message for get_last_error until the next call.
func setText(handle uintptr, text string) {
	s, slot := lock(handle)
	defer s.mutex.Unlock()
	if slot != nil {
		C.free(slot.text)
		slot.text = nil
		if text != "" {
			slot.text = unsafe.Pointer(C.CString(text))
		}
	}
}

// keptText returns the address of the kept text, 0 if there is none.
func keptText(handle uintptr) uintptr {
	s, slot := lock(handle)
	defer s.mutex.Unlock()
	if slot == nil {
		return 0
	}
	return uintptr(slot.text)
}
