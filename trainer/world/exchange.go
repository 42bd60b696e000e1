package world

import (
	"context"
	"fmt"

	"ebtrain/launch/rendezvous"
)

// Exchange is an all-gather of small blobs: see rendezvous.Group.
type Exchange func(ctx context.Context, name string, mine []byte) ([][]byte, error)

// Broadcast is the text of rank root, of any length, on all ranks: it goes in pieces, since
// an exchange has room for rendezvous.MaxBlob bytes of a rank. All ranks call it; only
// root's text is looked at. rank is this one's.
func (swap Exchange) Broadcast(ctx context.Context, name string, rank, root int, text []byte) ([]byte, error) {
	var all []byte
	for part := 0; ; part++ {
		var mine []byte
		if rank == root {
			mine = text[len(all):min(len(all)+rendezvous.MaxBlob, len(text))]
		}
		pieces, err := swap(ctx, fmt.Sprintf("%s, part %d", name, part), mine)
		if err != nil {
			return nil, err
		}
		all = append(all, pieces[root]...)
		if len(pieces[root]) < rendezvous.MaxBlob { // which may be empty, and is the last
			return all, nil
		}
	}
}
