// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"sync"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/peer"
)

// Collects garbage continuously while C holds exported structs whose buffers, events and private data are numbers
// that are not pointers, some of which look like Go pointers.
func TestGCWhileCHoldsStructs(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	rounds := 300
	if testing.Short() {
		rounds = 20
	}
	var wait sync.WaitGroup
	for range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for round := range rounds {
				stress(t, round)
			}
		}()
	}
	wait.Wait()
}

func TestSeveralGoroutinesShareArray(t *testing.T) {
	var log log
	shared := must(must(batch(4).BuildOn(abi.DeviceCUDA, 0, 8, &note{&log, "owner"})).Share())
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Add(1)
		go func() {
			defer wait.Done()
			for range 200 {
				column, whole := must(shared.Column(i)), must(shared.View())
				if column.Length() != 3 || whole.Child(i).Buffer(1) != column.Buffer(1) || shared.NumColumns() != 4 {
					t.Error("another column")
				}
				must(whole.TakeChild(i)).Close()
				whole.Close()
				column.Close()
			}
		}()
	}
	wait.Wait()
	log.expect(t)
	shared.Close()
	log.expect(t, "owner")
}

func stress(t *testing.T, round int) {
	values := make([]int64, 100)
	values[99] = int64(round)
	looksLikeGo := uintptr(unsafe.Pointer(&values[0]))
	builder := fletching.ArrayBuilder{
		Length: 1, Buffers: []uintptr{looksLikeGo, ^uintptr(0), 1},
		Children: []fletching.ArrayBuilder{{Buffers: []uintptr{looksLikeGo + 8}}, {}},
	}
	var log log
	raw := peer.New[abi.ArrowDeviceArray](1)
	defer peer.Free(raw)
	array := must(builder.BuildOn(abi.DeviceCUDA, 0, []uintptr{^uintptr(7), looksLikeGo}[round%2], &note{&log, "owner"}))
	child := must(array.TakeChild(1))
	if err := array.Attach(&note{&log, ""}); err != nil {
		t.Error(err)
	}
	if err := array.Export(unsafe.Pointer(&raw[0])); err != nil {
		t.Error(err)
	}
	pinned := must(fletching.FromValues(values))
	values = nil
	if round%10 == 0 {
		runtime.GC()
	}
	back := must(fletching.ImportDeviceArray(unsafe.Pointer(&raw[0])))
	if back.Buffer(0) != looksLikeGo || back.Buffer(1) != ^uintptr(0) || back.Child(0).Buffer(0) != looksLikeGo+8 {
		t.Error("a buffer has changed")
	}
	if seen := unsafe.Slice((*int64)(abi.Pointer(pinned.Buffer(1))), 100); seen[99] != int64(round) {
		t.Error("a pinned slice has changed")
	}
	pinned.Close()
	back.Close()
	log.expect(t, "")
	child.Close()
	log.expect(t, "owner")
	stream := overC(newStream(numberedBatches(&log, 2)))
	for batch, err := range stream.All(context.Background()) {
		if err != nil {
			t.Error(err)
		}
		batch.Close()
	}
	stream.Close()
}

// Two C threads release the structs of one block, and the users of one share, at the same time.
func TestReleaseOnTwoThreadsClosesOwnerOnce(t *testing.T) {
	const children = 2000
	rounds := 200
	if testing.Short() {
		rounds = 20
	}
	raw := peer.New[abi.ArrowArray](children)
	defer peer.Free(raw)
	builder := fletching.ArrayBuilder{Children: make([]fletching.ArrayBuilder, children)}
	for round := range rounds {
		var log log
		array := must(builder.Build(&note{&log, "owner"}))
		var part func(int) (*fletching.Array, error)
		var end func()
		if part, end = array.TakeChild, array.Close; round%2 == 0 {
			shared := must(array.Share())
			part, end = shared.Column, shared.Close
		}
		for i := range raw {
			if err := must(part(i)).Export(unsafe.Pointer(&raw[i])); err != nil {
				t.Fatal(err)
			}
		}
		end()
		log.expect(t)
		if !peer.ReleaseOnThreads(raw) {
			t.Skip("no thread")
		}
		if log.expect(t, "owner"); t.Failed() {
			t.Fatalf("round %d", round)
		}
	}
}

// A consumer replaces a child that it moved out with a struct of another block.
func TestReplacedChildIsReleasedWithOwnBlock(t *testing.T) {
	var log log
	raw := peer.New[abi.ArrowArray](3)
	defer peer.Free(raw)
	for i, owner := range []string{"parent", "other"} {
		if err := must(batch(2).Build(&note{&log, owner})).Export(unsafe.Pointer(&raw[i])); err != nil {
			t.Fatal(err)
		}
	}
	raw[0].Child(0).MoveTo(&raw[2])
	raw[1].MoveTo(raw[0].Child(0))
	peer.Release(&raw[0], 1)
	log.expect(t, "other")
	peer.Release(&raw[2], 1)
	log.expect(t, "parent")
}
