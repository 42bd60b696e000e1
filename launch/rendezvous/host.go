package rendezvous

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// LocalHost returns the name of this host, for people, and an identity that is
// equal for processes with one kernel and one network: those that can reach each
// other's sockets without a file, and so pass each other memory. It tells apart
// machines with the same name, and containers of one machine with networks of
// their own. That two processes of one identity can really share memory is for
// the transport to try.
func LocalHost() (name, id string, err error) {
	name, err = os.Hostname()
	if err != nil {
		return "", "", fmt.Errorf("host name: %w", err)
	}
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "", "", fmt.Errorf("identity of this boot: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/net", &st); err != nil {
		return "", "", fmt.Errorf("identity of this network: %w", err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d %d", strings.TrimSpace(string(boot)), st.Dev, st.Ino))
	return name, name + "/" + hex.EncodeToString(sum[:6]), nil
}
