package launcher

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/pmi"
)

// Under storeKey node 0 puts its card into the step's store, and under absentKey a task that
// ends before it comes there says so.
const (
	storeKey  = "ebtrain"
	absentKey = "ebtrain-absent"
)

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
		return "failed " + storable(c.failure)
	}
	return "at " + c.endpoint + " " + hex.EncodeToString(c.key)
}

// storable is text as the store takes it.
func storable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r == ';' || r < ' ' {
			return ','
		}
		return r
	}, text)
	return strings.ToValidUTF8(text[:min(len(text), maxFailure)], "")
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
// within o.JoinWait. While they do not, a line tells of it now and then.
func openStore(ctx context.Context, o Options, environ []string, log *slog.Logger) (*store, error) {
	ctx, stop := context.WithTimeoutCause(ctx, o.JoinWait, fmt.Errorf("not all %d tasks of the step have come within %v", o.Nodes, o.JoinWait))
	c, err := pmi.Open(ctx, environ)
	if err == nil && (c.Rank != o.NodeRank || c.Size != o.Nodes) {
		err = errors.Join(fmt.Errorf("PMI says that this is task %d of %d, the environment says %d of %d", c.Rank, c.Size, o.NodeRank, o.Nodes), c.Close())
	}
	if err != nil {
		stop()
		return nil, err
	}
	if o.NodeRank <= 1 { // two suffice, one of which may be who is missing otherwise
		go remind(ctx, remindAfter, func(waited time.Duration) {
			if o.Step.Source == env.SourceSLURM {
				log.Warn("not all tasks of the step have come to its store (srun names one that has ended; with --wait=60 it ends the others then)", "tasks", o.Nodes, "waited", waited, "waits", o.JoinWait)
				return
			}
			log.Warn("not all tasks of the step have come to its store", "tasks", o.Nodes, "waited", waited, "waits", o.JoinWait)
		})
	}
	return &store{c, stop}, nil
}

// remind calls say after a time, with it, and again at twice that, until ctx ends.
func remind(ctx context.Context, after time.Duration, say func(waited time.Duration)) {
	for waited := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(max(after, waited)):
			waited = max(after, 2*waited)
			say(waited)
		}
	}
}

// publish is node 0's part.
func (s *store) publish(mine card) error {
	defer s.stop()
	err := s.client.Put(storeKey, mine.encode())
	if err == nil {
		err = s.meet()
	}
	return errors.Join(err, s.client.Close())
}

// meet waits until all tasks have come, also those that only say that they do not take part.
func (s *store) meet() error {
	if err := s.client.Fence(); err != nil {
		return err
	}
	who, absent, err := s.client.Find(absentKey)
	if err == nil && absent {
		err = errors.New(who)
	}
	return err
}

// learn is the other launchers' part.
func (s *store) learn() (card, error) {
	defer s.stop()
	text := ""
	err := s.meet()
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
