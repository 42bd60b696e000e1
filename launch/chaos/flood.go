package main

import (
	"bytes"
	"math/rand/v2"
	"net"
	"time"
)

// floodVar makes this program a stranger that floods an address.
const floodVar = "CHAOS_FLOOD"

// flood connects to an address again and again, some hundred connections at a
// time of which most say nothing and some something meaningless, and sends it
// packets, for three seconds.
func flood(to string) {
	const kept = 300
	var open []net.Conn
	packets, _ := net.Dial("udp", to) // without it there are connections
	noise := make([]byte, 1200)
	for begun := time.Now(); time.Since(begun) < 3*time.Second; time.Sleep(time.Millisecond) {
		for i := range noise {
			noise[i] = byte(rand.Uint32())
		}
		if packets != nil {
			for range 4 {
				_, _ = packets.Write(noise) // who is flooded may not listen
			}
		}
		c, err := net.DialTimeout("tcp", to, time.Second)
		if err != nil {
			continue
		}
		switch rand.IntN(4) {
		case 0:
			_, _ = c.Write(noise)
		case 1:
			_, _ = c.Write(bytes.Repeat([]byte{0}, 8))
		}
		open = append(open, c)
		if len(open) > kept {
			_ = open[0].Close()
			open = open[1:]
		}
	}
	for _, c := range open {
		_ = c.Close()
	}
}
