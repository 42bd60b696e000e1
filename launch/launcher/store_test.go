package launcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/sys/unix"
)

// manager is srun or mpiexec as the only task sees it whose environment it returns: every fence
// is over at once, and others have put what is in has. What the task asks goes to asked,
// which ends with the task's connection.
func manager(t *testing.T, task int, has map[string]string) (environ []string, asked <-chan string) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	f := os.NewFile(uintptr(fds[0]), "manager")
	conn, err := net.FileConn(f)
	if err = errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	requests := make(chan string, 16)
	go answer(conn, task, has, requests)
	return []string{
		"PMI_FD=" + strconv.Itoa(fds[1]), "PMI_JOBID=7.0", fmt.Sprint("PMI_RANK=", task), "PMI_SIZE=2", "SLURM_JOB_ID=7", "SLURM_STEP_ID=0",
		fmt.Sprint("SLURM_PROCID=", task), fmt.Sprint("SLURM_NODEID=", task), "SLURM_LOCALID=0", "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=2",
		"SLURM_STEP_NODELIST=n[0-1]", "SLURM_STEP_TASKS_PER_NODE=1(x2)", fmt.Sprint("SLURMD_NODENAME=n", task),
	}, requests
}

func answer(conn net.Conn, task int, has map[string]string, requests chan<- string) {
	defer close(requests)
	in := bufio.NewReader(conn)
	if _, err := in.ReadString('\n'); err != nil {
		return
	}
	_, _ = io.WriteString(conn, "cmd=response_to_init pmi_version=2 pmi_subversion=0 rc=0\n")
	for {
		size := make([]byte, 6)
		if _, err := io.ReadFull(in, size); err != nil {
			return
		}
		n, _ := strconv.Atoi(strings.TrimSpace(string(size)))
		body := make([]byte, n)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		requests <- string(body)
		cmd, rest, _ := strings.Cut(strings.TrimPrefix(string(body), "cmd="), ";")
		value, found := "", false
		for key, v := range has {
			if strings.Contains(rest, "key="+key+";") {
				value, found = v, true
			}
		}
		text := fmt.Sprintf("cmd=%s-response;rc=0;rank=%d;size=2;found=%s;value=%s;", cmd, task, strings.ToUpper(strconv.FormatBool(found)), value)
		_, _ = fmt.Fprintf(conn, "%6d%s", len(text), text)
	}
}

// Who hears in the store that another does not take part neither waits for it nor for node 0.
func TestAbsentIsHeard(t *testing.T) {
	const says = "task 1 (n1) of the step does not take part: it has no GPU"
	for task := range 2 {
		environ, _ := manager(t, task, map[string]string{absentKey: says, storeKey: "at 10.9.0.1:7 "})
		s, err := openStore(t.Context(), Options{NodeRank: task, Nodes: 2, JoinWait: time.Minute}, environ, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		if task == 0 {
			err = s.publish(card{endpoint: "10.9.0.1:7"})
		} else {
			_, err = s.learn()
		}
		if err == nil || err.Error() != says {
			t.Errorf("task %d: got %v, want %s", task, err, says)
		}
	}
	environ, _ := manager(t, 1, map[string]string{storeKey: "at 10.9.0.1:7 "})
	s, err := openStore(t.Context(), Options{NodeRank: 1, Nodes: 2, JoinWait: time.Minute}, environ, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := s.learn(); err != nil || c.endpoint != "10.9.0.1:7" {
		t.Errorf("where all take part: %+v, %v", c, err)
	}
}

// While not all tasks come to the store it is said so, less and less often.
func TestRemind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 70*time.Second)
		defer stop()
		var said []time.Duration
		begun := time.Now()
		remind(ctx, 10*time.Second, func(waited time.Duration) {
			if since := time.Since(begun); since != waited {
				t.Errorf("after %v it says %v", since, waited)
			}
			said = append(said, waited)
		})
		if want := []time.Duration{10 * time.Second, 20 * time.Second, 40 * time.Second}; !slices.Equal(said, want) {
			t.Errorf("said after %v, want %v", said, want)
		}
	})
}
