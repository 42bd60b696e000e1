package launcher

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"ebtrain/launch/env"
	"ebtrain/launch/member"
	"ebtrain/launch/pmi"
	"ebtrain/launch/rendezvous"
)

// absentWait is how long a task that does not take part waits for the others to come to hear it.
const absentWait = 30 * time.Second

// Absent tells the other tasks of the step, which would wait for this one, that it does not take
// part, and why: in the step's store or, where there is none, as one of the launchers that have
// the job's secret. It does nothing outside of a step, and must not be called once the
// store was opened. Of o it uses what is known of the job before all of it is.
func Absent(ctx context.Context, o Options, environ []string, why error) {
	step, in, err := env.FindStep(environ)
	if err != nil || !in || step.Tasks == 1 || o.Apart {
		return
	}
	ctx, stop := context.WithTimeout(ctx, absentWait)
	defer stop()
	on := ""
	if step.Host != "" {
		on = " (" + step.Host + ")"
	}
	text := fmt.Sprintf("task %d%s of the step does not take part: %v", step.Task, on, why)
	if step.Store {
		putAbsent(ctx, environ, text)
		return
	}
	o.Place(step)
	o.Nodes = step.Tasks
	if o.Name == "" {
		o.Name = "absent"
	}
	sendAbsent(ctx, o, environ, text)
}

// putAbsent says it in the store. Who does not come to its fence does not hear it.
func putAbsent(ctx context.Context, environ []string, text string) {
	client, err := pmi.Open(ctx, environ)
	if err != nil {
		return // it has no way to say it
	}
	_ = client.Put(absentKey, storable(text)) // another may have put its own
	_ = errors.Join(client.Fence(), client.Close())
}

// sendAbsent says it to node 0, or is node 0 for as long as that takes.
func sendAbsent(ctx context.Context, o Options, environ []string, text string) {
	key, err := o.secret(environ)
	if err != nil || o.unmet(key) != nil {
		return // it has no way to say it
	}
	m, err := member.Open(ctx, member.Config{
		Name: fmt.Sprintf("%s-%s", o.Name, nonce(6)), Coordinator: o.NodeRank == 0, Endpoint: o.Endpoint, Ports: o.Ports,
		Key: key, Label: "ebtrain/" + o.RunID, Nodes: o.Nodes, Wait: absentWait, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return
	}
	defer func() { _ = m.Close() }()
	if o.NodeRank != 0 {
		m.Send("", rendezvous.Message{Kind: rendezvous.KindAbsent, Text: text})
		return
	}
	cause := &rendezvous.Cause{Kind: rendezvous.CauseRefused, Rank: -1, Node: -1, Text: text}
	for told := map[string]bool{}; len(told) < o.Nodes-1; {
		select {
		case in := <-m.Inbox():
			if in.Lost {
				continue
			}
			if in.Msg.Kind == rendezvous.KindRegister && !told[in.From] {
				m.Send(in.From, rendezvous.Message{Kind: rendezvous.KindAbort, Epoch: in.Msg.Epoch, Cause: cause})
			}
			told[in.From] = true
		case <-ctx.Done():
			return
		}
	}
}
