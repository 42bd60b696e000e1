package supervise

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"ebtrain/launch/outlet"
)

// However long the lines of several ranks are, and however many wait for their equals, who
// reads gets all of them.
func TestNothingIsLeftOut(t *testing.T) {
	for _, length := range []int{10, 10_000, 300_000, 700_000, maxLine} {
		t.Run(fmt.Sprint(length), func(t *testing.T) {
			const ranks = 4
			lines := max(4, min(1000, 20*maxLine/length/ranks))
			r, w := io.Pipe()
			out, errs := outlet.Pair(w, w)
			c := newConsole(out, errs, false, nil, ranks)
			go func() {
				var all sync.WaitGroup
				for rank := range ranks {
					all.Go(func() {
						for i := range lines {
							text := fmt.Sprintf("%d %d ", rank, i)
							c.line(rank, i%2, text+strings.Repeat("x", length-len(text)))
						}
					})
				}
				all.Wait()
				_ = c.flush()
				_ = w.Close()
			}()
			got := map[string]int{}
			in := bufio.NewReader(r)
			for {
				line, err := in.ReadString('\n')
				if err != nil {
					break
				}
				f := strings.Fields(line)
				if len(f) != 4 || len(line) != len("[0] ")+length+1 {
					t.Errorf("%d bytes: %.80q", len(line), line)
					continue
				}
				if fmt.Sprint(got[f[1]]) != f[2] {
					t.Errorf("line %s of rank %s comes after %d lines", f[2], f[1], got[f[1]])
				}
				got[f[1]]++
			}
			for rank := range ranks {
				if n := got[fmt.Sprint(rank)]; n != lines {
					t.Errorf("%d of %d lines of rank %d come", n, lines, rank)
				}
			}
		})
	}
}
