package cuda

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// bodyDriver is the oldest driver whose graphs have conditional nodes as they are used
// here, as MinDriver is written.
const bodyDriver = 12040

// Kinds of nodes.
const (
	nodeKernel      = 0
	nodeCopy        = 1
	nodeFill        = 2
	nodeHost        = 3
	nodeGraph       = 4
	nodeEmpty       = 5
	nodeWait        = 6
	nodeRecord      = 7
	nodeAlloc       = 10
	nodeFree        = 11
	nodeConditional = 13
)

// kindNames are what people call them.
var kindNames = map[int]string{
	nodeKernel: "kernel", nodeCopy: "copy", nodeFill: "memset", nodeHost: "function of the host", nodeGraph: "graph", nodeEmpty: "empty node",
	nodeWait: "wait for an event", nodeRecord: "record of an event", nodeAlloc: "allocation", nodeFree: "release of memory", nodeConditional: "conditional node",
}

// bodyKinds are those that a body may hold, by the programming guide.
var bodyKinds = []int{nodeKernel, nodeCopy, nodeFill, nodeGraph, nodeEmpty, nodeConditional}

func kindName(kind int) string {
	if name, ok := kindNames[kind]; ok {
		return name
	}
	return fmt.Sprintf("node of kind %d", kind)
}

// resultUnused is the last of resultNames.
const resultUnused = 5

// resultNames are what an instantiation says of itself, by its number.
var resultNames = [resultUnused + 1]string{"no reason", "the reason that its code names", "invalid structure", "an operation that is not supported", "several contexts",
	"a condition that no node has"}

// CanBody says why the driver has no NewBody, nil if it has.
func (d *Device) CanBody() error {
	v, err := DriverVersion()
	switch {
	case err != nil:
		return err
	case v < bodyDriver || !d.drv.bodies():
		return fmt.Errorf("%w: it serves CUDA %s, and conditional nodes of graphs need %s or newer (driver 550 or newer)", ErrDriverTooOld, versionText(v), versionText(bodyDriver))
	}
	return nil
}

// NewBody makes a graph of one node, a conditional one whose condition always holds, to
// be filled by BeginCaptureTo. What fills it lies on the device, which itself goes through
// it: the host launches one node.
//
// A body may hold kernels, copies, memsets and graphs of them alone: no function of the
// host's, no RecordExternal, no allocation; no kernel that launches others; copies between
// device memory and pinned memory only. Instantiate says ErrNoBody of others.
func (d *Device) NewBody() (*Graph, error) {
	if err := d.CanBody(); err != nil {
		return nil, err
	}
	h, code := d.drv.graph(d.ctx)
	if err := d.check("cuGraphCreate", code); err != nil {
		return nil, err
	}
	g := &Graph{d: d, handle: h}
	c, code := d.drv.condition(d.ctx, h)
	err := d.check("cuGraphConditionalHandleCreate", code)
	if err == nil {
		g.body, code = d.drv.addBody(d.ctx, h, c)
		err = d.check("cuGraphAddNode_v2", code)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

// BeginCaptureTo is BeginCapture into a graph of NewBody, which is empty yet; EndCaptureTo
// ends it.
func (s *Stream) BeginCaptureTo(g *Graph) error {
	return s.check("cuStreamBeginCaptureToGraph", s.d.drv.captureTo(s.d.ctx, s.handle, g.body))
}

// EndCaptureTo ends the recording into a graph, as EndCapture does. After an error the
// graph is good for nothing but Close.
func (s *Stream) EndCaptureTo(g *Graph) error {
	h, code := s.d.drv.captureEnd(s.d.ctx, s.handle)
	if err := s.check("cuStreamEndCapture", code); err != nil {
		return err
	}
	if h != g.body { // NULL, or nothing that is known
		return fmt.Errorf("stream %s: the capture was spoiled by a call that it does not allow", s.name)
	}
	n, code := s.d.drv.graphNodes(s.d.ctx, g.body)
	g.nodes = n + 1
	return s.check("cuGraphGetNodes", code)
}

// node is one of a body, with its kind.
type node struct {
	handle uintptr
	kind   int
}

// bodyNodes lists what the body holds.
func (g *Graph) bodyNodes() ([]node, error) {
	handles, code := g.d.drv.nodes(g.d.ctx, g.body, g.nodes-1)
	if err := g.d.check("cuGraphGetNodes", code); err != nil {
		return nil, err
	}
	list := make([]node, len(handles))
	for i, h := range handles {
		kind, code := g.d.drv.nodeKind(g.d.ctx, h)
		if err := g.d.check("cuGraphNodeGetType", code); err != nil {
			return nil, err
		}
		list[i] = node{h, kind}
	}
	return list, nil
}

// instantiateBody is Instantiate of a body. Where the driver refuses it, the error has all
// that the driver says of why, as its code alone is that of any wrong argument; what it is
// known to refuse is named before it is asked.
func (g *Graph) instantiateBody() (*Exec, error) {
	list, err := g.bodyNodes()
	if err != nil {
		return nil, err
	}
	for i, n := range list {
		if !slices.Contains(bodyKinds, n.kind) {
			return nil, fmt.Errorf("%w: node %d of %d is a %s, which no body may hold", ErrNoBody, i, len(list), kindName(n.kind))
		}
	}
	return g.instantiateHolder(list)
}

// instantiateHolder instantiates the graph whose body those nodes are.
func (g *Graph) instantiateHolder(list []node) (*Exec, error) {
	exec, at, result, code := g.d.drv.instantiateBody(g.d.ctx, g.handle)
	if err := g.d.check("cuGraphInstantiateWithParams", code); err != nil {
		return nil, fmt.Errorf("%w: %s: %w; the driver names %s, %s", ErrNoBody, contents(list), err, resultName(result), failedAt(list, at))
	}
	return &Exec{d: g.d, handle: exec, nodes: g.nodes}, nil
}

func resultName(result int) string {
	if result >= 0 && result < len(resultNames) {
		return resultNames[result]
	}
	return fmt.Sprintf("reason %d", result)
}

// failedAt says which node an instantiation failed at.
func failedAt(list []node, at uintptr) string {
	if at == 0 {
		return "at no node"
	}
	for i, n := range list {
		if n.handle == at {
			return fmt.Sprintf("at node %d of %d, a %s", i, len(list), kindName(n.kind))
		}
	}
	return "at a node that is not the body's own"
}

// contents counts nodes by kind: "3 × kernel, 1 × memset".
func contents(list []node) string {
	counts := map[int]int{}
	for _, n := range list {
		counts[n.kind]++
	}
	var words []string
	for kind := range nodeConditional + 1 {
		if counts[kind] > 0 {
			words = append(words, fmt.Sprintf("%d × %s", counts[kind], kindName(kind)))
		}
	}
	return strings.Join(words, ", ")
}
