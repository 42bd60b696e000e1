package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/launch/cliflag"
	"ebtrain/trainer/experiment/plan"
)

// app is the program, without the process around it.
type app struct {
	catalogue      []plan.Experiment
	bin            string // folder of train, evaluate, sample and mkshards
	self           string // this program, for computed cells
	environ        []string
	stdout, stderr io.Writer
	kill           <-chan struct{} // closed when children are to be killed
}

const help = `experiment runs the experiments of the papers and writes what came out.

  experiment list                        what there is, and what is finished
  experiment list board                  what one is to show
  experiment run board --jobs 2
  experiment run frey --source frey_rawface.mat --seeds 1,2,3
  experiment report                      writes RESULTS.md
  experiment pack board --to kept        keeps what the report is made of
  experiment compute bias --row k-300 --data shards/frey
                                         one cell of what trains nothing

An experiment is a table: a row is a preset of train with some flags, and a cell
is a row with a seed. Each cell is a run directory, OUT/NAME/ROW/seed-N, which
sample and evaluate can be asked about, too. run does the cells that are not
finished, several at a time, and gives way to other work. A cell that was
interrupted goes on; one that came to nothing is named, and does not stop the
others. In a row nothing is mixed: cells begun by another commit, with other
settings or on other data, or measured otherwise, are named, and done anew with
--again. Rows may be of different commits (--rows), and the report then says
which. If the programs are rebuilt meanwhile, run ends: who made a cell would
not be known.

report compares what was measured with the numbers of the papers and with what
must come out, and says of each whether it holds, or by how much it fails.

experiment <command> --help lists the settings of a command.
`

// run does what args ask for.
func (a app) run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return cliflag.Usage("no command given: want list, run, report, pack or compute")
	}
	if len(args) > 1 && args[0] == "help" && !strings.HasPrefix(args[1], "-") { // experiment help run
		args = []string{args[1], "--help"}
	}
	switch name := args[0]; name {
	case "help", "--help", "-help", "-h":
		_, err := io.WriteString(a.stdout, help)
		return err
	case "--version", "-version", "version":
		_, err := fmt.Fprintln(a.stdout, cliflag.Version("experiment"))
		return err
	case "list":
		return cliflag.Within(name, a.list(args[1:]))
	case "run":
		return cliflag.Within(name, a.runExperiment(ctx, args[1:]))
	case "report":
		return cliflag.Within(name, a.report(args[1:]))
	case "pack":
		return cliflag.Within(name, a.pack(args[1:]))
	case "compute":
		return cliflag.Within(name, a.compute(ctx, args[1:]))
	default:
		return a.noCommand(name)
	}
}

// noCommand says what a first word is in place of a command.
func (a app) noCommand(word string) error {
	if strings.HasPrefix(word, "-") {
		return cliflag.Usage("%s: the command comes first, as in experiment list --out runs/experiments", word)
	}
	if _, err := a.find(word); err == nil {
		return cliflag.Usage("%q is an experiment, and the command comes first, as in experiment run %s", word, word)
	}
	return cliflag.Usage("unknown command %q: want list, run, report, pack or compute", word)
}

// groups are the flags of all commands as --help shows them.
var groups = []cliflag.Group{
	{Title: "What is run", Flags: []string{"seeds", "rows", "steps", "row", "seed"}},
	{Title: "Data", Flags: []string{"data", "source", "set", "beside"}},
	{Title: "The machine", Flags: []string{"jobs", "threads", "nice"}},
	{Title: "Files", Flags: []string{"out", "again", "all", "to"}},
	{Title: "Help", Flags: []string{"help", "version"}},
}

// parse reads the flags of a command.
func (a app) parse(fs *pflag.FlagSet, about string, args []string) error {
	p := cliflag.Program{Name: "experiment " + fs.Name(), About: about, Groups: groups, Args: "NAME"}
	return p.Parse(fs, args, a.stdout)
}

// defaultOut is where experiments are kept.
const defaultOut = "runs/experiments"

func outFlag(fs *pflag.FlagSet, out *string) {
	fs.StringVar(out, "out", defaultOut, "folder of the experiments")
}

// find is the experiment of that name.
func (a app) find(name string) (plan.Experiment, error) {
	var names []string
	for _, e := range a.catalogue {
		if e.Name == name {
			return e, nil
		}
		names = append(names, e.Name)
	}
	return plan.Experiment{}, cliflag.Listed("list", cliflag.Usage("unknown experiment %q: %s", name, cliflag.OneOf(name, names)))
}

// one is the experiment that args name, and no other.
func (a app) one(fs *pflag.FlagSet) (plan.Experiment, error) {
	if fs.NArg() != 1 {
		return plan.Experiment{}, cliflag.Usage("%s: want the name of one experiment (experiment list shows them), got %d", fs.Name(), fs.NArg())
	}
	return a.find(fs.Arg(0))
}
