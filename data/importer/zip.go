package importer

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// encryptedFlag marks an entry of a zip that only its password opens.
const encryptedFlag = 1

// unzip lists the pictures of the zip t.src.
func (t *tree) unzip(ctx context.Context) error {
	f, err := openRegular(ctx, t.src)
	if err != nil {
		return err
	}
	t.close = f.Close
	z, err := zip.NewReader(f, f.size)
	if err != nil {
		return fmt.Errorf("%s: %w: expected a directory or a whole zip file", t.src, err)
	}
	for _, e := range z.File {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		// The names of Windows' own zips have backslashes.
		name := strings.TrimPrefix(path.Clean("/"+strings.ReplaceAll(e.Name, `\`, "/")), "/")
		m := e.Mode()
		switch {
		case strings.HasSuffix(e.Name, "/") || m.IsDir():
		case hidden(name):
			t.apart.hidden.add(name)
		case !m.IsRegular():
			t.apart.pipes.add(name + ", a link or the like")
		case !isPicture(name):
			t.apart.addOther(name)
		default:
			t.files = append(t.files, leaf{name, func(ctx context.Context) (io.ReadCloser, error) { return openEntry(ctx, e) }})
		}
	}
	return nil
}

// openEntry opens a picture of a zip. Errors do not name it.
func openEntry(ctx context.Context, e *zip.File) (io.ReadCloser, error) {
	if e.UncompressedSize64 > maxEntry {
		return nil, tooLarge(nil, int64(min(e.UncompressedSize64, 1<<62)))
	}
	if e.Flags&encryptedFlag != 0 {
		return nil, errors.New("encrypted, expected a zip without a password")
	}
	r, err := e.Open()
	if err != nil {
		return nil, err
	}
	return entry{contextReader{ctx, r}, r}, nil
}

// entry is an entry of a zip that is being read.
type entry struct {
	contextReader
	io.Closer
}

// withoutPath takes the path off an error whose reader adds it.
func withoutPath(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}
