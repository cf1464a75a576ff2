// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"unsafe"

	"github.com/fletching/fletching/bindings/go/abi"
	"github.com/fletching/fletching/bindings/go/abi/callbacks"
	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// Replays every trace of `fletching traces` (tests/conformance/README.md) against both sides. The tests are in
// this package because a replay reads the internal state.

type traceCall struct {
	Call, Notify string
	Task         *int
	Out          *bool
	Code         *int
	N            *int64
}

// String returns the form in which calls and notifications are compared.
func (c traceCall) String() string {
	text := c.Call
	if c.Notify != "" {
		text = "notify " + c.Notify
	}
	if c.Task != nil {
		text += fmt.Sprint(" ", *c.Task)
	}
	if c.Out != nil && !*c.Out {
		text += " drop"
	}
	if c.Code != nil {
		text += fmt.Sprint(" ", *c.Code)
	}
	if c.N != nil {
		text += fmt.Sprint(" ", *c.N)
	}
	return text
}

type traceStep struct {
	Event, Call, Within, Beside, State string
	N                                  int64
	Task, Errno                        int
	Calls, Notifications               []traceCall
	Result                             *int32
	Returns                            *bool
	ThenReturns                        string `json:"then_returns"`
}

type trace struct {
	Name    string
	Steps   []traceStep
	Finally struct {
		Calls  map[string]int
		Code   *int
		Schema string
		Tasks  []string
	}
}

// playAll replays all traces of a side and reports the differences.
func playAll(t *testing.T, side string, count int, play func(*trace) string) {
	repository.Need(t)
	path := filepath.Join("..", "..", "build", "go", "traces", side+".json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run `fletching traces --output build/go/traces`", err)
	}
	var file struct{ Traces []trace }
	if err := json.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	for i := range file.Traces {
		if problem := play(&file.Traces[i]); problem != "" {
			t.Errorf("%s: %s", file.Traces[i].Name, problem)
		}
	}
	if len(file.Traces) != count {
		t.Errorf("%s: expected %d traces, got %d", path, count, len(file.Traces))
	}
}

// replay is a cursor over the steps of one trace. It stops at the first difference.
type replay struct {
	trace    *trace
	mutex    sync.Mutex
	at       int
	depth    int
	expected []string
	counts   map[string]int
	failed   string
}

func (r *replay) fail(format string, values ...any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.failed == "" {
		at := max(r.at-1, 0)
		r.failed = fmt.Sprintf("step %d, %s: %s", at, r.trace.Steps[at].Event, fmt.Sprintf(format, values...))
	}
}

func (r *replay) hasFailed() bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.failed != ""
}

// next returns the next step, nil after the last one.
func (r *replay) next() *traceStep {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.failed != "" || r.at == len(r.trace.Steps) {
		return nil
	}
	return &r.trace.Steps[r.at]
}

func (r *replay) expects() int {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return len(r.expected)
}

// expectsAnother reports whether another call of the name is expected in this step.
func (r *replay) expectsAnother(name string) bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.ContainsFunc(r.expected, func(what string) bool {
		return what == name || strings.HasPrefix(what, name+" ")
	})
}

// happened records a call of the side under test, or a notification.
func (r *replay) happened(format string, values ...any) {
	what := fmt.Sprintf(format, values...)
	r.mutex.Lock()
	if len(r.expected) == 0 || r.expected[0] != what {
		expected := r.expected
		r.mutex.Unlock()
		r.fail("%s: expected %q", what, expected)
		return
	}
	r.expected = r.expected[1:]
	name, _, _ := strings.Cut(what, " ")
	if what == "on_next_task" {
		name = "end"
	}
	r.counts[name]++
	r.mutex.Unlock()
}

// perform plays one step, from its event to its result.
func (r *replay) perform(step *traceStep, work func() int32) {
	r.mutex.Lock()
	r.at++
	r.depth++
	outer := r.expected
	r.expected = nil
	for _, call := range slices.Concat(step.Calls, step.Notifications) {
		r.expected = append(r.expected, call.String())
	}
	r.mutex.Unlock()
	result := work()
	if r.expects() > 0 {
		r.fail("expected %q", r.expected)
	}
	if step.Result != nil && *step.Result != result {
		r.fail("expected to return %d, got %d", *step.Result, result)
	}
	r.mutex.Lock()
	r.expected = outer
	r.depth--
	r.mutex.Unlock()
}

func (r *replay) compareFinal(schema string, tasks []string, codes []int) string {
	last := r.trace.Finally
	for name, expected := range last.Calls {
		if r.counts[name] != expected {
			r.fail("finally: expected %d calls of %s, got %d", expected, name, r.counts[name])
		}
	}
	var expected []int
	if last.Code != nil {
		expected = []int{*last.Code}
	}
	if schema != last.Schema || !slices.Equal(tasks, last.Tasks) || !slices.Equal(codes, expected) {
		r.fail("finally: expected %s %q %v, got %s %q %v", last.Schema, last.Tasks, expected, schema, tasks, codes)
	}
	return r.failed
}

// trackedObject tracks what happens to a schema or a batch.
type trackedObject struct {
	number           int
	mutex            sync.Mutex
	outcomes         []string
	arrays, released int
}

func (t *trackedObject) record(outcome string) {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.outcomes = append(t.outcomes, outcome)
}

// outcome returns the outcome if it happened once. Any other result fails the comparison.
func (t *trackedObject) outcome(freed string) string {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	if len(t.outcomes) == 1 && t.outcomes[0] == "freed" {
		return freed
	}
	return strings.Join(t.outcomes, ", ")
}

// freedSchema and freedArray record the release.
type freedSchema struct{ *trackedObject }

func (f freedSchema) Release(self *abi.ArrowSchema) {
	callbacks.DeleteHandle(self.PrivateData)
	f.record("freed")
}

type freedArray struct{ *trackedObject }

func (f freedArray) Release(self *abi.ArrowArray) {
	callbacks.DeleteHandle(self.PrivateData)
	f.record("freed")
}

func (t *trackedObject) schema() abi.ArrowSchema {
	return abi.ArrowSchema{
		Format:  uintptr(unsafe.Pointer(&trackedFormat)),
		Release: callbacks.ArrowSchemaReleaseStub(), PrivateData: callbacks.NewHandle(freedSchema{t}),
	}
}

var trackedFormat = [2]byte{'i'}

func (t *trackedObject) array(value callbacks.ArrowArrayCallbacks) abi.ArrowDeviceArray {
	array := abi.ArrowArray{Release: callbacks.ArrowArrayReleaseStub(), PrivateData: callbacks.NewHandle(value)}
	return abi.ArrowDeviceArray{Array: array, DeviceType: abi.DeviceCPU}
}
