package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ebtrain/data/dataset"
	"ebtrain/data/shard"
	"ebtrain/launch/cliflag"
)

// TestMain lets the test binary be mkshards itself, for tests of signals.
func TestMain(m *testing.M) {
	if os.Getenv("MKSHARDS_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

// try runs mkshards in this process.
func try(t *testing.T, args ...string) (code int, stdout, stderr string, err error) {
	t.Helper()
	var out, errOut bytes.Buffer
	err = run(t.Context(), args, &out, &errOut)
	return cliflag.Exit("mkshards", err, io.Discard), out.String(), errOut.String(), err
}

func put(t *testing.T, path string, b []byte) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func picture(t *testing.T, side int) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSynthInfoVerify(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	code, out, _, err := try(t, "synth", "-size", "8", "-train=300", "--val", "20", "--test", "10", "--out", dir)
	if code != 0 || !strings.Contains(out, "train       300 samples in 1 shard, ") || !strings.Contains(out, " KiB raw)\n") {
		t.Fatalf("code %d, %v, output %q", code, err, out)
	}
	if s, err := dataset.Open(dir, "test"); err != nil || s.Len() != 10 {
		t.Errorf("the split test: %v, %v", s, err)
	}
	for _, tt := range []struct{ command, want string }{{"info", "digest of val: sha256:"}, {"verify", "everything is as the index says"}} {
		if code, out, _, err := try(t, tt.command, dir); code != 0 || !strings.Contains(out, tt.want) {
			t.Errorf("%s: code %d, %v, output %q", tt.command, code, err, out)
		}
	}
	if code, _, _, err := try(t, "synth", "--size", "16", "--out", dir); code != 1 || !strings.Contains(err.Error(), "--force") {
		t.Errorf("over an existing set: code %d, %v", code, err)
	}
	if code, _, _, err := try(t, "synth", "--size", "16", "--train", "9", "--out", dir, "--force"); code != 0 {
		t.Errorf("with --force: code %d, %v", code, err)
	}
}

// Of the last lines of --src those of val come first, and then those of test.
func TestTextSplits(t *testing.T) {
	root := t.TempDir()
	src, dir := filepath.Join(root, "lines"), filepath.Join(root, "set")
	put(t, src, []byte(strings.Repeat("a b\n", 9)))
	code, out, _, err := try(t, "text", "--src", src, "--val", "1", "--test", "3", "--out", dir)
	if code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	for split, n := range map[string]string{"train": "5 samples", "val": "1 sample", "test": "3 samples"} {
		if want := fmt.Sprintf("  %-6s        %s in 1 shard", split, n); !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestTextLimit: the first lines of a file are imported as a file of these lines is, words and
// lengths of batches included. One that is left out is one of them.
func TestTextLimit(t *testing.T) {
	root := t.TempDir()
	first := strings.Repeat("a b\n", 20) + "\n" + strings.Repeat("a b c d\n", 9)
	var sets [2]*shard.Index
	for i, text := range []string{first, first + strings.Repeat("later words of quite a long sentence\n", 30)} {
		src, dir := filepath.Join(root, fmt.Sprint("lines", i)), filepath.Join(root, fmt.Sprint("set", i))
		put(t, src, []byte(text))
		if code, _, _, err := try(t, "text", "--src", src, "--test", src, "--limit", "30", "--on-bad", "skip", "--out", dir); code != 0 {
			t.Fatalf("code %d, %v", code, err)
		}
		var err error
		if sets[i], err = shard.ReadIndex(dir); err != nil {
			t.Fatal(err)
		}
		for j := range sets[i].Skipped {
			sets[i].Skipped[j].Name = "" // the file's is another
		}
	}
	if n := sets[0].Splits["train"].Samples; n != 29 || !reflect.DeepEqual(sets[0].Schema, sets[1].Schema) || !reflect.DeepEqual(sets[0].Splits, sets[1].Splits) || !reflect.DeepEqual(sets[0].Skipped, sets[1].Skipped) {
		t.Errorf("%d sentences; of the first lines\n%+v\nof a file of them\n%+v", n, sets[1], sets[0])
	}
}

// Which classes there are is said, so that a folder that is none of them is seen.
func TestInfoNamesClasses(t *testing.T) {
	for i, tt := range []struct {
		classes []string
		want    string
	}{
		{[]string{".", "cat", "dog"}, "3 classes: ., cat, dog\n"},
		{strings.Split("abcdefghijk", ""), "11 classes: a, b, c, d, e, f, g, h, i, j, …\n"},
		{nil, "no classes\n"},
	} {
		x := &shard.Index{Schema: shard.Schema{Classes: tt.classes}}
		var out strings.Builder
		if err := describe(&out, "set", x); err != nil || !strings.Contains(out.String(), tt.want) {
			t.Errorf("%d: %q, %v; want %q", i, out.String(), err, tt.want)
		}
	}
}

// TestSynthWithoutSplit: a split of no samples is left out, not given the default
// number.
func TestSynthWithoutSplit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if code, out, _, err := try(t, "synth", "--size", "8", "--train", "20", "--val", "0", "--test", "0", "--out", dir); code != 0 || strings.Contains(out, "val") {
		t.Errorf("code %d, %v, output %q", code, err, out)
	}
	if _, err := dataset.Open(dir, "val"); err == nil {
		t.Error("there is a split val")
	}
}

func TestHelpTeaches(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"--help"}, {"-h"}, {"-help"}} {
		if code, out, _, err := try(t, args...); code != 0 || !strings.Contains(out, "mkshards celeba") {
			t.Errorf("%v: code %d, %v, output %q", args, code, err, out)
		}
	}
	for _, c := range commands() {
		code, out, _, err := try(t, c.name, "--help")
		if code != 0 || !strings.Contains(out, "  mkshards "+c.name) || !strings.Contains(out, "--out") {
			t.Errorf("%s --help: code %d, %v: want an example in it, a line \"  mkshards %s … --out …\"; it is\n%s", c.name, code, err, c.name, out)
		}
		if code, same, _, err := try(t, "help", c.name); code != 0 || same != out {
			t.Errorf("help %s: code %d, %v, output %q, want that of %s --help", c.name, code, err, same, c.name)
		}
	}
	for _, c := range commands() {
		if !strings.Contains(help, "\n  mkshards "+c.name+" ") {
			t.Errorf("mkshards --help has no example of %s", c.name)
		}
	}
	if _, _, _, err := try(t, "help", "imagenet"); err == nil || !strings.HasPrefix(err.Error(), `unknown command "imagenet"`) {
		t.Errorf("help imagenet: %v", err)
	}
}

// Every kind of bad input: one sentence, the right exit code, nothing left.
// Help that cannot be written is no mistake on the command line.
func TestHelpToFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err) // every Linux has it
	}
	defer func() { _ = full.Close() }() // nothing is in it
	for _, args := range [][]string{{"--help"}, {"--version"}, {"verify", "--help"}, {"info", "--help"}, {"folder", "--help"}, {"text", "--version"}} {
		err := run(t.Context(), args, full, io.Discard)
		if _, usage := errors.AsType[*cliflag.UsageError](err); usage || !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("mkshards %q: %v", args, err)
		}
	}
}

func TestBadInput(t *testing.T) {
	src := t.TempDir()
	folder := filepath.Join(src, "folder")
	put(t, filepath.Join(folder, "a.png"), picture(t, 16))
	put(t, filepath.Join(folder, "b.png"), picture(t, 16)[:50])
	good := filepath.Join(src, "good")
	put(t, filepath.Join(good, "a.png"), picture(t, 16))
	put(t, filepath.Join(good, "b.png"), picture(t, 12))
	link := filepath.Join(src, "link")
	nowhere := filepath.Join(src, "nowhere")
	if err := errors.Join(os.Symlink("good", link), os.Symlink("none", nowhere)); err != nil {
		t.Fatal(err)
	}
	text := filepath.Join(src, "text")
	put(t, filepath.Join(text, "a.jpg"), []byte("hello, I am no picture"))
	empty := filepath.Join(src, "empty")
	put(t, filepath.Join(empty, "notes.txt"), nil)
	bare := filepath.Join(src, "bare") // pictures without a byte
	put(t, filepath.Join(bare, "a.jpg"), nil)
	celeba := filepath.Join(src, "celeba")
	put(t, filepath.Join(celeba, "000001.png"), picture(t, 100))
	odd := filepath.Join(src, "odd")
	put(t, filepath.Join(odd, "me.png"), picture(t, 100))
	list := put(t, filepath.Join(src, "list.txt"), []byte("000002.jpg 0\r\n"))
	badList := put(t, filepath.Join(src, "bad.txt"), []byte("000001.png 0\r\n000002.jpg 7\r\n"))
	cifar := filepath.Join(src, "cifar")
	put(t, filepath.Join(cifar, "data_batch_1.bin"), make([]byte, 3073+100))
	label := filepath.Join(src, "label")
	put(t, filepath.Join(label, "data_batch_1.bin"), bytes.Repeat([]byte{200}, 3073))
	nothing := filepath.Join(src, "nothing")
	put(t, filepath.Join(nothing, "data_batch_1.bin"), nil)
	idx := func(name string, images, labels []byte) string {
		dir := filepath.Join(src, name)
		put(t, filepath.Join(dir, "train-images-idx3-ubyte"), images)
		put(t, filepath.Join(dir, "train-labels-idx1-ubyte"), labels)
		return dir
	}
	images := append([]byte{0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 1}, 5, 6)
	labels := []byte{0, 0, 8, 1, 0, 0, 0, 2, 0, 1}
	onlyImages := filepath.Join(src, "only")
	put(t, filepath.Join(onlyImages, "train-images-idx3-ubyte"), images)
	tarFile := put(t, filepath.Join(src, "x.tar"), bytes.Repeat([]byte("junk "), 400))
	gzFile := put(t, filepath.Join(src, "y.tar.gz"), []byte{0x1f, 0x8b, 8, 0, 0})
	zipFile := put(t, filepath.Join(src, "x.zip"), []byte("PK, but not really"))
	file := put(t, filepath.Join(src, "file"), nil)
	taken := filepath.Join(src, "taken")
	put(t, filepath.Join(taken, "thesis.tex"), []byte("years of work"))

	tests := []struct {
		name string
		args string // --out is added unless given
		code int
		want string
	}{
		{"no command", "", 2, "no command"},
		{"a flag before the command", "--src a folder", 2, "--src: the command comes first, as in mkshards folder --src"},
		{"unknown command", "imagenet", 2, `unknown command "imagenet"`},
		{"unknown flag", "mnist --sauce x", 2, "unknown flag --sauce"},
		{"flag without value", "mnist --src", 2, "--src needs a value: want text"},
		{"flag of another command", "mnist --src x --partition y", 2, "unknown flag --partition"},
		{"missing --src", "mnist", 2, "mnist: --src must be given"},
		{"missing --crop", "celeba --src " + celeba, 2, "celeba: --crop must be given"},
		{"missing --out", "mnist --src x --out=", 2, "--out must be given"},
		{"stray argument", "mnist x", 2, `unexpected "x"`},
		{"two sources", "mnist --src a --src b", 2, "2 sources, expected one"},
		{"bad crop", "celeba --crop big --src " + celeba, 2, `--crop "big"`},
		{"crop 0", "celeba --crop 0 --src " + celeba, 2, `--crop "0"`},
		{"bad size", "folder --size -3 --src " + good, 2, "size -3"},
		{"size of three", "folder --size 3x4x5 --src " + good, 2, "--size \"3x4x5\", expected a side as in 32, or rows x columns as in 28x20"},
		{"size of no columns", "folder --size 28x0 --src " + good, 2, "size 28x0, expected sides from 1 to 4096"},
		{"crop of no columns", "folder --crop 28x0 --src " + good, 2, "crop 28x0, expected sides from 1"},
		{"crop too wide", "folder --crop 8x17 --size 8 --src " + good, 1, "a.png: crop 8x17 is larger than the picture, 16 rows of 16 pixels"},
		{"size no number", "folder --size x --src " + good, 2, "--size"},
		{"bad channels", "folder --channels 2 --src " + good, 2, "2 channels"},
		{"bad policy", "mnist --on-bad ignore --src x", 2, `--on-bad "ignore"`},
		{"bad limit", "mnist --limit -1 --src x", 2, "--limit -1, expected 0 or more"},
		{"too few workers", "mnist --workers -1 --src x", 2, "--workers -1, expected 1 to 1024, or 0 for one per core"},
		{"too many workers", "frey --workers 9223372036854775807 --src x", 2, "--workers 9223372036854775807, expected 1 to 1024"},
		{"bad percent", "folder --size 8 --test-percent 95 --src " + good, 2, "--test-percent 95, expected 0 to 90"},
		{"percent of too few", "folder --size 8 --test-percent 10 --src " + good, 1, good + ": 10 percent of its pictures, 2 in all, are none for the split test"},
		{"synth of nothing", "synth --train 0 --val 0 --test 0", 2, "--train, --val and --test are all 0"},
		{"synth size", "synth --size 3", 2, "synth: --size is 3, expected 8 to 256"},
		{"source missing", "folder --src " + filepath.Join(src, "none"), 1, "--src: stat " + filepath.Join(src, "none") + ": no such file or directory; give the directory of the pictures, or a zip of them"},
		{"mnist source is a file", "mnist --src " + file, 1, "not a directory"},
		{"no pictures", "folder --size 8 --src " + empty, 1, empty + ": no pictures"},
		{"not a picture", "folder --size 8 --src " + text, 1, filepath.Join(text, "a.jpg") + `: not a JPEG or PNG picture (it begins with "hello, I")`},
		{"not a picture, size from it", "folder --src " + text, 1, "give --size"},
		{"empty picture", "folder --size 8 --src " + bare, 1, filepath.Join(bare, "a.jpg") + ": empty"},
		{"truncated picture", "folder --size 8 --src " + folder, 1, filepath.Join(folder, "b.png") + ": the picture is cut short"},
		{"all skipped", "folder --size 8 --on-bad skip --src " + text, 1, "split train: no pictures left of 1"},
		{"pictures of two sizes", "folder --src " + good, 1, filepath.Join(good, "b.png") + ": a picture of 12×12, the first has 16×16 (--size makes all alike)"},
		{"crop too large", "celeba --crop 160 --size 32 --src " + celeba, 1, "crop 160 is larger than the picture, 100 rows of 100 pixels"},
		{"celeba without side", "celeba --crop none --src " + celeba, 1, "needs a size or a crop"},
		{"unnumbered", "celeba --crop 50 --src " + odd, 1, filepath.Join(odd, "me.png") + ": not named by a number"},
		{"not in the list", "celeba --crop 50 --src " + celeba + " --partition " + list, 1, "000001.png: not in " + list},
		{"bad list", "celeba --crop 50 --src " + celeba + " --partition " + badList, 1, badList + ": line 2:"},
		{"no list", "celeba --crop 50 --src " + celeba + " --partition " + list + "x", 1, "no such file"},
		{"not a zip", "folder --src " + zipFile, 1, zipFile + ": zip: not a valid zip file"},
		{"short record", "cifar10 --src " + cifar, 1, "record 1 at offset 3073: 100 bytes, expected 3073"},
		{"label out of range", "cifar10 --src " + label, 1, "record 0 at offset 0: label 200"},
		{"empty batch", "cifar10 --src " + nothing, 1, "empty, expected records"},
		{"no batches", "cifar10 --src " + empty, 1, empty + ": no files of the kind"},
		{"not a batch", "cifar10 --src " + list, 1, list + ": expected a binary batch"},
		{"no array", "npy --src " + zipFile, 1, zipFile + `: offset 0: "PK, bu", expected "\x93NUMPY", as NumPy's .npy files begin`},
		{"labels of nothing", "npy --src " + zipFile + " --labels a.npy --labels b.npy", 1, "2 arrays of labels and 1 of pictures, expected one for each"},
		{"not a tar", "wds --src " + tarFile, 1, tarFile + ": after its first entry: archive/tar: invalid tar header"},
		{"truncated gz", "wds --src " + gzFile, 1, gzFile + ": gzip header at offset 0"},
		{"one mnist file", "mnist --src " + onlyImages, 1, "has only one of"},
		{"no mnist files", "mnist --src " + empty, 1, "no MNIST files"},
		{"idx magic", "mnist --src " + idx("magic", labels, labels), 1, "offset 0: magic number 0x801, expected 0x803"},
		{"idx truncated", "mnist --src " + idx("cut", images[:17], labels), 1, "record 1 of 2 at offset 17: 0 of 1 bytes: the file ends too soon"},
		{"idx too long", "mnist --src " + idx("long", append(slices.Clone(images), 1), labels), 1, "offset 18: more bytes than the 2 records"},
		{"idx header cut", "mnist --src " + idx("head", images[:9], labels), 1, "expected an idx header of 16 bytes"},
		{"idx counts differ", "mnist --src " + idx("counts", images, append([]byte{0, 0, 8, 1, 0, 0, 0, 1}, 1)), 1, "1 labels, but"},
		{"idx gz checksum", "mnist --src " + idx("sum", badGzip(t, images), labels), 1, "gzip: invalid checksum"},
		{"frey source missing", "frey --src " + filepath.Join(src, "none"), 1, "no such file or directory; give the path of frey_rawface.mat"},
		{"frey without the file", "frey --src " + empty, 1, "stat " + filepath.Join(empty, "frey_rawface.mat") + ": no such file"},
		{"frey of another kind", "frey --src " + tarFile, 1, tarFile + ": not a MAT-file of level 5"},
		{"board without columns", "checkerboard --cols 0", 2, "checkerboard: --cols is 0, expected 1 to 1024"},
		{"board of nothing", "checkerboard --train 0 --val 0 --test 0", 2, "--train, --val and --test are all 0"},
		{"gauss too narrow", "gauss --sd 0", 2, "gauss: --sd is 0, expected more than 0"},
		{"gauss on a line", "gauss --dim 1", 2, "gauss: --dim is 1, expected at least 2 for 8 modes"},
		{"synth of too few", "synth --train -1", 2, "synth: --train is -1, expected 1 to 4294967295 samples, or 0 for none"},
		{"gauss of words", "gauss --radius far", 2, "--radius"},
		{"text without a file", "text", 2, "text: --src must be given"},
		{"text of no length", "text --max-length 0 --src " + list, 2, "text: --max-length is 0, expected 1 to"},
		{"text of no buckets", "text --buckets 0 --src " + list, 2, "text: --buckets is 0, expected 1 to 4"},
		{"text less than no lines", "text --val -1 --src " + list, 2, "text: --val is -1, expected 0 lines or more, or a file"},
		{"text of one word", "text --max-words 1 --src " + list, 2, "text: --max-words is 1, expected 2 to"},
		{"text of other words, the most frequent", "text --vocabulary " + list + " --max-words 5 --src " + list, 2, "text: --max-words 5 is of no use to --vocabulary"},
		{"text of other words, seen often", "text --vocabulary " + list + " --min-count 7 --src " + list, 2, "text: --min-count 7 is of no use to --vocabulary"},
		{"text that is a tar", "text --src " + src + "/none.txt", 1, "no such file"},
		{"text of other words", "text --vocabulary " + list + " --src " + list, 1, "a vocabulary of"},
		{"text of words of a folder", "text --vocabulary " + filepath.Dir(list) + " --src " + list, 1, "--vocabulary: " + filepath.Dir(list) + ": a directory, expected a file: give the vocabulary.txt in it"},
		{"text of words that are nowhere", "text --vocabulary " + list + "x --src " + list, 1, "--vocabulary: open " + list + "x: no such file"},
		{"gauss with originals", "gauss --src x", 2, "unknown flag --src"},
		{"out is a file", "folder --size 8 --src " + good + " --out " + file, 1, file + ": exists and is not a directory"},
		{"out below a file", "folder --size 8 --src " + good + " --out " + file + "/x", 1, file + "/x: what it would lie in is a file, not a directory; choose another place"},
		{"out is a link", "folder --size 8 --force --src " + good + " --out " + link, 1, link + ": a link, which no data set replaces: give the place that it leads to"},
		{"out below a link to nowhere", "folder --size 8 --src " + good + " --out " + nowhere + "/x", 1, nowhere + " is a link to none, which is not there"},
		{"out holds other things", "folder --size 8 --force --src " + good + " --out " + taken, 1, "never replaced"},
		{"info of nothing", "info " + src + "x", 1, "no such data set"},
		{"info of a folder", "info " + good, 1, "not a whole data set"},
		{"verify two", "verify a b", 2, "2 directories, expected one"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := t.TempDir()
			args := strings.Fields(tt.args)
			importing := len(args) > 0 && args[0] != "info" && args[0] != "verify" && args[0] != "imagenet"
			if importing && !strings.Contains(tt.args, "--out") {
				args = slices.Insert(args, 1, "--out", filepath.Join(root, "deep", "out"))
			}
			code, _, _, err := try(t, args...)
			if code != tt.code || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("code %d, %v; want code %d and %q", code, err, tt.code, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "\n") {
				t.Errorf("more than one sentence: %q", err)
			}
			for _, dir := range []string{root} {
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("left behind: %v, %v", left, err)
				}
			}
		})
	}
	if b, err := os.ReadFile(filepath.Join(taken, "thesis.tex")); err != nil || len(b) == 0 {
		t.Errorf("the user's file was touched: %v", err)
	}
	if left, err := filepath.Glob(filepath.Join(src, ".*")); err != nil || len(left) > 0 {
		t.Errorf("left beside an existing output: %v, %v", left, err)
	}
}

func TestSkipNamesAndCounts(t *testing.T) {
	src := t.TempDir()
	put(t, filepath.Join(src, "a.png"), picture(t, 16))
	put(t, filepath.Join(src, "b.png"), []byte("no"))
	out := filepath.Join(t.TempDir(), "out")
	code, stdout, stderr, err := try(t, "folder", "--src", src, "--size", "8", "--on_bad", "skip", "--out", out)
	if code != 0 || !strings.Contains(stderr, "skipped "+filepath.Join(src, "b.png")) || !strings.Contains(stdout, "1 skipped") {
		t.Errorf("code %d, %v, %q, %q", code, err, stdout, stderr)
	}
}

// Of many damaged originals only the first are named.
func TestSkipNamesTheFirst(t *testing.T) {
	src, dir := t.TempDir(), filepath.Join(t.TempDir(), "set")
	put(t, filepath.Join(src, "good.png"), picture(t, 8))
	for i := range maxNamed + 5 {
		put(t, filepath.Join(src, fmt.Sprintf("bad%02d.png", i)), []byte("no picture"))
	}
	code, stdout, stderr, err := try(t, "folder", "--src", src, "--size", "8", "--on-bad", "skip", "--out", dir)
	if code != 0 {
		t.Fatalf("code %d, %v", code, err)
	}
	if n := strings.Count(stderr, "skipped "+src); n != maxNamed || !strings.Contains(stderr, "skipped 5 more") {
		t.Errorf("%d are named in:\n%s", n, stderr)
	}
	if !strings.Contains(stdout, "25 skipped:") || !strings.Contains(stdout, "and 5 more, 25 of all in index.json") {
		t.Errorf("described as:\n%s", stdout)
	}
}

// Damaged shards are named by verify, a line each, with exit code 1.
func TestVerifyNamesTheShards(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "set")
	if code, _, _, err := try(t, "synth", "--size", "8", "--train", "99", "--out", dir); code != 0 {
		t.Fatal(err)
	}
	var want []string
	for _, split := range []string{"test", "train"} {
		path := filepath.Join(dir, split, "shard-00000.safetensors.zst")
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		b[len(b)/2] ^= 1
		put(t, path, b)
		want = append(want, "mkshards: "+path+": frame ")
		code, _, stderr, err := try(t, "verify", dir)
		if n := strings.Count(stderr, "\n"); code != 1 || n != len(want) {
			t.Errorf("code %d, %v, %d lines, want %d", code, err, n, len(want))
		}
		for _, w := range want {
			if !strings.Contains(stderr, w) {
				t.Errorf("no %q in %q", w, stderr)
			}
		}
	}
}

// badGzip is b gzipped, with a wrong checksum.
func badGzip(t *testing.T, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	if _, err := z.Write(b); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	bad := out.Bytes()
	bad[len(bad)-8] ^= 1
	return bad
}

// TestRequired: --help shows what must be given, and no default of it.
func TestRequired(t *testing.T) {
	for _, c := range commands() {
		_, help, _, _ := try(t, c.name, "--help")
		if n := strings.Count(help, "(required)"); n != len(c.need) {
			t.Errorf("%s --help: %d flags are required, want %d:\n%s", c.name, n, len(c.need), help)
		}
		if c.name == "celeba" && strings.Contains(help, "default none") {
			t.Errorf("--crop is required and has a default:\n%s", help)
		}
	}
}
