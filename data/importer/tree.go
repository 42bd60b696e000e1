package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/ddp/philox"
)

// tree is a directory or a zip of pictures.
type tree struct {
	src   string
	close func() error
	files []leaf // pictures, sorted by name
	apart apart
}

// leaf is a picture of a tree.
type leaf struct {
	name string // its path in the tree, with slashes
	open encoded
}

// openTree lists the pictures of a directory or a zip.
func openTree(ctx context.Context, src string) (*tree, error) {
	st, err := os.Stat(src)
	if err != nil {
		return nil, fmt.Errorf("--src: %w; give the directory of the pictures, or a zip of them", err)
	}
	t := &tree{src: src, close: func() error { return nil }}
	if st.IsDir() {
		err = t.walk(ctx)
	} else {
		err = t.unzip(ctx)
	}
	if err == nil && len(t.files) == 0 {
		err = fmt.Errorf("%s: no pictures, expected files named .jpg, .jpeg or .png", src)
		if note := t.apart.note(); note != "" {
			err = fmt.Errorf("%w; %s", err, note)
		}
	}
	if err != nil {
		return nil, errors.Join(err, t.close())
	}
	slices.SortFunc(t.files, func(a, b leaf) int { return strings.Compare(a.name, b.name) })
	return t, nil
}

// notes are those of the Set.
func (t *tree) notes() []string {
	if note := t.apart.note(); note != "" {
		return []string{t.src + ": " + note}
	}
	return nil
}

// at is a file's name in messages.
func (t *tree) at(name string) string {
	return readable(filepath.Join(t.src, filepath.FromSlash(name)))
}

// picture is a file of a tree with its label.
type picture struct {
	leaf
	label int64
}

// split makes a Split of pictures.
func (t *tree) split(name string, g Geometry, pictures []picture) Split {
	items := reading(func(_ context.Context, _ *budget, give func(Item) error) error {
		for _, p := range pictures {
			values := func(ctx context.Context, b *budget) ([]byte, error) { return g.decode(ctx, b, p.open) }
			if err := give(Item{Name: t.at(p.name), Label: p.label, Values: values}); err != nil {
				return err
			}
		}
		return nil
	})
	return Split{Name: name, Count: int64(len(pictures)), Items: items}
}

// mix permutes pictures in a fixed way, so that the classes, sorted in the
// tree, are spread over the shards.
func mix(pictures []picture, salt int) []picture {
	name := philox.Name{Purpose: philox.DataOrder, Sub: philox.DataOrderImport, Sample: uint32(salt)}
	out := make([]picture, len(pictures))
	for i, k := range name.Perm(len(pictures)) {
		out[i] = pictures[k]
	}
	return out
}
