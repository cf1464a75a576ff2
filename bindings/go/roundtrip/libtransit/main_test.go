package main

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
)

type dropped struct {
	count *int
}

func (d dropped) Close() { *d.count++ }

// structs returns a schema, and an array that counts its release.
func structs(t *testing.T, released *int) (*abi.ArrowSchema, *abi.ArrowDeviceArray) {
	t.Helper()
	schema, err := (&fletching.SchemaBuilder{Format: "n"}).Build()
	if err != nil {
		t.Fatal(err)
	}
	array, err := (&fletching.ArrayBuilder{}).BuildOn(abi.DeviceCPU, -1, 0, dropped{released})
	if err != nil {
		t.Fatal(err)
	}
	rawSchema, rawArray := new(abi.ArrowSchema), new(abi.ArrowDeviceArray)
	if err := errors.Join(schema.Export(unsafe.Pointer(rawSchema)), array.Export(unsafe.Pointer(rawArray))); err != nil {
		t.Fatal(err)
	}
	return rawSchema, rawArray
}

func TestTransitPassesOnUnderReleasesOfItsOwn(t *testing.T) {
	sources := 0
	schema, array := structs(t, &sources)
	from := *array
	var outSchema abi.ArrowSchema
	var outArray abi.ArrowDeviceArray
	exported, released := reexport.Exported(), reexport.Released()
	if err := transit(schema, array, &outSchema, &outArray); err != nil {
		t.Fatal(err)
	}
	if !schema.IsReleased() || !array.IsReleased() || outSchema.IsReleased() || outArray.IsReleased() {
		t.Error("not moved")
	}
	if outArray.Array.PrivateData == from.Array.PrivateData || outArray.Array.Release == from.Array.Release {
		t.Error("the release is the source's")
	}
	callbacks.ReleaseArrowSchema(&outSchema)
	if sources != 0 {
		t.Error("released too early")
	}
	callbacks.ReleaseArrowArray(&outArray.Array)
	if sources != 1 || reexport.Exported()-exported != 2 || reexport.Released()-released != 2 {
		t.Error(sources, reexport.Exported()-exported, reexport.Released()-released)
	}
}

func TestWhatIsRefusedStaysTheCallers(t *testing.T) {
	sources := 0
	schema, array := structs(t, &sources)
	withoutFormat := *schema
	withoutFormat.Format = 0
	outSchema, outArray := new(abi.ArrowSchema), new(abi.ArrowDeviceArray)
	for expected, err := range map[string]error{
		"schema: NULL":                       transit(nil, array, outSchema, outArray),
		"array: NULL":                        transit(schema, nil, outSchema, outArray),
		"out_schema: NULL":                   transit(schema, array, nil, outArray),
		"out_array: NULL":                    transit(schema, array, outSchema, nil),
		"import: schema is released":         transit(new(abi.ArrowSchema), array, outSchema, outArray),
		"import: device array is released":   transit(schema, new(abi.ArrowDeviceArray), outSchema, outArray),
		"schema builder: a copy: the struct": transit(&withoutFormat, array, outSchema, outArray),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), expected) || codeOf(err) != int(syscall.EINVAL) {
			t.Errorf("expected %s, got %v (code %d)", expected, err, codeOf(err))
		}
	}
	if schema.IsReleased() || array.IsReleased() || !outSchema.IsReleased() || !outArray.IsReleased() || sources != 0 {
		t.Error("something was moved or released")
	}
	callbacks.ReleaseArrowSchema(schema)
	callbacks.ReleaseArrowArray(&array.Array)
	if sources != 1 {
		t.Error(sources)
	}
}

func TestCodes(t *testing.T) {
	for expected, err := range map[int]error{
		0:                   nil,
		int(syscall.ENOMEM): fletching.NewError(syscall.ENOMEM, "no memory", nil),
		int(syscall.EINVAL): errors.New("refused"),
	} {
		if code := codeOf(err); code != expected {
			t.Errorf("%v: expected %d, got %d", err, expected, code)
		}
	}
}

func TestAMessageIsOneLineThatEndsWithACharacter(t *testing.T) {
	err := errors.New("größe\xff\nx")
	for size := range 16 {
		room := []byte(strings.Repeat("x", size))
		writeMessage(err, room)
		text, _, ended := strings.Cut(string(room), "\x00")
		if size > 0 && (!ended || !strings.HasPrefix("größe\ufffd; x", text) || len(text) < min(size-1, 13)-2) {
			t.Errorf("in %d bytes: %q", size, room)
		}
	}
	room := []byte("old")
	writeMessage(nil, room)
	if room[0] != 0 {
		t.Errorf("%q after a success", room)
	}
}
