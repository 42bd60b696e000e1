package cliflag

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Version is what a program was made of, in a line: the module's version, the
// commit and the Go that built it.
func Version(program string) string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return fmt.Sprintf("%s, of an unknown build, %s %s/%s", program, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	}
	return version(program, info)
}

func version(program string, info *debug.BuildInfo) string {
	text := fmt.Sprintf("%s of %s %s", program, info.Main.Path, info.Main.Version)
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		text += ", commit " + commit
		if settings["vcs.modified"] == "true" {
			text += " with changes"
		}
	}
	return fmt.Sprintf("%s, %s %s/%s", text, info.GoVersion, runtime.GOOS, runtime.GOARCH)
}
