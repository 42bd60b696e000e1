package control

import (
	"math"
	"reflect"
	"slices"
	"testing"
)

// lines are sentences of 1 to 4 words, of which word 4 is half of all.
func lines() (all [][]int32) {
	for i := range 40 {
		s := []int32{1}
		for j := range 1 + i%4 {
			s = append(s, int32(4+(i+j)%2*(1+j)))
		}
		all = append(all, append(s, 2))
	}
	return all
}

// frequency is the share of word 4, of n words.
func frequency(sentences [][]int32) (share float64, n int) {
	for _, s := range sentences {
		for _, w := range s[1 : len(s)-1] {
			n++
			if w == 4 {
				share++
			}
		}
	}
	return share / float64(n), n
}

func TestUnigram(t *testing.T) {
	from := lines()
	long := Some(from, 4000, 1)
	before := slices.Clone(long[0])
	got := Unigram(long, from, 5)
	want, _ := frequency(from)
	if share, n := frequency(got); !(math.Abs(share-want) <= 3*math.Sqrt(0.25/float64(n))) {
		t.Errorf("a word is %v of all, want %v", share, want)
	}
	next := 0
	for i, s := range got {
		if len(s) != len(long[i]) || s[0] != 1 || s[len(s)-1] != 2 {
			t.Fatalf("%v of %v", s, long[i])
		}
		if len(s) > 3 && s[1] == 4 && s[2] == 4 { // never next to each other in from
			next++
		}
	}
	if next == 0 {
		t.Error("words follow each other as in the text")
	}
	if !slices.Equal(long[0], before) || !reflect.DeepEqual(got, Unigram(long, from, 5)) || reflect.DeepEqual(got, Unigram(long, from, 6)) {
		t.Error("words are not named by seed and place, or what was given has changed")
	}
}

func TestShuffledWords(t *testing.T) {
	from := [][]int32{{1, 2}, {1, 4, 2}, {1, 4, 5, 6, 7, 8, 9, 2}, {1, 4, 5, 6, 7, 8, 9, 2}}
	got := ShuffledWords(from, 3)
	for i, s := range got {
		sorted := slices.Clone(s)
		if len(s) > 2 {
			slices.Sort(sorted[1 : len(s)-1])
		}
		if !slices.Equal(sorted, from[i]) {
			t.Errorf("%v of %v", s, from[i])
		}
	}
	if reflect.DeepEqual(got, ShuffledWords(from, 4)) {
		t.Error("two seeds shuffle alike")
	}
	if slices.Equal(got[2], from[2]) || slices.Equal(got[2], got[3]) {
		t.Errorf("orders %v", got)
	}
}

func TestSome(t *testing.T) {
	from := lines()
	few := Some(from[:3], 7, 1)
	if len(few) != 7 || !slices.Equal(few[0], few[3]) || !slices.Equal(few[0], few[6]) || slices.Equal(few[0], few[1]) {
		t.Errorf("%v", few)
	}
	if reflect.DeepEqual(Some(from, 40, 1), Some(from, 40, 2)) {
		t.Error("the order is not by seed")
	}
}
