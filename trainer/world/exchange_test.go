package world

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"

	"ebtrain/collective/host"
	"ebtrain/launch/rendezvous"
)

// What is longer than an exchange takes comes whole to all ranks, and so does what is
// nothing, or fills exchanges to the last byte.
func TestBroadcast(t *testing.T) {
	for _, size := range []int{0, 1, rendezvous.MaxBlob, 2*rendezvous.MaxBlob + 7} {
		text := bytes.Repeat([]byte("0123456"), size/7+1)[:size]
		exchanges := host.MemExchange(3)
		var wg sync.WaitGroup
		for r := range 3 {
			swap := Exchange(func(ctx context.Context, name string, mine []byte) ([][]byte, error) {
				if len(mine) > rendezvous.MaxBlob {
					return nil, fmt.Errorf("%s: %d bytes", name, len(mine))
				}
				return exchanges[r](ctx, name, mine)
			})
			wg.Go(func() {
				mine := []byte("of nobody's interest")
				if r == 1 {
					mine = text
				}
				if got, err := swap.Broadcast(t.Context(), "a text", r, 1, mine); err != nil || !bytes.Equal(got, text) {
					t.Errorf("rank %d got %d bytes of %d, %v", r, len(got), size, err)
				}
			})
		}
		wg.Wait()
	}
}
