package cliflag

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"
)

// Program is what a program, or one of its commands, says of itself.
type Program struct {
	Name string // as typed: "train", "mkshards folder"
	// About is what it does, with an example, in lines of at most 80 columns.
	About string
	// Groups are the flags as --help shows them; those in none come last, and
	// what a command has not is left out.
	Groups []Group

	// Args is what may follow the flags, for the reader: "PROGRAM [ITS FLAGS]".
	// Empty, any argument that is not a flag is a mistake.
	Args string
	// Stops says that the flags end at the first argument that is none.
	Stops bool
}

// Group is flags that belong together.
type Group struct {
	Title string
	Flags []string // names, without dashes
}

// ErrHelp means that help, or the version, was asked for and shown.
var ErrHelp = errors.New("help was asked for")

// Parse reads args into fs: long flags with one dash or two, and besides those
// of fs --help, -h and --version, which it answers on out with ErrHelp. A
// mistake is a *UsageError.
func (p Program) Parse(fs *pflag.FlagSet, args []string, out io.Writer) error {
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	fs.SortFlags = false
	fs.SetInterspersed(!p.Stops)
	help := fs.BoolP(helpFlag, "h", false, "show this help")
	version := fs.Bool(versionFlag, false, "show the version")
	if err := fs.Parse(Normalize(fs, args, !p.Stops)); err != nil {
		return &UsageError{Explain(fs, args, err)}
	}
	var text string
	switch {
	case *help:
		text = p.help(fs)
	case *version:
		text = Version(p.Name) + "\n"
	case fs.NArg() > 0 && p.Args == "":
		return Usage("unexpected argument %q: every setting of %s is a flag", fs.Arg(0), p.Name)
	default:
		return checkTilde(fs)
	}
	if _, err := io.WriteString(out, text); err != nil {
		return err
	}
	return ErrHelp
}

const (
	helpFlag    = "help"
	versionFlag = "version"
)

// Values is every flag of fs with its value, but for those that Parse adds.
func Values(fs *pflag.FlagSet) map[string]string {
	m := map[string]string{}
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != helpFlag && f.Name != versionFlag {
			m[f.Name] = f.Value.String()
		}
	})
	return m
}

// help is what --help shows.
func (p Program) help(fs *pflag.FlagSet) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(p.About, "\n") + "\n")
	shown := map[string]bool{}
	group := func(title string, flags []string) {
		text := ""
		for _, name := range flags {
			if f := fs.Lookup(name); f != nil && !shown[f.Name] && !f.Hidden {
				text += describe(f)
				shown[f.Name] = true
			}
		}
		if text != "" {
			fmt.Fprintf(&b, "\n%s:\n%s", title, text)
		}
	}
	for _, g := range p.Groups {
		group(g.Title, g.Flags)
	}
	var all []string
	fs.VisitAll(func(f *pflag.Flag) { all = append(all, f.Name) })
	if len(p.Groups) == 0 {
		group("Flags", all)
	}
	group("Other", all)
	return b.String()
}

const (
	helpWidth = 80
	textAt    = 24 // column at which what a flag does begins
)

// together is a space at which no line is broken.
const together = "\x00"

// describe is a flag in lines of at most helpWidth columns.
func describe(f *pflag.Flag) string {
	kind, usage := pflag.UnquoteUsage(f)
	left := "      --" + f.Name
	if f.Shorthand != "" {
		left = "  -" + f.Shorthand + ", --" + f.Name
	}
	if kind != "" {
		left += " " + kind
	}
	if d := f.DefValue; d != "" && d != "false" && d != "[]" {
		usage += " (default" + together + d + ")"
	}
	lines := wrap(usage, helpWidth-textAt)
	if len(left)+2 > textAt {
		lines = append([]string{""}, lines...)
	}
	var b strings.Builder
	for i, line := range lines {
		if i > 0 {
			left = ""
		}
		line = strings.ReplaceAll(line, together, " ")
		b.WriteString(strings.TrimRight(fmt.Sprintf("%-*s%s", textAt, left, line), " ") + "\n")
	}
	return b.String()
}

// wrap breaks a text at spaces into lines of at most width columns. A longer
// word has a line of its own.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && len([]rune(line))+1+len([]rune(word)) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return append(lines, line)
}
