package host

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// A star connects the leader of a host with its other ranks by sockets in the
// abstract namespace, which leave no file behind. They carry shared memory
// (as descriptors) outwards and aborts both ways, so that ranks that wait for
// something else are told, and their end is how a death
// is noticed: the kernel closes a process's sockets however it ends.
type star struct {
	conns []*net.UnixConn // by local rank; a rank that does not lead has the first only
	files chan *os.File   // shared memory that has come in
}

// Messages of a star are packets, told apart by their first byte.
const (
	packetFile  = 'F' // with one descriptor
	packetAbort = 'A' // followed by a record
)

// listenLocal opens the leader's socket. Its address is its only name.
func listenLocal() (net.Listener, error) {
	var b [12]byte
	rand.Read(b[:]) // never fails
	addr := &net.UnixAddr{Net: "unixpacket", Name: "@ebtrain-" + hex.EncodeToString(b[:])}
	ln, err := net.ListenUnix("unixpacket", addr)
	if err != nil {
		return nil, fmt.Errorf("listen for the ranks of this host: %w", err)
	}
	return ln, nil
}

// connectStar connects this rank with the others of its host. addr is where
// the leader listens, ln the leader's listener and nil elsewhere.
func connectStar(ctx context.Context, id identity, t topology, ln net.Listener, addr string, log *slog.Logger) (*star, error) {
	s := &star{conns: make([]*net.UnixConn, len(t.locals())), files: make(chan *os.File, 1)}
	if !t.leads() {
		c, err := id.dial(ctx, "unixpacket", addr, call{forLocal, t.leader()})
		if err != nil {
			return nil, fmt.Errorf("%w (ranks %v are said to share host %d: do they?)", err, t.locals(), t.host)
		}
		s.conns[0] = c.(*net.UnixConn)
		return s, s.sameUser()
	}
	var want []call
	for _, r := range t.locals()[1:] {
		want = append(want, call{forLocal, r})
	}
	got, err := id.accept(ctx, ln, want, log)
	if err != nil {
		return nil, err
	}
	for l, r := range t.locals() {
		if l > 0 {
			s.conns[l] = got[call{forLocal, r}].(*net.UnixConn)
		}
	}
	return s, s.sameUser()
}

// sameUser refuses a peer that runs as somebody else, and then closes s.
func (s *star) sameUser() error {
	for _, c := range s.conns {
		if c == nil {
			continue
		}
		uid, err := peerUser(c)
		if err == nil && uid != os.Geteuid() {
			err = fmt.Errorf("a rank of this host runs as user %d, expected %d", uid, os.Geteuid())
		}
		if err != nil {
			s.close()
			return err
		}
	}
	return nil
}

func peerUser(c *net.UnixConn) (uid int, err error) {
	err = onFD(c, func(fd int) error {
		cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
		if err != nil {
			return fmt.Errorf("credentials of a rank of this host: %w", err)
		}
		uid = int(cred.Uid)
		return nil
	})
	return uid, err
}

// share makes shared memory of so many parts of n bytes and sends it to all
// ranks of the host. Only the leader calls it.
func (s *star) share(name string, parts, n int) (*segment, error) {
	f, err := createSegment(name, parts, n)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // mapped here and sent, or of no use
	seg, err := mapSegment(f, parts, n)
	if err != nil {
		return nil, err
	}
	for l, c := range s.conns {
		if c == nil {
			continue
		}
		if err := sendFile(c, f); err != nil {
			return nil, errors.Join(fmt.Errorf("send shared memory to local rank %d: %w", l, err), seg.unmap())
		}
	}
	return seg, nil
}

// sendFile passes the descriptor of f on.
func sendFile(c *net.UnixConn, f *os.File) error {
	_, _, err := c.WriteMsgUnix([]byte{packetFile}, unix.UnixRights(int(f.Fd())), nil)
	return err
}

// packet is one message of a star.
type packet struct {
	file   *os.File
	record record
}

// receive waits for the next packet from local rank l. A peer that is gone is
// an io.EOF or a connection error.
func (s *star) receive(l int) (packet, error) {
	var buf [1 + maxRecord]byte
	oob := make([]byte, unix.CmsgSpace(4))
	n, oobn, _, _, err := s.conns[l].ReadMsgUnix(buf[:], oob)
	if err != nil {
		return packet{}, err
	}
	if n == 0 {
		return packet{}, io.EOF
	}
	switch buf[0] {
	case packetFile:
		f, err := descriptor(oob[:oobn])
		return packet{file: f}, err
	case packetAbort:
		r, err := decodeRecord(buf[1:n])
		return packet{record: r}, err
	}
	return packet{}, fmt.Errorf("packet of unknown type %q from local rank %d", buf[0], l)
}

func descriptor(oob []byte) (*os.File, error) {
	msgs, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(msgs) != 1 {
		return nil, fmt.Errorf("shared memory came without its descriptor: %w", errors.Join(err, unix.EBADF))
	}
	fds, err := unix.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) != 1 {
		return nil, fmt.Errorf("shared memory came with %d descriptors, expected 1: %w", len(fds), errors.Join(err, unix.EBADF))
	}
	return os.NewFile(uintptr(fds[0]), "shared memory"), nil
}

// tell sends a record to whom this rank is connected with: the leader, or all
// others. Who is gone needs no telling.
func (s *star) tell(r record) error {
	var errs []error
	for _, c := range s.conns {
		if c != nil {
			_, err := c.Write(append([]byte{packetAbort}, r.encode()...))
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (s *star) close() {
	for _, c := range s.conns {
		if c != nil {
			_ = c.Close() // all is said
		}
	}
}
