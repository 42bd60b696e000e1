package launcher

import (
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"ebtrain/launch/cliflag"
)

// minSecret is the least length of a secret, in characters, and maxSecret what a
// file of one may have.
const (
	minSecret = 16
	maxSecret = 4096
)

// secret is the job's key, from KeyFile or EBTRAIN_KEY; nil if neither is there.
func (o Options) secret(environ []string) ([]byte, error) {
	if o.KeyFile != "" {
		text, err := readSecret(o.KeyFile)
		if err != nil {
			return nil, cliflag.Usage("--key-file %s: %w", o.KeyFile, err)
		}
		return derive(text), nil
	}
	for _, kv := range environ {
		if text, ok := strings.CutPrefix(kv, "EBTRAIN_KEY="); ok {
			if len(text) < minSecret {
				return nil, cliflag.Usage("EBTRAIN_KEY has %d characters, want at least %d: for example the output of openssl rand -hex 32", len(text), minSecret)
			}
			return derive(text), nil
		}
	}
	return nil, nil
}

// readSecret reads a file that nobody else may read. It waits for nobody who is to write to a
// pipe of that name.
func readSecret(path string) (text string, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		_, reason, _ := strings.Cut(err.Error(), path+": ")
		return "", errors.New(reason)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return "", err
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", errors.New("it is not a file")
	case st.Mode&0o077 != 0:
		return "", fmt.Errorf("others may use it (its mode is %04o): chmod 600 it", st.Mode&0o777)
	case int(st.Uid) != os.Geteuid():
		return "", errors.New("it belongs to another user")
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return "", err
	}
	text = strings.TrimSpace(string(b))
	if len(text) < minSecret || len(b) > maxSecret {
		return "", fmt.Errorf("it holds %d characters, want %d to %d: for example the output of openssl rand -hex 32", len(text), minSecret, maxSecret)
	}
	return text, nil
}

func derive(text string) []byte {
	sum := sha256.Sum256([]byte("ebtrain job key\x00" + text))
	return sum[:]
}

func randomKey() []byte {
	key := make([]byte, 32)
	rand.Read(key)
	return key
}
