// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "block.h"
import "C"

import (
	"runtime"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Shared shares a schema, an array, or a device array with its event, without copying strings or
// buffers: Shared[*Array].
//
// The struct is released when the Shared, the structs returned by it and the children moved out of them are
// all released, on the thread of the last release. The structs returned by Column and View are independent:
// their consumer may move them, release them, and move children out. Several goroutines may use a
// Shared at once, but not while it is closed.
type Shared[T shareable[T]] struct {
	owner T // its struct has a reference to the share and is never moved out
}

// shareable is *Schema, *Array or *DeviceArray.
type shareable[T any] interface {
	comparable
	IsReleased() bool
	NumChildren() int
	Close()
	due() *C.struct_FletchingShare
	show(index int) (T, error)
}

const all = -1 // instead of an index

// Share moves the schema into a Shared. Errors: EINVAL if it is closed, ENOMEM.
func (s *Schema) Share() (*Shared[*Schema], error) {
	shared := &Schema{}
	if err := shareInto(&shared.owner, &s.owner, s.get()); err != nil {
		return nil, err
	}
	return &Shared[*Schema]{shared}, nil
}

// Share moves the array into a Shared. Errors: EINVAL if it is closed, ENOMEM.
func (a *Array) Share() (*Shared[*Array], error) {
	shared := &Array{arrayOwner[abi.ArrowArray]{known: a.known}}
	if err := shareInto(&shared.owner, &a.owner, a.base()); err != nil {
		return nil, err
	}
	return &Shared[*Array]{shared}, nil
}

// Share moves the array into a Shared. Errors: EINVAL if it is closed, ENOMEM.
func (a *DeviceArray) Share() (*Shared[*DeviceArray], error) {
	shared := &DeviceArray{arrayOwner[abi.ArrowDeviceArray]{known: a.known}}
	if err := shareInto(&shared.owner, &a.owner, a.base()); err != nil {
		return nil, err
	}
	return &Shared[*DeviceArray]{shared}, nil
}

// shareInto moves the slot of an owner and its struct into a share.
func shareInto[R raw, B base](shared, source *owner[R], held *B) error {
	if source.IsReleased() {
		return closed("Share")
	}
	if err := makeShared(held); err != nil {
		return err
	}
	shared.hold(source.leave())
	return nil
}

// Column returns a child as a separate struct in one C allocation. A child of a device array has the
// array's device and event.
//
// Errors: EINVAL if the child does not exist, or if it or a nested struct was moved out or is malformed:
// NULL, a schema without a format, n_children negative, above 2^22 or without a list, more than 256 levels
// or 2^22 structs; ENOMEM.
func (s *Shared[T]) Column(index int) (T, error) {
	var none T
	if s.IsReleased() {
		return none, closed("Column")
	}
	if children := s.owner.NumChildren(); index < 0 || index >= children {
		return none, invalid("Column: child %d: no such child: expected an index below %d", index, children)
	}
	return s.owner.show(index)
}

// View returns the whole schema or array as a separate struct. Errors: as Column.
func (s *Shared[T]) View() (T, error) {
	if s.IsReleased() {
		var none T
		return none, closed("View")
	}
	return s.owner.show(all)
}

// NumColumns returns the number of children.
func (s *Shared[T]) NumColumns() int {
	if s.IsReleased() {
		return 0
	}
	return s.owner.NumChildren()
}

// IsReleased reports whether the Shared was closed.
func (s *Shared[T]) IsReleased() bool {
	var none T
	return s.owner == none || s.owner.IsReleased()
}

// Close drops the Shared's reference to the struct, which is released with the last reference.
func (s *Shared[T]) Close() {
	if !s.IsReleased() {
		s.owner.Close()
	}
}

func (s *Schema) show(index int) (*Schema, error) {
	shown, err := copyBelow(s.get(), index)
	if err != nil {
		return nil, err
	}
	runtime.KeepAlive(s)
	return newSchema(shown), nil
}

func (a *Array) show(index int) (*Array, error) {
	shown, err := copyBelow(a.base(), index)
	if err != nil {
		return nil, err
	}
	runtime.KeepAlive(a)
	view := newArray(shown)
	view.known = a.known.below(index)
	return view, nil
}

func (a *DeviceArray) show(index int) (*DeviceArray, error) {
	shown, err := copyBelow(a.base(), index)
	if err != nil {
		return nil, err
	}
	defer runtime.KeepAlive(a)
	view := newDeviceArray(around(a.get(), shown))
	view.known = a.known.below(index)
	return view, nil
}

// copyBelow returns a struct that shows a child, or the whole, of a struct with a reference to a share.
func copyBelow[B base](use *B, index int) (root B, err error) {
	operation := "Column"
	if index == all {
		operation = "View"
	}
	if use == nil {
		return root, closed(operation)
	}
	links := linksOf(use)
	shown := use
	if index != all {
		shown = at[B](links.children()[index])
	}
	structs, err := countTree(operation, shown)
	if err != nil {
		return root, err
	}
	block, ok := newBlock[B](structs, 0, 0, 0, links.privateData)
	if !ok {
		return root, noMemory(operation)
	}
	free := freeBlock[B]{structs: block.structs[1:], list: block.list}
	copyTree(&block.structs[0], shown, block.address, &free)
	return block.structs[0], nil
}

// copyTree fills the struct and its nested structs.
func copyTree[B base](target, source *B, block uintptr, free *freeBlock[B]) {
	links := linksOf(source)
	from := links.children()
	children := take(&free.structs, len(from))
	links.list = addressOf(take(&free.list, len(from)))
	for i := range children {
		copyTree(&children[i], at[B](from[i]), block, free)
	}
	if links.dictionary != 0 {
		take(&free.list, 1)
		dictionary := take(&free.structs, 1)
		copyTree(&dictionary[0], at[B](links.dictionary), block, free)
		links.dictionary = addressOf(dictionary)
	}
	links.privateData = block
	*target = *source
	setLinks(target, links)
}

// setLinks makes the struct part of the block in its private data.
func setLinks[B base](node *B, to links) {
	switch node := any(node).(type) {
	case *abi.ArrowSchema:
		node.Children, node.Dictionary = to.list, to.dictionary
		node.Release, node.PrivateData = releaseSchema, to.privateData
	case *abi.ArrowArray:
		node.Children, node.Dictionary = to.list, to.dictionary
		node.Release, node.PrivateData = releaseArray, to.privateData
	}
}
