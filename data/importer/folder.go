package importer

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// splitFolders are the folder names that stand for splits.
var splitFolders = map[string]string{
	"train": "train", "training": "train",
	"val": "val", "valid": "val", "validation": "val",
	"test": "test", "testing": "test",
}

// Folder opens any tree of JPEG and PNG pictures, a directory or a zip. If its
// top folders are all called train, val or test, they are the splits;
// otherwise everything is the split train, less testPercent of the pictures,
// picked evenly, for the split test. The class is the first folder below that;
// with fewer than two such folders there are no classes. The pictures are mixed
// in a fixed order.
func Folder(src string, g Geometry, testPercent int) (*Set, error) {
	if testPercent < 0 || testPercent > 90 {
		return nil, fmt.Errorf("%d percent of test pictures, expected 0 to 90", testPercent)
	}
	t, err := openTree(src)
	if err != nil {
		return nil, err
	}
	s := &Set{Preprocessing: g.preprocessing("folder"), close: t.close}
	if t.other > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%s: %d files are not named .jpg, .jpeg or .png and are left alone", src, t.other))
	}
	root := commonRoot(t.files)
	named := splitsNamed(t.files, root)
	if named && testPercent > 0 {
		return nil, fmt.Errorf("%s: has folders for its splits, so no %d percent can be taken for the split test", src, testPercent)
	}
	groups, classes := group(t.files, root, named)
	for i, split := range []string{"train", "val", "test"} {
		if p := groups[split]; len(p) > 0 {
			groups[split] = mix(p, i)
		}
	}
	if k := len(t.files) * testPercent / 100; k > 0 {
		groups["test"], groups["train"] = groups["train"][:k], groups["train"][k:]
	}
	for _, split := range []string{"train", "val", "test"} {
		if p := groups[split]; len(p) > 0 {
			s.Splits = append(s.Splits, t.split(split, g, p))
		}
	}
	s.Schema, err = g.schema(func() ([]byte, error) { return t.read(t.files[0]) }, classes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", t.at(t.files[0]), err)
	}
	return s, nil
}

// commonRoot is the folder, with a slash, that all files lie in when a zip or
// directory holds just one folder whose folders are splits, and "" otherwise.
func commonRoot(files []string) string {
	top, _, ok := strings.Cut(files[0], "/")
	if !ok {
		return ""
	}
	root := top + "/"
	for _, f := range files {
		if !strings.HasPrefix(f, root) {
			return ""
		}
	}
	if splitsNamed(files, root) {
		return root
	}
	return ""
}

// splitsNamed says whether every file lies in a folder named for a split.
func splitsNamed(files []string, root string) bool {
	for _, f := range files {
		top, _, ok := strings.Cut(strings.TrimPrefix(f, root), "/")
		if !ok || splitFolders[strings.ToLower(top)] == "" {
			return false
		}
	}
	return true
}

// group labels the files and sorts them into splits. The class of a picture
// outside any class folder, where others have one, is ".".
func group(files []string, root string, named bool) (map[string][]picture, []string) {
	type found struct{ split, class, name string }
	var all []found
	names := map[string]bool{}
	for _, f := range files {
		rest, split := strings.TrimPrefix(f, root), "train"
		if named {
			top, below, _ := strings.Cut(rest, "/")
			split, rest = splitFolders[strings.ToLower(top)], below
		}
		class, _, ok := strings.Cut(rest, "/")
		if !ok {
			class = "."
		}
		names[class] = true
		all = append(all, found{split, class, f})
	}
	classes := slices.Sorted(maps.Keys(names))
	if len(classes) < 2 {
		classes = nil
	}
	groups := map[string][]picture{}
	for _, f := range all {
		label := int64(slices.Index(classes, f.class)) // −1 without classes
		groups[f.split] = append(groups[f.split], picture{f.name, label})
	}
	return groups, classes
}
