package archtest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// papers is the page that comments cite by section, as ALGORITHMS.md §2.1.
const papers = "trainer/method/ALGORITHMS.md"

// worded are the ends of the names of files in which somebody may refer to a document.
var worded = []string{".md", ".go", ".py", ".sh", ".txt", ".c", ".h", ".cu"}

// text is a file of words: a document, or one that may refer to one.
type text struct {
	path string // relative to the root, with slashes
	src  string
}

// docs are the documents of a tree and what refers to them.
type docs struct {
	texts    []text
	paths    map[string]bool     // of all files and folders
	headings map[string][]string // anchors of each document
	sections map[string]string   // of papers, by number
	lines    map[string]string   // documents with all space as single spaces
}

// checkDocs: what a document or a comment sends its reader to is there.
func checkDocs(root string) ([]Violation, error) {
	d, err := readDocs(root)
	if err != nil {
		return nil, err
	}
	var out []Violation
	for _, t := range d.texts {
		if strings.HasSuffix(t.path, ".md") && !strings.Contains(t.path, "/testdata/") { // what programs put out is there alone
			out = append(out, d.checkLinks(t)...)
		}
		out = append(out, d.checkPapers(t)...)
		out = append(out, d.checkDecisions(t)...)
	}
	return out, nil
}

// readDocs reads all files of words, those of dot-folders, testdata and other modules,
// too; but not what programs put out, nor what git keeps.
func readDocs(root string) (*docs, error) {
	ignored, err := ignoredFolders(root)
	if err != nil {
		return nil, err
	}
	d := &docs{paths: map[string]bool{}, headings: map[string][]string{}, lines: map[string]string{}}
	err = filepath.WalkDir(root, func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		rel = filepath.ToSlash(rel)
		if e.IsDir() && (rel == ".git" || slices.Contains(ignored, rel)) {
			return filepath.SkipDir
		}
		d.paths[rel] = true
		if e.IsDir() || !slices.Contains(worded, path.Ext(rel)) {
			return nil
		}
		src, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil // gone since: another test's
		}
		d.texts = append(d.texts, text{rel, string(src)})
		return err
	})
	for _, t := range d.texts {
		if strings.HasSuffix(t.path, ".md") {
			d.headings[t.path] = anchors(t.src)
			d.lines[t.path] = strings.Join(strings.Fields(t.src), " ")
		}
		if t.path == papers {
			d.sections = sectionsOf(t.src)
		}
	}
	return d, err
}

var (
	link      = regexp.MustCompile(`\]\(([^()\s]*)\)`)
	blocks    = regexp.MustCompile("(?ms)^```.*?^```")
	code      = regexp.MustCompile("(?ms)^```.*?^```|`[^`\n]*`")
	heading   = regexp.MustCompile(`(?m)^#+ +(.*?) *$`)
	elsewhere = regexp.MustCompile(`^[a-z]+:`)
)

// anchors are those that GitHub gives the headings of a document.
func anchors(src string) []string {
	var out []string
	for _, h := range heading.FindAllStringSubmatch(blocks.ReplaceAllString(src, ""), -1) {
		out = append(out, strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
				return unicode.ToLower(r)
			}
			return -1
		}, h[1]))
	}
	return out
}

// checkLinks: a relative link leads to a file of the tree and, with an anchor, to one of
// its headings.
func (d *docs) checkLinks(t text) []Violation {
	var out []Violation
	src := code.ReplaceAllStringFunc(t.src, func(s string) string { // blanked, so that places stay
		return strings.Repeat("\n", strings.Count(s, "\n")) + strings.Repeat(" ", len(s)-strings.Count(s, "\n"))
	})
	for _, at := range link.FindAllStringSubmatchIndex(src, -1) {
		target := src[at[2]:at[3]]
		if elsewhere.MatchString(target) {
			continue
		}
		name, anchor, anchored := strings.Cut(target, "#")
		to := t.path
		if name != "" {
			to = path.Join(path.Dir(t.path), name)
		}
		switch {
		case !d.paths[to]:
			out = append(out, t.at(at[0], "the link %s leads to %s, which is not in the tree", target, to))
		case anchored && strings.HasSuffix(to, ".md") && !slices.Contains(d.headings[to], anchor):
			out = append(out, t.at(at[0], "the link %s: %s has no heading of that anchor", target, to))
		}
	}
	return out
}

// sectionsOf are the sections of the papers' page by number: "2", "2.1", and "7.6" for
// the sixth of the points of section 7, where that has no sections of its own.
func sectionsOf(src string) map[string]string {
	out := map[string]string{}
	heads := regexp.MustCompile(`(?m)^(##+) (\d+(?:\.\d+)?)\b`).FindAllStringSubmatchIndex(src, -1)
	for i, at := range heads {
		depth, end := at[3]-at[2], len(src)
		for _, next := range heads[i+1:] {
			if next[3]-next[2] <= depth {
				end = next[0]
				break
			}
		}
		out[src[at[4]:at[5]]] = src[at[0]:end]
	}
	points := regexp.MustCompile(`(?m)^(\d+)\. `)
	for number, body := range out {
		for _, p := range points.FindAllStringSubmatch(body, -1) {
			if n := number + "." + p[1]; !strings.Contains(number, ".") && out[n] == "" {
				out[n] = body
			}
		}
	}
	return out
}

// Between the words of a citation may be the end of a line of comments.
var (
	cited   = regexp.MustCompile(`(?i)\balgorithms\.md`)
	section = regexp.MustCompile(`^(?:,|and|to|[\s/#])*§(\d+(?:\.\d+)?)`)
	part    = regexp.MustCompile(`^(?:,|and|to|[\s/#])*(Text\b|Theorem \d+|Figure \d+|\([ivx]+\))`)
)

// checkPapers: a citation of the papers' page names sections that it has. A document may
// also name the page alone.
func (d *docs) checkPapers(t text) []Violation {
	var out []Violation
	if t.path == papers || strings.HasPrefix(t.path, "trainer/internal/archtest/") {
		return nil
	}
	for _, at := range cited.FindAllStringIndex(t.src, -1) {
		if name := t.src[at[0]:at[1]]; name != path.Base(papers) {
			out = append(out, t.at(at[0], "%s: the page is called %s", name, path.Base(papers)))
			continue
		}
		rest, number := t.src[at[1]:], ""
		for {
			if m := section.FindStringSubmatch(rest); m != nil {
				number, rest = m[1], rest[len(m[0]):]
				if d.sections[number] == "" {
					out = append(out, t.at(at[0], "%s has no §%s", papers, number))
				}
			} else if m := part.FindStringSubmatch(rest); m != nil && number != "" {
				rest = rest[len(m[0]):]
				if body := d.sections[number]; body != "" && !strings.Contains(body, m[1]) {
					out = append(out, t.at(at[0], "§%s of %s does not have %q", number, papers, m[1]))
				}
			} else {
				break
			}
		}
		if number == "" && !strings.HasSuffix(t.path, ".md") {
			out = append(out, t.at(at[0], "%s is cited without a section: say which, as %[1]s §2.1", path.Base(papers)))
		}
	}
	return out
}

// decisions are mentions of a room's decisions, with one of their titles or without.
var decisions = regexp.MustCompile("([\\w./]*\\bDESIGN\\.md)`?(?:,[\\s/#]*\"([^\"]+)\")?")

// checkDecisions: a DESIGN.md that is named is in the folder of the file or above, and
// has the words that are quoted.
func (d *docs) checkDecisions(t text) []Violation {
	var out []Violation
	if strings.HasPrefix(t.path, "trainer/internal/archtest/") {
		return nil
	}
	for _, at := range decisions.FindAllStringSubmatchIndex(t.src, -1) {
		name, title := t.src[at[2]:at[3]], ""
		if at[4] >= 0 {
			title = strings.Join(strings.FieldsFunc(t.src[at[4]:at[5]], func(r rune) bool { return unicode.IsSpace(r) || r == '/' || r == '#' }), " ")
		}
		if !strings.Contains(name, "/") && title == "" && strings.HasSuffix(t.path, ".md") {
			continue // documents speak of such files in general
		}
		to := d.above(path.Dir(t.path), name)
		switch {
		case to == "":
			out = append(out, t.at(at[0], "%s is not in this folder, nor in one above", name))
		case !strings.Contains(d.lines[to], title):
			out = append(out, t.at(at[0], "%s does not have %q", to, title))
		}
	}
	return out
}

// above is the file of that name in a folder, or in the nearest one above that has it.
func (d *docs) above(dir, name string) string {
	for {
		if to := path.Join(dir, name); d.paths[to] {
			return to
		}
		if dir == "." {
			return ""
		}
		dir = path.Dir(dir)
	}
}

func (t text) at(offset int, format string, args ...any) Violation {
	line := 1 + bytes.Count([]byte(t.src[:offset]), []byte("\n"))
	return Violation{t.path, line, fmt.Sprintf(format, args...)}
}
