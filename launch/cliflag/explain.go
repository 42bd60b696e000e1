package cliflag

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// UnknownFlagError is a flag that the program has not.
type UnknownFlagError struct {
	Name    string   // without dashes
	Dashes  string   // those that were typed before it
	Nearest []string // flags that may have been meant, with dashes
}

// ofLauncher are flags of ddplaunch that a program has not, so that they stand behind its name
// by mistake.
var ofLauncher = []string{"nproc", "nproc-per-node", "nnodes", "node-rank", "rdzv-endpoint", "join", "key-file", "max-restarts", "log-dir"}

func (e *UnknownFlagError) Error() string {
	text := "unknown flag " + e.Dashes + e.Name
	if slices.Contains(ofLauncher, strings.ReplaceAll(e.Name, "_", "-")) {
		return text + ": it is one of ddplaunch, and stands before the program, as in ddplaunch -nproc 2 train"
	}
	if len(e.Nearest) > 0 {
		text += ": did you mean " + strings.Join(e.Nearest, " or ") + "?"
	}
	return text
}

// Explain says what is wrong with a command line in words that name the flag
// and what it wants. err is what fs.Parse returned of args; any other is passed on.
func Explain(fs *pflag.FlagSet, args []string, err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		name, dashes := e.GetSpecifiedName(), "--"
		if group := e.GetSpecifiedShortnames(); group != "" {
			name, dashes = typed(args, group), "-"
		}
		return &UnknownFlagError{name, dashes, nearestFlags(fs, name)}
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return fmt.Errorf("--%s needs a value: want %s", e.GetFlag().Name, Wants(e.GetFlag()))
	}
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if errors.Is(e, strconv.ErrRange) {
			return fmt.Errorf("--%s %q: want %s, and this is beyond what a program can count with", e.GetFlag().Name, e.GetValue(), Wants(e.GetFlag()))
		}
		return fmt.Errorf("--%s %q: want %s", e.GetFlag().Name, e.GetValue(), Wants(e.GetFlag()))
	}
	return err
}

// typed is the word of args, without its dash and its value, that ends with a group of
// letters at which pflag stopped: letters before it that it knows are no longer there.
func typed(args []string, group string) string {
	for _, arg := range args {
		if strings.HasPrefix(arg, "-") && strings.HasSuffix(arg, group) {
			group = arg[1:]
			break
		}
	}
	name, _, _ := strings.Cut(group, "=")
	return name
}

// Wants is what a flag takes, in words.
func Wants(f *pflag.Flag) string {
	switch kind := f.Value.Type(); {
	case kind == "bool":
		return "true or false"
	case strings.HasPrefix(kind, "uint"):
		return "a whole number of at least 0"
	case strings.HasPrefix(kind, "int"), kind == "count":
		return "a whole number"
	case strings.HasPrefix(kind, "float"):
		return "a number"
	case kind == "duration":
		return "a time such as 10s or 2m"
	}
	return "text"
}
