// Package archtest checks that the tree keeps the architecture: which room
// imports which, where cgo, flags and gorgonia may be, what packages are
// called, that each is documented, how long files are, that random draws are told
// apart by names, that tests find NaN wrong, and that documents and comments send readers only to what is
// there. Its test runs over this module and fails with a sentence for each
// violation that says why the rule is there.
//
// It reads the files themselves, under every build tag, and keeps no state. Of
// Go's files it leaves out testdata, folders that begin with a dot or an
// underscore, and folders with a go.mod of their own.
package archtest

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Module is the path of the module whose tree is checked.
const Module = "ebtrain"

// Violation is one place where the tree breaks a rule.
type Violation struct {
	Path string // relative to the root, with slashes
	Line int    // from 1; 0 if it is about the whole
	Text string // what is wrong, and why that is a rule
}

func (v Violation) String() string {
	if v.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", v.Path, v.Line, v.Text)
	}
	return v.Path + ": " + v.Text
}

// Check reads the tree at root and returns all violations, sorted by place.
func Check(root string) ([]Violation, error) {
	files, err := readTree(root)
	if err != nil {
		return nil, err
	}
	out, err := checkTopLevel(root)
	if err != nil {
		return nil, err
	}
	mains := mainFolders(files)
	for _, f := range files {
		out = append(out, checkImports(f, mains[f.dir()])...)
		out = append(out, checkText(f)...)
		draws, err := checkDraws(f)
		if err != nil {
			return nil, err
		}
		tolerances, err := checkTolerances(f)
		if err != nil {
			return nil, err
		}
		out = append(append(out, draws...), tolerances...)
	}
	out = append(out, checkPackages(files)...)
	out = append(out, checkMethods(files)...)
	inDocs, err := checkDocs(root)
	if err != nil {
		return nil, err
	}
	out = append(out, inDocs...)
	slices.SortFunc(out, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Text, b.Text))
	})
	return out, nil
}

// readTree parses every Go file below root.
func readTree(root string) ([]*file, error) {
	var files []*file
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() {
			if path != root && skipped(path, e.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(e.Name(), ".go") {
			return nil
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := readFile(path, filepath.ToSlash(rel))
		files = append(files, f)
		return err
	})
	return files, err
}

func skipped(path, name string) bool {
	if name[0] == '.' || name[0] == '_' || name == "testdata" || name == "vendor" {
		return true
	}
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil
}

// mainFolders says which folders hold a command. Its tests are as free as it.
func mainFolders(files []*file) map[string]bool {
	mains := map[string]bool{}
	for _, f := range files {
		if f.name == "main" && !f.test {
			mains[f.dir()] = true
		}
	}
	return mains
}
