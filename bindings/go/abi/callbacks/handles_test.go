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
	for { // until the slot is reused
		next := NewHandle(2)
		if next&^(((1<<generationBits)-1)<<(shardBits+indexBits)) == handle&^(((1<<generationBits)-1)<<(shardBits+indexBits)) {
			if next>>(shardBits+indexBits)%(1<<generationBits) != 1 {
				t.Errorf("%#x follows %#x", next, last)
			}
			return
		}
	}
}

func TestConcurrentDeletesSucceedOnce(t *testing.T) {
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

// A full shard passes the value on to another shard.
func TestHandleExhaustion(t *testing.T) {
	all := mostInShard
	defer func() { mostInShard = all }()
	var handles []uintptr
	defer func() {
		for _, handle := range handles {
			DeleteHandle(handle)
		}
	}()
	mostInShard = 0
	for {
		handle, ok := TryNewHandle(1)
		if !ok {
			break
		}
		handles = append(handles, handle)
	}
	free, smallest := 0, len(shards[0].slots)
	for i := range shards {
		smallest = min(smallest, len(shards[i].slots))
	}
	for i := range shards {
		if len(shards[i].slots) == smallest {
			free++
		}
	}
	mostInShard = smallest + 1 // leaves space only in the smallest shards
	for i := range free {
		handle, ok := TryNewHandle(i)
		if value, live := HandleValue(handle); !ok || !live || value != i {
			t.Errorf("expected a handle, got %#x, %t, %v", handle, ok, value)
		}
		handles = append(handles, handle)
	}
	if _, ok := TryNewHandle(3); ok {
		t.Error("a handle more than there are")
	}
	defer func() {
		if recover() == nil {
			t.Error("expected a panic")
		}
	}()
	NewHandle(4)
}
