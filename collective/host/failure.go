package host

import (
	"encoding/binary"
	"errors"
	"fmt"
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

const (
	maxRecord   = 2048
	recordHead  = 13
	recordMagic = "EBAB"
)

func (r record) encode() []byte {
	text := r.text
	for len(text) > maxRecord-recordHead || !utf8.ValidString(text) {
		text = string([]rune(text)[:min(len([]rune(text))-1, (maxRecord-recordHead)/4)])
	}
	b := append(make([]byte, 0, recordHead+len(text)), recordMagic...)
	b = append(b, byte(r.code))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(r.rank)))
	b = binary.LittleEndian.AppendUint32(b, uint32(int32(r.peer)))
	return append(b, text...)
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
// ErrAborted and the more specific sentinel.
type failure struct {
	record
	cause  error // what Abort was given, on the rank that called it; else nil
	remote bool  // another rank found out
}

func (f *failure) Error() string {
	s := collective.ErrAborted.Error()
	if e := f.sentinel(); e != nil {
		s = e.Error()
	}
	if f.remote && f.code != codePeerLost && f.code != codeMismatch {
		s += fmt.Sprintf(" by rank %d", f.rank)
	}
	return s + ": " + f.text
}

func (f *failure) Unwrap() []error {
	errs := []error{collective.ErrAborted}
	if e := f.sentinel(); e != nil {
		errs = append(errs, e)
	}
	if f.cause != nil {
		errs = append(errs, f.cause)
	}
	return errs
}

// sentinel is the specific one, nil where that is ErrAborted itself.
func (f *failure) sentinel() error {
	switch f.code {
	case codeMismatch:
		return collective.ErrMismatch
	case codePeerLost:
		return collective.ErrPeerLost
	case codeInvalid:
		return collective.ErrInvalid
	}
	return nil
}

// abortedBy is the failure that Abort(cause) on this rank makes.
func abortedBy(rank int, cause error) *failure {
	f := &failure{record: record{code: codeAborted, rank: rank, peer: -1, text: "no cause given"}, cause: cause}
	if cause == nil {
		return f
	}
	f.text = cause.Error()
	var e *collective.Error
	if errors.As(cause, &e) {
		f.peer = e.Peer
	}
	for c, sentinel := range map[code]error{
		codeMismatch: collective.ErrMismatch, codePeerLost: collective.ErrPeerLost, codeInvalid: collective.ErrInvalid,
	} {
		if errors.Is(cause, sentinel) {
			f.code = c
		}
	}
	return f
}
