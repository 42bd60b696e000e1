package host

import (
	"context"
	"log/slog"

	"ebtrain/collective"
)

// executor carries out one collective at a time, for whoever has taken it from
// the queue, and keeps the record.
type executor struct {
	mover
	alarm    *alarm
	size     int
	log      *slog.Logger
	recorder *collective.Recorder
	recorded uint64                           // what the recorder calls the collective begun last
	progress func(uint64, collective.Request) // nil, or told what is run, or waited in
	ended    func(uint64, error)              // nil, or told what has ended
}

// quick says whether begin may be done by Start.
func (e *executor) quick(req collective.Request) bool {
	return e.alarm.failure() == nil && req.Check(e.size) == nil && e.mover.quick(req)
}

// begin begins it, for Start. As nobody waits in it before execute, nobody is told yet.
func (e *executor) begin(it item) {
	e.recorded = e.recorder.Begin(it.seq, it.req)
	e.mover.count(it.zeros)
	e.mover.begin(it.seq, it.req)
}

// execute runs it, or what is left of it if it was begun. An error is the
// group's failure, which it is too if ctx has ended.
func (e *executor) execute(ctx context.Context, it item, begun bool) error {
	if ctx.Err() != nil {
		e.alarm.abort(context.Cause(ctx))
	}
	if !begun {
		if f := e.alarm.failure(); f != nil {
			return f
		}
		e.recorded = e.recorder.Begin(it.seq, it.req)
	}
	if e.progress != nil {
		e.progress(it.seq, it.req)
	}
	err := e.carryOut(ctx, it, begun)
	if err != nil {
		err = e.alarm.conclude(err)
	}
	e.recorder.End(e.recorded, err)
	if e.ended != nil {
		e.ended(it.seq, err)
	}
	if err != nil {
		e.log.Warn("collective failed", "seq", it.seq, "kind", it.req.Kind.String(), "label", it.req.Label,
			"err", err)
		for _, r := range e.recorder.Recent() {
			e.log.Warn("flight", "collective", r.String())
		}
	}
	return err
}

func (e *executor) carryOut(ctx context.Context, it item, begun bool) (err error) {
	if it.alloc != nil {
		it.alloc.mem, err = e.alloc(ctx, it.seq, it.alloc.n)
		return err
	}
	if it.within != nil {
		return e.mover.(*deviceMover).within(ctx, it)
	}
	if it.roll {
		return e.mover.(*deviceMover).roll(ctx, it)
	}
	if !begun {
		if err := it.req.Check(e.size); err != nil {
			return err
		}
		e.mover.count(it.zeros)
		e.mover.begin(it.seq, it.req)
	}
	return e.finish(ctx, it.req)
}
