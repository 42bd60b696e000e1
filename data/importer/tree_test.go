package importer

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"image/color"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ebtrain/data"
)

// names are the pictures of a tree.
func (t *tree) names() []string {
	var names []string
	for _, f := range t.files {
		names = append(names, f.name)
	}
	return names
}

func dot(t testing.TB) []byte { return pngOf(t, plain(4, 4, color.White)) }

// What other programs leave beside pictures is left alone and counted, in a
// folder and in a zip.
func TestTreeLeavesHiddenFiles(t *testing.T) {
	junk := []byte("\x00\x05\x16\x07")
	files := []file{
		{"cat/a.png", dot(t)}, {"dog/b.png", dot(t)}, {"dog/notes.txt", nil},
		{"__MACOSX/cat/._a.png", junk}, {"__MACOSX/bird/._b.png", junk}, {"cat/._a.png", junk},
		{".DS_Store", junk}, {"cat/Thumbs.db", junk}, {".thumbnails/a.png", junk},
	}
	dir := t.TempDir()
	for _, f := range files {
		put(t, filepath.Join(dir, f.name), f.body)
	}
	for src, hidden := range map[string]int{
		dir: 5, // of __MACOSX and .thumbnails only the folder is seen
		put(t, filepath.Join(t.TempDir(), "a.zip"), zipOf(t, files...)): 6,
	} {
		s, err := Folder(t.Context(), src, Geometry{}, 0)
		_, x := imported(t, s, err, Options{})
		if x.Splits["train"].Samples != 2 || !slices.Equal(s.Schema.Classes, []string{"cat", "dog"}) {
			t.Errorf("%s: %d samples of %v", src, x.Splits["train"].Samples, s.Schema.Classes)
		}
		tree, err := openTree(t.Context(), src)
		if err != nil {
			t.Fatal(err)
		}
		if tree.apart.hidden.n != hidden || tree.apart.other[".txt"] != 1 || len(s.Notes) != 1 {
			t.Errorf("%s: %+v, notes %v", src, tree.apart, s.Notes)
		}
		if err := tree.close(); err != nil {
			t.Error(err)
		}
	}
}

// Links to folders are followed once, whatever circles they make; folders keep
// the name that they have in the tree.
func TestTreeFollowsLinksOnce(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, "cat", "a.png"), dot(t))
	put(t, filepath.Join(outside, "b.png"), dot(t))
	put(t, filepath.Join(outside, "deep", "c.png"), dot(t))
	for link, target := range map[string]string{
		"dog": outside, "dog2": outside, "acat": "cat", "cat/up": "..", "self": ".",
		"cat/d.png": "a.png", "cat/e.png": "nowhere",
	} {
		if err := os.Symlink(target, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(dir, filepath.Join(outside, "deep", "back")); err != nil {
		t.Fatal(err)
	}
	tree, err := openTree(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"cat/a.png", "cat/d.png", "cat/e.png", "dog/b.png", "dog/deep/c.png"}
	if got := tree.names(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if tree.apart.again.n != 5 {
		t.Errorf("%d links again (%s), want 5", tree.apart.again.n, tree.apart.again.first)
	}
	if _, err := tree.files[2].open(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a link to nowhere: %v", err)
	}
}

// Pipes and sockets are no pictures, whatever their names; nothing waits for
// them.
func TestOnlyRegularFiles(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "b.png"), dot(t))
	pipe := filepath.Join(dir, "a.png")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(pipe, filepath.Join(dir, "c.png")); err != nil {
		t.Fatal(err)
	}
	s, err := Folder(t.Context(), dir, Geometry{}, 0)
	_, x := imported(t, s, err, Options{})
	if x.Splits["train"].Samples != 1 || !strings.Contains(strings.Join(s.Notes, ""), "2 neither file nor folder (such as a.png, a named pipe)") {
		t.Errorf("%d samples, notes %v", x.Splits["train"].Samples, s.Notes)
	}
	open := map[string]func(path string) error{
		"folder": func(p string) error { _, err := Folder(t.Context(), p, Geometry{}, 0); return err },
		"celeba": func(p string) error {
			_, err := CelebA(t.Context(), dir, p, Geometry{Size: data.Square(8)})
			return err
		},
		"wds": func(p string) error { _, err := WebDataset(t.Context(), []string{p}, Geometry{}); return err },
		"mnist": func(p string) error {
			link := filepath.Join(t.TempDir(), "train-labels-idx1-ubyte")
			if err := errors.Join(os.Symlink(p, link), os.Symlink(p, filepath.Join(filepath.Dir(link), "train-images-idx3-ubyte"))); err != nil {
				return err
			}
			_, err := MNIST(t.Context(), filepath.Dir(link), Geometry{})
			return err
		},
		"cifar10": func(p string) error {
			link := filepath.Join(t.TempDir(), "data_batch_1.bin")
			if err := os.Symlink(p, link); err != nil {
				return err
			}
			s, err := CIFAR10(t.Context(), []string{link}, Geometry{})
			if err != nil {
				return err
			}
			_, err = Run(t.Context(), s, Options{Out: filepath.Join(t.TempDir(), "out")})
			return err
		},
	}
	for name, f := range open {
		if err := f(pipe); err == nil || !strings.Contains(err.Error(), "a named pipe, expected a regular file") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := openRegular(t.Context(), "/dev/null"); err == nil || !strings.Contains(err.Error(), "a device") {
		t.Errorf("/dev/null: %v", err)
	}
}

// Names that are not UTF-8, and those that look like their quoted form, are
// classes of their own.
func TestNamesThatAreNotText(t *testing.T) {
	dir := t.TempDir()
	var entries []file
	for _, class := range []string{"caf\xe9", "caf\xe8", "tea", "\x82\xa0"} {
		name := class + "/\xff.png"
		if err := os.MkdirAll(filepath.Join(dir, class), 0o755); err != nil {
			t.Skipf("a file system of UTF-8 names only: %v", err)
		}
		put(t, filepath.Join(dir, name), dot(t))
		entries = append(entries, file{name, dot(t)})
	}
	want := []string{"tea", `"\x82\xa0"`, `"caf\xe8"`, `"caf\xe9"`}
	slices.Sort(want)
	for _, src := range []string{dir, put(t, filepath.Join(t.TempDir(), "a.zip"), zipOf(t, entries...))} {
		s, err := Folder(t.Context(), src, Geometry{}, 0)
		_, x := imported(t, s, err, Options{})
		got := slices.Sorted(slices.Values(x.Schema.Classes))
		if x.Splits["train"].Samples != 4 || !slices.Equal(got, want) {
			t.Errorf("%s: %d samples of %v, want %v", src, x.Splits["train"].Samples, got, want)
		}
	}
}

// Zips as Windows writes them, with folders as entries, a password, a size that
// is too large, and one that is a lie.
func TestZip(t *testing.T) {
	src := put(t, filepath.Join(t.TempDir(), "a.zip"), zipOf(t, file{"top/", nil}, file{`top\cat\a.png`, dot(t)}, file{`top\dog\b.png`, dot(t)}))
	tree, err := openTree(t.Context(), src)
	if err != nil {
		t.Fatal(err)
	}
	if got := tree.names(); !slices.Equal(got, []string{"top/cat/a.png", "top/dog/b.png"}) {
		t.Errorf("%v", got)
	}
	if err := tree.close(); err != nil {
		t.Error(err)
	}
	for _, tt := range []struct {
		name   string
		header zip.FileHeader
		want   string
	}{
		{"too large", zip.FileHeader{UncompressedSize64: 300 << 20}, "300 MiB, expected at most 256 MiB"},
		{"immense", zip.FileHeader{UncompressedSize64: 1 << 63}, "expected at most 256 MiB"},
		{"password", zip.FileHeader{Flags: encryptedFlag, UncompressedSize64: 10}, "encrypted"},
		{"method", zip.FileHeader{Method: 99, UncompressedSize64: 10}, "unsupported compression"},
		{"other checksum", zip.FileHeader{UncompressedSize64: uint64(len(dot(t))), CRC32: 7}, "zip: checksum error"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := tt.header
			h.Name, h.CompressedSize64 = "a.png", uint64(len(dot(t)))
			var b bytes.Buffer
			w := zip.NewWriter(&b)
			e, err := w.CreateRaw(&h)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := e.Write(dot(t)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			tree, err := openTree(t.Context(), put(t, filepath.Join(t.TempDir(), "a.zip"), b.Bytes()))
			if err != nil {
				t.Fatal(err)
			}
			_, err = Geometry{Size: data.Square(8)}.decode(t.Context(), newBudget(1<<20), tree.files[0].open)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			if err := tree.close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// An entry of a tar that is too large is not read; what follows is.
func TestTarEntryTooLarge(t *testing.T) {
	var head bytes.Buffer
	w := tar.NewWriter(&head)
	if err := w.WriteHeader(&tar.Header{Name: "0.png", Size: maxEntry + 512, Typeflag: tar.TypeReg}); err != nil {
		t.Fatal(err)
	}
	rest := tarOf(t, file{"._1.png", []byte("\x00\x05")}, file{"1.png", dot(t)})
	b := newBudget(1 << 20)
	for _, r := range []*tarReader{{budget: b}, {counting: &tally{}}} {
		var got []tarSample
		for s, err := range r.group(t.Context(), io.MultiReader(&head, io.LimitReader(zeros{}, maxEntry+512), bytes.NewReader(rest))) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, s)
		}
		if len(got) != 2 || got[0].bad == nil || !strings.Contains(got[0].bad.Error(), "256 MiB") || got[1].key != "1" || got[1].bad != nil {
			t.Errorf("samples %v", got)
		}
		head.Reset()
		if err := tar.NewWriter(&head).WriteHeader(&tar.Header{Name: "0.png", Size: maxEntry + 512, Typeflag: tar.TypeReg}); err != nil {
			t.Fatal(err)
		}
	}
}

// What is compressed has a checksum at its end, behind the end of the tar: a byte that
// has changed, here that of a class, is found, by a decoder that may be ahead of the
// entries. What follows the checksum is left alone.
func TestTarChecksum(t *testing.T) {
	body := tarOf(t, file{"0.png", dot(t)}, file{"0.cls", []byte("3\n")}, file{"1.png", dot(t)}, file{"1.cls", []byte("1\n")})
	var stored bytes.Buffer
	w, err := gzip.NewWriterLevel(&stored, gzip.NoCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, raw := range map[string][]byte{"a.tar.gz": stored.Bytes(), "a.tar.zst": zst(t, body)} {
		raw = append(raw, make([]byte, 512)...)
		s, err := WebDataset(t.Context(), []string{put(t, filepath.Join(t.TempDir(), name), raw)}, Geometry{})
		if err != nil || s.Splits[0].Count != 2 {
			t.Fatalf("%s, whole: %v", name, err)
		}
		at := bytes.Index(raw, []byte("3\n"))
		if at < 0 {
			t.Fatalf("%s: the class does not stand as it is", name)
		}
		raw[at] = '2'
		_, err = WebDataset(t.Context(), []string{put(t, filepath.Join(t.TempDir(), name), raw)}, Geometry{})
		if err == nil || !strings.Contains(err.Error(), name+": ") || !strings.Contains(err.Error(), "damaged, so copy or download it again") {
			t.Errorf("%s, one byte changed: %v", name, err)
		}
	}
}

// A tar that was cut short, wherever, is no data set: archive/tar takes an end between two
// entries, or in what fills up the last block of one, for that of the tar.
func TestTarCut(t *testing.T) {
	body := tarOf(t, file{"0.png", dot(t)}, file{"0.cls", []byte("3")}, file{"1.png", dot(t)}, file{"1.cls", []byte("1")})
	read := func(n int) (samples int, err error) {
		for _, e := range (&tarReader{budget: newBudget(1 << 20)}).group(t.Context(), bytes.NewReader(body[:n])) {
			if err = e; err != nil {
				break
			}
			samples++
		}
		return samples, err
	}
	const ends = 512 // of the two empty blocks one is enough
	for n := range len(body) {
		samples, err := read(n)
		if n == len(body)-ends && err == nil && samples == 2 {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), "cut short, so copy or download it again") {
			t.Fatalf("cut at %d of %d: %d samples, error %v", n, len(body), samples, err)
		}
	}
}

// Links in a tar, into which programs turn what they find twice, and hidden files are left
// alone as those in a zip are, and not without a word.
func TestLinksInTars(t *testing.T) {
	links := func(first ...file) string {
		var b bytes.Buffer
		w := tar.NewWriter(&b)
		for _, h := range []tar.Header{
			{Name: "b/", Typeflag: tar.TypeDir}, {Name: "b/1.png", Linkname: "0.png", Typeflag: tar.TypeLink}, {Name: "b/2.png", Linkname: "../0.png", Typeflag: tar.TypeSymlink}, {Name: "b/._0.png", Typeflag: tar.TypeReg},
		} {
			if err := w.WriteHeader(&h); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		files := tarOf(t, first...)
		return put(t, filepath.Join(t.TempDir(), "a.tar"), append(files[:len(files)-1024], b.Bytes()...)) // without its end
	}
	const want = "left alone: 1 hidden (such as b/._0.png), 2 neither file nor folder (such as b/1.png, a link or the like)"
	s, err := WebDataset(t.Context(), []string{links(file{"0.png", dot(t)})}, Geometry{})
	if err != nil || s.Splits[0].Count != 1 || !slices.Equal(s.Notes, []string{want}) {
		t.Errorf("%v, notes %q", err, s.Notes)
	}
	if _, err := WebDataset(t.Context(), []string{links()}, Geometry{}); err == nil || !strings.Contains(err.Error(), "no samples, expected pictures named like 000000.jpg; "+want) {
		t.Errorf("links alone: %v", err)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// Everything that reads originals ends with its context.
func TestOpenEndsWithContext(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	stop(why)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a.png"), dot(t))
	put(t, filepath.Join(dir, "b.tar"), tarOf(t, file{"a.png", dot(t)}))
	for name, f := range map[string]func() (*Set, error){
		"folder": func() (*Set, error) { return Folder(ctx, dir, Geometry{}, 0) },
		"zip": func() (*Set, error) {
			return Folder(ctx, put(t, filepath.Join(dir, "a.zip"), zipOf(t, file{"a.png", dot(t)})), Geometry{}, 0)
		},
		"wds":   func() (*Set, error) { return WebDataset(ctx, []string{dir}, Geometry{}) },
		"mnist": func() (*Set, error) { return MNIST(ctx, mnistDir(t, 3), Geometry{}) },
	} {
		if _, err := f(); !errors.Is(err, why) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
