package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// maxLines is the longest a hand-written file that is not a test may be.
const maxLines = 500

// vague are package names that say nothing about what is inside.
var vague = []string{"util", "utils", "common", "types", "helper", "helpers", "misc"}

// unfinished marks work that was left for later. (The words are taken apart
// because this file is checked too.)
var unfinished = regexp.MustCompile(`\b(` + "TO" + `DO|` + "FIX" + `ME|` + "XX" + `X)\b`)

// checkTopLevel: the house has five rooms.
func checkTopLevel(root string) ([]Violation, error) {
	entries, err := os.ReadDir(root)
	if err != nil {
		return nil, err
	}
	ignored, err := ignoredFolders(root)
	if err != nil {
		return nil, err
	}
	rooms := slices.Sorted(maps.Keys(arrows))
	var out []Violation
	for _, e := range entries {
		name := e.Name()
		switch {
		case !e.IsDir() && strings.HasSuffix(name, ".go"):
			out = append(out, Violation{name, 0, "a Go file outside the rooms: it belongs in one of " + strings.Join(rooms, ", ")})
		case !e.IsDir() || name[0] == '.' || slices.Contains(rooms, name) || slices.Contains(ignored, name):
		default:
			out = append(out, Violation{name, 0, fmt.Sprintf("a top-level folder that is none of %s: the house has five rooms, so that everybody knows where a thing is", strings.Join(rooms, ", "))})
		}
	}
	return out, nil
}

// ignoredFolders are the top-level folders that .gitignore names "/name/":
// outputs of programs, which are no part of the tree.
func ignoredFolders(root string) ([]string, error) {
	b, err := os.ReadFile(filepath.Join(root, ".gitignore"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var names []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "/") && strings.HasSuffix(line, "/") {
			names = append(names, strings.Trim(line, "/"))
		}
	}
	return names, err
}

// checkText checks a file by itself: length, unfinished work, build tags.
func checkText(f *file) []Violation {
	var out []Violation
	if n := bytes.Count(f.src, []byte("\n")); n > maxLines && !f.test && !f.generated {
		out = append(out, Violation{f.path, 0, fmt.Sprintf("%d lines, at most %d are allowed: one idea a file; split it", n, maxLines)})
	}
	n := 0
	for line := range bytes.Lines(f.src) {
		n++
		if word := unfinished.Find(line); word != nil {
			out = append(out, Violation{f.path, n, fmt.Sprintf("%s: what is here is finished; what is not is written down elsewhere, as an issue", word)})
		}
	}
	if f.build != nil && slices.Contains(tags(f.build), "cuda") {
		out = append(out, Violation{f.path, 0, "build tag cuda: gorgonia switches its own machine on that tag; CUDA code compiles with no tag and loads the driver at run time"})
	}
	return out
}

// checkPackages checks names and package comments, folder by folder.
func checkPackages(files []*file) []Violation {
	names, docs := map[string]string{}, map[string]bool{}
	for _, f := range files {
		if f.test {
			continue
		}
		dir := f.dir()
		names[dir] = f.name
		docs[dir] = docs[dir] || documents(f)
	}
	var out []Violation
	for dir, name := range names {
		for _, n := range []string{name, path.Base(dir)} {
			if slices.Contains(vague, n) {
				out = append(out, Violation{dir, 0, fmt.Sprintf("a package called %s: the name says nothing about what is inside, and everything ends up there; name it for the one idea it holds", n)})
				break
			}
		}
		if !docs[dir] {
			out = append(out, Violation{dir, 0, fmt.Sprintf("package %s has no package comment (%s): a reader learns there what it is, its invariants, and what may run at the same time", name, begins(name))})
		}
	}
	return out
}

// documents says whether a file has the package comment. That of a command
// says what the command does, in any words.
func documents(f *file) bool {
	return f.doc != "" && (f.name == "main" || strings.HasPrefix(f.doc, "Package "+f.name+" "))
}

func begins(name string) string {
	if name == "main" {
		return "above the package clause, what the command does"
	}
	return fmt.Sprintf("one that begins %q", "Package "+name)
}
