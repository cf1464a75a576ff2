// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"fmt"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// failing runs every operation of a test with one call of the runtime that fails.
type failing struct {
	t          *testing.T
	api        *gpu.API
	operations []func() error
	failed     map[string]bool // functions
}

// From here on the operations release an array as well, and a release cannot report an error.
const releasing = 4

func (f *failing) runAll(function string, nth int64) {
	api := f.api
	for index, operation := range f.operations {
		fault := fmt.Sprintf("%s:%d:%s", function, nth, api.Error)
		where := fmt.Sprintf("%s of operation %d", fault, index)
		current, alive, calls := api.Current(), api.Alive(), api.Calls(function)
		api.SetFault(fault)
		err := operation()
		hasFailed := api.Calls(function) >= calls+nth
		api.ResetFaults()
		if got := api.Current(); got != current {
			f.t.Errorf("%s: context %x, expected %x", where, got, current)
		}
		if got := api.Alive(); got != alive {
			f.t.Errorf("%s: something leaks: expected %+v, got %+v", where, alive, got)
		}
		if hasFailed && err == nil && index < releasing {
			f.t.Errorf("%s is lost", where)
		}
		if err == nil {
			continue
		}
		f.failed[function] = true
		text := err.Error()
		saysHow := function == "hipGetStreamDeviceId" // with a number below 0 alone
		if !hasFailed || !strings.Contains(text, function) || !saysHow && !strings.Contains(text, api.Error) {
			f.t.Errorf("%s: %v", where, err)
		}
	}
}

func TestStandinEveryFailureIsAnError(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		api.RecordEvent(event, gated.Producer)
		api.SynchronizeStream(gated.Producer)
		array := awaited(t, api.Type, event)
		stream := streamOf(api, gated.Consumer)
		export := func() error {
			array, releases, _ := countedArray(t, api.Type)
			err := array.ExportWithEvent(stream)
			if (err == nil) != (array.SyncEvent() != 0) {
				t.Errorf("event %x with %v", array.SyncEvent(), err)
			}
			array.Close()
			expectCount(t, "the exported array", releases, 1)
			return err
		}
		releaseAfter := func() error {
			array, releases, _ := countedArray(t, api.Type)
			err := array.ReleaseAfter(stream)
			if err != nil {
				expectCount(t, "what was not taken", releases, 0)
				array.Close()
			}
			releases.waitFor(1)
			api.SettleReleases() // the next fault is not for the thread that released it
			return err
		}
		f := &failing{t, api, []func() error{
			func() error { return array.Synchronize(background) },
			func() error { return array.WaitOn(stream) },
			func() error { return array.WaitOn(streamOf(api, 0)) },
			func() error { _, err := array.Ready(); return err },
			export,
			releaseAfter,
		}, map[string]bool{}}
		for _, operation := range f.operations {
			succeed(t, operation()) // all of their functions are in the report now
		}
		for _, function := range api.Called() {
			for nth := range int64(2) {
				f.runAll(function, nth+1)
				gpu.OnThread(func() { f.runAll(function, nth+1) })
			}
		}
		for _, function := range []string{api.Query, api.Record, api.Synchronize, api.ExchangeMode} {
			if !f.failed[function] {
				t.Errorf("%s has not failed: the test is blind", function)
			}
		}
		array.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}

// What fails while a failure is handled says nothing about its cause.
func TestStandinFirstFailureIsReported(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		array := awaited(t, api.Type, event)
		gpu.OnThread(func() { // which needs the primary context
			api.SetFault("cuCtxPushCurrent:1:719,cuDevicePrimaryCtxRelease:1:304")
			expectCode(t, array.Synchronize(background), syscall.EIO, "cuCtxPushCurrent", "719")
			api.ResetFaults()
		})
		array.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}

func TestStandinRefusedQueryIsNotDone(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		api.SetFault(api.Query + ":*:900")
		array, releases, _ := countedArray(t, api.Type)
		succeed(t, array.ReleaseAfter(streamOf(api, gated.Consumer)))
		for before := api.Calls(api.Query); api.Calls(api.Query) < before+5; {
			runtime.Gosched()
		}
		expectCount(t, "an array", releases, 0)
		pending := fletching.PendingReleases()
		if pending.Pending != 1 || pending.Refused != 1 || !strings.Contains(pending.LastRefusal, api.Query) {
			t.Errorf("pending: %+v", pending)
		}
		api.ResetFaults()
		releases.waitFor(1)
		if pending := fletching.PendingReleases(); pending.Pending != 0 || pending.Refused != 0 {
			t.Errorf("pending: %+v", pending)
		}
		gated.End()
	})
}

// Refused is of the last answer alone.
func TestStandinAnswerAfterARefusal(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated, releases := releaseBehindGate(t, api)
		for _, fault := range []string{api.Query + ":*:900", ""} {
			api.ResetFaults()
			if fault != "" {
				api.SetFault(fault)
			}
			for before := api.Calls(api.Query); api.Calls(api.Query) < before+3; {
				runtime.Gosched()
			}
			refused := int64(0)
			if fault != "" {
				refused = 1
			}
			if pending := fletching.PendingReleases(); pending.Pending != 1 || pending.Refused != refused {
				t.Errorf("with %q: %+v", fault, pending)
			}
		}
		gated.OpenGate()
		releases.waitFor(1)
		gated.End()
	})
}

// A driver that refuses is asked ever more rarely, one that answers every time.
func TestStandinRefusedQueryIsAskedRarely(t *testing.T) {
	gpu.Need(t, "standin/libcuda.so.1")
	gpu.InProcess(t, func(t *testing.T) {
		refusing, answering := gpu.CUDA(t, "standin"), gpu.HIP(t, "standin")
		refused, answered := refusing.NewGated(), answering.NewGated()
		answered.Shut()
		refusing.SetFault(refusing.Query + ":*:900")
		first, firstReleases, _ := countedArray(t, refusing.Type)
		second, secondReleases, _ := countedArray(t, answering.Type)
		succeed(t, first.ReleaseAfter(streamOf(refusing, refused.Consumer)))
		succeed(t, second.ReleaseAfter(streamOf(answering, answered.Producer)))
		answers, refusals := answering.Calls(answering.Query), refusing.Calls(refusing.Query)
		for answering.Calls(answering.Query) < answers+24 {
			runtime.Gosched()
		}
		refusals = refusing.Calls(refusing.Query) - refusals // within what follows, however long this takes
		if answers = answering.Calls(answering.Query) - answers; refusals > answers/3 {
			t.Errorf("asked %d times in %d rounds, expected a third at most", refusals, answers)
		}
		refusing.ResetFaults()
		answered.OpenGate()
		firstReleases.waitFor(1)
		secondReleases.waitFor(1)
		refused.End()
		answered.End()
	})
}

func TestStandinLostDeviceReleases(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		gated.Shut()
		for _, code := range []string{"700", "719"} {
			array, releases, _ := countedArray(t, api.Type)
			succeed(t, array.ReleaseAfter(streamOf(api, gated.Producer)))
			api.SetFault(api.Query + ":1:" + code)
			releases.waitFor(1)
			api.ResetFaults()
		}
		gated.End()
	})
}

// On the way to the event's context, its loss is an answer too.
func TestStandinLostContextReleases(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		_, releases := releaseBehindGate(t, api)
		api.SetFault("cuDevicePrimaryCtxGetState:*:700")
		releases.waitFor(1)
		api.ResetFaults()
	})
}

// Only the event's own answer says whether it is its device that is lost.
func TestStandinLossThatEveryCallReports(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		_, releases := releaseBehindGate(t, api)
		api.SetFault(api.ExchangeMode + ":*:700")
		for before := api.Calls(api.ExchangeMode); api.Calls(api.ExchangeMode) < before+10; {
			runtime.Gosched()
		}
		expectCount(t, "what may be of another device", releases, 0)
		if pending := fletching.PendingReleases(); pending.Refused != 0 {
			t.Errorf("the event itself has answered: %+v", pending)
		}
		api.SetFault(api.Query + ":*:700")
		releases.waitFor(1)
		if pending := fletching.PendingReleases(); pending.Pending != 0 {
			t.Errorf("pending: %+v", pending)
		}
		api.ResetFaults()
	})
}

// What a vendor says about an error may fail as well.
func TestStandinErrorHasANumberAtLeast(t *testing.T) {
	gpu.OnCUDA(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		event := api.MakeEvent()
		array := awaited(t, api.Type, event)
		for code, expected := range map[int]string{304: "failed with 304", 719: "CUDA_ERROR_LAUNCH_FAILED (719)"} {
			api.SetFault(fmt.Sprintf("cuCtxGetCurrent:1:%d,cuGetErrorName:1:1,cuGetErrorString:1:1", code))
			err := array.Synchronize(background)
			api.ResetFaults()
			expectCode(t, err, syscall.EIO, "cuCtxGetCurrent")
			if err == nil || !strings.HasSuffix(err.Error(), expected) {
				t.Errorf("expected %q at the end of %v", expected, err)
			}
		}
		array.Close()
		api.DestroyEvent(event)
		gated.End()
	})
}
