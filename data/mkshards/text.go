package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/data/importer"
	"ebtrain/data/shard"
	"ebtrain/launch/cliflag"
)

// text are the settings of sentences.
type text struct {
	val, test  string
	vocabulary string
	buckets    int
	words      importer.Words
}

// flags defines those settings.
func (t *text) flags(fs *pflag.FlagSet) {
	fs.StringVar(&t.val, "val", "", "the split val: a file, or a number of the last lines of --src")
	fs.StringVar(&t.test, "test", "", "the split test: a file, or a number of the last lines of --src, after those of val")
	fs.BoolVar(&t.words.Lower, "lowercase", false, "put letters in lower case")
	fs.BoolVar(&t.words.Punctuation, "split-punctuation", false, "make the marks at the ends of words words of their own")
	fs.IntVar(&t.words.MinCount, "min-count", 2, "words seen less often in the split train become one, <unk>")
	fs.IntVar(&t.words.Most, "max-words", 0, "keep only so many words, the most frequent; 0 keeps all")
	fs.IntVar(&t.words.MaxLength, "max-length", 200, "words of a line at most; a longer line is a bad one")
	fs.StringVar(&t.vocabulary, "vocabulary", "", "take the words of another data set, its vocabulary.txt, instead of those of the split train")
	fs.IntVar(&t.buckets, "buckets", data.MaxBuckets, fmt.Sprintf("number of lengths that batches are padded to, at most: 1 to %d", data.MaxBuckets))
}

// checkChosen reports flags that choose words of the split train, where none are chosen.
func checkChosen(fs *pflag.FlagSet) error {
	if f := fs.Lookup("vocabulary"); f == nil || f.Value.String() == "" {
		return nil
	}
	for _, name := range []string{"min-count", "max-words"} {
		if f := fs.Lookup(name); f.Changed {
			return cliflag.Usage("text: --%s %s is of no use to --vocabulary, whose words are all taken: leave one of them out", name, f.Value)
		}
	}
	return nil
}

// sentences is the command for text.
func sentences() command {
	return command{
		name: "text", flags: []string{"src"}, need: []string{"src", "out"},
		own: func(s *settings, fs *pflag.FlagSet) {
			fs.Lookup("src").Usage = "the split train: a file"
			s.text.flags(fs)
		},
		text: `mkshards text writes sentences, one a line, in UTF-8. Words are what has spaces
between. The vocabulary is made of the split train alone, most frequent words
first: words seen less than --min-count times there, and words of other splits
that it does not have, become <unk>, and are counted.

--src is the split train, a file, and may be given several times. --val and
--test are files too, or numbers of lines at the end of --src. Files may be
compressed, by gzip or zstd.

An empty line, one of more than --max-length words or one that is not UTF-8
stops the import, which names it; --on-bad skip leaves it out.

  mkshards text --src sentences.txt --val 500 --test 500 --out shards/snli`,
		open: func(ctx context.Context, s *settings) (*importer.Set, error) {
			t := s.text
			files := importer.TextFiles{Src: s.src, Val: t.val, Test: t.test, Limit: s.run.Limit, Buckets: t.buckets, Progress: s.progress}
			if err := cmp.Or(t.words.Validate(), files.Validate()); err != nil {
				return nil, cliflag.Usage("text: %w", err)
			}
			if t.vocabulary != "" {
				var err error
				if t.words.Vocabulary, err = shard.ReadVocabulary(t.vocabulary); err != nil {
					if errors.Is(err, syscall.EISDIR) {
						err = fmt.Errorf("%s: a directory, expected a file: give the vocabulary.txt in it", t.vocabulary)
					}
					return nil, fmt.Errorf("--vocabulary: %w", err)
				}
			}
			return importer.Text(ctx, files, t.words)
		},
	}
}
