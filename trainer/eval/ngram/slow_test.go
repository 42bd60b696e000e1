package ngram

import (
	"fmt"
	"strings"

	"ebtrain/data"
)

// slow is the same model by its definition: every count is taken by looking at all
// sentences again.
type slow struct {
	order, words int
	sentences    [][]int32
	a            []map[string]int // of n-grams of each length, as adjusted gives them
}

func newSlow(order, words int, sentences [][]int32) slow {
	m := slow{order: order, words: words, sentences: sentences, a: make([]map[string]int, 1)}
	for k := range order {
		m.a = append(m.a, m.adjusted(k+1))
	}
	return m
}

// grams are the different n-grams of k words whose last is predicted, and how often
// each is there.
func (m slow) grams(k int) map[string]int {
	all := map[string]int{}
	for _, s := range m.sentences {
		for from := 0; from+k <= len(s); from++ {
			if from+k > 1 { // a begin alone is not predicted
				all[text(s[from:from+k])]++
			}
		}
	}
	return all
}

func text(s []int32) string { return strings.Trim(fmt.Sprint(s), "[]") }

// adjusted are a of all n-grams of k words.
func (m slow) adjusted(k int) map[string]int {
	all := m.grams(k)
	if k == m.order {
		return all
	}
	begin := fmt.Sprint(data.Begin)
	longer := m.grams(k + 1)
	for g := range all {
		if g == begin || strings.HasPrefix(g, begin+" ") {
			continue
		}
		all[g] = 0
		for longer := range longer {
			if _, rest, _ := strings.Cut(longer, " "); rest == g {
				all[g]++
			}
		}
	}
	return all
}

// discount are D(1), D(2), D(3) of n-grams of k words.
func (m slow) discount(k int) [3]float64 {
	var t [5]float64
	for _, a := range m.a[k] {
		if a <= 4 {
			t[a]++
		}
	}
	y := t[1] / (t[1] + 2*t[2])
	d := [3]float64{1 - 2*y*t[2]/t[1], 2 - 3*y*t[3]/t[2], 3 - 4*y*t[4]/t[3]}
	for i, x := range d {
		if t[i+2] == 0 || !(x > 0 && x <= float64(i+1)) {
			return [3]float64{0.5, 1, 1.5}
		}
	}
	return d
}

// p is the probability of a word after a context of k − 1 words at most.
func (m slow) p(context []int32, word int32) float64 {
	if len(context) >= m.order {
		context = context[len(context)-m.order+1:]
	}
	lower := 1 / float64(m.words-2)
	if len(context) > 0 {
		lower = m.p(context[1:], word)
	}
	k := len(context) + 1
	a, d := m.a[k], m.discount(k)
	take := func(n int) float64 {
		if n == 0 {
			return 0
		}
		return d[min(n, 3)-1]
	}
	sum, kept, own := 0, 0.0, 0.0
	for v := int32(data.End); int(v) < m.words; v++ {
		n := a[text(append(append([]int32(nil), context...), v))]
		sum += n
		kept += take(n)
		if v == word {
			own = float64(n) - take(n)
		}
	}
	if sum == 0 {
		return lower
	}
	return own/float64(sum) + kept/float64(sum)*lower
}
