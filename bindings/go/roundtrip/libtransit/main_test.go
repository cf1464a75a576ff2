package main

import (
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/internal/fake"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

func TestTransit(t *testing.T) {
	schema, array := fake.Schema("n"), fake.Array()
	var outSchema abi.ArrowSchema
	var outArray abi.ArrowDeviceArray
	if err := transit(schema, array, &outSchema, &outArray); err != nil {
		t.Fatal(err)
	}
	if schema.Release != 0 || array.Array.Release != 0 || outSchema.Release == 0 || outArray.Array.Release == 0 {
		t.Error("not moved")
	}
	released := reexport.Released()
	reexport.ReleaseSchema(&outSchema)
	reexport.ReleaseArray(&outArray.Array)
	if reexport.Released() != released+2 {
		t.Errorf("%d releases", reexport.Released()-released)
	}
}

func TestTransitRefuses(t *testing.T) {
	good := func() (*abi.ArrowSchema, *abi.ArrowDeviceArray) { return fake.Schema("n"), fake.Array() }
	schema, array := good()
	outSchema, outArray := new(abi.ArrowSchema), new(abi.ArrowDeviceArray)
	for expected, err := range map[string]error{
		"schema is NULL":       transit(nil, array, outSchema, outArray),
		"array is NULL":        transit(schema, nil, outSchema, outArray),
		"out_schema is NULL":   transit(schema, array, nil, outArray),
		"out_array is NULL":    transit(schema, array, outSchema, nil),
		"/ schema is released": transit(new(abi.ArrowSchema), array, outSchema, outArray),
		"/ array is released":  transit(schema, new(abi.ArrowDeviceArray), outSchema, outArray),
	} {
		if err == nil || err.Error() != expected || errno(err) != 22 {
			t.Errorf("%v (errno %d), expected %s", err, errno(err), expected)
		}
	}
	if schema.Release == 0 || array.Array.Release == 0 || outSchema.Release != 0 || outArray.Array.Release != 0 {
		t.Error("something was moved")
	}
}

func TestMessageIsCutAtACharacter(t *testing.T) {
	err := walk.Errorf(5, "größe\xff")
	for size := range 12 {
		room := []byte(strings.Repeat("x", size))
		say(err, room)
		text, _, ended := strings.Cut(string(room), "\x00")
		if size > 0 && (!ended || !strings.HasPrefix("größe\ufffd", text)) {
			t.Errorf("in %d bytes: %q", size, room)
		}
	}
	room := []byte("old")
	say(nil, room)
	if room[0] != 0 {
		t.Errorf("%q after a success", room)
	}
}
