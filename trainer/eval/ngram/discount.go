package ngram

// Discounts are what is taken from the counts of n-grams of one length that have the
// count 1, 2, and 3 or more.
type Discounts struct {
	D [3]float64
	// Guessed says that there were too few n-grams to estimate them, so that the usual
	// ones stand in their place.
	Guessed bool
}

// usual are for lengths of which some t_i is 0, or an estimate is out of its range, as
// happens with few sentences: those that the authors of [H] take then.
var usual = [3]float64{0.5, 1, 1.5}

// of is D(a).
func (d Discounts) of(a uint64) float64 {
	if a == 0 {
		return 0
	}
	return d.D[min(a, 3)-1]
}

// estimate are the discounts of n-grams of which t[i] have the count i + 1
// [CG, eq. 26].
func estimate(t [4]float64) Discounts {
	var d Discounts
	y := t[0] / (t[0] + 2*t[1])
	for i := range d.D {
		k := float64(i + 1)
		d.D[i] = k - (k+1)*y*t[i+1]/t[i]
		if !(d.D[i] > 0 && d.D[i] <= k) || t[i+1] == 0 {
			return Discounts{usual, true}
		}
	}
	return d
}

// finish makes discounts of the counts, and sums of what follows each context.
func (m *Model) finish() {
	m.discounts = make([]Discounts, len(m.levels)-1)
	for k := range m.discounts {
		before, all := m.levels[k].grams, m.levels[k+1].grams
		var t [4]float64
		for _, g := range all {
			if g.count >= 1 && g.count <= 4 {
				t[g.count-1]++
			}
		}
		m.discounts[k] = estimate(t)
		for _, g := range all {
			before[g.context].total += float64(g.count)
			before[g.context].back += m.discounts[k].of(g.count)
		}
		for i := range before {
			if before[i].total > 0 {
				before[i].back /= before[i].total
			}
		}
	}
}

// Discounts are those of n-grams of 1, 2, … words.
func (m *Model) Discounts() []Discounts { return append([]Discounts(nil), m.discounts...) }
