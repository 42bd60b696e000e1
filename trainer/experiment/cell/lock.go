package cell

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"ebtrain/data/atomicfile"
)

// Lock makes the folder of an experiment and takes its lock, until Close or the
// end of the process.
func Lock(root, experiment string) (io.Closer, error) {
	dir := filepath.Join(root, experiment)
	if err := atomicfile.MakeDir(dir); err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR|os.O_CREATE, 0o666)
	if err != nil {
		return nil, fmt.Errorf("--out: %w", err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	switch {
	case err == nil:
		return f, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = fmt.Errorf("another process is running the experiment in %s: wait for its end, or give another --out", dir)
	default:
		err = fmt.Errorf("lock %s: %w: the file system must support flock", f.Name(), err)
	}
	return nil, errors.Join(err, f.Close())
}
