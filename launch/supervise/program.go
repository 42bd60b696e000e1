package supervise

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
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
	return "", fmt.Errorf("program %q is neither in %s, beside ddplaunch, nor on PATH: build it, or give its path", name, dir)
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
