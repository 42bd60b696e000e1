package nccl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"ebtrain/collective"
	"ebtrain/collective/cuda"
	"ebtrain/collective/host"
)

// slabBytes is what small allocations share: NCCL's memory comes in pieces of at
// least that.
const slabBytes = 2 << 20

// slab is memory from ncclMemAlloc. All ranks make the same slabs in the same
// order and cut them alike, so a vector's slab and offset are the same on all of
// them.
type slab struct {
	at           cuda.Ptr
	bytes, used  int
	registration uintptr // 0: not registered
}

// memory is what Alloc has given.
type memory struct {
	nccl  *communicator
	dev   *cuda.Device
	log   *slog.Logger
	slabs []*slab
}

// place says where a vector lies: in which slab and how far from its beginning;
// or in no slab.
type place struct{ slab, offset int64 }

var elsewhere = place{-1, -1}

func (m *memory) place(v collective.Vec) place {
	at, n := cuda.AddressOf(v), v.Len*v.Type.Size()
	for i, s := range m.slabs {
		if s.registration != 0 && at >= s.at && at+cuda.Ptr(n) <= s.at+cuda.Ptr(s.bytes) {
			return place{int64(i), int64(at - s.at)}
		}
	}
	return elsewhere
}

// cut takes n bytes of the last slab, if they fit.
func (m *memory) cut(n int) (cuda.Ptr, bool) {
	if len(m.slabs) == 0 {
		return 0, false
	}
	s := m.slabs[len(m.slabs)-1]
	if s.bytes-s.used < n {
		return 0, false
	}
	p := s.at + cuda.Ptr(s.used)
	s.used += (n + 255) / 256 * 256
	return p, true
}

// alloc is a collective: all ranks add a slab, or none needs to.
func (m *memory) alloc(in *host.Inside, n int) (cuda.Ptr, error) {
	if p, ok := m.cut(n); ok {
		return p, nil
	}
	s, err := m.newSlab((n + slabBytes - 1) / slabBytes * slabBytes)
	if err := agree(in, "memory for collectives", err); err != nil {
		return 0, errors.Join(err, m.release(s))
	}
	m.slabs = append(m.slabs, s)
	if err := m.register(in, s); err != nil {
		return 0, err
	}
	p, _ := m.cut(n)
	return p, nil
}

func (m *memory) newSlab(bytes int) (*slab, error) {
	s := &slab{bytes: bytes}
	err := m.dev.Attach(func() error {
		var code int
		if s.at, code = m.nccl.api.memAlloc(bytes); code != success {
			return m.refused(bytes, &Error{Call: "ncclMemAlloc", Code: code, Text: m.nccl.api.text(code)})
		}
		return nil
	})
	return s, err
}

// refused is err, of NCCL, whose code is the same for too little memory and for any other
// fault of CUDA's.
func (m *memory) refused(bytes int, err error) error {
	free, total, infoErr := m.dev.MemInfo()
	if infoErr != nil || free >= int64(bytes) {
		return errors.Join(err, infoErr)
	}
	return &cuda.OutOfMemory{Asked: int64(bytes), Free: free, Total: total, Err: err}
}

// register makes NCCL use the slab without copies, on all ranks or on none.
func (m *memory) register(in *host.Inside, s *slab) error {
	err := m.nccl.call("ncclCommRegister", func(comm uintptr) (code int) {
		s.registration, code = m.nccl.api.register(comm, s.at, s.bytes)
		return code
	})
	bad := []int64{0}
	if err != nil {
		s.registration, bad[0] = 0, 1
		m.log.Warn("memory not registered with NCCL: its collectives copy", "err", err)
	}
	req := collective.Request{Kind: collective.AllReduce, Op: collective.Max, Vec: collective.VecOf(bad), Label: "registered"}
	if err := in.Do(context.Background(), req); err != nil {
		return err
	}
	if bad[0] != 0 {
		return m.deregister(s)
	}
	return nil
}

func (m *memory) deregister(s *slab) error {
	if s.registration == 0 {
		return nil
	}
	r := s.registration
	s.registration = 0
	return m.nccl.call("ncclCommDeregister", func(comm uintptr) int { return m.nccl.api.deregister(comm, r) })
}

// deregisterAll is before the communicator's end in good order; an abort does it
// itself.
func (m *memory) deregisterAll() error {
	var errs []error
	for _, s := range m.slabs {
		errs = append(errs, m.deregister(s))
	}
	return errors.Join(errs...)
}

// release frees a slab; the communicator knows nothing of it any more. What a lost device
// had is gone with it, and NCCL fails to free it.
func (m *memory) release(s *slab) error {
	if s == nil || s.at == 0 {
		return nil
	}
	return m.dev.Attach(func() error {
		if code := m.nccl.api.memFree(s.at); code != success && !m.dev.Lost() {
			return &Error{Call: "ncclMemFree", Code: code, Text: m.nccl.api.text(code)}
		}
		return nil
	})
}

func (m *memory) free() error {
	var errs []error
	for _, s := range m.slabs {
		errs = append(errs, m.release(s))
	}
	m.slabs = nil
	return errors.Join(errs...)
}

// agree is this rank's error, or that of the first rank that has one.
func agree(in *host.Inside, what string, err error) error {
	text := ""
	if err != nil {
		text = err.Error()
	}
	all, gatherErr := in.GatherBytes(what, []byte(text))
	if gatherErr != nil {
		return gatherErr
	}
	if err != nil {
		return err
	}
	for r, t := range all {
		if len(t) > 0 {
			return fmt.Errorf("rank %d could not have its %s: %s", r, what, t)
		}
	}
	return nil
}
