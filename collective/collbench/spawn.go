package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"

	"ebtrain/collective/host"
)

// Environment of a rank. The key comes over its standard input.
const (
	rankEnv = "COLLBENCH_RANK"
	dirEnv  = "COLLBENCH_DIR"
)

const (
	keyBytes = 32
	loopback = "127.0.0.1"
)

// spawn runs this program once for each rank. If one fails, all end: the
// others notice, and ctx kills them.
func spawn(ctx context.Context, opt options, args []string) (err error) {
	exe, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	dir, err := os.MkdirTemp("", "collbench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	key := make([]byte, keyBytes)
	rand.Read(key) // never fails
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	runtime.LockOSThread() // Pdeathsig means the death of the thread that starts them
	defer runtime.UnlockOSThread()
	cmds := make([]*exec.Cmd, 0, opt.nproc)
	ended := make(chan error, opt.nproc)
	for r := range opt.nproc {
		cmd := exec.CommandContext(ctx, exe, args...)
		cmd.Env = append(os.Environ(), rankEnv+"="+strconv.Itoa(r), dirEnv+"="+dir)
		cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(key), os.Stdout, os.Stderr
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err = cmd.Start(); err != nil {
			cancel()
			break
		}
		cmds = append(cmds, cmd)
	}
	for r, cmd := range cmds {
		go func() {
			if err := cmd.Wait(); err != nil {
				ended <- fmt.Errorf("rank %d: %w", r, err)
				return
			}
			ended <- nil
		}()
	}
	for range cmds {
		if e := <-ended; e != nil && err == nil {
			err = e
			cancel()
		}
	}
	return err
}

// runRank joins the group and measures.
func runRank(ctx context.Context, opt options, number string) (err error) {
	rank, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("%s: %w", rankEnv, err)
	}
	key := make([]byte, keyBytes)
	if _, err := io.ReadFull(os.Stdin, key); err != nil {
		return fmt.Errorf("rank %d: read the key: %w", rank, err)
	}
	hosts := make([]string, opt.nproc)
	if opt.apart {
		opt.hosts = opt.nproc
	}
	for r := range hosts {
		hosts[r] = strconv.Itoa(r * opt.hosts / opt.nproc)
	}
	c, err := host.New(ctx, host.Config{
		Rank: rank, Size: opt.nproc, Hosts: hosts, Job: "collbench", Key: key, ListenIP: loopback,
		Exchange: host.DirExchange(os.Getenv(dirEnv), rank, opt.nproc),
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	return measureAll(ctx, place{Comm: c, host: c, machines: 1, listenIP: loopback}, opt, os.Stdout)
}
