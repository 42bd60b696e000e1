package member

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	packetBytes = 1 << 16 // the largest packet there can be
	packetQueue = 2 << 20 // asked of the kernel, for bursts
	portTries   = 10      // a free port must be free for TCP and UDP
	connections = 3       // that a launcher opens when it joins
	silentLimit = 256     // connections that have not shown the key, besides the launchers'; the oldest makes room
)

// transport is what a launcher listens on: one port on one address, IPv4 or IPv6
// with its zone, for packets and connections of memberlist and for links, which
// begin with linkMagic.
type transport struct {
	addr    netip.AddrPort
	tcp     *net.TCPListener
	udp     *net.UDPConn
	link    taker
	packets chan *memberlist.Packet
	streams chan net.Conn
	done    chan struct{}
	most    int // silent connections
	wg      sync.WaitGroup

	mu     sync.Mutex
	silent []net.Conn // have not shown the key, oldest first
}

// taker takes a connection over that begins as a link does. It calls leave when that has
// shown the key or is closed: false if it was closed before, to make room.
type taker func(c net.Conn, leave func() bool)

// listen opens the first of ports that is free for TCP and UDP; 0 is any. Connections
// that are links are given to link, which owns them. So many launchers are expected.
func listen(addr netip.Addr, ports []int, launchers int, link taker) (*transport, error) {
	t := &transport{link: link, most: silentLimit + connections*launchers, packets: make(chan *memberlist.Packet), streams: make(chan net.Conn), done: make(chan struct{})}
	var err error
	if len(ports) == 1 && ports[0] == 0 {
		ports = make([]int, portTries)
	}
	for _, port := range ports {
		if err = t.open(netip.AddrPortFrom(addr, uint16(port))); !errors.Is(err, syscall.EADDRINUSE) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	_ = t.udp.SetReadBuffer(packetQueue) // the kernel may allow less
	t.wg.Go(t.receive)
	t.wg.Go(t.accept)
	return t, nil
}

func (t *transport) open(at netip.AddrPort) (err error) {
	if t.tcp, err = net.ListenTCP("tcp", net.TCPAddrFromAddrPort(at)); err != nil {
		return err
	}
	t.addr = netip.AddrPortFrom(at.Addr(), t.tcp.Addr().(*net.TCPAddr).AddrPort().Port())
	if t.udp, err = net.ListenUDP("udp", net.UDPAddrFromAddrPort(t.addr)); err != nil {
		return errors.Join(err, t.tcp.Close())
	}
	return nil
}

// receive hands packets over. Those that come after Shutdown are nobody's.
func (t *transport) receive() {
	buf := make([]byte, packetBytes) // most are of some hundred bytes: who gets one gets a copy
	for {
		n, from, err := t.udp.ReadFromUDP(buf)
		now := time.Now()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil || n == 0 {
			continue // an error of an earlier packet, as a port that is closed
		}
		select {
		case t.packets <- &memberlist.Packet{Buf: bytes.Clone(buf[:n]), From: from, Timestamp: now}:
		case <-t.done:
			return
		}
	}
}

// accept takes connections.
func (t *transport) accept() {
	for {
		c, err := t.tcp.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: others may be closed meanwhile
			time.Sleep(10 * time.Millisecond)
			continue
		}
		t.enter(c)
		t.wg.Go(func() { t.sort(c) })
	}
}

// sort finds out what a connection is for.
func (t *transport) sort(c net.Conn) {
	head := make([]byte, len(linkMagic))
	err := c.SetReadDeadline(time.Now().Add(handshakeLimit))
	if err == nil {
		_, err = io.ReadFull(c, head)
	}
	stream := &prefixed{c, head, t}
	if err != nil || c.SetReadDeadline(time.Time{}) != nil {
		_ = stream.Close() // it has said nothing
		return
	}
	if string(head) == linkMagic {
		t.link(c, func() bool { return t.leave(c) })
		return
	}
	select {
	case t.streams <- stream:
	case <-t.done:
		_ = stream.Close()
	}
}

// enter keeps c until it leaves, in the place of the oldest if there are many.
func (t *transport) enter(c net.Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.silent) == t.most {
		_ = t.silent[0].Close()
		t.silent = t.silent[1:]
	}
	t.silent = append(t.silent, c)
}

// leave reports whether c was still kept.
func (t *transport) leave(c net.Conn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(t.silent, c)
	if i >= 0 {
		t.silent = slices.Delete(t.silent, i, i+1)
	}
	return i >= 0
}

// prefixed is a connection of which the first bytes were read before. memberlist, whose
// it is, finds out for itself who has the key, and keeps none for long.
type prefixed struct {
	net.Conn
	head []byte
	t    *transport
}

func (p *prefixed) Close() error {
	p.t.leave(p.Conn)
	return p.Conn.Close()
}

func (p *prefixed) Read(b []byte) (int, error) {
	if len(p.head) == 0 {
		return p.Conn.Read(b)
	}
	n := copy(b, p.head)
	p.head = p.head[n:]
	return n, nil
}

// zoned is addr with this launcher's zone, if it needs one: memberlist has none.
func (t *transport) zoned(addr netip.AddrPort) netip.AddrPort {
	if a := addr.Addr(); a.Is6() && a.IsLinkLocalUnicast() {
		return netip.AddrPortFrom(a.WithZone(t.addr.Addr().Zone()), addr.Port())
	}
	return addr
}

// FinalAdvertiseAddr is where others reach this launcher.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	return t.addr.Addr().AsSlice(), int(t.addr.Port()), nil
}

// WriteTo sends a packet.
func (t *transport) WriteTo(b []byte, addr string) (time.Time, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return time.Time{}, fmt.Errorf("address of another launcher: %w", err)
	}
	_, err = t.udp.WriteToUDPAddrPort(b, t.zoned(to))
	return time.Now(), err
}

// PacketCh delivers packets.
func (t *transport) PacketCh() <-chan *memberlist.Packet { return t.packets }

// DialTimeout opens a connection of memberlist.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	to, err := netip.ParseAddrPort(addr)
	if err != nil {
		return nil, fmt.Errorf("address of another launcher: %w", err)
	}
	return net.DialTimeout("tcp", t.zoned(to).String(), timeout)
}

// StreamCh delivers connections of memberlist.
func (t *transport) StreamCh() <-chan net.Conn { return t.streams }

// Shutdown closes the port and waits for what was under way on it, links aside.
func (t *transport) Shutdown() error {
	close(t.done)
	err := errors.Join(t.tcp.Close(), t.udp.Close())
	t.mu.Lock()
	for _, c := range t.silent {
		_ = c.Close()
	}
	t.silent = nil
	t.mu.Unlock()
	t.wg.Wait()
	return err
}
