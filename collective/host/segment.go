package host

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const pageSize = 4096

// hugePage is the size from which parts of a segment are aligned so that the
// kernel can use huge pages.
const hugePage = 2 << 20

// segment is memory that the ranks of a host share. It has no name: it is a
// memfd, passed from process to process, and the kernel frees it when the
// last process that maps it is gone, however it went.
//
// The memory holds parts of equal size, one for each local rank.
type segment struct {
	mem  []byte
	part int // bytes from one part to the next
	n    int // bytes of a part that are used
}

// roundUp is n rounded up to a multiple of unit.
func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }

// partSize is the distance between parts of n bytes.
func partSize(n int) int {
	if n >= hugePage {
		return roundUp(n, hugePage)
	}
	return roundUp(max(n, 1), pageSize)
}

// createSegment makes the memory of a segment of ranks parts of n bytes. The
// caller maps the file, sends it to its peers and closes it.
func createSegment(name string, ranks, n int) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("create shared memory: memfd_create: %w", err)
	}
	f := os.NewFile(uintptr(fd), name)
	size := int64(ranks) * int64(partSize(n))
	err = f.Truncate(size)
	if err == nil { // nobody can shrink it: a mapped page that is gone would be a SIGBUS
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_SHRINK|unix.F_SEAL_GROW|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("create shared memory of %d bytes for %d ranks: %w", size, ranks, err), f.Close())
	}
	return f, nil
}

// mapSegment maps a file made by createSegment with the same arguments.
func mapSegment(f *os.File, ranks, n int) (*segment, error) {
	part := partSize(n)
	st, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("shared memory: %w", err)
	}
	if want := int64(ranks) * int64(part); st.Size() != want {
		return nil, fmt.Errorf("shared memory has %d bytes, expected %d", st.Size(), want)
	}
	mem, err := unix.Mmap(int(f.Fd()), 0, ranks*part, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes of shared memory: %w", ranks*part, err)
	}
	return &segment{mem: mem, part: part, n: n}, nil
}

// takeSegment is mapSegment for a file that nobody needs afterwards.
func takeSegment(f *os.File, ranks, n int) (*segment, error) {
	defer func() { _ = f.Close() }() // the mapping stays
	return mapSegment(f, ranks, n)
}

// privateSegment is a segment of one rank that nobody shares.
func privateSegment(n int) (*segment, error) {
	part := partSize(n)
	mem, err := unix.Mmap(-1, 0, part, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		return nil, fmt.Errorf("map %d bytes: %w", part, err)
	}
	return &segment{mem: mem, part: part, n: n}, nil
}

// adviseHuge asks for huge pages, where parts are large and will be full. It
// is a hint: kernels without them refuse it.
func (s *segment) adviseHuge() {
	if s.part >= hugePage {
		_ = unix.Madvise(s.mem, unix.MADV_HUGEPAGE)
	}
}

// of is the part of local rank l.
func (s *segment) of(l int) []byte { return s.mem[l*s.part : l*s.part+s.n : l*s.part+s.n] }

// offset is where v begins in part l, if all of v lies there.
func (s *segment) offset(l int, p unsafe.Pointer, bytes int) (int, bool) {
	part := s.of(l)
	base := uintptr(unsafe.Pointer(unsafe.SliceData(part)))
	at := uintptr(p)
	if at < base || at-base > uintptr(len(part)) || uintptr(len(part))-(at-base) < uintptr(bytes) {
		return 0, false
	}
	return int(at - base), true
}

func (s *segment) unmap() error { return unix.Munmap(s.mem) }
