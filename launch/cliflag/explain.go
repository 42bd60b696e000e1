package cliflag

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"
)

// UnknownFlagError is a flag that the program has not.
type UnknownFlagError struct{ Name string } // without dashes

func (e *UnknownFlagError) Error() string { return "unknown flag --" + e.Name }

// Explain says what is wrong with a command line in words that name the flag
// and what it wants. err is what fs.Parse returned; any other is passed on.
func Explain(err error) error {
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if group := e.GetSpecifiedShortnames(); group != "" {
			return fmt.Errorf("unknown flag -%s", group)
		}
		return &UnknownFlagError{e.GetSpecifiedName()}
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
