// SPDX-License-Identifier: Apache-2.0

package headers

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// fletching generate writes the other two.
func TestHeadersAreThoseOfTheRepository(t *testing.T) {
	repository := filepath.Join("..", "..", "..", "..")
	if _, err := os.Stat(filepath.Join(repository, "spec", "errno.yaml")); err != nil {
		t.Skip("a module outside the repository has nothing to compare with: ", err)
	}
	for copied, original := range map[string]string{
		"hostile.h":           "tests/hostile/hostile.h",
		"oracle.h":            "tests/oracle/oracle.h",
		"fletching/message.h": "cpp/include/fletching/message.h",
	} {
		ours, err := os.ReadFile(filepath.FromSlash(copied))
		if err != nil {
			t.Error(err)
		}
		theirs, err := os.ReadFile(filepath.Join(repository, filepath.FromSlash(original)))
		if err != nil {
			t.Error(err)
		}
		if !bytes.Equal(ours, theirs) {
			t.Errorf("internal/headers/%s: expected a copy of %s; hint: copy it", copied, original)
		}
	}
}
