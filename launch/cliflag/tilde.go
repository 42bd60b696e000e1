package cliflag

import (
	"strings"

	"github.com/spf13/pflag"
)

// checkTilde reports a flag whose value begins with the ~ of a home: a shell puts the home in
// its place, but not behind "=" nor in quotes, and a folder of that name would be made here.
func checkTilde(fs *pflag.FlagSet) (err error) {
	fs.Visit(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if several, ok := f.Value.(pflag.SliceValue); ok {
			values = several.GetSlice()
		}
		for _, value := range values {
			if err == nil && strings.HasPrefix(value, "~/") {
				err = Usage("--%s %q: a shell does not replace ~ behind \"=\" or in quotes: write --%[1]s %[2]s, or --%[1]s=\"$HOME/%[3]s\"; a folder of that name is ./%[2]s", f.Name, value, value[len("~/"):])
			}
		}
	})
	return err
}
