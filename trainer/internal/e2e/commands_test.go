package e2e

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestDocumentedCommands gives the commands that READMEs and --help show to the programs,
// each with --help behind its flags: a program says first which flag it does not know, or
// which value it cannot read, and nothing runs.
func TestDocumentedCommands(t *testing.T) {
	long(t)
	s := newSite(t)
	if err := os.WriteFile(s.path("my-program"), []byte("#!/bin/sh\n"), 0o755); err != nil { // an example of ddplaunch's
		t.Fatal(err)
	}
	shown := map[string]int{} // commands, by program
	check := func(where, line string) {
		for _, args := range commandsOf(line) {
			shown[args[0]]++
			e, ok := s.takes(args)
			if !ok {
				t.Errorf("%s: %s: %v", where, line, e)
			}
			whole := args[0] == "train" && !strings.Contains(line, "...")
			if batch, ranks := batchOf(args, e.stdout), ranksShown(line); whole && batch%ranks != 0 {
				t.Errorf("%s: %s: %d ranks cannot share a batch of %d equally", where, line, ranks, batch)
			}
		}
	}
	for _, file := range readmes(t) {
		for _, line := range shownIn(t, file) {
			check(file, line)
		}
	}
	for _, p := range programs {
		name := path.Base(p)
		if shown[name] == 0 {
			t.Errorf("no README shows a command of %s", name)
		}
		help := continued.ReplaceAllString(s.must(name, "--help").stdout, " ")
		for _, m := range examples.FindAllStringSubmatch(help, -1) {
			check(name+" --help", m[1])
		}
	}
	t.Logf("commands by program: %v", shown)
}

// TestDocumentedOutputsSpareSources: whoever gives the commands of a block one after the other
// has all that he gave them to read afterwards.
func TestDocumentedOutputsSpareSources(t *testing.T) {
	outs := 0
	for _, file := range readmes(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks.FindAllStringSubmatch(string(text), -1) {
			read := map[string]bool{}
			for line := range strings.Lines(continued.ReplaceAllString(b[1], " ")) {
				for _, m := range places.FindAllStringSubmatch(line, -1) {
					if m[1] == "src" {
						read[m[2]] = true
					} else if outs++; read[m[2]] {
						t.Errorf("%s: %q writes over what a command before it reads", file, strings.TrimSpace(line))
					}
				}
			}
		}
	}
	if outs < 10 {
		t.Errorf("only %d outputs were found", outs)
	}
}

// places are what a command reads and writes.
var places = regexp.MustCompile(`--(src|out)[ =](\S+)`)

// takes says whether a program takes arguments; one that ends in a flag need only be one
// of which it tells, as that flag would take --help for its value.
func (s *site) takes(args []string) (ended, bool) {
	last := args[len(args)-1]
	if !strings.HasPrefix(last, "-") {
		e := s.run(append(args, "--help")...)
		return e, e.code == 0
	}
	e := s.run(append(args[:len(args)-1], "--help")...)
	return e, e.code == 0 && strings.Contains(strings.Join(strings.Fields(e.stdout), " "), " "+last+" ")
}

// batchOf is the batch of a command of train's: what it says, or the default in its --help,
// which is that of the method, preset and network that it names.
func batchOf(args []string, help string) int {
	if i := slices.Index(args, "--batch"); i >= 0 {
		help = "--batch int (default " + args[i+1] + ")"
	}
	m := batches.FindStringSubmatch(strings.Join(strings.Fields(help), " "))
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1]) // they are digits
	return n
}

// ranksShown is how many ranks a line starts, on nodes of four GPUs.
func ranksShown(line string) int {
	ranks := 1
	for _, count := range counts {
		if m := count.FindStringSubmatch(line); m != nil {
			n, err := strconv.Atoi(m[1])
			if err != nil {
				n = 4 // auto, gpu
			}
			ranks *= n
		}
	}
	return ranks
}

var (
	batches = regexp.MustCompile(`--batch int .*?\(default (\d+)\)`)
	counts  = []*regexp.Regexp{
		regexp.MustCompile(`(?:--nnodes |srun --nodes=|mpiexec -np |mpirun -np |-n )(\d+)`),
		regexp.MustCompile(`--ntasks-per-node=(\d+)`), regexp.MustCompile(`-nproc (\d+|auto|gpu)`),
	}
)

const (
	root = "../../.."                   // the folder of the repository
	made = "bin runs shards build .git" // folders there that are no part of it
)

func readmes(t *testing.T) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(name string, e os.DirEntry, err error) error {
		if err == nil && e.IsDir() && filepath.Dir(name) == filepath.Clean(root) && slices.Contains(strings.Fields(made), e.Name()) {
			return filepath.SkipDir
		}
		if err == nil && e.Name() == "README.md" {
			files = append(files, name)
		}
		return err
	})
	if err != nil || len(files) < 5 {
		t.Fatalf("READMEs %v: %v", files, err)
	}
	return files
}

var (
	blocks    = regexp.MustCompile("(?ms)^```(?:sh|bash)?\n(.*?)^```")
	spans     = regexp.MustCompile("`(?:bin/)?([a-z]+ [^`\n]+)`")
	continued = regexp.MustCompile(`\\\n\s*`)
	examples  = regexp.MustCompile(`(?m)^  ([a-z]+ [^[\n]*?)(?:   .*)?$`) // with [flags] it is the usage
	comment   = regexp.MustCompile(`(^|\s)#.*`)
	operators = regexp.MustCompile(`[;|&<>]+`)
	variable  = regexp.MustCompile(`\$\w+`)
)

// shownIn are the lines of a document's blocks of code, and what its text has in
// backquotes.
func shownIn(t *testing.T, file string) (lines []string) {
	t.Helper()
	src, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range blocks.FindAllStringSubmatch(string(src), -1) {
		for line := range strings.Lines(continued.ReplaceAllString(b[1], " ")) {
			lines = append(lines, comment.ReplaceAllString(line, ""))
		}
	}
	for _, m := range spans.FindAllStringSubmatch(blocks.ReplaceAllString(string(src), ""), -1) {
		lines = append(lines, m[1])
	}
	return lines
}

// commandsOf are the commands of programs in a line, without what it stands behind, such
// as srun. One that starts another, as ddplaunch train, is two; "$@" is no argument, and
// another variable is a number; NAME and the like are one that there is.
func commandsOf(line string) (commands [][]string) {
	for _, part := range operators.Split(line, -1) {
		var args []string
		bare := true // may the program's name be: it comes first, or another starts it
		for _, word := range strings.Fields(part) {
			dir, name := path.Split(word)
			known := slices.ContainsFunc(programs, func(p string) bool { return path.Base(p) == name })
			switch {
			case known && (dir == "bin/" || dir == "" && bare):
				commands = append(commands, args)
				args, bare = []string{name}, starters[name]
			case args != nil && word != `"$@"`:
				word = strings.Trim(variable.ReplaceAllString(word, "1"), `'"`)
				if is, ok := meant[word]; ok {
					word = is
				}
				args = append(args, word)
			}
			bare = bare && args != nil
		}
		commands = append(commands, args)
	}
	return slices.DeleteFunc(commands, func(c []string) bool { return c == nil })
}

// starters are the programs that start others.
var starters = map[string]bool{"ddplaunch": true, "onhosts": true}

// meant are what stands for anything.
var meant = map[string]string{"METHOD": "bism", "NAME": "bism-frey", "COMMAND": "synth", "STEP": "1", "N": "1"}
