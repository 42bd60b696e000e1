package loop

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize/english"

	"ebtrain/collective"
	"ebtrain/data"
)

// Data that cannot be read must not cost the steps that are done. So a rank
// waits for the batch of step n+1 before it runs step n, and if there is none,
// asks all ranks with step n's own collectives to stop after it. They then write
// a checkpoint, and all end with the error of the rank that had it.

// noticeBytes is how much of an error the other ranks get to see.
const noticeBytes = 1024

// lookAhead waits for the batch of the step after this one, if there is one.
func (t *Trainer) lookAhead(ctx context.Context, step int64) error {
	if step+1 >= t.cfg.Steps {
		return nil
	}
	t.unread = t.parts.Loader.Ready(ctx)
	return context.Cause(ctx)
}

// firstBatch waits for the first step's batch, on all ranks.
func (t *Trainer) firstBatch(ctx context.Context) error {
	if t.next >= t.cfg.Steps {
		return nil
	}
	t.tell(t.next, "load")
	t.unread = t.parts.Loader.Ready(ctx)
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := t.unreadable(ctx); err != nil {
		return fmt.Errorf("step %d: %w", t.next, err)
	}
	return nil
}

// AdviseOnDamage is err, of reading data; if they are damaged, and the run does not leave such
// out already, with how it would.
func AdviseOnDamage(err error, leavesOut bool) error {
	if _, damaged := errors.AsType[*data.CorruptError](err); !damaged || leavesOut {
		return err
	}
	return fmt.Errorf("%w, or leave out what is damaged with --on-bad-data skip", err)
}

// unreadable is why some rank could not make its next batch, and what to do: its own
// reason, or that of the first rank that has one. nil if all could. All ranks call it.
func (t *Trainer) unreadable(ctx context.Context) error {
	own := AdviseOnDamage(t.unread, t.parts.Loader.LeavesOut())
	if t.parts.Comm == nil {
		return own
	}
	all := make([]byte, t.world()*noticeBytes)
	if own != nil {
		copy(all[t.rank()*noticeBytes:(t.rank()+1)*noticeBytes], own.Error())
	}
	err := collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.AllGather, Vec: collective.VecOf(all), Label: "data that cannot be read"})
	if err != nil {
		return errors.Join(err, own)
	}
	if own != nil {
		return fmt.Errorf("rank %d: %w", t.rank(), own)
	}
	for r := range t.world() {
		if text := bytes.TrimRight(all[r*noticeBytes:(r+1)*noticeBytes], "\x00"); len(text) > 0 {
			return fmt.Errorf("rank %d: %s", r, text)
		}
	}
	return nil
}

// noData is the error of a run that has ended for want of data.
func (t *Trainer) noData(cause error) error {
	if t.cfg.CkptDir == "" {
		return fmt.Errorf("step %d: %w", t.next, cause)
	}
	return fmt.Errorf("step %d: %w; a checkpoint of the %s done is in place: go on from it with --resume",
		t.next, cause, english.Plural(int(t.next), "step", ""))
}

// listDamage says at the end of a run how much it has left out.
func (t *Trainer) listDamage() {
	if blocks := t.parts.Loader.Damaged(); t.rank() == 0 && len(blocks) > 0 {
		t.parts.Log.Warn("this run has left out damaged data, which the checkpoint lists; copy or import the data set again", "blocks", len(blocks), "of", t.parts.Loader.Blocks())
	}
}

// shareDamage tells all ranks of the damaged blocks that each has left out, so
// that a checkpoint lists them all.
func (t *Trainer) shareDamage(ctx context.Context) error {
	l := t.parts.Loader
	if t.parts.Comm == nil || !l.LeavesOut() {
		return nil
	}
	bad := make([]byte, l.Blocks())
	for _, b := range l.Damaged() {
		bad[b] = 1
	}
	err := collective.Do(ctx, t.parts.Comm, collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(bad), Label: "damaged blocks"})
	if err != nil {
		return err
	}
	var list []int
	for b, is := range bad {
		if is != 0 {
			list = append(list, b)
		}
	}
	l.Exclude(list)
	return nil
}
