package importer

import (
	"archive/zip"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/ddp/philox"
)

// tree is a directory or a zip of pictures.
type tree struct {
	src   string
	fsys  fs.FS
	close func() error
	files []string // pictures, sorted
	other int      // files that are not pictures by name
}

// openTree lists the pictures of a directory or a zip.
func openTree(src string) (*tree, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, err
	}
	t := &tree{src: src, close: func() error { return nil }}
	if st.IsDir() {
		t.fsys = os.DirFS(src)
	} else {
		z, err := zip.OpenReader(src)
		if err != nil {
			return nil, fmt.Errorf("%s: %w: expected a directory or a whole zip file", src, err)
		}
		t.fsys, t.close = z, z.Close
	}
	err = fs.WalkDir(t.fsys, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return fmt.Errorf("%s: %w", t.at(name), err)
		case d.IsDir():
		case isPicture(name):
			t.files = append(t.files, name)
		default:
			t.other++
		}
		return nil
	})
	if err == nil && len(t.files) == 0 {
		err = fmt.Errorf("%s: no pictures, expected files named .jpg, .jpeg or .png", src)
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	slices.Sort(t.files)
	return t, nil
}

func isPicture(name string) bool {
	ext := strings.ToLower(path.Ext(name))
	return ext == ".jpg" || ext == ".jpeg" || ext == ".png"
}

// at is a file's name in messages.
func (t *tree) at(name string) string { return filepath.Join(t.src, filepath.FromSlash(name)) }

func (t *tree) read(name string) ([]byte, error) {
	b, err := fs.ReadFile(t.fsys, name)
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err // the message names the file already
	}
	return b, err
}

// picture is a file of a tree with its label.
type picture struct {
	name  string
	label int64
}

// split makes a Split of pictures.
func (t *tree) split(name string, g Geometry, pictures []picture) Split {
	return Split{Name: name, Count: int64(len(pictures)), Items: func(yield func(Item, error) bool) {
		for _, p := range pictures {
			item := Item{Name: t.at(p.name), Label: p.label, Pixels: func() ([]byte, error) {
				b, err := t.read(p.name)
				if err != nil {
					return nil, err
				}
				return g.decode(b)
			}}
			if !yield(item, nil) {
				return
			}
		}
	}}
}

// mixSub names the draws that mix a tree's pictures; see loader for the other
// uses of philox.DataOrder.
const mixSub = 16

// mix permutes pictures in a fixed way, so that the classes, sorted in the
// tree, are spread over the shards.
func mix(pictures []picture, salt int) []picture {
	name := philox.Name{Purpose: philox.DataOrder, Sub: mixSub, Sample: uint32(salt)}
	out := make([]picture, len(pictures))
	for i, k := range name.Perm(len(pictures)) {
		out[i] = pictures[k]
	}
	return out
}
