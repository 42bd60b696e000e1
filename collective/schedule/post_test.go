package schedule

import (
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
