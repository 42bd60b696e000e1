package cuda

import (
	"errors"
	"fmt"
)

// Graph is what a capture recorded.
type Graph struct {
	d      *Device
	handle uintptr
	body   uintptr // what was recorded, where it is the body of the graph's one node; the driver's, gone with the graph
	nodes  int
}

// Exec is a graph that can be launched. Launches of one Exec run one after the
// other.
type Exec struct {
	d      *Device
	handle uintptr
	nodes  int
}

// BeginCapture starts recording what is queued on the stream, and on streams
// that join by events, instead of running it. It ends on the same thread, so
// both belong into one Device.Do. Meanwhile this thread may not call what waits
// or allocates: a call that is forbidden fails and spoils the capture.
func (s *Stream) BeginCapture() error {
	return s.check("cuStreamBeginCapture_v2", s.d.drv.capture(s.d.ctx, s.handle))
}

// EndCapture ends the recording. Streams that joined must have been joined back
// by an event. Called after any error, too: the stream serves again afterwards.
func (s *Stream) EndCapture() (*Graph, error) {
	h, code := s.d.drv.captureEnd(s.d.ctx, s.handle)
	if err := s.check("cuStreamEndCapture", code); err != nil {
		return nil, err
	}
	if h == 0 {
		return nil, fmt.Errorf("stream %s: the capture was spoiled by a call that it does not allow", s.name)
	}
	g := &Graph{d: s.d, handle: h}
	var err error
	if g.nodes, code = s.d.drv.graphNodes(s.d.ctx, h); code != success {
		err = s.d.check("cuGraphGetNodes", code)
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// Capturing says whether the stream is being captured.
func (s *Stream) Capturing() (bool, error) {
	status, code := s.d.drv.capturing(s.d.ctx, s.handle)
	return status != 0, s.check("cuStreamIsCapturing", code)
}

// NodeCount is the number of operations recorded, and of the node that they are the body
// of, if they are one.
func (g *Graph) NodeCount() int { return g.nodes }

// Instantiate makes the graph ready to launch. The graph may be closed then, and one of
// NewBody has one Exec at a time.
func (g *Graph) Instantiate() (*Exec, error) {
	if g.body != 0 {
		return g.instantiateBody()
	}
	h, code := g.d.drv.instantiate(g.d.ctx, g.handle)
	if err := g.d.check("cuGraphInstantiateWithFlags", code); err != nil {
		return nil, fmt.Errorf("a graph of %d nodes: %w", g.nodes, err)
	}
	return &Exec{d: g.d, handle: h, nodes: g.nodes}, nil
}

// Close frees the graph.
func (g *Graph) Close() error {
	if g.handle == 0 {
		return nil
	}
	h := g.handle
	g.handle = 0
	return g.d.closing("cuGraphDestroy", g.d.drv.graphClose(g.d.ctx, h))
}

// NodeCount is the number of operations of the graph.
func (e *Exec) NodeCount() int { return e.nodes }

// Upload brings the graph to the device, so that its first launch is as fast as
// the others.
func (e *Exec) Upload(s *Stream) error {
	return s.check("cuGraphUpload", e.d.drv.execUpload(e.d.ctx, e.handle, s.handle))
}

// Launch queues a run of the graph on the stream.
func (e *Exec) Launch(s *Stream) error {
	return s.check("cuGraphLaunch", e.d.drv.execLaunch(e.d.ctx, e.handle, s.handle))
}

// Close frees the graph; runs that are queued still end.
func (e *Exec) Close() error {
	if e.handle == 0 {
		return nil
	}
	h := e.handle
	e.handle = 0
	return e.d.closing("cuGraphExecDestroy", e.d.drv.execClose(e.d.ctx, h))
}
