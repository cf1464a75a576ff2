package reexport_test

import (
	"errors"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/roundtrip/internal/fake"
	"github.com/fletching/fletching/bindings/go/roundtrip/reexport"
)

func ignore(*abi.ArrowSchema, *abi.ArrowDeviceArray) error { return nil }

func TestReleasedStructsAreRefused(t *testing.T) {
	var schema abi.ArrowSchema
	var array abi.ArrowDeviceArray
	var stream abi.ArrowDeviceArrayStream
	expect(t, reexport.Schema(&schema, new(abi.ArrowSchema)), syscall.EINVAL, "/ schema is released")
	expect(t, reexport.Array(fake.Schema("n"), &array, new(abi.ArrowDeviceArray)), syscall.EINVAL, "/ array is released")
	expect(t, reexport.Stream(&stream, ignore, new(abi.ArrowDeviceArrayStream)), syscall.EINVAL, "stream is released")
}

func TestSchemaIsReleasedOnce(t *testing.T) {
	source, before := fake.Schema("n"), counts()
	var ours abi.ArrowSchema
	if err := reexport.Schema(source, &ours); err != nil {
		t.Fatal(err)
	}
	if source.Release != 0 || ours.Format != source.Format {
		t.Error("not moved")
	}
	stale := ours
	reexport.ReleaseSchema(&ours)
	reexport.ReleaseSchema(&ours)
	if found := counts(); found != [3]int64{before[0] + 1, before[1] + 1, before[2] + 1} || ours.Release != 0 {
		t.Errorf("exported, released in Go, released in C: %d, before %d", found, before)
	}
	expectMisuse(t, "")
	reexport.ReleaseSchema(&stale)
	expectMisuse(t, "ArrowSchema.release: runtime/cgo: misuse of an invalid Handle")
	if counts()[2] != before[2]+1 {
		t.Error("C's release ran twice")
	}
}

func TestForeignPrivateDataIsRefused(t *testing.T) {
	var ours abi.ArrowSchema
	if err := reexport.Schema(fake.Schema("n"), &ours); err != nil {
		t.Fatal(err)
	}
	var array abi.ArrowDeviceArray
	if err := reexport.Array(&ours, fake.Array(), &array); err != nil {
		t.Fatal(err)
	}
	array.Array.PrivateData, ours.PrivateData = ours.PrivateData, array.Array.PrivateData
	reexport.ReleaseArray(&array.Array)
	expectMisuse(t, "ArrowArray.release: interface conversion")
	reexport.ReleaseSchema(&ours)
	expectMisuse(t, "ArrowSchema.release: interface conversion")
	array.Array.PrivateData, ours.PrivateData = ours.PrivateData, array.Array.PrivateData
	reexport.ReleaseArray(&array.Array)
	reexport.ReleaseSchema(&ours)
	expectMisuse(t, "")
}

func TestReservedIsZeroed(t *testing.T) {
	array := fake.Array()
	array.Reserved[1] = 7
	array.DeviceType, array.DeviceID, array.SyncEvent = 21, -1, 99
	var ours abi.ArrowDeviceArray
	if err := reexport.Array(fake.Schema("n"), array, &ours); err != nil {
		t.Fatal(err)
	}
	if ours.Reserved[1] != 0 || ours.DeviceType != 21 || ours.DeviceID != -1 || ours.SyncEvent != 99 {
		t.Errorf("%+v", ours)
	}
	reexport.ReleaseArray(&ours.Array)
}

func TestStreamFailsBeforeItIsMoved(t *testing.T) {
	stream := fake.Stream()
	fake.LetGetSchemaFail(stream)
	before := counts()
	err := reexport.Stream(stream, ignore, new(abi.ArrowDeviceArrayStream))
	expect(t, err, syscall.EIO, "the stream failed and gave no text")
	if counts() != before || stream.Release == 0 {
		t.Error("something was moved or released")
	}
}

func TestStreamPassesErrorsOn(t *testing.T) {
	before := counts()
	stream := fake.Stream()
	fake.LetGetNextFail(stream)
	ours := open(t, stream, ignore)
	_, err := reexport.GetNext(ours)
	expect(t, err, syscall.EIO, "the stream failed and gave no text")
	reexport.ReleaseStream(ours)

	stream = fake.Stream()
	fake.LetGetNextFail(stream)
	fake.LetTextBeBad(stream)
	ours = open(t, stream, ignore)
	_, err = reexport.GetNext(ours)
	expect(t, err, syscall.EIO, "\ufffd\ufffd broken ")
	if !utf8.ValidString(err.Error()) {
		t.Errorf("%q is no UTF-8", err)
	}
	reexport.ReleaseStream(ours)
	// Two streams, and in C the two schemas that were pulled.
	if found := counts(); found != [3]int64{before[0] + 2, before[1] + 2, before[2] + 4} {
		t.Errorf("exported, released in Go, released in C: %d, before %d", found, before)
	}
}

func TestPanicsAndErrorsOfAnObserverStayInGo(t *testing.T) {
	problem := "none"
	ours := open(t, fake.Stream(), func(*abi.ArrowSchema, *abi.ArrowDeviceArray) error {
		switch problem {
		case "panic":
			panic("observer")
		case "error":
			return errors.New("refused")
		}
		return nil
	})
	for _, step := range []struct{ problem, text string }{
		{"panic", "panic in Go: observer"}, {"none", ""}, {"error", "refused"}, {"none", ""},
	} {
		problem = step.problem
		before := fake.Released()
		array, err := reexport.GetNext(ours)
		if step.text != "" {
			expect(t, err, syscall.EIO, step.text)
			if fake.Released() != before+1 {
				t.Errorf("%s: the array was not released", problem)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		reexport.ReleaseArray(&array.Array)
	}
	reexport.ReleaseStream(ours)
	expectMisuse(t, "")
}

func TestReleasedStreamRefusesCalls(t *testing.T) {
	ours := open(t, fake.Stream(), ignore)
	stale := *ours
	reexport.ReleaseStream(ours)
	_, err := reexport.GetNext(&stale)
	expect(t, err, syscall.EIO, "the stream failed and gave no text")
	expectMisuse(t, "ArrowDeviceArrayStream.get_last_error: runtime/cgo: misuse of an invalid Handle")
	reexport.ReleaseStream(&stale)
	expectMisuse(t, "ArrowDeviceArrayStream.release: runtime/cgo: misuse of an invalid Handle")
}

func open(t *testing.T, stream *abi.ArrowDeviceArrayStream, observe reexport.Observer) *abi.ArrowDeviceArrayStream {
	t.Helper()
	ours := new(abi.ArrowDeviceArrayStream)
	if err := reexport.Stream(stream, observe, ours); err != nil {
		t.Fatal(err)
	}
	return ours
}

// counts: exported, released in Go, released in C.
func counts() [3]int64 {
	return [3]int64{reexport.Exported(), reexport.Released(), int64(fake.Released())}
}

func expect(t *testing.T, err error, code syscall.Errno, text string) {
	t.Helper()
	if !errors.Is(err, code) || err.Error() != text {
		t.Errorf("%v, expected errno %d and %q", err, int(code), text)
	}
}

func expectMisuse(t *testing.T, begin string) {
	t.Helper()
	found := reexport.Misused()
	if begin == "" && len(found) > 0 || begin != "" && (len(found) != 1 || !strings.HasPrefix(found[0].Error(), begin)) {
		t.Errorf("misused %v, expected %q", found, begin)
	}
}
