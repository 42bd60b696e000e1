package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/world"
)

// ofEachHost are the flags that may differ between ranks: how a host works.
var ofEachHost = []string{"threads", "prefetch"}

// standing is what a rank tells the others of the run in its --out. Hosts with disks of
// their own may lack it, or have been absent when it went on with other flags.
type standing struct {
	Digest string    `json:"digest,omitempty"` // of the settings: runs of one are the same; "" without a run
	Flags  string    `json:"flags,omitempty"`  // the digest of those that a resume takes from it, on any host
	Start  time.Time `json:"start,omitzero"`   // of the newest
}

// standingOf is that of the run c; nil for none.
func standingOf(c *rundir.Config) (standing, error) {
	if c == nil {
		return standing{}, nil
	}
	flags := maps.Clone(c.Flags)
	maps.DeleteFunc(flags, func(name, _ string) bool { return slices.Contains(notInherited, name) || ofHost(name) })
	digest, err := rundir.Digest(flags)
	return standing{Digest: c.Digest, Flags: digest, Start: c.LastStart()}, err
}

// ofHost says whether a flag is a host's own: how it works, and where its data are.
func ofHost(flag string) bool { return flag == "data" || slices.Contains(ofEachHost, flag) }

// behind says that a rank of standing s has to be sent the run of standing newest: it has
// none, or that one with other flags. One that is another run stays what it is, and
// world.Same says how they differ.
func (s standing) behind(newest standing) bool {
	return s.Digest == "" || s.Digest == newest.Digest && s.Flags != newest.Flags
}

// newestOf is the first rank whose run was started last, -1 if there is no run.
func newestOf(all []standing) int {
	newest := -1
	for r, s := range all {
		if s.Digest != "" && (newest < 0 || s.Start.After(all[newest].Start)) {
			newest = r
		}
	}
	return newest
}

// foreign says that a rank of standing s has another run than that of rank 0, which has the
// job's once the job has been formed again.
func (s standing) foreign(first standing) bool {
	return s.Digest != "" && first.Digest != "" && s.Digest != first.Digest
}

// theRun is the run that goes on, as this rank is to take it: mine, if no host has newer
// flags for it, and else as the first rank has it that was there at the newest start; but
// what a host has of its own, where its data are, stays as it is in mine. mine may be nil,
// and so is the result if no rank has a run. All ranks call it, with what each has. The run
// itself, which may be megabytes of vocabulary, is sent by one rank, and only if one needs it.
func theRun(ctx context.Context, rank int, mine *rundir.Config, all []standing, swap world.Exchange) (*rundir.Config, error) {
	own, from := all[rank], newestOf(all)
	if from < 0 || !slices.ContainsFunc(all, func(s standing) bool { return s.behind(all[from]) }) {
		return mine, nil
	}
	var text []byte
	var err error
	if rank == from {
		if text, err = json.Marshal(mine); err != nil {
			return nil, err
		}
	}
	if text, err = swap.Broadcast(ctx, "the run that goes on", rank, from, text); err != nil {
		return nil, err
	}
	if !own.behind(all[from]) {
		return mine, nil
	}
	c, err := rundir.ParseConfig(fmt.Sprintf("config.json of rank %d", from), text)
	if err != nil || mine == nil {
		return &c, err
	}
	flags := map[string]string{}
	maps.Copy(flags, c.Flags)
	for name, value := range mine.Flags {
		if ofHost(name) {
			flags[name] = value
		}
	}
	c.Flags = flags
	return &c, nil
}

// standings are those of all ranks; own is this one's.
func standings(ctx context.Context, own standing, swap world.Exchange) ([]standing, error) {
	text, err := json.Marshal(own)
	if err != nil {
		return nil, err
	}
	texts, err := swap(ctx, "what each rank has of the run", text)
	if err != nil {
		return nil, err
	}
	all := make([]standing, len(texts))
	for r, text := range texts {
		if err := json.Unmarshal(text, &all[r]); err != nil {
			return nil, fmt.Errorf("what rank %d has of the run: %w", r, err)
		}
	}
	return all, nil
}
