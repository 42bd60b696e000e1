package supervise

import (
	"bufio"
	"fmt"
	"io"
	"strings"
	"testing"

	"ebtrain/launch/outlet"
	"ebtrain/launch/rendezvous"
)

// acks is a transport that keeps what is sent.
type acks struct {
	Transport
	sent []rendezvous.Message
}

func (t *acks) Send(_ string, m rendezvous.Message) { t.sent = append(t.sent, m) }

// gathering is node 0 of a job whose output is gathered, and what its reader gets.
func gathering() (*agent, *acks, *io.PipeReader) {
	r, w := io.Pipe()
	to := &acks{}
	a := &agent{coord: rendezvous.NewCoordinator(rendezvous.CoordinatorConfig{Nodes: 2}), quiet: map[string]bool{}}
	a.cfg.Gather, a.cfg.Transport = true, to
	out, errs := outlet.Pair(w, w)
	a.console = newConsole(out, errs, false, nil, 1)
	return a, to, r
}

// lineOf is line i of node 1, of so many bytes and its number.
func lineOf(i, length, code int) rendezvous.Inbound {
	text := fmt.Sprintf("%d %s", i, strings.Repeat("x", length))
	return rendezvous.Inbound{From: "b", Msg: rendezvous.Message{Kind: rendezvous.KindLines, Seq: uint64(i + 1), Code: code, Lines: []rendezvous.Line{{Text: text, Ranks: []int{1}}}}}
}

// What node 0 says it has taken is not dropped by its own output, though nobody reads that for
// a while; and what it does not take, because nobody does, the other node has.
func TestNobodyReads(t *testing.T) {
	const lines = 2000
	a, to, r := gathering()
	for i := range lines {
		length := 1000
		if i == 500 || i == 501 {
			length = maxLine - 10
		}
		a.heardLines(lineOf(i, length, 0))
	}
	if len(to.sent) == 0 || len(to.sent) > lines/2 {
		t.Fatalf("%d of %d lines are said to be taken, where nobody reads", len(to.sent), lines)
	}
	wrong := make(chan string)
	go func() {
		in := bufio.NewReader(r)
		for i := range lines {
			line, err := in.ReadString('\n')
			if err != nil || !strings.HasPrefix(line, fmt.Sprintf("[1] %d x", i)) {
				wrong <- fmt.Sprintf("instead of line %d: %.40q, %v", i, line, err)
				return
			}
		}
		wrong <- ""
	}()
	for len(a.untaken) > 0 {
		select {
		case <-a.room:
			a.takeLines()
		case text := <-wrong:
			t.Fatalf("%d lines are not taken, and the reader has ended: %s", len(a.untaken), text)
		}
	}
	if text := <-wrong; text != "" {
		t.Error(text)
	}
	if last := to.sent[len(to.sent)-1]; len(to.sent) != lines || last.Kind != rendezvous.KindTaken || last.Seq != lines {
		t.Errorf("%d lines are said to be taken, the last as %v", len(to.sent), last)
	}
}

// Lines of a launcher that is gone, which node 0 had no room for, are node 0's to show, unless
// that has come to its end and shown them itself.
func TestLostWithLines(t *testing.T) {
	for code, want := range map[int]bool{0: true, gatherLast: false} {
		a, to, r := gathering()
		for i := range 1000 {
			a.heardLines(lineOf(i, 1000, 0))
		}
		a.heardLines(lineOf(1000, 1000, code))
		taken := len(to.sent)
		a.heardLines(rendezvous.Inbound{From: "b", Lost: true})
		if len(a.untaken) > 0 || len(to.sent) != taken || !a.quiet["b"] {
			t.Errorf("%d lines wait, %d are said to be taken", len(a.untaken), len(to.sent)-taken)
		}
		if _, err := a.console.out[stderr].Write([]byte("end\n")); err != nil {
			t.Fatal(err)
		}
		n := 0
		for in := bufio.NewScanner(r); in.Scan() && in.Text() != "end"; n++ {
		}
		if all := n == 1001; all != want || n < taken {
			t.Errorf("its last word was %d: %d lines are shown of 1001, %d of which it knows", code, n, taken)
		}
	}
}
