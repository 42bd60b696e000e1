package importer

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"syscall"
)

// inode is what a folder is, whatever links lead to it.
type inode struct{ dev, ino uint64 }

// walker lists the pictures below a folder. Links to folders are followed after
// everything else, in order of their names, and only to folders that were not
// read before: so every folder is read once, under its own name if it has one
// in the tree, and links in circles end.
type walker struct {
	ctx   context.Context // of one call of tree.walk
	t     *tree
	read  map[inode]bool
	links []string // to folders, relative
}

// walk lists the pictures below the folder t.src.
func (t *tree) walk(ctx context.Context) error {
	w := &walker{ctx: ctx, t: t, read: map[inode]bool{}}
	if err := w.folder(""); err != nil {
		return err
	}
	for len(w.links) > 0 {
		link := w.links[0]
		w.links = w.links[1:]
		if err := w.folder(link); err != nil {
			return err
		}
	}
	return nil
}

// folder lists a folder and those in it, links excepted.
func (w *walker) folder(rel string) error {
	dir := filepath.Join(w.t.src, rel)
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if s, ok := st.Sys().(*syscall.Stat_t); ok {
		id := inode{uint64(s.Dev), s.Ino} //nolint:unconvert // not 64 bits everywhere
		if w.read[id] {
			w.t.apart.again.add(rel)
			return nil
		}
		w.read[id] = true
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if w.ctx.Err() != nil {
			return context.Cause(w.ctx)
		}
		if err := w.entry(path.Join(rel, e.Name()), e.Type()); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(rel string, m fs.FileMode) error {
	name := path.Base(rel)
	switch {
	case hidden(name):
		w.t.apart.hidden.add(rel)
		return nil
	case m&fs.ModeSymlink != 0:
		st, err := os.Stat(filepath.Join(w.t.src, rel))
		if err == nil && st.IsDir() {
			w.links = append(w.links, rel)
			return nil
		}
		if m = 0; err == nil { // a link to nowhere is a picture that cannot be read
			m = st.Mode().Type()
		}
	}
	switch {
	case m.IsDir():
		return w.folder(rel)
	case !m.IsRegular():
		w.t.apart.pipes.add(rel + ", " + kind(m))
	case !isPicture(name):
		w.t.apart.addOther(name)
	default:
		full := filepath.Join(w.t.src, rel)
		w.t.files = append(w.t.files, leaf{rel, func(ctx context.Context) (io.ReadCloser, error) { return openPicture(ctx, full) }})
	}
	return nil
}

// openPicture opens a file of a tree. Errors do not name it.
func openPicture(ctx context.Context, full string) (io.ReadCloser, error) {
	f, err := openRegular(ctx, full)
	if err != nil {
		return nil, withoutPath(err)
	}
	if f.size > maxEntry {
		return nil, tooLarge(f.Close(), f.size)
	}
	return f, nil
}

// tooLarge is the error of a picture of so many bytes.
func tooLarge(closed error, size int64) error {
	if closed != nil {
		return closed
	}
	return fmt.Errorf("%s, expected at most %s for one picture as it is stored", byteText(float64(size)), byteText(maxEntry))
}
