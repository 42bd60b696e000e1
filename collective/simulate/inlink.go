package simulate

import "slices"

// inlink is when the way into a host carries something: intervals of time in order,
// none of which touch. What is waited for last may have come first, in a time in which
// the link had nothing else to carry.
type inlink []interval

type interval struct{ begin, end float64 }

// carry takes so many microseconds of the link from begin on, whenever it is free, and
// is when they are over.
func (l *inlink) carry(begin, us float64) float64 {
	if us <= 0 {
		return begin
	}
	at, i := begin, 0
	for ; i < len(*l) && (*l)[i].end < at; i++ {
	}
	first := interval{at, at}
	from := i
	for ; i < len(*l); i++ {
		b := (*l)[i]
		if free := b.begin - at; free > 0 && free >= us {
			break
		} else if free > 0 {
			us -= free
		}
		at = max(at, b.end)
		first.begin = min(first.begin, b.begin)
	}
	first.end = at + us
	if i < len(*l) && (*l)[i].begin <= first.end {
		first.end = max(first.end, (*l)[i].end)
		*l = slices.Replace(*l, from, i+1, first)
	} else {
		*l = slices.Replace(*l, from, i, first)
	}
	return at + us
}

// forget leaves the last interval alone: what came before it is over.
func (l *inlink) forget() {
	if n := len(*l); n > 1 {
		(*l)[0] = (*l)[n-1]
		*l = (*l)[:1]
	}
}
