package member

import (
	"net/netip"
	"testing"
)

// Addresses of this link alone get the zone of this launcher's own, and others stay.
func TestZoned(t *testing.T) {
	p := &transport{addr: netip.MustParseAddrPort("[fe80::1%eth0]:7")}
	for addr, want := range map[string]string{
		"[fe80::2]:9": "[fe80::2%eth0]:9", "[2001:db8::2]:9": "[2001:db8::2]:9", "169.254.0.2:9": "169.254.0.2:9",
	} {
		if got := p.zoned(netip.MustParseAddrPort(addr)); got.String() != want {
			t.Errorf("%s becomes %s, want %s", addr, got, want)
		}
	}
}
