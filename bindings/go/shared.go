// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

// #include "block.h"
import "C"

import (
	"runtime"

	"github.com/fletching/fletching/bindings/go/abi"
)

// Shared shares a schema, an array, or a device array with its event, without copying a text or a
// buffer: Shared[*Array].
//
// The struct is released when the Shared is closed, and the last struct that it returned and the last
// child that was moved out of one are released, on the thread where that happens. What Column and View
// return is a struct like any other: its consumer may move it, release it, and move children out;
// others do not notice. Several goroutines may use a Shared at once; none may while it is closed.
type Shared[T shareable[T]] struct {
	owner T // its struct has a use of the share, and is never moved on
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

const all = -1 // in place of an index

// Share moves the schema into a Shared. Errors: EINVAL when it is closed, ENOMEM.
func (s *Schema) Share() (*Shared[*Schema], error) {
	shared := &Schema{}
	if err := shareInto(&shared.owner, &s.owner, s.get()); err != nil {
		return nil, err
	}
	return &Shared[*Schema]{shared}, nil
}

// Share moves the array into a Shared. Errors: EINVAL when it is closed, ENOMEM.
func (a *Array) Share() (*Shared[*Array], error) {
	shared := &Array{arrayOwner[abi.ArrowArray]{known: a.known}}
	if err := shareInto(&shared.owner, &a.owner, a.base()); err != nil {
		return nil, err
	}
	return &Shared[*Array]{shared}, nil
}

// Share moves the array into a Shared. Errors: EINVAL when it is closed, ENOMEM.
func (a *DeviceArray) Share() (*Shared[*DeviceArray], error) {
	shared := &DeviceArray{arrayOwner[abi.ArrowDeviceArray]{known: a.known}}
	if err := shareInto(&shared.owner, &a.owner, a.base()); err != nil {
		return nil, err
	}
	return &Shared[*DeviceArray]{shared}, nil
}

// shareInto moves the slot of an owner, whose struct is held in a share from now on.
func shareInto[R raw, B base](shared, source *owner[R], held *B) error {
	if source.IsReleased() {
		return closed("share")
	}
	if err := makeShared(held); err != nil {
		return err
	}
	shared.hold(source.leave())
	return nil
}

// Column returns a child as a separate struct; of a device array with its device and event. It is
// one allocation of C.
//
// Errors: EINVAL when there is no such child, when it or one below it was moved out before, or is
// malformed: NULL, a schema without a format, n_children negative, above 2^22 or without a list,
// nested deeper than 256 levels, more than 2^22 structs; ENOMEM.
func (s *Shared[T]) Column(index int) (T, error) {
	var none T
	if s.IsReleased() {
		return none, closed("column")
	}
	if children := s.owner.NumChildren(); index < 0 || index >= children {
		return none, invalid("column: child %d: no such child: expected an index below %d", index, children)
	}
	return s.owner.show(index)
}

// View returns all of it as a separate struct. Errors: as Column.
func (s *Shared[T]) View() (T, error) {
	if s.IsReleased() {
		var none T
		return none, closed("view")
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

// Close gives up the struct, which is released when it is no longer needed.
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

// copyBelow returns our struct that shows a child, or all, of a struct with a use of a share.
func copyBelow[B base](use *B, index int) (root B, err error) {
	if use == nil {
		return root, closed("view")
	}
	links := linksOf(use)
	shown := use
	if index != all {
		shown = at[B](links.children()[index])
	}
	structs, err := countTree("view", shown)
	if err != nil {
		return root, err
	}
	block, ok := newBlock[B](structs, 0, 0, 0, links.privateData)
	if !ok {
		return root, noMemory("view")
	}
	free := freeBlock[B]{structs: block.structs[1:], list: block.list}
	copyTree(&block.structs[0], shown, block.address, &free)
	return block.structs[0], nil
}

// copyTree fills the struct and those below it.
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

// setLinks makes the struct one of the block that is its private data.
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
