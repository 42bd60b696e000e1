package host

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"syscall"

	"ebtrain/collective/congestion"
)

// listenInet opens a port of TCP on ip, from first to last or, if last is 0, any.
// Ranks of one host begin to look at different ones.
func listenInet(ip string, first, last, rank int) (net.Listener, error) {
	listen := net.ListenConfig{Control: congestion.Choose}
	n := last - first + 1
	for i := range n {
		port := first + (rank+i)%n
		ln, err := listen.Listen(context.Background(), "tcp", net.JoinHostPort(ip, strconv.Itoa(port)))
		if err == nil || !errors.Is(err, syscall.EADDRINUSE) {
			return ln, err
		}
	}
	return nil, fmt.Errorf("no port from %d to %d is free on %s", first, last, ip)
}
