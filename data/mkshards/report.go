package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"
	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/shard"
	"ebtrain/launch/cliflag"
	"ebtrain/launch/progressbar"
)

// maxNamed is the number of skipped pictures that an import and info list.
const maxNamed = 20

// oneDir parses the arguments of info and verify.
func oneDir(name, text string, args []string, stdout io.Writer) (dir string, err error) {
	fs := pflag.NewFlagSet(name, pflag.ContinueOnError)
	helped, err := parse(fs, text, args, stdout)
	if helped || err != nil {
		return "", err
	}
	if fs.NArg() != 1 || fs.Arg(0) == "" {
		return "", cliflag.Usage("%s: %d directories, expected one", name, fs.NArg())
	}
	return fs.Arg(0), nil
}

func runInfo(args []string, stdout io.Writer) error {
	dir, err := oneDir("info", "mkshards info DIR says what the data set at DIR is.", args, stdout)
	if dir == "" || err != nil {
		return err
	}
	x, err := shard.ReadIndex(dir)
	if err != nil {
		return err
	}
	if err := describe(stdout, dir, x); err != nil {
		return err
	}
	for _, split := range slices.Sorted(maps.Keys(x.Splits)) {
		r, err := shard.Open(dir, split)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(stdout, "  digest of %s: %s\n", split, r.Digest()); err != nil {
			return err
		}
	}
	return nil
}

func runVerify(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	dir, err := oneDir("verify", "mkshards verify DIR reads every byte of the data set at DIR and compares sizes,\nchecksums, hashes and labels with its index. It names every bad shard.", args, stdout)
	if dir == "" || err != nil {
		return err
	}
	m := progressbar.NewPhases(stderr)
	err = shard.Verify(ctx, dir, func(at, total uint64) { m.Progress("verify", "KiB/s", int64(at>>10), int64(total>>10)) })
	m.End()
	if err != nil {
		return showEach(err, stderr)
	}
	x, err := shard.ReadIndex(dir)
	if err != nil {
		return err
	}
	if err := describe(stdout, dir, x); err != nil {
		return err
	}
	_, err = fmt.Fprintln(stdout, "everything is as the index says")
	return err
}

// showEach shows what is joined in err, a line each.
func showEach(err error, stderr io.Writer) error {
	all, ok := err.(interface{ Unwrap() []error }) //nolint:errorlint // of err itself, not of what it wraps
	if !ok {
		return err
	}
	var seen []error
	for _, e := range all.Unwrap() {
		seen = append(seen, cliflag.Show("mkshards", e, stderr))
	}
	return errors.Join(seen...)
}

// maxClasses is the number of classes that are named in what a data set is.
const maxClasses = 10

// named are the names of classes, of many the first.
func named(classes []string) string {
	if len(classes) > maxClasses {
		return strings.Join(classes[:maxClasses], ", ") + ", …"
	}
	return strings.Join(classes, ", ")
}

// columns says what the values of a table's rows are, of many the first.
func columns(all []data.Column) (text string) {
	for i, c := range all {
		if i == maxNamed {
			return text + fmt.Sprintf("  and %d more columns\n", len(all)-i)
		}
		text += fmt.Sprintf("  column %q", c.Name)
		if c.Mean != 0 || c.SD != 1 {
			text += fmt.Sprintf(", of mean %.6g and standard deviation %.6g", c.Mean, c.SD)
		}
		text += "\n"
	}
	return text
}

// describe writes what a data set is.
func describe(w io.Writer, dir string, x *shard.Index) error {
	s := x.Schema
	text := fmt.Sprintf("%s: samples of %d×%d×%d %s, ", dir, s.Shape[0], s.Shape[1], s.Shape[2], s.DType)
	if t := s.Text; t != nil {
		text = fmt.Sprintf("%s: sentences of at most %d tokens, in batches of %v, of a vocabulary of %d, ", dir, s.Shape[2], t.Edges, t.Words)
	}
	if len(s.Classes) == 0 {
		text += "no classes\n"
	} else {
		text += fmt.Sprintf("%s: %s\n", english.Plural(len(s.Classes), "class", ""), named(s.Classes))
	}
	for _, name := range slices.Sorted(maps.Keys(x.Splits)) {
		p := x.Splits[name]
		var bytes, raw uint64
		for _, e := range p.Shards {
			bytes += e.Bytes
			raw += e.RawBytes
		}
		text += fmt.Sprintf("  %-6s %8d %s in %s, %s (%s raw)\n", name, p.Samples, english.PluralWord(int(p.Samples), "sample", ""), english.Plural(len(p.Shards), "shard", ""), humanize.IBytes(bytes), humanize.IBytes(raw))
		if p.Words > 0 {
			text += fmt.Sprintf("         %8d %s, %d of them (%.2f %%) not in the vocabulary\n", p.Words, english.PluralWord(int(p.Words), "word", ""), p.Unknown, 100*float64(p.Unknown)/float64(p.Words))
		}
	}
	text += columns(s.Columns)
	for _, k := range slices.Sorted(maps.Keys(x.Preprocessing)) {
		text += fmt.Sprintf("  %s: %s\n", k, x.Preprocessing[k])
	}
	if n := x.LeftOut(); n > 0 {
		text += fmt.Sprintf("  %d skipped:\n", n)
		named := x.Skipped[:min(len(x.Skipped), maxNamed)]
		for _, s := range named {
			text += fmt.Sprintf("    %s (%s): %s\n", s.Name, s.Split, s.Why)
		}
		if more := n - uint64(len(named)); more > 0 {
			text += fmt.Sprintf("    and %d more, %d of all in %s\n", more, len(x.Skipped), shard.IndexName)
		}
	}
	_, err := io.WriteString(w, text)
	return err
}
