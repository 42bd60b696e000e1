package supervise

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"ebtrain/launch/rendezvous"
)

// ErrorFileVar names a file for the reason of a failure, in the form of
// torchelastic: whoever starts a launcher may set it, to read it after the end,
// and each rank is told one of its own beside its log.
const ErrorFileVar = "TORCHELASTIC_ERROR_FILE"

// errorFile is what such a file holds.
type errorFile struct {
	Message errorMessage `json:"message"`
}

type errorMessage struct {
	Message string            `json:"message"`
	Code    int               `json:"errorCode"` // the rank's exit code, or minus the signal that killed it
	Extra   map[string]string `json:"extraInfo"` // a call stack, and when: seconds since 1970
}

// errorPath is the error file of a rank, "" if there is no folder for it.
func (o Output) errorPath(rank int) string {
	if o.Dir == "" {
		return ""
	}
	return filepath.Join(o.Dir, fmt.Sprintf("rank-%d.error.json", rank))
}

// failed is the content of an error file that says why a job has ended.
func failed(c *rendezvous.Cause, now time.Time) errorFile {
	code := c.Code()
	if c.SignalNumber > 0 {
		code = -c.SignalNumber
	}
	extra := map[string]string{"py_callstack": c.Error(), "timestamp": strconv.FormatInt(now.Unix(), 10)}
	if c.Rank >= 0 {
		extra["rank"] = strconv.Itoa(c.Rank)
	}
	if c.Host != "" {
		extra["hostname"] = c.Host
	}
	return errorFile{errorMessage{Message: c.Error(), Code: code, Extra: extra}}
}

// keepError writes why the job has ended: to the file of the rank that failed, if
// it has written none itself, and to the launcher's own file what that says.
func (a *agent) keepError(c *rendezvous.Cause) error {
	if c == nil || c.Kind == rendezvous.CauseStopped {
		return nil
	}
	text, err := json.Marshal(failed(c, time.Now()))
	if err != nil {
		return err
	}
	if path := a.cfg.Output.errorPath(c.Rank); path != "" && c.Rank >= 0 {
		if own, ok := readError(path, failed(c, time.Now()).Message.Code); ok {
			text = own
		} else if err := os.WriteFile(path, text, 0o666); err != nil {
			return fmt.Errorf("error file of rank %d: %w", c.Rank, err)
		}
	}
	if a.cfg.ErrorFile == "" {
		return nil
	}
	if err := os.WriteFile(a.cfg.ErrorFile, text, 0o666); err != nil {
		return fmt.Errorf("%s: %w", ErrorFileVar, err)
	}
	return nil
}

// readError is what a rank has written of its own failure, with its exit code.
func readError(path string, code int) ([]byte, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	var f map[string]any
	if json.Unmarshal(b, &f) != nil || f["message"] == nil {
		return nil, false
	}
	if m, ok := f["message"].(map[string]any); ok {
		m["errorCode"] = code
		if with, err := json.Marshal(f); err == nil {
			return with, true
		}
	}
	return b, true
}

// removeErrors removes the error files of an earlier run, of all ranks: to keepError they
// would be of this one. A launcher does so before it registers, when no rank runs: in a folder
// of several launchers one that is quick to fail has its file.
func (o Output) removeErrors() error {
	if o.Dir == "" {
		return nil
	}
	return within(fileWait, o.Dir, func() error {
		files, err := os.ReadDir(o.Dir)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		for _, f := range files {
			var rank int
			if _, no := fmt.Sscanf(f.Name(), "rank-%d.error.json", &rank); no != nil || filepath.Base(o.errorPath(rank)) != f.Name() {
				continue
			}
			if e := os.Remove(o.errorPath(rank)); !errors.Is(e, fs.ErrNotExist) { // another launcher may be quicker
				err = errors.Join(err, e)
			}
		}
		return err
	})
}

// errorVar is environ with the error file of a rank in the place of the launcher's. That
// of an earlier epoch is removed, which is not waited for after until.
func (a *agent) errorVar(environ []string, rank int, until time.Time) []string {
	var out []string
	for _, kv := range environ {
		if !strings.HasPrefix(kv, ErrorFileVar+"=") {
			out = append(out, kv)
		}
	}
	path := a.cfg.Output.errorPath(rank)
	if path == "" {
		return out
	}
	if abs, err := filepath.Abs(path); err == nil {
		path = abs
	}
	_ = within(time.Until(until), path, func() error { return os.Remove(path) }) // mostly there is none
	return append(out, ErrorFileVar+"="+path)
}
