// Command leftout reads what go test -json writes, from its standard input, shows what go
// test shows without -json, and writes two files: what was left out, that is, the sentences
// that tests were skipped with, each with how many tests and the packages these are in; and
// what failed and may be run again alone, a package a line, with the flag of its tests.
//
//	go test -json ./... | go run ./trainer/internal/leftout LEFT AGAIN
//
// It fails only if it cannot read or write: that a test failed is told by go test's own
// exit code, so a pipe needs pipefail.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "leftout:", err)
		os.Exit(1)
	}
}

func run(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return fmt.Errorf("want two arguments, the files for what was left out and for what may be run again, got %d", len(args))
	}
	v := newView(out)
	if err := v.read(in); err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(args[0], []byte(v.summary()), 0o666),
		os.WriteFile(args[1], []byte(v.failures.again()), 0o666))
}

// read shows all that in tells.
func (v *view) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			if err := v.line(line); err != nil {
				return err
			}
		}
		if errors.Is(err, io.EOF) {
			return v.end()
		}
		if err != nil {
			return err
		}
	}
}

// line shows a line of input; one that is no event is shown as it is.
func (v *view) line(line []byte) error {
	var e event
	if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
		_, err := v.out.Write(line)
		return err
	}
	return v.event(e)
}
