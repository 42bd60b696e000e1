package member

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"sync"
	"time"
)

// The handshake of a link. The dialer proves the key first, so that a stranger
// who connects learns nothing:
//
//	dialer ──▶ magic, nonce
//	       ◀── nonce
//	       ──▶ proof of the key, proof of the label
//	       ◀── verdict and, if it is good, a proof of the key
//
// Every proof is over both nonces and says whose it is, so nothing can be
// replayed or reflected. What follows is sealed with AES-GCM, under a key for
// each direction that is derived from the job's key and the nonces.
const (
	linkMagic      = "EBL2"
	nonceBytes     = 32
	handshakeLimit = 5 * time.Second

	verdictGood  = 'y'
	verdictKey   = 'k' // the keys differ
	verdictLabel = 'l' // the labels differ
)

// How a handshake fails that was carried out.
var (
	errKey   = errors.New("the key differs")
	errLabel = errors.New("the name of the job differs")
)

// maxRecord is the most plain text that is sealed at once, in bytes.
const maxRecord = 64 << 10

// secret is what both ends of a link must have.
type secret struct {
	key   []byte
	label string
}

func (s secret) proof(who string, nonces []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("ebtrain link: " + who + "\x00"))
	m.Write(nonces)
	return m.Sum(nil)
}

func (s secret) labelProof(nonces []byte) []byte { return s.proof("label "+s.label, nonces) }

// dial is the dialer's half. errKey and errLabel mean that a launcher answered,
// of another job.
func (s secret) dial(c net.Conn) (*secure, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, err
	}
	nonces := make([]byte, 2*nonceBytes)
	rand.Read(nonces[:nonceBytes])
	if _, err := c.Write(append([]byte(linkMagic), nonces[:nonceBytes]...)); err != nil {
		return nil, err
	}
	if _, err := io.ReadFull(c, nonces[nonceBytes:]); err != nil {
		return nil, fmt.Errorf("what answered is no launcher: %w", err)
	}
	if _, err := c.Write(append(s.proof("dialer", nonces), s.labelProof(nonces)...)); err != nil {
		return nil, err
	}
	var answer [1 + sha256.Size]byte
	if _, err := io.ReadFull(c, answer[:1]); err != nil {
		return nil, fmt.Errorf("what answered is no launcher: %w", err)
	}
	switch answer[0] {
	case verdictGood:
	case verdictKey:
		return nil, errKey
	case verdictLabel:
		return nil, errLabel
	default:
		return nil, errors.New("what answered is no launcher")
	}
	if _, err := io.ReadFull(c, answer[1:]); err != nil {
		return nil, err
	}
	if !hmac.Equal(answer[1:], s.proof("listener", nonces)) {
		return nil, errKey
	}
	return s.seal(c, nonces, "dialer", "listener")
}

// answer is the listener's half, after the magic.
func (s secret) answer(c net.Conn) (*secure, error) {
	if err := c.SetDeadline(time.Now().Add(handshakeLimit)); err != nil {
		return nil, err
	}
	nonces := make([]byte, 2*nonceBytes)
	rand.Read(nonces[nonceBytes:])
	if _, err := io.ReadFull(c, nonces[:nonceBytes]); err != nil {
		return nil, err
	}
	if _, err := c.Write(nonces[nonceBytes:]); err != nil {
		return nil, err
	}
	var proofs [2 * sha256.Size]byte
	if _, err := io.ReadFull(c, proofs[:]); err != nil {
		return nil, err
	}
	verdict, failure := byte(verdictGood), error(nil)
	switch {
	case !hmac.Equal(proofs[:sha256.Size], s.proof("dialer", nonces)):
		verdict, failure = verdictKey, errKey
	case !hmac.Equal(proofs[sha256.Size:], s.labelProof(nonces)):
		verdict, failure = verdictLabel, errLabel
	}
	answer := []byte{verdict}
	if failure == nil {
		answer = append(answer, s.proof("listener", nonces)...)
	}
	if _, err := c.Write(answer); err != nil || failure != nil {
		return nil, errors.Join(failure, err)
	}
	return s.seal(c, nonces, "listener", "dialer")
}

// seal is c with everything sealed from now on.
func (s secret) seal(c net.Conn, nonces []byte, mine, theirs string) (*secure, error) {
	out, err := s.aead(nonces, mine)
	if err != nil {
		return nil, err
	}
	in, err := s.aead(nonces, theirs)
	if err != nil {
		return nil, err
	}
	return &secure{Conn: c, in: in, out: out}, c.SetDeadline(time.Time{})
}

func (s secret) aead(nonces []byte, sender string) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, s.key, nonces, "ebtrain link: records of the "+sender, 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}

// secure is a connection whose bytes are sealed: records of four bytes of length,
// most significant first, and the sealed text. The nonce is the record's number,
// so a record can be neither left out, repeated nor moved. Any goroutine may write,
// one at a time may read.
type secure struct {
	net.Conn
	writing       sync.Mutex
	in, out       cipher.AEAD
	numIn, numOut uint64
	text          []byte // opened and not yet read
}

func nonce(number uint64) []byte {
	return binary.BigEndian.AppendUint64(make([]byte, 4, 12), number)
}

// Write seals p and sends it.
func (s *secure) Write(p []byte) (int, error) {
	s.writing.Lock()
	defer s.writing.Unlock()
	var out []byte
	for part := range slices.Chunk(p, maxRecord) {
		out = binary.BigEndian.AppendUint32(out[:0], uint32(len(part)+s.out.Overhead()))
		out = s.out.Seal(out, nonce(s.numOut), part, nil)
		s.numOut++
		if _, err := s.Conn.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Read reads opened text.
func (s *secure) Read(p []byte) (int, error) {
	for len(s.text) == 0 {
		var head [4]byte
		if _, err := io.ReadFull(s.Conn, head[:]); err != nil {
			return 0, err
		}
		n := int(binary.BigEndian.Uint32(head[:]))
		if n > maxRecord+s.in.Overhead() {
			return 0, fmt.Errorf("a record of %d bytes is longer than %d", n, maxRecord)
		}
		sealed := make([]byte, n)
		if _, err := io.ReadFull(s.Conn, sealed); err != nil {
			return 0, err
		}
		var err error
		if s.text, err = s.in.Open(sealed[:0], nonce(s.numIn), sealed, nil); err != nil {
			return 0, err
		}
		s.numIn++
	}
	n := copy(p, s.text)
	s.text = s.text[n:]
	return n, nil
}

// closeWrite ends what this end sends.
func (s *secure) closeWrite() error {
	t, ok := s.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return t.CloseWrite()
}
