package cuda

import (
	"context"
	"fmt"
	"time"
)

// Flags of events.
const (
	eventUntimed   = 2
	recordExternal = 1
)

// Event is a place in a stream that other streams and the host can wait for.
type Event struct {
	d      *Device
	handle uintptr
}

// NewEvent makes an event; only a timed one can be given to Elapsed.
func (d *Device) NewEvent(timed bool) (*Event, error) {
	flags := uint32(eventUntimed)
	if timed {
		flags = 0
	}
	h, code := d.drv.event(d.ctx, flags)
	if err := d.check("cuEventCreate", code); err != nil {
		return nil, err
	}
	return &Event{d: d, handle: h}, nil
}

// Handle is the CUevent, for other libraries.
func (e *Event) Handle() uintptr { return e.handle }

// Close frees the event, if need be once it is over.
func (e *Event) Close() error {
	if e.handle == 0 {
		return nil
	}
	h := e.handle
	e.handle = 0
	return e.d.closing("cuEventDestroy_v2", e.d.drv.eventClose(e.d.ctx, h))
}

// Query says whether the event is over: what was queued before its last Record
// is done. An event that was never recorded is over.
func (e *Event) Query() (bool, error) {
	return done(e.d.drv.eventQuery(e.d.ctx, e.handle), func(code int) error { return e.d.check("cuEventQuery", code) })
}

// Sync waits until the event is over, as Stream.Sync does.
func (e *Event) Sync(ctx context.Context) error {
	if ctx.Done() == nil {
		return e.d.check("cuEventSynchronize", e.d.drv.eventSync(e.d.ctx, e.handle))
	}
	return poll(ctx, e.Query)
}

// Elapsed is the time between two timed events that are over, with a resolution
// of about half a microsecond.
func (d *Device) Elapsed(from, to *Event) (time.Duration, error) {
	ms, code := d.drv.eventElapsed(d.ctx, from.handle, to.handle)
	if err := d.check("cuEventElapsedTime", code); err != nil {
		return 0, err
	}
	return time.Duration(float64(ms) * float64(time.Millisecond)), nil
}

// Record puts the event after what is queued. In a capture it is no operation of
// its own: it marks where other streams join.
func (s *Stream) Record(e *Event) error {
	return s.check("cuEventRecordWithFlags", s.d.drv.eventRecord(s.d.ctx, e.handle, s.handle, 0))
}

// RecordExternal records the event for the world outside of a capture: in the
// graph it is a node, which records each time that the graph runs.
func (s *Stream) RecordExternal(e *Event) error {
	return s.check("cuEventRecordWithFlags", s.d.drv.eventRecord(s.d.ctx, e.handle, s.handle, recordExternal))
}

// WaitEvent makes what is queued later wait for the event's last Record. In a
// capture it joins this stream to the capture in which the event was recorded.
func (s *Stream) WaitEvent(e *Event) error {
	return s.check("cuStreamWaitEvent", s.d.drv.streamWait(s.d.ctx, s.handle, e.handle, 0))
}

// Wait makes stream s wait for all that is queued on another, by an event of its
// own choice.
func (s *Stream) Wait(other *Stream, e *Event) error {
	if err := other.Record(e); err != nil {
		return err
	}
	if err := s.WaitEvent(e); err != nil {
		return fmt.Errorf("waiting for stream %s: %w", other.name, err)
	}
	return nil
}
