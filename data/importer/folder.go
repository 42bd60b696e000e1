package importer

import (
	"context"
	"errors"
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

// Folder opens any tree of JPEG and PNG pictures, a directory or a zip. A folder
// that all pictures lie in stands for the tree: zips mostly have one. If the
// top folders are all called train, val or test, they are the splits, and no
// picture may lie beside them; otherwise everything is the split train, less testPercent of the pictures,
// picked evenly, for the split test. The class is the first folder below that;
// with fewer than two such folders there are no classes. The pictures are mixed
// in a fixed order.
func Folder(ctx context.Context, src string, g Geometry, testPercent int) (*Set, error) {
	if testPercent < 0 || testPercent > 90 {
		return nil, fmt.Errorf("%d percent of test pictures, expected 0 to 90", testPercent)
	}
	t, err := openTree(ctx, src)
	if err != nil {
		return nil, err
	}
	s := &Set{Preprocessing: g.preprocessing("folder"), Notes: t.notes(), close: t.close}
	root := commonRoot(t.files)
	named := splitsNamed(t.files, root)
	if named {
		if err := outside(t.files, root); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", src, err), t.close())
		}
	}
	if named && testPercent > 0 {
		err := fmt.Errorf("%s: has folders for its splits, so no %d percent can be taken for the split test", src, testPercent)
		return nil, errors.Join(err, t.close())
	}
	if testPercent > 0 && len(t.files)*testPercent < 100 {
		err := fmt.Errorf("%s: %d percent of its pictures, %d in all, are none for the split test", src, testPercent, len(t.files))
		return nil, errors.Join(err, t.close())
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
	s.Schema, err = g.schema(ctx, t.files[0].open, classes)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", t.at(t.files[0].name), err), t.close())
	}
	for _, split := range []string{"train", "val", "test"} {
		if p := groups[split]; len(p) > 0 {
			s.Splits = append(s.Splits, t.split(split, g, p))
		}
	}
	return s, nil
}

// commonRoot is the folder, with a slash, whose folders are splits or classes: the
// first that all pictures lie in and that has more than one folder; "" is the tree.
func commonRoot(files []leaf) string {
	root := ""
	for !splitsNamed(files, root) {
		tops := topFolders(files, root)
		if len(tops) != 1 {
			break
		}
		only := root + tops[0] + "/"
		beside := slices.ContainsFunc(files, func(f leaf) bool { return !strings.HasPrefix(f.name, only) })
		if beside && !splitsNamed(files, only) { // beside splits it is a mistake, which is named
			break
		}
		root = only
	}
	return root
}

// topFolders are the names of the folders in root, sorted.
func topFolders(files []leaf, root string) []string {
	names := map[string]bool{}
	for _, f := range files {
		if rest, in := strings.CutPrefix(f.name, root); in {
			if top, _, ok := strings.Cut(rest, "/"); ok {
				names[top] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// splitsNamed says whether every folder in root is named for a split.
func splitsNamed(files []leaf, root string) bool {
	tops := topFolders(files, root)
	for _, top := range tops {
		if splitFolders[strings.ToLower(top)] == "" {
			return false
		}
	}
	return len(tops) > 0
}

// outside reports pictures that lie in no split: left out they would be missed, and as
// samples they would have to be of some split that nobody has said.
func outside(files []leaf, root string) error {
	var strays []string
	for _, f := range files {
		if rest, in := strings.CutPrefix(f.name, root); !in || !strings.Contains(rest, "/") {
			strays = append(strays, readable(f.name))
		}
	}
	if len(strays) == 0 {
		return nil
	}
	what := strays[0] + " lies"
	if n := len(strays) - 1; n > 0 {
		what = fmt.Sprintf("%s and %d more lie", strays[0], n)
	}
	var splits []string
	for _, top := range topFolders(files, root) {
		splits = append(splits, readable(root+top))
	}
	return fmt.Errorf("%s outside the folders of the splits (%s): move pictures into one of them, or away", what, strings.Join(splits, ", "))
}

// group labels the files and sorts them into splits. The class of a picture
// outside any class folder, where others have one, is ".".
func group(files []leaf, root string, named bool) (map[string][]picture, []string) {
	type found struct {
		split, class string
		leaf
	}
	var all []found
	names := map[string]bool{}
	for _, f := range files {
		rest, split := strings.TrimPrefix(f.name, root), "train"
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
	labels := map[string]int64{}
	for i, c := range classes {
		labels[c] = int64(i)
		classes[i] = readable(c)
	}
	groups := map[string][]picture{}
	for _, f := range all {
		label := int64(-1)
		if len(classes) > 0 {
			label = labels[f.class]
		}
		groups[f.split] = append(groups[f.split], picture{f.leaf, label})
	}
	return groups, classes
}
