// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
)

// What is decoded is what is encoded, and what is malformed is EINVAL.
func FuzzMetadata(f *testing.F) {
	valid, _ := Metadata{{"key", "value"}, {"", "\xff"}}.Encode()
	f.Add(valid)
	f.Add(valid[:9])
	f.Add([]byte{0xff, 0xff, 0xff, 0x7f})
	f.Fuzz(func(t *testing.T, block []byte) {
		pairs, err := DecodeMetadata(block)
		if err != nil {
			if !errors.Is(err, syscall.EINVAL) || pairs != nil {
				t.Errorf("%v with %v", err, pairs)
			}
			return
		}
		encoded, err := pairs.Encode()
		if err != nil || len(encoded) > max(len(block), 4) {
			t.Fatalf("%d bytes from %d: %v", len(encoded), len(block), err)
		}
		again, err := DecodeMetadata(encoded)
		if err != nil || !slices.Equal(again, pairs) {
			t.Errorf("expected %q, got %q: %v", pairs, again, err)
		}
	})
}

// A foreign text can be printed, and is not much longer than what is read of it.
func FuzzText(f *testing.F) {
	f.Add("ü\xff\x00\x1b")
	f.Add(strings.Repeat("x", maxText-1) + "ü")
	f.Fuzz(func(t *testing.T, text string) {
		printed := printable(text)
		if !utf8.ValidString(printed) || len(printed) > 4*maxText+len("...") {
			t.Errorf("%d bytes: %q", len(printed), printed)
		}
		control := func(r rune) bool { return (r < ' ' && r != '\n' && r != '\t') || r == 0x7f }
		if strings.ContainsFunc(printed, control) {
			t.Errorf("control characters in %q", printed)
		}
		if len(printed) <= maxText && printable(printed) != printed {
			t.Errorf("%q changes again", printed)
		}
	})
}

// grown is a tree of a foreign producer, which counts the releases of each array.
type grown struct {
	nodes []abi.ArrowArray
	lists [][]uintptr
	live  []bool // at the beginning
	count []int
	pins  runtime.Pinner
}

// grownNode is what private_data of an array leads to.
type grownNode struct {
	tree   *grown
	index  int
	handle uintptr
}

func (n *grownNode) Release(self *abi.ArrowArray) {
	n.tree.count[n.index]++
	callbacks.DeleteHandle(n.handle)
	self.Release = callbacks.ArrowArrayReleaseStub() // which the stub has cleared
	n.tree.each(self, func(below *abi.ArrowArray) { callbacks.CallArrowArrayRelease(below) })
	self.Release = 0
}

// each visits what is directly below.
func (g *grown) each(node *abi.ArrowArray, visit func(*abi.ArrowArray)) {
	for _, address := range linksOf(node).children() {
		if address != 0 {
			visit(at[abi.ArrowArray](address))
		}
	}
	if node.Dictionary != 0 {
		visit(at[abi.ArrowArray](node.Dictionary))
	}
}

// grow makes a tree from bytes, two for an array: what is wrong with it, and how many are below it.
func grow(bytes []byte) *grown {
	count := max(1, min(len(bytes)/2, 64))
	g := &grown{
		nodes: make([]abi.ArrowArray, count), lists: make([][]uintptr, count),
		live: make([]bool, count), count: make([]int, count),
	}
	g.pins.Pin(&g.nodes[0])
	next := 1
	for i := range g.nodes {
		wrong, below := byte(0), 0
		if len(bytes) >= 2*i+2 {
			wrong, below = bytes[2*i], int(bytes[2*i+1]%5)
		}
		node := &g.nodes[i]
		node.Length = int64(i)
		if wrong%16 == 1 && i > 0 {
			continue // released
		}
		g.live[i] = true
		own := &grownNode{tree: g, index: i}
		own.handle = callbacks.NewHandle(own)
		node.Release, node.PrivateData = callbacks.ArrowArrayReleaseStub(), own.handle
		list := make([]uintptr, 0, below+1)
		for ; len(list) < below && next < count; next++ {
			list = append(list, uintptr(unsafe.Pointer(&g.nodes[next])))
		}
		g.hang(node, list, wrong)
		g.lists[i] = list
	}
	return g
}

func (g *grown) hang(node *abi.ArrowArray, list []uintptr, wrong byte) {
	switch wrong % 16 {
	case 2:
		node.NChildren = -1
	case 3:
		node.NChildren = int64(len(list))
		return // without a list
	case 4:
		if len(list) > 0 {
			list[0] = 0
		}
	case 5:
		if len(list) > 0 {
			node.Dictionary = list[len(list)-1]
			list = list[:len(list)-1]
		}
	case 6:
		node.NChildren, node.Children = 1<<40, uintptr(unsafe.Pointer(&g.nodes[0]))
		return
	}
	if node.NChildren == 0 && len(list) > 0 {
		g.pins.Pin(&list[0])
		node.NChildren, node.Children = int64(len(list)), uintptr(unsafe.Pointer(&list[0]))
	}
}

// expected returns how often each array is released in the end: those that can be reached once.
func (g *grown) expected() []int {
	count := make([]int, len(g.nodes))
	var visit func(*abi.ArrowArray)
	visit = func(node *abi.ArrowArray) {
		if !node.IsReleased() {
			count[node.Length]++
			g.each(node, visit)
		}
	}
	visit(&g.nodes[0])
	return count
}

func compareArrays(t *testing.T, left, right ArrayView) {
	if left.Length() != right.Length() || left.NumChildren() != right.NumChildren() {
		t.Errorf("array %d differs from %d", left.Length(), right.Length())
	}
	for i := range left.NumChildren() {
		compareArrays(t, left.Child(i), right.Child(i))
	}
	if left.Dictionary().IsReleased() != right.Dictionary().IsReleased() {
		t.Errorf("dictionary of array %d", left.Length())
	}
}

// A tree of a foreign producer is shown as it is or not at all, and everything is released once.
func FuzzTree(f *testing.F) {
	f.Add([]byte{0, 3, 0, 2, 1, 0, 5, 1})
	f.Add([]byte{3, 4, 0, 0})
	f.Add([]byte{0, 1, 6, 1})
	f.Add([]byte{0, 2, 4, 2, 2, 0})
	f.Fuzz(func(t *testing.T, bytes []byte) {
		g := grow(bytes)
		expected := g.expected()
		array, err := ImportArray(unsafe.Pointer(&g.nodes[0]))
		if err != nil {
			t.Fatal(err)
		}
		use(t, array, len(bytes))
		if !slices.Equal(g.count, expected) {
			t.Errorf("releases: expected %v, got %v", expected, g.count)
		}
		for i := range g.nodes { // the unreachable
			callbacks.DeleteHandle(g.nodes[i].PrivateData)
		}
		g.pins.Unpin()
	})
}

// use takes the array apart in one of several ways, and closes everything.
func use(t *testing.T, array *Array, way int) {
	if way%3 == 0 {
		for i := range array.NumChildren() {
			if child, err := array.TakeChild(i); err == nil {
				defer child.Close()
			}
		}
		array.Close()
		return
	}
	shared, err := array.Share()
	if err != nil {
		t.Fatal(err)
	}
	defer shared.Close()
	view, err := shared.View()
	if err != nil {
		if !errors.Is(err, syscall.EINVAL) {
			t.Error(err)
		}
		return
	}
	compareArrays(t, shared.owner.Root(), view.Root())
	for i := range shared.NumColumns() {
		column, err := shared.Column(i)
		if err != nil {
			t.Fatal(err)
		}
		defer column.Close()
	}
	if dictionary, err := view.TakeDictionary(); err == nil {
		defer dictionary.Close()
	}
	view.Close()
}
