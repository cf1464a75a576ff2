// SPDX-License-Identifier: Apache-2.0

//go:build cgo

package fletching

import (
	"errors"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fletching/fletching/bindings/go/internal/repository"
)

func TestLoadMissingLibraryErrorNamesPathAndFix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "libfletching.so")
	err := loadAny("Validate", validationLibraries(path))
	if !errors.Is(err, syscall.ENOENT) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "; hint: install it") {
		t.Error(err)
	}
}

func TestFailedLoadIsRetried(t *testing.T) {
	t.Setenv("FLETCHING_LIBRARY", filepath.Join(t.TempDir(), "libfletching.so"))
	defer func(loaded bool) { validation.loaded = loaded }(validation.loaded)
	validation.loaded = false
	for range 2 {
		if err := loadValidation("Validate"); !errors.Is(err, syscall.ENOENT) {
			t.Error(err)
		}
		if findings, err := newFindings("Validate"); !errors.Is(err, syscall.ENOENT) || findings.Take() != nil {
			t.Error(err)
		}
	}
}

func TestLoadOtherLibraryReturnsError(t *testing.T) {
	repository.Need(t)
	err := loadAny("Validate", []string{filepath.Join(repository.Libraries(), "libfletching_corpus.so")})
	if !errors.Is(err, syscall.ENOSYS) || !strings.Contains(err.Error(), "has no FletchingCheckLayout") {
		t.Error(err)
	}
}

func TestLoadLibraryOfOtherLayoutReturnsError(t *testing.T) {
	repository.Need(t)
	code, text := load(filepath.Join(repository.Libraries(), "libfletching.so"), 0)
	if code != syscall.EINVAL || !strings.HasPrefix(text, "layout: expected the structs of version") {
		t.Error(code, text)
	}
}
