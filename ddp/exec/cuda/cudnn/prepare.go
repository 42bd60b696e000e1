//go:build cgo

package cudnn

// #include "shim.h"
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"ebtrain/ddp/exec/cuda/linalg"
)

// mostLate is how many plans that are compiled at run time, which takes a second or
// several each, are made for a problem.
const mostLate = 2

// Prepare returns plans for a convolution; none where cuDNN has no engine for it. What
// fails by itself is left out, and said.
func (l *Library) Prepare(p linalg.Problem, most int) (list []linalg.Candidate, err error) {
	conv, ok := p.(linalg.Conv)
	if !ok || !takes(conv.T) || most < 1 {
		return nil, nil
	}
	if err := conv.Check(); err != nil {
		return nil, err
	}
	err = l.dev.Attach(func() error {
		now, late, err := l.offers(conv, func([]int32) {}, func(bad error) {
			l.say(fmt.Sprintf("some of what cuDNN may have is left out for %v: %v", conv, bad))
		})
		if err != nil {
			return err
		}
		if list, err = l.plans(conv, now, most); err == nil && len(list) == 0 {
			list, err = l.plans(conv, late, min(most, mostLate))
		}
		return err
	})
	return list, err
}

// choice is an engine with its knobs.
type choice struct {
	Engine int64      `json:"engine"`
	Knobs  [][2]int64 `json:"knobs"`
}

// offers are the choices that the heuristics offer for a problem and that serve, in their
// order: those that are compiled already, and those that are compiled at run time. saw is
// told the notes of all, and failed of what fails by itself: a mode, a configuration, or
// the whole operation, of which nothing is offered then.
func (l *Library) offers(p linalg.Conv, saw func(notes []int32), failed func(error)) (now, late []choice, err error) {
	b := newBuilder(l)
	defer func() { err = cmp.Or(err, b.close()) }()
	g := b.operation(p)
	if b.spare(failed) || b.err != nil {
		return nil, nil, b.err
	}
	for _, mode := range [...]int32{C.EB_CUDNN_HEUR_MODE_A, C.EB_CUDNN_HEUR_MODE_FALLBACK} {
		for _, cfg := range b.configurations(g, mode, failed) {
			c, notes, behaviour := b.describe(cfg)
			if b.spare(failed) {
				continue
			}
			if b.err != nil {
				return nil, nil, b.err
			}
			saw(notes)
			switch {
			case unwanted(p.T, notes) != "":
			case slices.Contains(behaviour, C.EB_CUDNN_BEHAVIOR_NOTE_RUNTIME_COMPILATION):
				late = appendNew(late, c)
			default:
				now = appendNew(now, c)
			}
		}
	}
	return now, late, b.err
}

func appendNew(list []choice, c choice) []choice {
	same := func(d choice) bool { return d.Engine == c.Engine && slices.Equal(d.Knobs, c.Knobs) }
	if slices.ContainsFunc(list, same) {
		return list
	}
	return append(list, c)
}

// spare forgets an error by which cuDNN says that it cannot do it, or that tells more
// about what was asked than about the machine. Of the latter failed is told.
func (b *builder) spare(failed func(error)) bool {
	var e *Error
	switch {
	case !errors.As(b.err, &e) || e.lacks():
		return false
	case e.ofEngine():
		failed(b.err)
	case !e.Unsupported():
		return false
	}
	b.err = nil
	return true
}

// configurations are what the heuristics of a mode offer.
func (b *builder) configurations(g desc, mode int32, failed func(error)) []desc {
	h := b.create(C.EB_CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR)
	set(b, h, C.EB_CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, g)
	set(b, h, C.EB_CUDNN_ATTR_ENGINEHEUR_MODE, C.EB_CUDNN_TYPE_HEUR_MODE, mode)
	b.finalize(h)
	n := get(b, h, C.EB_CUDNN_ATTR_ENGINEHEUR_RESULTS, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, []desc(nil))
	list := b.createAll(C.EB_CUDNN_BACKEND_ENGINECFG_DESCRIPTOR, n)
	if n > 0 {
		n = min(n, get(b, h, C.EB_CUDNN_ATTR_ENGINEHEUR_RESULTS, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, list))
	}
	if b.spare(failed) || b.err != nil {
		return nil
	}
	return list[:n]
}

func (b *builder) createAll(kind C.int, n int) []desc {
	list := make([]desc, n)
	for i := range list {
		list[i] = b.create(kind)
	}
	return list
}

// maxKnobs and maxNotes are more than there are kinds of.
const maxKnobs, maxNotes = 64, 64

// describe reads a configuration.
func (b *builder) describe(cfg desc) (c choice, notes, behaviour []int32) {
	e := []desc{b.create(C.EB_CUDNN_BACKEND_ENGINE_DESCRIPTOR)}
	get(b, cfg, C.EB_CUDNN_ATTR_ENGINECFG_ENGINE, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, e)
	index := []int64{0}
	get(b, e[0], C.EB_CUDNN_ATTR_ENGINE_GLOBAL_INDEX, C.EB_CUDNN_TYPE_INT64, index)
	c.Engine = index[0]
	notes, behaviour = make([]int32, maxNotes), make([]int32, maxNotes)
	notes = notes[:min(maxNotes, get(b, e[0], C.EB_CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, C.EB_CUDNN_TYPE_NUMERICAL_NOTE, notes))]
	behaviour = behaviour[:min(maxNotes, get(b, e[0], C.EB_CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE, C.EB_CUDNN_TYPE_BEHAVIOR_NOTE, behaviour))]
	knobs := b.createAll(C.EB_CUDNN_BACKEND_KNOB_CHOICE_DESCRIPTOR, maxKnobs)
	knobs = knobs[:min(maxKnobs, get(b, cfg, C.EB_CUDNN_ATTR_ENGINECFG_KNOB_CHOICES, C.EB_CUDNN_TYPE_BACKEND_DESCRIPTOR, knobs))]
	for _, k := range knobs {
		kind, value := []int32{0}, []int64{0}
		get(b, k, C.EB_CUDNN_ATTR_KNOB_CHOICE_KNOB_TYPE, C.EB_CUDNN_TYPE_KNOB_TYPE, kind)
		get(b, k, C.EB_CUDNN_ATTR_KNOB_CHOICE_KNOB_VALUE, C.EB_CUDNN_TYPE_INT64, value)
		c.Knobs = append(c.Knobs, [2]int64{int64(kind[0]), value[0]})
	}
	return c, notes, behaviour
}

// plans makes at most most plans of choices. Left out are engines that turn out not to
// do the problem or to need too much memory, and, which is said, those that fail.
func (l *Library) plans(p linalg.Conv, choices []choice, most int) (list []linalg.Candidate, err error) {
	for _, c := range choices {
		if len(list) == most {
			break
		}
		pl, err := l.plan(p, c)
		var e *Error
		switch {
		case err == nil && pl.work <= l.workspace:
			list = append(list, pl)
			continue
		case err == nil:
			err = pl.release()
		case errors.As(err, &e) && e.Unsupported():
			continue
		case errors.As(err, &e) && e.ofEngine():
			l.say(fmt.Sprintf("%v is left out for %v: %v", c, p, err))
			continue
		}
		if err != nil {
			for _, made := range list {
				err = cmp.Or(err, made.(*plan).release())
			}
			return nil, err
		}
	}
	return list, nil
}
