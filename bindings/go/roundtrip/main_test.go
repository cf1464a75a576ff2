package main

import (
	"os"
	"strings"
	"testing"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/producer"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
	"github.com/fletching/fletching/bindings/go/roundtrip/walk"
)

func TestMain(m *testing.M) {
	if err := producer.Open(producer.Path()); err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func TestMissingProducerIsNamed(t *testing.T) {
	err := producer.Open("/nowhere/libfletching_producer.so")
	if err == nil || !strings.Contains(err.Error(), "/nowhere/libfletching_producer.so") || !strings.Contains(err.Error(), "run `make`") {
		t.Error(err)
	}
}

// Every way to lose or to change something has to fail its cell.
func TestCellsFail(t *testing.T) {
	t.Setenv("FLETCHING_CELLS", "")
	var kept abi.ArrowSchema
	for expected, run := range map[string]func(*checks) error{
		"live_schemas is": func(c *checks) error {
			var schema abi.ArrowSchema
			var array abi.ArrowDeviceArray
			if err := producer.ExportArray(backend, "int32", &schema, &array); err != nil {
				return err
			}
			reexport.ReleaseArray(&array.Array)
			return reexport.Schema(&schema, &kept) // not released
		},
		"'/ format=i ": func(c *checks) error {
			var schema abi.ArrowSchema
			var array abi.ArrowDeviceArray
			if err := producer.ExportArray(backend, "int32", &schema, &array); err != nil {
				return err
			}
			defer reexport.ReleaseSchema(&schema)
			defer reexport.ReleaseArray(&array.Array)
			array.Array.Length--
			return c.sameText("int32", &schema, &array)
		},
		"panic: on purpose": func(*checks) error { panic("on purpose") },
		"exported nothing":  func(*checks) error { return nil },
	} {
		var c checks
		exported, released := reexport.Exported(), reexport.Released()
		producer.ResetCounters()
		err := protected(&c, run)
		if err == nil {
			err = atRest(&c, reexport.Exported()-exported, reexport.Released()-released)
		}
		if err == nil || !strings.Contains(err.Error(), expected) {
			t.Errorf("%v, expected %s", err, expected)
		}
		reexport.ReleaseSchema(&kept)
	}
}

func TestChildrenOutliveTheirParent(t *testing.T) {
	producer.ResetCounters()
	var schema, ourSchema abi.ArrowSchema
	var array, ourArray abi.ArrowDeviceArray
	if err := producer.ExportArray(backend, "record_batch", &schema, &array); err != nil {
		t.Fatal(err)
	}
	if err := reexport.Array(&schema, &array, &ourArray); err != nil {
		t.Fatal(err)
	}
	if err := reexport.Schema(&schema, &ourSchema); err != nil {
		t.Fatal(err)
	}
	child := moveChild(&ourArray.Array, 1)
	reexport.ReleaseArray(&ourArray.Array)
	reexport.ReleaseSchema(&ourSchema)
	if live := producer.ReadCounters(); live.LiveArrays != 1 || live.DoubleReleased != 0 {
		t.Errorf("%+v, expected one live array", live)
	}
	reexport.ReleaseArray(&child)
	if err := atRest(new(checks), 1, 1); err != nil {
		t.Error(err)
	}
}

func moveChild(parent *abi.ArrowArray, index int) abi.ArrowArray {
	source := walk.ArrayChildren(parent)[index]
	moved := *source
	source.Release = 0
	return moved
}
