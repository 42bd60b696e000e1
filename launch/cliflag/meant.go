package cliflag

import (
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// OneOf is how a sentence about a word ends that is none of words: with those that were
// most likely meant or, where none is near, with all of them.
func OneOf(word string, words []string) string {
	if meant := Meant(word, words); meant != "" {
		return meant
	}
	return "want one of " + strings.Join(words, ", ")
}

// Meant is the end of a sentence about a word that is none of words, with those that were
// most likely meant; "" where none is near.
func Meant(word string, words []string) string {
	meant := nearest(word, words)
	if meant == nil {
		return ""
	}
	return "did you mean " + strings.Join(meant, " or ") + "?"
}

// nearest are those of words that are the fewest letters put in, left out or changed from
// word, in their order: none where that is more than one letter in three.
func nearest(word string, words []string) (found []string) {
	fewest := (len([]rune(word)) + 1) / 3
	for _, w := range words {
		n := distance(word, w)
		if n < fewest {
			fewest, found = n, nil
		}
		if n == fewest && n > 0 {
			found = append(found, w)
		}
	}
	return found
}

// distance is how many letters are put in, left out or changed between two words; two that
// have changed places are one.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	for i := range max(0, len(x)-1) {
		if len(x) == len(y) && x[i] == y[i+1] && x[i+1] == y[i] && slices.Equal(x[:i], y[:i]) && slices.Equal(x[i+2:], y[i+2:]) && x[i] != y[i] {
			return 1
		}
	}
	return levenshtein.ComputeDistance(a, b)
}

// nearestFlags are the flags of fs that --help shows and that are nearest to a name that
// fs has not, with dashes, in the order of the alphabet.
func nearestFlags(fs *pflag.FlagSet, name string) []string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	slices.Sort(names)
	found := nearest(strings.ReplaceAll(name, "_", "-"), names)
	for i := range found {
		found[i] = "--" + found[i]
	}
	return found
}
