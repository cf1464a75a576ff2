// SPDX-License-Identifier: Apache-2.0

// Command modulezip writes modules as a module proxy serves them.
//
//	modulezip -version vX.Y.Z -time 2026-01-31T00:00:00Z -out proxy FOLDER...
//
// Each folder has a go.mod. A tag of the repository for the module in bindings/go is bindings/go/vX.Y.Z.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

func main() {
	version := flag.String("version", "", "the version, with its v")
	date := flag.String("time", "", "the time of the commit")
	out := flag.String("out", "", "the folder of the proxy")
	flag.Parse()
	for _, folder := range flag.Args() {
		if err := pack(folder, *version, *date, *out); err != nil {
			fmt.Fprintf(os.Stderr, "modulezip: %s: %v\n", folder, err)
			os.Exit(1)
		}
	}
}

// pack writes the files .info, .mod and .zip of one module, and adds the version to its list.
func pack(folder, version, date, out string) (err error) {
	stated, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if err != nil {
		return err
	}
	name := module.Version{Path: modfile.ModulePath(stated), Version: version}
	committed, err := time.Parse(time.RFC3339, date)
	if err != nil {
		return err
	}
	info, err := json.Marshal(struct {
		Version string
		Time    time.Time
	}{version, committed})
	if err != nil {
		return err
	}
	base := filepath.Join(out, name.Path, "@v", version)
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return err
	}
	for ending, content := range map[string][]byte{".mod": stated, ".info": info} {
		if err := os.WriteFile(base+ending, content, 0o644); err != nil {
			return err
		}
	}
	archive, err := os.Create(base + ".zip")
	if err != nil {
		return err
	}
	defer func() {
		if closed := archive.Close(); err == nil {
			err = closed
		}
	}()
	if err := zip.CreateFromDir(archive, name, folder); err != nil {
		return err
	}
	return addToList(filepath.Join(filepath.Dir(base), "list"), version)
}

func addToList(path, version string) error {
	list, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(list, version)
	if closed := list.Close(); err == nil {
		err = closed
	}
	return err
}
