package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"ebtrain/data/atomicfile"
	"ebtrain/data/dataset"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/experiment/cell"
	"ebtrain/trainer/experiment/child"
	"ebtrain/trainer/experiment/plan"
)

// find finds the data that unfinished cells are trained on, and those that they are
// compared with, and reports what is nowhere. It makes nothing. Where all cells are
// finished nobody needs data, and what is found serves to compare only.
func (w *work) find(all []cell.Cell) error {
	tasks, _, err := w.tasks(all)
	if err != nil {
		return err
	}
	err = w.locate(rowsOf(tasks))
	if len(tasks) == 0 && !w.o.namesData() {
		return nil
	}
	return err
}

// namesData says whether the user named data.
func (o *runOptions) namesData() bool {
	return o.data != "" || o.source != "" || len(o.sets)+len(o.beside) > 0
}

// locate finds the data of rows, and their digests.
func (w *work) locate(rows []plan.Row) (err error) {
	if w.data, err = dataFor(w.o, w.e); err != nil {
		return err
	}
	if w.sets, err = setsFor(w.o, w.e, rows); err != nil {
		return err
	}
	if w.beside, err = besides(w.o.beside, w.e); err != nil {
		return err
	}
	if err := w.o.openGiven(); err != nil {
		return err
	}
	w.digest()
	return nil
}

// digest keeps the digests of all data that are there.
func (w *work) digest() {
	w.digests, w.others = map[string]cell.Data{}, cell.Data{}
	for _, name := range append(slices.Collect(maps.Values(w.sets)), w.data) {
		if name != "" {
			w.digests[name] = digestsOf(name)
		}
	}
	for _, flag := range w.beside {
		set, name, _ := strings.Cut(strings.TrimPrefix(flag, oodFlag), "=")
		for split, digest := range digestsOf(name) {
			w.others[set+"/"+split] = digest
		}
	}
}

// digestsOf are the digests of the splits of a data set; none if it is yet to be made.
// What cannot be opened has none: whoever reads it says what is wrong with it.
func digestsOf(name string) cell.Data {
	splits, err := dataset.Splits(name)
	if err != nil {
		return nil
	}
	d := cell.Data{}
	for _, split := range splits {
		if src, err := dataset.Open(name, split); err == nil {
			d[split] = src.Digest()
		}
	}
	return d
}

// trainedOn is --data of a row; "" if it needs none.
func (w *work) trainedOn(r plan.Row) string {
	if r.Data != nil {
		return w.sets[r.Data.Name]
	}
	return w.data
}

// dataOf are the digests of what cells of a row are made of, as far as they are known.
func (w *work) dataOf(r plan.Row) cell.Data {
	d := maps.Clone(w.others)
	if d == nil {
		d = cell.Data{}
	}
	maps.Copy(d, w.digests[w.trainedOn(r)])
	return d
}

// openGiven opens the data sets that the user gave, once: else each cell would find out
// for itself that one cannot be read.
func (o *runOptions) openGiven() error {
	if o.data != "" {
		if _, err := dataset.Open(o.data, "train"); err != nil {
			return fmt.Errorf("--data %s: %w", o.data, err)
		}
	}
	for _, s := range o.sets {
		_, dir, _ := strings.Cut(s, "=")
		if _, err := dataset.Open(dir, "train"); err != nil {
			return fmt.Errorf("--set %s: %w", s, err)
		}
	}
	for _, s := range o.beside { // of which it is not the split train that is read
		_, dir, _ := strings.Cut(s, "=")
		if _, err := dataset.Splits(dir); err != nil {
			return fmt.Errorf("--beside %s: %w", s, err)
		}
	}
	return nil
}

// dataFor is the --data that an experiment is trained on: the built-in set, what
// the user gave, or shards in the folder of experiments, which may be yet to be made
// from --source.
func dataFor(o runOptions, e plan.Experiment) (string, error) {
	switch d := e.Data; {
	case d == nil:
		if own := len(plan.Sets(e.Rows)) > 0; own && (o.data != "" || o.source != "") {
			return "", cliflag.Usage("the rows of %s have data of their own: give each data set by --set, and leave --data and --source out", e.Name)
		}
		if o.data != "" || o.source != "" {
			return "", cliflag.Usage("%s needs no data: leave --data and --source out", e.Name)
		}
		return "", nil
	case d.Builtin != "":
		if o.source != "" {
			return "", cliflag.Usage("%s is trained on %s, which is built in: leave --source out", e.Name, d.Name)
		}
		if o.data != "" {
			return o.data, nil
		}
		return d.Builtin, nil
	case o.data != "" && o.source != "":
		return "", cliflag.Usage("give either --data, a data set made by mkshards, or --source, what to make it from")
	case o.data != "":
		return o.data, nil
	default:
		return shards(o, *d)
	}
}

// shards is where a data set is, or will be made, in the folder of experiments.
func shards(o runOptions, d plan.DataSet) (string, error) {
	dir := filepath.Join(o.out, "data", d.Name)
	_, err := os.Stat(dir)
	switch {
	case err == nil:
		return dir, nil
	case !errors.Is(err, fs.ErrNotExist):
		return "", err
	case o.source == "":
		return "", cliflag.Usage("the data set %s is not in %s: give --source, %s, or --data, what mkshards %s made of it", d.Name, dir, d.Source, strings.Join(d.Make, " "))
	}
	if _, err := os.Stat(o.source); err != nil {
		return "", fmt.Errorf("--source: %w: want %s", err, d.Source)
	}
	return dir, nil
}

// makeData makes the shards that the experiment is trained on, unless they are there,
// or are not its own.
func (w *work) makeData(ctx context.Context) error {
	if d := w.e.Data; d == nil || d.Builtin != "" || w.o.data != "" {
		return nil
	}
	if _, err := os.Stat(w.data); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	folder := filepath.Dir(w.data)
	if err := atomicfile.MakeDir(folder); err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	err := w.app.mkshards(ctx, w.o, *w.e.Data, w.tools.mkshards, w.data)
	if err != nil {
		_ = os.Remove(folder) // made for nothing, unless others are in it
		return err
	}
	w.digest()
	return nil
}

// mkshards makes a data set of --source.
func (a app) mkshards(ctx context.Context, o runOptions, d plan.DataSet, mkshards, dir string) error {
	log, err := os.CreateTemp("", "mkshards-*.log")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(log.Close(), os.Remove(log.Name())) }() // it was read
	args := append(slices.Clone(d.Make), "--src="+o.source, "--out="+dir)
	ended, err := child.Run(ctx, child.Command{Path: mkshards, Args: args, Env: alone(a.environ), Nice: o.nice, Log: log, Kill: a.kill})
	if err != nil {
		return err
	}
	if ended.Code != 0 {
		line, err := child.LastLine(log.Name(), 0)
		return errors.Join(fmt.Errorf("mkshards %s: %s: %s", strings.Join(d.Make, " "), ended, strings.TrimPrefix(line, "mkshards: ")), err)
	}
	_, err = fmt.Fprintf(a.stdout, "data set %s made of %s: %s\n", d.Name, o.source, dir)
	return err
}

// setsFor are the --data of rows that have data of their own, by the name of the data
// set: a built-in set, what the user gave, or shards in the folder of experiments. Those
// of rows must be there; others serve to compare finished cells with, if they are.
func setsFor(o runOptions, e plan.Experiment, rows []plan.Row) (map[string]string, error) {
	given, err := folders("set", o.sets, plan.Sets(e.Rows), e.Name+" trains on")
	if err != nil {
		return nil, err
	}
	needed := plan.Sets(rows)
	sets := map[string]string{}
	for _, d := range plan.Sets(e.Rows) {
		dir := filepath.Join(o.out, "data", d.Name)
		sets[d.Name] = cmp.Or(given[d.Name], d.Builtin, dir)
		if sets[d.Name] != dir || !slices.ContainsFunc(needed, func(n plan.DataSet) bool { return n.Name == d.Name }) {
			continue
		}
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, cliflag.Usage("the data set %s is not in %s: give --set %s=DIR, what mkshards %s made of %s", d.Name, dir, d.Name, strings.Join(d.Make, " "), d.Source)
		} else if err != nil {
			return nil, err
		}
	}
	return sets, nil
}

// oodFlag is that of evaluate for a data set beside the run's own, as NAME=DIR.
const oodFlag = "--ood="

// besides are the flags of evaluate for the data sets beside the experiment's own, each
// of which must be given as NAME=DIR, unless it is built in.
func besides(said []string, e plan.Experiment) ([]string, error) {
	given, err := folders("beside", said, e.Beside, e.Name+" compares with")
	if err != nil {
		return nil, err
	}
	var flags []string
	for _, d := range e.Beside {
		dir := cmp.Or(given[d.Name], d.Builtin)
		if dir == "" {
			return nil, cliflag.Usage("%s compares with the data set %s: give --beside %s=DIR, what mkshards %s made of %s", e.Name, d.Name, d.Name, strings.Join(d.Make, " "), d.Source)
		}
		flags = append(flags, oodFlag+d.Name+"="+dir)
	}
	return flags, nil
}

// folders are those that were said as NAME=DIR, by name; what says what the data
// sets are for.
func folders(flag string, said []string, sets []plan.DataSet, what string) (map[string]string, error) {
	given := map[string]string{}
	for _, s := range said {
		if len(sets) == 0 {
			return nil, cliflag.Usage("--%s %s: %s no data sets that are given by name: leave it out", flag, s, what)
		}
		name, dir, ok := strings.Cut(s, "=")
		known := slices.ContainsFunc(sets, func(d plan.DataSet) bool { return d.Name == name })
		if !ok || dir == "" || !known {
			var names []string
			for _, d := range sets {
				names = append(names, d.Name)
			}
			return nil, cliflag.Usage("--%s %s: want NAME=DIR, and %s these data sets: [%s]", flag, s, what, strings.Join(names, " "))
		}
		given[name] = dir
	}
	return given, nil
}

// launched are the beginnings of variables by which launchers make a program a
// rank of a job.
var launched = []string{"RANK=", "WORLD_SIZE=", "LOCAL_RANK=", "LOCAL_WORLD_SIZE=", "GROUP_RANK=", "MASTER_", "EBTRAIN_", "TORCHELASTIC_", "SLURM_", "PMI", "OMPI_", "MPI_", "OMP_NUM_THREADS="}

// keptVariables are those of them that speak of this machine.
var keptVariables = []string{"EBTRAIN_LIBDNNL="}

// alone is environ for a program that is the only one of its job.
func alone(environ []string) []string {
	var out []string
	for _, v := range environ {
		if !hasPrefix(v, launched) || hasPrefix(v, keptVariables) {
			out = append(out, v)
		}
	}
	return append(out, "EBTRAIN_PROGRESS=plain")
}

func hasPrefix(s string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
