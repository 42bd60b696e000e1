package importer

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestHidden(t *testing.T) {
	for name, want := range map[string]bool{
		"a.png": false, "./a.png": false, "/a/../b.png": false, "cat/a.png": false, "__macosx/a.png": false,
		"._a.png": true, "cat/._a.png": true, "__MACOSX/cat/a.png": true, ".git/a.png": true,
		"@eaDir/a.png": true, "THUMBS.DB": true, "cat/.DS_Store": true,
	} {
		if hidden(name) != want {
			t.Errorf("%q: hidden %v, want %v", name, !want, want)
		}
	}
}

func TestReadable(t *testing.T) {
	for name, want := range map[string]string{
		"cat": "cat", "café": "café", "猫 1": "猫 1", `a\b`: `a\b`,
		"caf\xe9": `"caf\xe9"`, `"caf\xe9"`: `"\"caf\\xe9\""`, "a\nb": `"a\nb"`, "\x1b[2J": `"\x1b[2J"`,
	} {
		if got := readable(name); got != want {
			t.Errorf("%q becomes %s, want %s", name, got, want)
		}
	}
}

func FuzzReadable(f *testing.F) {
	f.Add("caf\xe9", `"caf\xe9"`)
	f.Add("a", "b")
	f.Fuzz(func(t *testing.T, a, b string) {
		x, y := readable(a), readable(b)
		if a != b && x == y {
			t.Fatalf("%q and %q both become %s", a, b, x)
		}
		if !utf8.ValidString(x) || strings.ContainsAny(x, "\x00\n\x1b") {
			t.Fatalf("%q becomes %q", a, x)
		}
	})
}

func TestNote(t *testing.T) {
	var a apart
	if got := a.note(); got != "" {
		t.Errorf("of nothing: %q", got)
	}
	for _, name := range []string{"a.gif", "b.GIF", "c.txt", "Makefile"} {
		a.addOther(name)
	}
	a.hidden.add("__MACOSX/._a.png")
	a.hidden.add(".DS_Store")
	a.pipes.add("a.png, a named pipe")
	want := "left alone: 4 not named .jpg, .jpeg or .png (2 .gif, 1 .txt), 2 hidden (such as __MACOSX/._a.png), 1 neither file nor folder (such as a.png, a named pipe)"
	if got := a.note(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
