package host

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"ebtrain/collective"
)

// record is why a group ended, as ranks tell one another.
//
//	bytes 0–3   magic "EBAB"
//	      4     code
//	      5–8   rank that found out, little endian
//	      9–12  rank at fault, or -1
//	      13–   text, UTF-8
type record struct {
	code code
	rank int
	peer int
	text string
}

// code is the sentinel that a failure wraps.
type code uint8

const (
	codeAborted code = iota + 1
	codeMismatch
	codePeerLost
	codeInvalid
)

// sentinels are the specific ones; ErrAborted stands for the rest.
var sentinels = map[code]error{
	codeMismatch: collective.ErrMismatch, codePeerLost: collective.ErrPeerLost, codeInvalid: collective.ErrInvalid,
}

const (
	maxRecord   = 2048
	recordHead  = 13
	recordMagic = "EBAB"
)

func (r record) encode() []byte {
	text := strings.ToValidUTF8(r.text[:min(len(r.text), maxRecord-recordHead)], "")
	b := append(make([]byte, 0, recordHead+len(text)), recordMagic...)
	b = append(b, byte(r.code))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(r.rank)))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(r.peer)))
	return append(b, text...)
}

// frame is r behind its length: 2 bytes, little endian.
func (r record) frame() []byte {
	b := r.encode()
	return append([]byte{byte(len(b)), byte(len(b) >> 8)}, b...)
}

var errRecord = errors.New("not a record of an abort")

func decodeRecord(b []byte) (record, error) {
	if len(b) < recordHead || len(b) > maxRecord || string(b[:4]) != recordMagic {
		return record{}, errRecord
	}
	r := record{
		code: code(b[4]),
		rank: int(int32(binary.LittleEndian.Uint32(b[5:]))),
		peer: int(int32(binary.LittleEndian.Uint32(b[9:]))),
		text: string(b[recordHead:]),
	}
	if r.code < codeAborted || r.code > codeInvalid || r.rank < 0 || r.peer < -1 || !utf8.ValidString(r.text) {
		return record{}, errRecord
	}
	return r, nil
}

// failure is why the group ended, as this rank's callers see it. It wraps
// ErrAborted and the more specific sentinel; of an abort of this rank's own that is no other's fault, ErrOwnAbort.
type failure struct {
	record
	cause  error // what Abort was given, on the rank that called it; else nil
	remote bool  // another rank found out
}

// found is what rank has found out; peer is the rank at fault, or -1.
func found(rank int, code code, peer int, text string) *failure {
	return &failure{record: record{code: code, rank: rank, peer: peer, text: text}}
}

func (f *failure) Error() string {
	s := cmp.Or(sentinels[f.code], collective.ErrAborted).Error()
	if f.remote && f.code != codePeerLost && f.code != codeMismatch {
		s += fmt.Sprintf(" by rank %d", f.rank)
	}
	return s + ": " + f.text
}

func (f *failure) Unwrap() []error {
	errs := []error{collective.ErrAborted, sentinels[f.code], f.cause}
	if f.code == codeAborted && !f.remote && f.peer < 0 {
		errs = append(errs, collective.ErrOwnAbort)
	}
	return slices.DeleteFunc(errs, func(err error) bool { return err == nil })
}

// abortedBy is the failure that Abort(cause) on this rank makes.
func abortedBy(rank int, cause error) *failure {
	f := found(rank, codeAborted, -1, "no cause given")
	if cause == nil {
		return f
	}
	if known, ok := errors.AsType[*failure](cause); ok { // of another group of the same ranks
		return &failure{record: known.record, cause: cause, remote: known.remote}
	}
	f.cause, f.text = cause, cause.Error()
	var e *collective.Error
	if errors.As(cause, &e) {
		f.peer = e.Peer
	}
	for _, c := range []code{codeInvalid, codeMismatch, codePeerLost} { // of several the last: the others may follow from it
		if sentinel := sentinels[c]; errors.Is(cause, sentinel) {
			f.code, f.text = c, strings.TrimPrefix(f.text, sentinel.Error()+": ")
		}
	}
	return f
}
