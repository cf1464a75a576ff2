// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/internal/peer"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// each plays every case of a party; after it nothing may be left.
func each(t *testing.T, party int32, play func(t *testing.T, c peer.Case)) {
	repository.Need(t)
	if err := peer.Open(); err != nil {
		t.Fatal(err)
	}
	cases := peer.Cases(party)
	if len(cases) == 0 {
		t.Error("no case")
	}
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			play(t, c)
			if err := peer.Finish(); err != nil {
				t.Error(err)
			}
		})
	}
}

// check compares the result with the catalogue.
func check(t *testing.T, c peer.Case, err error) {
	t.Helper()
	var ours *fletching.Error
	if err != nil && (!errors.As(err, &ours) || ours.Code < 1) {
		t.Errorf("an error without a code: %v", err)
	}
	switch c.Outcome {
	case peer.Accepted:
		if err != nil {
			t.Errorf("expected no error, got %v", err)
		}
	case peer.Refused:
		if err == nil || ours.Message == "" {
			t.Errorf("expected an error with a message, got %v", err)
		}
	case peer.Reported:
		if err == nil || int32(ours.Code) != c.Code {
			t.Errorf("expected code %d, got %v", c.Code, err)
		}
	}
	if err != nil && (len(err.Error()) > 64*1024 || strings.ContainsFunc(err.Error(), func(r rune) bool {
		return r < ' ' && r != '\n' && r != '\t' || r == 0x7F
	})) {
		t.Errorf("not fit to print: %q", err)
	}
}

func hostileSchema(t *testing.T, name string) (*fletching.Schema, error) {
	var raw abi.ArrowSchema
	if err := peer.ExportSchema(name, &raw); err != nil {
		t.Fatal(err)
	}
	return fletching.ImportSchema(unsafe.Pointer(&raw))
}

func hostileArray(t *testing.T, name string) (*fletching.DeviceArray, error) {
	var schema abi.ArrowSchema
	var raw abi.ArrowDeviceArray
	if err := peer.ExportArray(name, &schema, &raw); err != nil {
		t.Fatal(err)
	}
	if owner, err := fletching.ImportSchema(unsafe.Pointer(&schema)); err == nil {
		owner.Close()
	}
	return fletching.ImportDeviceArray(unsafe.Pointer(&raw))
}

// readSchema reads what there is below a schema whose shape was checked. What a format means is not for
// this package to say.
func readSchema(view fletching.SchemaView) error {
	_, _ = view.Format(), view.Name()
	if _, err := view.Metadata(); err != nil {
		return err
	}
	for i := range view.NumChildren() {
		if err := readSchema(view.Child(i)); err != nil {
			return err
		}
	}
	return nil
}

func TestHostileSchemasAreReadOrRefused(t *testing.T) {
	var refused []string
	each(t, peer.Schema, func(t *testing.T, c peer.Case) {
		err := func() error {
			schema, err := hostileSchema(t, c.Name)
			if err != nil {
				return err
			}
			defer schema.Close()
			_, _ = schema.Root().Builder()
			shared, err := schema.Share()
			if err != nil {
				return err
			}
			defer shared.Close()
			view, err := shared.View()
			if err != nil {
				return err
			}
			defer view.Close()
			return readSchema(view.Root())
		}()
		if err != nil {
			refused = append(refused, strings.TrimPrefix(c.Name, "schema."))
		}
		if c.Outcome == peer.Accepted {
			check(t, c, err)
		}
	})
	// The others are about formats.
	if expected := []string{
		"released", "format-null", "metadata-negative-count", "metadata-negative-length", "deep", "children-negative",
		"children-huge", "children-null", "child-null", "child-released", "children-of-primitive", "cycle",
	}; !slices.Equal(refused, expected) {
		t.Errorf("expected %q, got %q", expected, refused)
	}
}

func TestHostileArraysAreMovedAndReleasedUnread(t *testing.T) {
	each(t, peer.Array, func(t *testing.T, c peer.Case) {
		array, err := hostileArray(t, c.Name)
		if (err != nil) != (c.Name == "array.released") {
			t.Error(err)
		}
		if err != nil {
			return
		}
		var raw abi.ArrowDeviceArray
		if err := array.Export(unsafe.Pointer(&raw)); err != nil {
			t.Error(err)
		}
		importDeviceArray(t, raw).Close()
	})
}

// Columns and children: of a child that is wrong an error, and the parent stays whole. What the count
// says is not believed.
func TestHostileArraysAreSharedAndTakenApartOrRefused(t *testing.T) {
	each(t, peer.Array, func(t *testing.T, c peer.Case) {
		if c.Name == "array.released" {
			return
		}
		shared := must(must(hostileArray(t, c.Name)).Share())
		columns := 0
		for _, index := range []int{-1, 0, 1, math.MaxInt} {
			if column, err := shared.Column(index); err == nil {
				columns++
				column.Close()
			}
		}
		if view, err := shared.View(); err == nil {
			view.Close()
		}
		shared.Close()

		parent := must(hostileArray(t, c.Name))
		_, _, _, _ = parent.Length(), parent.NullCount(), parent.BufferAddresses(), parent.Child(0).Buffer(1)
		taken := 0
		for _, index := range []int{-1, 1, 1, 0} {
			if child, err := parent.TakeChild(index); err == nil {
				taken++
				defer child.Close()
			}
		}
		if dictionary, err := parent.TakeDictionary(); err == nil {
			dictionary.Close()
		}
		parent.Close()
		if c.Name == "array.good-children" && (columns != 2 || taken != 2) {
			t.Error(columns, taken)
		}
	})
}

func TestHostileConsumersOfArrays(t *testing.T) {
	var log log
	consume := func(t *testing.T, name string, array *fletching.DeviceArray, released ...string) {
		t.Helper()
		raw := peer.New[abi.ArrowDeviceArray](1)
		defer peer.Free(raw)
		if err := array.Export(unsafe.Pointer(&raw[0])); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(peer.ConsumeArray(name, &raw[0]), peer.Finish()); err != nil {
			t.Error(err)
		}
		log.expect(t, released...)
	}
	table := func() *fletching.DeviceArray {
		builder := fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0}, Children: make([]fletching.ArrayBuilder, 2)}
		values := peer.New[int32](3)
		for i := range builder.Children {
			builder.Children[i] = fletching.ArrayBuilder{Length: 3, Buffers: []uintptr{0, uintptr(unsafe.Pointer(&values[0]))}}
		}
		return must(builder.BuildOn(abi.DeviceCPU, -1, 0, &freed{note{&log, "dropped"}, values}))
	}
	each(t, peer.ArrayConsumer, func(t *testing.T, c peer.Case) {
		consume(t, c.Name, table(), "dropped")

		shared := must(table().Share())
		consume(t, c.Name, must(shared.View()))
		shared.Close()
		log.expect(t, "dropped")

		attached := table()
		if err := attached.Attach(&note{&log, "attached"}); err != nil {
			t.Fatal(err)
		}
		// The object belongs to the array, and the data to its children too.
		child := must(attached.TakeChild(1))
		child.Close()
		attached.Close()
		log.expect(t, "dropped", "attached")
	})
}

type freed struct {
	note
	values []int32
}

func (f *freed) Close() {
	f.note.Close()
	peer.Free(f.values)
}

func TestHostileStreams(t *testing.T) {
	read := func(stream *fletching.DeviceArrayStream) (batches int, err error) {
		defer stream.Close()
		schema, err := stream.Schema()
		if err != nil {
			return 0, err
		}
		schema.Close()
		var kept []*fletching.DeviceArray // until the stream is released
		defer func() {
			stream.Close()
			for _, batch := range kept {
				batch.Close()
			}
		}()
		for batch, err := range stream.All(context.Background()) {
			if err != nil {
				if _, again := stream.Next(); again == nil {
					err = errors.New("the stream lives on")
				}
				return len(kept), err
			}
			kept = append(kept, batch)
		}
		return len(kept), nil
	}
	open := func(t *testing.T, name string) *fletching.DeviceArrayStream {
		var raw abi.ArrowDeviceArrayStream
		if err := peer.ExportDeviceStream(name, &raw); err != nil {
			t.Fatal(err)
		}
		return must(fletching.ImportDeviceArrayStream(unsafe.Pointer(&raw)))
	}
	play := func(t *testing.T, c peer.Case) {
		if c.Name == "stream.released" {
			return
		}
		batches, err := read(open(t, c.Name))
		check(t, c, err)
		if expected := 3; err == nil && batches != expected && c.Name != "stream.empty" {
			t.Errorf("expected %d batches, got %d", expected, batches)
		}
		open(t, c.Name).Close()
		strict := open(t, c.Name)
		strict.Options.Strict = true
		if _, err := read(strict); c.Outcome == peer.Tolerated && (err == nil || !strings.Contains(err.Error(), "(rule ")) {
			t.Errorf("strict: %v", err)
		}
		// There and back: our streams over the peer's stream have the same result.
		for _, isReader := range []bool{false, true} {
			inner := open(t, c.Name)
			if inner.DeviceType() == 0 {
				inner.Close()
				return
			}
			var through *fletching.DeviceArrayStream
			if isReader {
				through = must(fletching.NewDeviceArrayStreamFrom(intSchema(), inner.DeviceType(), inner))
			} else {
				through = must(fletching.NewDeviceArrayStream(intSchema(), inner.DeviceType(), inner.All(context.Background())))
			}
			_, err = read(through)
			if !strings.Contains(c.Name, "schema") {
				check(t, c, err)
			}
			if inner.IsReleased() != isReader {
				t.Error("the reader is closed with the stream, an iterator does not close what it reads")
			}
			inner.Close()
		}
	}
	each(t, peer.Stream, func(t *testing.T, c peer.Case) {
		play(t, c)
		var raw abi.ArrowArrayStream
		if err := peer.ExportStream(c.Name, &raw); err != nil {
			t.Fatal(err)
		}
		stream, err := fletching.ImportArrayStream(unsafe.Pointer(&raw))
		if err != nil {
			check(t, c, err)
			return
		}
		schema, err := stream.Schema()
		if err == nil {
			schema.Close()
			for batch, failure := range stream.All(context.Background()) {
				if err = failure; err == nil {
					batch.Close()
				}
			}
		}
		check(t, c, err)
		stream.Close()
	})
	each(t, peer.DeviceStream, play)
}

func TestHostileConsumersOfStreams(t *testing.T) {
	each(t, peer.StreamConsumer, func(t *testing.T, c peer.Case) {
		plain := must(fletching.NewArrayStream(intSchema(), func(yield func(*fletching.Array, error) bool) {
			for i := 0; i < 3 && yield(must(fletching.FromValues([]int32{1, 2, 3})), nil); i++ {
			}
		}))
		device := must(fletching.NewDeviceArrayStream(intSchema(), abi.DeviceCPU, func(yield func(*fletching.DeviceArray, error) bool) {
			for i := 0; i < 3 && yield(must(must(fletching.FromValues([]int32{1, 2, 3})).ToDevice()), nil); i++ {
			}
		}))
		raws, devices := peer.New[abi.ArrowArrayStream](1), peer.New[abi.ArrowDeviceArrayStream](1)
		defer peer.Free(raws)
		defer peer.Free(devices)
		if err := errors.Join(plain.Export(unsafe.Pointer(&raws[0])), device.Export(unsafe.Pointer(&devices[0]))); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(peer.ConsumeStream(c.Name, 3, &raws[0]), peer.ConsumeDeviceStream(c.Name, 3, &devices[0])); err != nil {
			t.Error(err)
		}
	})
}
