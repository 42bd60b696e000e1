// Package pmi is a client of PMI-2, the process management interface that Slurm
// gives the tasks of "srun --mpi=pmi2", and Hydra those of mpiexec (MPICH): each has a
// socket (PMI_FD) to a store of keys and values with a fence, over a channel of
// Slurm's, which is authenticated, or of Hydra's. Through it a job's tasks agree on a
// secret and an address before any of them can reach another.
//
// On the wire a request and its answer are six digits of length and then
// "cmd=NAME;KEY=VALUE;…;". Only the first request, which agrees on the version, is
// a line.
//
// Invariants:
//   - What is put before a fence can be got after it, by every task.
//   - Every task must come to a fence; Fence waits for them.
//   - After a Close the task may end in any way; before, its end is taken for a
//     failure of the whole step.
//
// A Client belongs to one goroutine.
package pmi

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"ebtrain/launch/variable"
)

// maxRecord is more than any answer has, in bytes.
const maxRecord = 1 << 16

// Client is a task's connection to its manager.
type Client struct {
	Rank, Size int

	conn net.Conn
	in   *bufio.Reader
	stop func() bool // ends the watch over the context
	ctx  context.Context
}

// Open connects to the manager that environ, in the form of os.Environ, offers.
// When ctx ends, whatever the client waits for fails.
func Open(ctx context.Context, environ []string) (*Client, error) {
	fd, err := strconv.Atoi(variable.Get(environ, "PMI_FD"))
	if err != nil || fd < 3 {
		return nil, fmt.Errorf("PMI_FD=%q is not the number of a descriptor", variable.Get(environ, "PMI_FD"))
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFSOCK {
		return nil, fmt.Errorf("PMI_FD=%d is not a socket of srun or mpiexec: was it closed on the way?", fd)
	}
	f := os.NewFile(uintptr(fd), "pmi")
	conn, err := net.FileConn(f) // a duplicate, closed on exec
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("PMI_FD=%d: %w", fd, err)
	}
	return connect(ctx, conn, variable.Get(environ, "PMI_JOBID"), variable.Get(environ, "PMI_RANK"))
}

// connect agrees on the version and says which task this is. It owns conn.
func connect(ctx context.Context, conn net.Conn, job, rank string) (*Client, error) {
	c := &Client{conn: conn, in: bufio.NewReader(conn), ctx: ctx}
	c.stop = context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	answer, err := c.begin(job, rank)
	if err == nil {
		c.Rank, c.Size, err = place(answer)
	}
	if err != nil {
		c.stop()
		return nil, errors.Join(fmt.Errorf("greet PMI: %w", c.why(err)), conn.Close())
	}
	return c, nil
}

func (c *Client) begin(job, rank string) (record, error) {
	if _, err := io.WriteString(c.conn, "cmd=init pmi_version=2 pmi_subversion=0\n"); err != nil {
		return nil, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return nil, err
	}
	if text := string(line); !strings.Contains(text, "cmd=response_to_init") || !strings.Contains(text, "rc=0") || !strings.Contains(text, "pmi_version=2") {
		return nil, fmt.Errorf("it does not speak version 2 (%q): do without it, by env -u PMI_FD before the program's name and EBTRAIN_KEY", strings.TrimSpace(text))
	}
	return c.ask(field{"cmd", "fullinit"}, field{"pmijobid", job}, field{"pmirank", rank}, field{"threaded", "FALSE"})
}

func place(r record) (rank, size int, err error) {
	rank, err1 := strconv.Atoi(r.get("rank"))
	size, err2 := strconv.Atoi(r.get("size"))
	if err1 != nil || err2 != nil || rank < 0 || rank >= size {
		return 0, 0, fmt.Errorf("it says that this is task %q of %q", r.get("rank"), r.get("size"))
	}
	return rank, size, nil
}

// Put stores a value, of at most a thousand bytes without ';', for who gets it
// after the next fence.
func (c *Client) Put(key, value string) error {
	if _, err := c.ask(field{"cmd", "kvs-put"}, field{"key", key}, field{"value", value}); err != nil {
		return fmt.Errorf("put %s into the store of PMI: %w", key, c.why(err))
	}
	return nil
}

// Fence waits until all tasks have come to it.
func (c *Client) Fence() error {
	if _, err := c.ask(field{"cmd", "kvs-fence"}); err != nil {
		return fmt.Errorf("wait for all tasks of the step (PMI): %w", c.why(err))
	}
	return nil
}

// Get is a value that was put before the last fence.
func (c *Client) Get(key string) (string, error) {
	value, found, err := c.Find(key)
	if err == nil && !found {
		err = fmt.Errorf("the store of PMI has no %s: did task 0 fail?", key)
	}
	return value, err
}

// Find is Get of a value that nobody may have put.
func (c *Client) Find(key string) (value string, found bool, err error) {
	r, err := c.ask(field{"cmd", "kvs-get"}, field{"jobid", ""}, field{"srcid", "-1"}, field{"key", key})
	if err != nil {
		return "", false, fmt.Errorf("get %s from the store of PMI: %w", key, c.why(err))
	}
	return r.get("value"), strings.EqualFold(r.get("found"), "true"), nil
}

// Close says that this task needs PMI no more.
func (c *Client) Close() error {
	_, err := c.ask(field{"cmd", "finalize"})
	c.stop()
	if err = errors.Join(c.why(err), c.conn.Close()); err != nil {
		return fmt.Errorf("leave PMI: %w", err)
	}
	return nil
}

// why is the cause of err: that the context ended, if it did.
func (c *Client) why(err error) error {
	if err != nil && c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	return err
}

// ask sends a request and reads its answer.
func (c *Client) ask(fields ...field) (record, error) {
	request, err := encode(fields)
	if err != nil {
		return nil, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return nil, err
	}
	r, err := read(c.in)
	if err != nil {
		return nil, err
	}
	if want := fields[0].value + "-response"; r.get("cmd") != want || r.get("rc") != "0" {
		return nil, fmt.Errorf("the answer to %s is %v", fields[0].value, r)
	}
	return r, nil
}
