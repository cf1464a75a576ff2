// SPDX-License-Identifier: Apache-2.0

package headers

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/repository"
)

// fletching generate writes the other two.
func TestHeadersMatchRepository(t *testing.T) {
	repository.Need(t)
	for copied, original := range map[string]string{
		"hostile.h":               "tests/hostile/hostile.h",
		"oracle.h":                "tests/oracle/oracle.h",
		"fletching/conformance.h": "tests/conformance/include/fletching/conformance.h",
		"fletching/message.h":     "cpp/include/fletching/message.h",
	} {
		ours, err := os.ReadFile(filepath.FromSlash(copied))
		if err != nil {
			t.Error(err)
		}
		theirs, err := os.ReadFile(filepath.Join(repository.Root(), filepath.FromSlash(original)))
		if err != nil {
			t.Error(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("internal/headers/%s: expected a copy of %s; hint: copy it", copied, original)
		}
	}
}
