package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"ebtrain/launch/cliflag"
)

// LookProgram finds the program to run: a name with a slash is a path; another
// is looked for in dir, where the launcher itself lies, and then on PATH.
func LookProgram(name, dir, path string) (string, error) {
	if name == "" {
		return "", errors.New("the program's name is empty")
	}
	if strings.Contains(name, "/") {
		return name, executable(name)
	}
	for _, d := range append([]string{dir}, strings.Split(path, ":")...) {
		if d == "" {
			continue
		}
		if p := d + "/" + name; executable(p) == nil {
			return p, nil
		}
	}
	advice := "build it, or give its path"
	if meant := cliflag.Meant(name, programsIn(dir)); meant != "" {
		advice = meant
	}
	return "", fmt.Errorf("program %q is neither in %s, beside ddplaunch, nor on PATH: %s", name, dir, advice)
}

// programsIn are the names of what may be run in dir.
func programsIn(dir string) (names []string) {
	all, err := os.ReadDir(dir)
	if err != nil { // then none is near
		return nil
	}
	for _, e := range all {
		if executable(dir+"/"+e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return names
}

func executable(path string) error {
	st, err := os.Stat(path)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return fmt.Errorf("program %s does not exist", path)
	case err != nil:
		return err
	case st.IsDir():
		return fmt.Errorf("program %s is a folder", path)
	case st.Mode()&0o111 == 0:
		return fmt.Errorf("program %s is not executable: chmod +x it", path)
	}
	return nil
}

// ThreadsVar tells programs, and libraries that use OpenMP, how many threads to have.
const ThreadsVar = "OMP_NUM_THREADS"

// SetDefault returns environ with key=value added unless key is set.
func SetDefault(environ []string, key, value string) []string {
	if slices.ContainsFunc(environ, func(kv string) bool { return strings.HasPrefix(kv, key+"=") }) {
		return environ
	}
	return append(slices.Clone(environ), key+"="+value)
}
