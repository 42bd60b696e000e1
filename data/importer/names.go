package importer

import (
	"cmp"
	"fmt"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

func isPicture(name string) bool {
	switch strings.ToLower(path.Ext(name)) {
	case ".jpg", ".jpeg", ".png":
		return true
	}
	return false
}

// hidden says whether a file or folder, by any part of its path in an archive
// or below a folder, is none of the user's: hidden files, macOS's second halves
// of files (._a.png, __MACOSX), thumbnails of Windows and Synology.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		switch {
		case part == "" || part == "." || part == "..":
		case part[0] == '.', part == "__MACOSX", part == "@eaDir", strings.EqualFold(part, "Thumbs.db"), strings.EqualFold(part, "desktop.ini"):
			return true
		}
	}
	return false
}

// readable is a name for people, and for files that must be UTF-8: as it is or,
// if it is not UTF-8 or has control characters, in quotes with escapes, as in
// Go. Two names never become the same.
func readable(name string) string {
	if utf8.ValidString(name) && !strings.HasPrefix(name, `"`) && !strings.ContainsFunc(name, unicode.IsControl) {
		return name
	}
	return strconv.Quote(name)
}

// apart counts what is left alone in an archive or below a folder.
type apart struct {
	other  map[string]int // no pictures by name, by the end of the name
	hidden some
	pipes  some // and devices, sockets
	again  some // links to folders that are read anyway
}

// some are things of one kind.
type some struct {
	n     int
	first string // the name of one, as an example
}

func (s *some) add(name string) {
	if s.n++; s.n == 1 {
		s.first = readable(name)
	}
}

func (a *apart) addOther(name string) {
	if a.other == nil {
		a.other = map[string]int{}
	}
	ext := strings.ToLower(path.Ext(name))
	if len(ext) > 8 {
		ext = ""
	}
	a.other[ext]++
}

// note says what was left alone, in "3 hidden (such as x)" and the like; ""
// if nothing was.
func (a *apart) note() string {
	var parts []string
	if len(a.other) > 0 {
		parts = append(parts, a.others())
	}
	for _, k := range []struct {
		some
		what string
	}{{a.hidden, "hidden"}, {a.pipes, "neither file nor folder"}, {a.again, "linked to a folder that is read anyway"}} {
		if k.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s (such as %s)", k.n, k.what, k.first))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "left alone: " + strings.Join(parts, ", ")
}

// others says how many files are no pictures by name, and the most frequent
// ends of their names.
func (a *apart) others() string {
	total := 0
	var ends []string
	byCount := func(x, y string) int { return cmp.Or(a.other[y]-a.other[x], strings.Compare(x, y)) }
	for _, ext := range slices.SortedFunc(maps.Keys(a.other), byCount) {
		total += a.other[ext]
		if ext != "" && len(ends) < 3 {
			ends = append(ends, fmt.Sprintf("%d %s", a.other[ext], readable(ext)))
		}
	}
	text := fmt.Sprintf("%d not named .jpg, .jpeg or .png", total)
	if len(ends) > 0 {
		text += " (" + strings.Join(ends, ", ") + ")"
	}
	return text
}
