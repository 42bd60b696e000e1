package schedule

import (
	"fmt"
	"slices"
	"testing"

	"ebtrain/collective"
)

// TestPosts: a leader waits for all that it gives memory to, once, in that order for each
// sort, and for nothing else; and it has met the others' requests before it combines anything.
func TestPosts(t *testing.T) {
	type piece struct {
		what   What
		lo, hi int
	}
	for kind := collective.AllReduce; kind <= collective.Broadcast; kind++ {
		for _, hosts := range []int{2, 3, 30, 100} {
			for _, locals := range []int{1, 2} {
				for _, elems := range []int{1, 700, 20_000, 40_000, 2_000_000} {
					c := Call{Kind: kind, Bytes: 4 * elems * hosts * locals, Elem: 4, Wide: 4, Ranks: hosts * locals, Hosts: hosts, Locals: locals,
						Rounds: len(Rounds(0, hosts)), Root: true, RootHost: true, All: true}
					if g := GridOf(hosts); g.Worth(c.Bytes) {
						c.Width = g.Width
					}
					for _, root := range []bool{true, false} {
						c.Root, c.RootHost = root, root
						var posted []piece
						agreed := false
						for _, s := range c.Rest(c.Open(nil)) {
							p := piece{s.What, s.Lo, s.Hi}
							switch {
							case s.Do == Agree || s.What == Whole && s.Do == Wait:
								agreed = true
							case s.Do == Combine && !agreed:
								t.Errorf("%+v: %+v comes before the others' headers", c, s)
							case s.Do == Post && s.What != Whole:
								posted = append(posted, p)
							case s.Do == Wait:
								at := 0
								for at < len(posted) && posted[at].what != s.What {
									at++
								}
								if at == len(posted) || posted[at] != p {
									t.Fatalf("%+v: it waits for %+v, having posted %+v", c, p, posted)
								}
								posted = append(posted[:at], posted[at+1:]...)
							}
						}
						if len(posted) > 0 || !agreed {
							t.Errorf("%+v: it never waits for %+v; agreed: %v", c, posted, agreed)
						}
					}
				}
			}
		}
	}
}

// TestHostsOfAllKinds: leaders send and give memory to the same pieces in the same order, on
// every sort of connection, whether their hosts reduce in place or stage; and, but of a
// broadcast, what they send is what others wait for.
func TestHostsOfAllKinds(t *testing.T) {
	kinds := []Call{{Locals: 1, All: true}, {Locals: 1}, {Locals: 2, All: true}, {Locals: 2, Some: true}, {Locals: 8}}
	for kind := collective.AllReduce; kind <= collective.Broadcast; kind++ {
		for _, hosts := range []int{2, 5, 30, 100, 288, 500, 1025} {
			for _, bytes := range []int{64, Doubles + 64, 3 << 20, 9 << 20, 25 << 20} {
				var first []string
				for _, c := range kinds {
					c.Kind, c.Elem, c.Wide, c.Ranks, c.Hosts, c.Rounds = kind, 4, 4, 8*hosts, hosts, len(Rounds(0, hosts))
					c.Bytes = bytes / (4 * c.Ranks) * 4 * c.Ranks
					if g := GridOf(hosts); g.Worth(c.Bytes) {
						c.Width = g.Width
					}
					sent, posted := c.exchanged(Send), c.exchanged(Post)
					if first == nil {
						first = sent
					}
					if !slices.Equal(sent, first) || kind != collective.Broadcast && !slices.Equal(posted, sent) {
						t.Errorf("%+v sends %q and waits for %q, %+v sends %q", c, sent, posted, kinds[0], first)
					}
				}
			}
		}
	}
}

// exchanged are the pieces that a leader sends or gives memory to: in rows, in columns, and
// with all others.
func (c Call) exchanged(do Verb) []string {
	text := make([]string, 3)
	for _, s := range c.Rest(c.Open(nil)) {
		if s.Do != do || s.What == Whole { // which is read where it is small, without memory of its own
			continue
		}
		sort := 2
		switch s.What {
		case RowAddends, RowResults:
			sort = 0
		case ColumnAddends, ColumnResults:
			sort = 1
		}
		text[sort] += fmt.Sprint(s.What, s.Lo, "-", s.Hi, "/", s.Round, " ")
	}
	return text
}
