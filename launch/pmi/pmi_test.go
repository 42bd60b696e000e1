package pmi

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// manager is what srun or mpiexec does for its tasks: a store and a fence.
type manager struct {
	t     *testing.T
	tasks int

	mu      sync.Mutex
	changed *sync.Cond
	came    int
	store   map[string]string
	pending map[string]string // put since the last fence
	left    int
}

func newManager(t *testing.T, tasks int) *manager {
	m := &manager{t: t, tasks: tasks, store: map[string]string{}, pending: map[string]string{}}
	m.changed = sync.NewCond(&m.mu)
	return m
}

// serve answers one task until it leaves.
func (m *manager) serve(c net.Conn, rank int) {
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || line != "cmd=init pmi_version=2 pmi_subversion=0\n" {
		m.t.Errorf("the first request is %q, %v", line, err)
	}
	_, _ = io.WriteString(c, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
	for {
		r, err := read(in)
		if err != nil {
			return
		}
		answer := []field{{"cmd", r.get("cmd") + "-response"}}
		switch r.get("cmd") {
		case "fullinit":
			answer = append(answer, field{"rank", fmt.Sprint(rank)}, field{"size", fmt.Sprint(m.tasks)})
		case "kvs-put":
			m.mu.Lock()
			m.pending[r.get("key")] = r.get("value")
			m.mu.Unlock()
		case "kvs-fence":
			m.fence()
		case "kvs-get":
			m.mu.Lock()
			value, ok := m.store[r.get("key")]
			m.mu.Unlock()
			answer = append(answer, field{"found", strings.ToUpper(fmt.Sprint(ok))}, field{"value", value})
		case "finalize":
			m.mu.Lock()
			m.left++
			m.mu.Unlock()
		}
		b, err := encode(append(answer, field{"rc", "0"}))
		if err != nil {
			m.t.Error(err)
		}
		_, _ = c.Write(b)
	}
}

func (m *manager) fence() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.came++
	for end := (m.came + m.tasks - 1) / m.tasks * m.tasks; m.came < end; {
		m.changed.Wait()
	}
	for k, v := range m.pending {
		m.store[k] = v
	}
	m.changed.Broadcast()
}

// task connects task rank as srun's environment would have it.
func (m *manager) task(ctx context.Context, rank int) (*Client, error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	other, err := unix.Dup(fds[0])
	if err != nil {
		return nil, errors.Join(err, unix.Close(fds[0]), unix.Close(fds[1]))
	}
	_ = unix.Close(fds[0])
	conn := fileConn(m.t, other)
	m.t.Cleanup(func() { _ = conn.Close() })
	go m.serve(conn, rank)
	return Open(ctx, []string{"PMI_RANK=" + fmt.Sprint(rank), "PMI_JOBID=7.0", fmt.Sprint("PMI_FD=", fds[1])})
}

// What task 0 puts, all get after the fence, which waits for the last of them.
func TestStore(t *testing.T) {
	const tasks = 4
	m := newManager(t, tasks)
	var all sync.WaitGroup
	got := make([]string, tasks)
	for rank := range tasks {
		all.Go(func() {
			c, err := m.task(t.Context(), rank)
			if err != nil {
				t.Error(err)
				return
			}
			if c.Rank != rank || c.Size != tasks {
				t.Errorf("task %d of %d, want %d of %d", c.Rank, c.Size, rank, tasks)
			}
			if rank == 0 {
				err = c.Put("where", "10.9.0.1:7 a=b")
			}
			err = errors.Join(err, c.Fence())
			if got[rank], _ = c.Get("where"); got[rank] != "10.9.0.1:7 a=b" {
				t.Errorf("task %d got %q", rank, got[rank])
			}
			if _, none := c.Get("nothing"); none == nil || !strings.Contains(none.Error(), "has no nothing") {
				t.Errorf("got %v", none)
			}
			if err = errors.Join(err, c.Close()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if m.left != tasks {
		t.Errorf("%d tasks have said that they leave, want %d", m.left, tasks)
	}
}

// Who waits for a task that never comes is released by the context, with its
// cause.
func TestFenceIsInterrupted(t *testing.T) {
	cause := errors.New("a signal came")
	ctx, cancel := context.WithCancelCause(t.Context())
	c, err := newManager(t, 2).task(ctx, 0)
	if err != nil {
		t.Fatal(err)
	}
	cancel(cause)
	if err := c.Fence(); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
	if err := c.Close(); !errors.Is(err, cause) {
		t.Errorf("got %v", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for environ, want := range map[string]string{
		"PMI_FD=x":   "is not the number of a descriptor",
		"PMI_FD=1":   "is not the number of a descriptor",
		"PMI_FD=999": "is not a socket of srun or mpiexec",
	} {
		if _, err := Open(t.Context(), []string{environ}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", environ, err)
		}
	}
}

// A manager that answers anything else ends in one sentence.
func TestWrongAnswers(t *testing.T) {
	for _, answer := range []string{"", "cmd=response_to_init pmi_version=1 rc=0\n", "cmd=response_to_init pmi_version=2 rc=-1\n", "cmd=response_to_init pmi_version=2 rc=0\n     x",
		"cmd=response_to_init pmi_version=2 rc=0\n999999", "cmd=response_to_init pmi_version=2 rc=0\n    19cmd=kvs-put;rc=0;;;;", "cmd=response_to_init pmi_version=2 rc=0\n    43cmd=fullinit-response;rank=3;size=2;rc=0;;;"} {
		here, there := net.Pipe()
		go func() {
			_, _ = bufio.NewReader(there).ReadString('\n')
			go func() { _, _ = io.Copy(io.Discard, there) }()
			_, _ = io.WriteString(there, answer)
			_ = there.Close()
		}()
		if _, err := connect(t.Context(), here, "7.0", "0"); err == nil || !strings.HasPrefix(err.Error(), "greet PMI: ") {
			t.Errorf("%q: got %v", answer, err)
		}
	}
}

func FuzzRecord(f *testing.F) {
	f.Add([]byte("    21cmd=a;key=v=w;rc=0;;;"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := read(bytes.NewReader(b))
		if err != nil {
			return
		}
		again, err := encode(r)
		if err != nil {
			return // a byte that is never sent
		}
		back, err := read(bytes.NewReader(again))
		if err != nil || fmt.Sprint(back) != fmt.Sprint(r) {
			t.Errorf("%q became %v, then %v, %v", b, r, back, err)
		}
	})
}

func fileConn(t *testing.T, fd int) net.Conn {
	t.Helper()
	f := os.NewFile(uintptr(fd), "manager")
	c, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return c
}
