package rundir

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
	"time"
)

// Failed notes in config.json that the run came to nothing, in the words that it ends with, if
// it has done no step: then it is in nobody's way, and Create replaces it. It can still go on,
// and Resumed takes the note back.
func (d *Dir) Failed(words string) error {
	there := d.InPlace() == nil // else it is in the way of nobody
	if d.config.began() || !unbegun(d.Layout) || !there {
		return nil
	}
	d.config.Failed = words
	return d.write()
}

// failed says whether at path is a run that Failed has noted and that has done nothing since.
func failed(path string) bool {
	c, err := ReadConfig(path)
	return err == nil && c.Failed != "" && !c.began() && unbegun(Layout(path))
}

// began says whether c tells of a step that was done.
func (c Config) began() bool {
	for _, r := range c.Resumed {
		if r.Step > 0 {
			return true
		}
	}
	return c.Saved > 0 || c.Diverged != ""
}

// unbegun says whether the run at l has logged no step and kept no checkpoint.
func unbegun(l Layout) bool {
	if st, err := os.Stat(l.MetricsFile()); !errors.Is(err, fs.ErrNotExist) && (err != nil || st.Size() > 0) {
		return false
	}
	kept, err := os.ReadDir(l.Ckpt())
	return err == nil && len(kept) == 0
}

// holdsRun says that there is a run at path, where another was to begin, and what to do.
func holdsRun(path string) error {
	started := ""
	if c, err := ReadConfig(path); err == nil { // only to say more
		started = " of " + c.Started.Format(time.DateTime)
	}
	idly := ""
	if idle(path) {
		idly = "; it has done no step, so nothing is lost if you remove it"
	}
	return fmt.Errorf("%s holds another run%s: use --resume to go on with it, or give another --out%s", path, started, idly)
}

// idle says whether the run at path has done no step, and no process works on it: what becomes
// of one that is killed before its first.
func idle(path string) bool {
	if !unbegun(Layout(path)) {
		return false
	}
	f, err := os.Open(lockFile(path))
	if err != nil {
		return false
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	return errors.Join(err, f.Close()) == nil
}
