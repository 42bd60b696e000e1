package rundir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// What is wrong with a config.json is said in words of the file, and what to do.
func TestDamagedConfig(t *testing.T) {
	dir := t.TempDir()
	d := create(t, filepath.Join(dir, "a"))
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	file := Layout(filepath.Join(dir, "a")).ConfigFile()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	whole := string(b)
	for _, tt := range []struct{ text, want string }{
		{"", "no whole JSON at byte 0"},
		{whole[:len(whole)/2], "no whole JSON at byte "},
		{"[]", "what it holds is of the wrong kind, a JSON array, at byte 1"},
		{strings.Replace(whole, `"world": 2`, `"world": "two"`, 1), "world is of the wrong kind, a JSON string, at byte "},
		{strings.Replace(whole, `"batch": 64`, `"batch": 65`, 1), "… that is written beside them: they were changed by hand"},
	} {
		if err := os.WriteFile(file, []byte(tt.text), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfig(filepath.Join(dir, "a"))
		wantError(t, err, file+" is damaged: ", tt.want, ": put back what it held, or begin a run in another folder")
		if err != nil && (strings.Contains(err.Error(), "rundir") || strings.Contains(err.Error(), "Go value")) {
			t.Errorf("it speaks of the program: %v", err)
		}
	}
	for want, odd := range map[string]func() error{
		"it is a pipe": func() error { return syscall.Mkfifo(file, 0o644) }, "it is a folder": func() error { return os.Mkdir(file, 0o755) },
		"it has more than 1.0 GiB": func() error { return errors.Join(os.WriteFile(file, nil, 0o644), os.Truncate(file, 1<<40)) },
	} {
		if err := errors.Join(os.Remove(file), odd()); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfig(filepath.Join(dir, "a"))
		wantError(t, err, file+" is damaged: "+want+": put back what it held, or begin a run in another folder")
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	// Of another version, older or newer, it is not damaged.
	for _, format := range []string{"0", "2"} {
		if err := os.WriteFile(file, []byte(strings.Replace(whole, `"format": 1`, `"format": `+format, 1)), 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := ReadConfig(filepath.Join(dir, "a"))
		wantError(t, err, file+" was written by another version of this program: it has format "+format)
	}
}

// What lies where a run has a folder, or a file, is named with what to do.
func TestFileForFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	d, err := Create(dir, Config{}, struct{}{})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(d.MetricsFile(), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err = d.Metrics(0, nil)
	wantError(t, err, d.MetricsFile()+" is a folder, where a run has a file: move it away")
	if err := errors.Join(os.Remove(d.MetricsFile()), syscall.Mkfifo(d.MetricsFile(), 0o644)); err != nil {
		t.Fatal(err)
	}
	_, err = d.Metrics(0, nil)
	wantError(t, err, d.MetricsFile()+" is no file, where a run has one: move it away")
	_, err = ReadMetrics(d.MetricsFile())
	wantError(t, err, d.MetricsFile()+" is a pipe, where a file is expected")
	if err := errors.Join(d.Close(), os.Remove(d.Events()), os.WriteFile(d.Events(), nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	_, err = Open(dir)
	wantError(t, err, d.Events()+" is a file, where a run has a folder: move it away")
	if err := os.Remove(d.Events()); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir) // who failed has let go of its lock
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// A run whose config.json cannot be written is told to begin elsewhere only if it has not
// begun: one that trains would be given up.
func TestConfigThatCannotBeWritten(t *testing.T) {
	full, broken := &os.PathError{Op: "write", Path: "a/config.json", Err: syscall.ENOSPC}, &os.PathError{Op: "write", Path: "a/config.json", Err: syscall.EIO}
	wantError(t, elsewhere("a", full), "write a/config.json: no space left on device: make room in a, or give another --out")
	if err := elsewhere("a", broken); err.Error() != "write a/config.json: input/output error: give another --out" {
		t.Error(err)
	}
	d := create(t, filepath.Join(t.TempDir(), "a"))
	if err := errors.Join(os.Remove(d.ConfigFile()), os.Mkdir(d.ConfigFile(), 0o755)); err != nil {
		t.Fatal(err)
	}
	if err := d.Saved(1); err == nil || err.Error() != "write "+d.ConfigFile()+": it is a folder, which no file may replace" {
		t.Error(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
}
