// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package callbacks

import (
	"sync"
	"sync/atomic"
	"testing"
)

func TestStaleHandles(t *testing.T) {
	seen := map[uintptr]bool{}
	for i := range 10_000 {
		handle := NewHandle(i)
		if handle == 0 || seen[handle] {
			t.Fatalf("%#x again", handle)
		}
		seen[handle] = true
		if value, live := HandleValue(handle); value != i || !live {
			t.Fatalf("%v, %v", value, live)
		}
		if value, live := DeleteHandle(handle); value != i || !live {
			t.Fatalf("%v, %v", value, live)
		}
		if value, live := DeleteHandle(handle); value != nil || live {
			t.Fatalf("%v, %v, deleted before", value, live)
		}
	}
	for handle := range seen {
		if _, live := HandleValue(handle); live {
			t.Fatalf("%#x is live", handle)
		}
	}
	handle := NewHandle(nil)
	for bit := range generationBits + indexBits + shardBits + wide {
		if _, live := HandleValue(handle ^ 1<<bit); live {
			t.Errorf("live with bit %d changed", bit)
		}
	}
	DeleteHandle(handle)
}

func TestGenerationsWrap(t *testing.T) {
	handle := NewHandle(1)
	s, slot := lock(handle)
	slot.generation = 1<<generationBits - 1
	s.mutex.Unlock()
	last := handle | (1<<generationBits-1)<<(shardBits+indexBits)
	if _, live := DeleteHandle(last); !live {
		t.Fatal("not the last generation")
	}
	for { // until the slot is used again
		next := NewHandle(2)
		if next&^(((1<<generationBits)-1)<<(shardBits+indexBits)) == handle&^(((1<<generationBits)-1)<<(shardBits+indexBits)) {
			if next>>(shardBits+indexBits)%(1<<generationBits) != 1 {
				t.Errorf("%#x follows %#x", next, last)
			}
			return
		}
	}
}

func TestOneOfManyDeletes(t *testing.T) {
	for range 200 {
		handle := NewHandle(t)
		var winners atomic.Int64
		var group sync.WaitGroup
		for range 4 {
			group.Add(1)
			go func() {
				defer group.Done()
				other := NewHandle(&winners)
				if _, live := DeleteHandle(handle); live {
					winners.Add(1)
				}
				if value, live := DeleteHandle(other); value != &winners || !live {
					t.Errorf("%v, %v", value, live)
				}
			}()
		}
		group.Wait()
		if winners.Load() != 1 {
			t.Fatalf("%d winners", winners.Load())
		}
	}
}
