package main

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/pflag"

	"ebtrain/data/atomicfile"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/experiment/plan"
	"ebtrain/trainer/experiment/results"
)

const packAbout = `experiment pack keeps what a report is made of: for each experiment that is
named, NAME.tgz with what was measured in its finished cells, and the pictures
and texts that the report shows. Checkpoints and samples that it does not show
are left out.

  experiment pack lebm-text pictures --to kept
  tar -C runs/experiments -xzf kept/lebm-text.tgz     # where report finds it

The same cells give the same bytes.`

// pack is the command pack.
func (a app) pack(args []string) error {
	var out, to string
	fs := pflag.NewFlagSet("pack", pflag.ContinueOnError)
	outFlag(fs, &out)
	fs.StringVar(&to, "to", "", "folder of the archives")
	if err := a.parse(fs, packAbout, args); err != nil {
		return err
	}
	if fs.NArg() == 0 || to == "" {
		return cliflag.Usage("pack: want names of experiments (experiment list shows them) and --to FOLDER")
	}
	var chosen []plan.Experiment
	for _, name := range fs.Args() {
		e, err := a.find(name)
		if err != nil {
			return err
		}
		chosen = append(chosen, e)
	}
	if err := atomicfile.MakeDir(to); err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	for _, e := range chosen {
		if err := a.packOne(out, to, e); err != nil {
			return err
		}
	}
	return nil
}

func (a app) packOne(out, to string, e plan.Experiment) error {
	s, err := results.Load(out, e)
	if err != nil {
		return err
	}
	files, err := s.Kept()
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return fmt.Errorf("no cell of %s is finished in %s: experiment run %s does them", e.Name, out, e.Name)
	}
	name := filepath.Join(to, e.Name+".tgz")
	if err := atomicfile.Write(name, func(w io.Writer) error { return archive(w, out, files) }); err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "%s: %s\n", name, english.Plural(len(files), "file", ""))
	return err
}

// archive writes files, by their names below root, as a compressed tar that says nothing of
// who made it and when.
func archive(w io.Writer, root string, files []string) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	for _, file := range files {
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: filepath.ToSlash(name), Mode: 0o644, Size: int64(len(b))}); err != nil {
			return err
		}
		if _, err := t.Write(b); err != nil {
			return err
		}
	}
	return errors.Join(t.Close(), z.Close())
}
