package launcher

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"

	"ebtrain/launch/pmi"
)

// storeKey is under what node 0 puts its card into the step's store.
const storeKey = "ebtrain"

// card is what node 0 tells the other launchers of its step before they connect.
// Only they can read the store.
type card struct {
	endpoint string
	key      []byte // nil if they have it
	failure  string // why there is nothing to connect to; the rest is empty then
}

const maxFailure = 500 // bytes

func (c card) encode() string {
	if c.failure != "" {
		text := strings.Map(func(r rune) rune {
			if r == ';' || r < ' ' {
				return ','
			}
			return r
		}, c.failure)
		return "failed " + text[:min(len(text), maxFailure)]
	}
	return "at " + c.endpoint + " " + hex.EncodeToString(c.key)
}

func decodeCard(text string) (c card, err error) {
	if why, failed := strings.CutPrefix(text, "failed "); failed {
		return card{failure: why}, nil
	}
	rest, ok := strings.CutPrefix(text, "at ")
	endpoint, key, two := strings.Cut(rest, " ")
	if !ok || !two || endpoint == "" {
		return c, fmt.Errorf("%q is not what node 0 puts into the step's store", text)
	}
	c.endpoint = endpoint
	if key != "" {
		c.key, err = hex.DecodeString(key)
	}
	return c, err
}

// store is the step's store of keys and values, used once: node 0 puts its
// card, all meet, the others get it.
type store struct {
	client *pmi.Client
	stop   context.CancelFunc
}

// openStore opens the store of this launcher's step; all tasks must come to it
// within o.JoinWait.
func openStore(ctx context.Context, o Options, environ []string) (*store, error) {
	ctx, stop := context.WithTimeoutCause(ctx, o.JoinWait, fmt.Errorf("not all %d tasks of the step have come within %v", o.Nodes, o.JoinWait))
	c, err := pmi.Open(ctx, environ)
	if err == nil && (c.Rank != o.NodeRank || c.Size != o.Nodes) {
		err = errors.Join(fmt.Errorf("PMI says that this is task %d of %d, the environment says %d of %d", c.Rank, c.Size, o.NodeRank, o.Nodes), c.Close())
	}
	if err != nil {
		stop()
		return nil, err
	}
	return &store{c, stop}, nil
}

// publish is node 0's part.
func (s *store) publish(mine card) error {
	defer s.stop()
	err := s.client.Put(storeKey, mine.encode())
	if err == nil {
		err = s.client.Fence()
	}
	return errors.Join(err, s.client.Close())
}

// learn is the other launchers' part.
func (s *store) learn() (card, error) {
	defer s.stop()
	text := ""
	err := s.client.Fence()
	if err == nil {
		text, err = s.client.Get(storeKey)
	}
	if err = errors.Join(err, s.client.Close()); err != nil {
		return card{}, err
	}
	c, err := decodeCard(text)
	if err == nil && c.failure != "" {
		err = fmt.Errorf("node 0 did not come to listen: %s", c.failure)
	}
	return c, err
}
