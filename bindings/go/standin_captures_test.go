// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching_test

import (
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go"
	"github.com/fletching/fletching/bindings/go/internal/gpu"
)

// The options for captured streams reach the core.
func TestStandinCapturedStream(t *testing.T) {
	gpu.OnBoth(t, "standin", func(t *testing.T, api *gpu.API) {
		gated := api.NewGated()
		exported, _, _ := countedArray(t, api.Type)
		succeed(t, exported.ExportWithEvent(streamOf(api, gated.Producer)))
		array, _, _ := countedArray(t, api.Type)
		leaked, leakedReleases, _ := countedArray(t, api.Type)
		kept, keptReleases, _ := countedArray(t, api.Type)
		stream := streamOf(api, gated.Consumer)
		before := fletching.PendingReleases().Leaked
		api.BeginCapture(gated.Consumer)
		for _, err := range []error{exported.WaitOn(stream), array.ExportWithEvent(stream)} {
			expectCode(t, err, syscall.EBUSY, "captured into a graph", "hint: ", "stream.With(ExternalEvent)")
		}
		expectCode(t, leaked.ReleaseAfter(stream), syscall.EBUSY, "captured into a graph", "hint: ")
		succeed(t, kept.ReleaseAfter(stream.With(fletching.KeepArray)))
		succeed(t, exported.WaitOn(stream.With(fletching.ExternalEvent)))
		if counts := fletching.PendingReleases(); counts.Leaked != before+1 || counts.Pending != 1 || !leaked.IsReleased() {
			t.Errorf("counts: %+v", counts)
		}
		expectCount(t, "a kept array", keptReleases, 0)
		api.DestroyGraph(api.EndCapture(gated.Consumer))
		keptReleases.waitFor(1)
		expectCount(t, "a leaked array", leakedReleases, 0)
		array.Close()
		exported.Close()
		gated.End()
	})
}
