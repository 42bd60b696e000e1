package supervise

import (
	"cmp"
	"fmt"
	"os"
	"strings"
)

// abandon leaves a rank behind that was killed and does not end, and says what it waits
// for. Its process is init's when the launcher is gone.
func (a *agent) abandon(local int) {
	p := a.procs[local]
	if p == nil || p.over {
		return
	}
	pid := p.cmd.Process.Pid
	a.console.say(fmt.Sprintf("rank %d (pid %d) was killed and does not end: %s; it is left behind, with what it holds", p.rank, pid, lingers(fmt.Sprintf("/proc/%d", pid))))
	p.over, a.behind[pid] = true, true
	close(p.abandoned)
	p.drain()
}

// lingers says why the process whose folder of /proc that is does not end: something traces
// it and has not taken note of its death, or one of its threads stands in the kernel.
func lingers(folder string) string {
	if tracer := field(folder+"/status", "TracerPid"); tracer != "" && tracer != "0" {
		return "process " + cmp.Or(field("/proc/"+tracer+"/status", "Tgid"), tracer) + " traces it (a debugger?)" // a tracer is a thread
	}
	threads, err := os.ReadDir(folder + "/task")
	if err != nil {
		return "why is not known (" + err.Error() + ")"
	}
	for _, t := range threads {
		of := folder + "/task/" + t.Name()
		if state := field(of+"/status", "State"); strings.HasPrefix(state, "D") {
			at := ""
			if w, err := os.ReadFile(of + "/wchan"); err == nil && len(w) > 1 { // "0" if it may not be known
				at = ", in " + string(w)
			}
			return fmt.Sprintf("its thread %s waits in the kernel (state %s%s), as for a file system or a driver that does not answer", t.Name(), state, at)
		}
	}
	return "its state is " + field(folder+"/status", "State")
}

// field is a line of a file of /proc, "" if there is none.
func field(path, name string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
