package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/spf13/pflag"

	"ebtrain/data/importer"
	"ebtrain/data/shard"
	"ebtrain/launch/cliflag"
)

// tableName is the command for tables.
const tableName = "table"

// table are the settings of tables.
type table struct {
	importer.TableOptions
	delimiter, like string
}

// flags defines those settings.
func (t *table) flags(fs *pflag.FlagSet) {
	fs.Lookup("src").Usage = "a table: a .csv, .tsv or .npy file"
	fs.Lookup("test-percent").Usage = "share of the rows that becomes the split test, in percent, picked at random"
	fs.StringVar(&t.delimiter, "delimiter", "", "what stands between columns: a character, tab, or space for any number of spaces; without it a tab in .tsv files and a comma in others")
	fs.StringVar(&t.Header, "header", importer.HeaderAuto, "whether the first row has the names of the columns: yes, no, or auto, which looks at the first two rows")
	fs.StringSliceVar(&t.Columns, "columns", nil, "columns that become values, in this order: names, or numbers from 0, with commas between; without it all do")
	fs.StringSliceVar(&t.LeaveOut, "leave-out", nil, "columns that do not become values")
	fs.StringVar(&t.Label, "label-column", "", "column of the classes, which may be any words: its name, or its number from 0")
	fs.IntVar(&t.ValPercent, "val-percent", 0, "share of the rows that becomes the split val, in percent, picked at random")
	fs.BoolVar(&t.Standardize, "standardize", true, "give each column the mean 0 and the standard deviation 1 in the split train, which models of points are set up for; samples are given back as the table has them")
	fs.StringVar(&t.like, "like", "", "take columns, scale and classes of another data set, made of a table, instead: as further rows are to be had by a model that was trained on that one")
}

// options are those of the importer.
func (t *table) options(s *settings, standardizes bool) (o importer.TableOptions, err error) {
	o = t.TableOptions
	o.TestPercent, o.Limit, o.Progress = s.testPercent, s.run.Limit, s.progress
	for _, src := range s.src {
		o.Files = append(o.Files, files(src)...)
	}
	for _, labels := range s.labels {
		o.Labels = append(o.Labels, files(labels)...)
	}
	switch name, n := utf8.DecodeRuneInString(t.delimiter); {
	case t.delimiter == "tab" || t.delimiter == `\t`:
		o.Delimiter = '\t'
	case t.delimiter == "space":
		o.Delimiter = ' '
	case n < len(t.delimiter):
		return o, cliflag.Usage("%s: --delimiter %q, expected one character, tab or space", tableName, t.delimiter)
	case n > 0:
		o.Delimiter = name
	}
	if t.like != "" {
		if standardizes {
			return o, cliflag.Usage("%s: --standardize is of no use to --like, whose scale is taken: leave it out", tableName)
		}
		x, err := shard.ReadIndex(t.like)
		if err != nil {
			return o, fmt.Errorf("--like: %w", err)
		}
		schema := x.Data()
		if o.Like = &schema; schema.Columns == nil {
			return o, fmt.Errorf("--like %s: samples of %v, expected a data set that mkshards %s made", t.like, schema, tableName)
		}
	}
	return o, cliflag.AsUsage(o.Validate())
}

// files are those that --src or --labels names: one, or several with commas between.
func files(src string) []string {
	if _, err := os.Stat(src); err == nil {
		return []string{src}
	}
	return strings.Split(src, ",")
}

// tables is the command for tables.
func tables() command {
	var standardizes func() bool
	return command{
		name: tableName, flags: []string{"src", "test-percent"}, need: []string{"src", "out"},
		own: func(s *settings, fs *pflag.FlagSet) {
			s.table.flags(fs)
			fs.StringArrayVar(&s.labels, "labels", nil, "the classes of the rows of an array: a .npy file of whole numbers from 0, one for each --src, in the same order")
			standardizes = func() bool { return fs.Changed("standardize") }
		},
		text: `mkshards table writes vectors of your own: the rows of a table, of numbers, are
samples of 1×1×d values, F32. A table is text, as .csv and .tsv files are, also
compressed by gzip or zstd, or an array of NumPy's of shape (N, d), a .npy file.
--src may be given several times, or names files with commas between; one with
the word test or val in its name is that split, all others train. --test-percent
and --val-percent take shares of train instead. Classes are a column, which
--label-column names, or, beside .npy files, --labels, an array for each.

  mkshards table --src measured.csv --label-column species --test-percent 10 \
      --out shards/mine
  mkshards table --src x.npy --labels y.npy --test-percent 10 --out shards/mine

Columns are standardised unless --standardize=false is said, and sample writes
values as the table has them. A column that has one value only becomes 0, which
is said: leave it out, since its density has no bound. Rows keep their order;
train mixes them.

A row with a missing value, or one that is no number, or with more or fewer
fields than the first stops the import, which names file, line and column;
--on-bad skip leaves such rows out.

Further rows for a model that was trained on a table are made --like it:

  mkshards table --src later.csv --like shards/mine --out shards/later`,
		open: func(ctx context.Context, s *settings) (*importer.Set, error) {
			o, err := s.table.options(s, standardizes())
			if err != nil {
				return nil, err
			}
			return importer.Table(ctx, o)
		},
	}
}
