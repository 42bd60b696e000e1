package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"ebtrain/data"
	"ebtrain/ddp/graph"
	"ebtrain/launch/cliflag"
	"ebtrain/trainer/chosen"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/ckpt"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/trained"
)

// ofItsStart are the flags that a new run does not take from the run at --from.
var ofItsStart = append([]string{"from", "from-step", "from-networks"}, notInherited...)

// parseFrom is parse for a new run that begins with the weights of the run at path, whose
// flags are its own, but for those of args.
func parseFrom(path string, args []string, out io.Writer) (*options, *pflag.FlagSet, error) {
	saved, err := rundir.ReadConfig(path)
	if err != nil {
		return nil, nil, helpOr(fmt.Errorf("--from: %w", err), args, out)
	}
	o, fs, was, err := inherit(&saved, path, ofItsStart)
	if err != nil {
		return nil, nil, fmt.Errorf("--from: %w", err)
	}
	if err := program(o.own.All()).Parse(fs, args, out); err != nil {
		return nil, nil, err
	}
	o.inheritData(fs, &saved, was)
	return o, fs, o.complete()
}

// helpOr shows --help, if args ask for it, and is err otherwise: what is asked need not wait
// until there is a run.
func helpOr(err error, args []string, out io.Writer) error {
	at, failed := chosen.Names{}.Begin()
	if failed != nil {
		return err
	}
	if _, _, asked := parseNew(at, "", args, out); errors.Is(asked, cliflag.ErrHelp) {
		return asked
	}
	return err
}

// checkFrom reports flags of weights to begin with that say nothing.
func (o *options) checkFrom() error {
	switch {
	case o.from == "" && o.fromStep != trained.Newest:
		return fmt.Errorf("--from-step says which checkpoint of --from a run begins with: give --from, or leave it out")
	case o.from == "" && o.fromNetworks != "":
		return fmt.Errorf("--from-networks says which networks of --from a run begins with: give --from, or leave it out")
	case o.from != "" && o.verify:
		return fmt.Errorf("--%s takes the weights of the seed: leave --from out", verifyFlag)
	}
	return nil
}

// openFrom finds the weights that a new run begins with, on data of schema s: settings name
// them, and the checkpoint is noted in --from-step, so that ranks compare it and a run that
// is ended before its first checkpoint begins with it again. A run that goes on has all that.
func (o *options) openFrom(fs *pflag.FlagSet, s data.Schema) error {
	if o.from == "" || o.was != nil {
		return nil
	}
	origin, err := trained.Find(o.from, o.fromStep)
	if err == nil {
		err = origin.Fits(o.data, s)
	}
	if err == nil {
		o.settings.FromNetworks, err = o.checkWeights(origin.Weights)
	}
	if err == nil {
		o.settings.From, err = ckpt.LearnedDigest(fromCheckpoint(o.from, origin.Step))
	}
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	o.fromSkipped = origin.Skipped
	return fs.Lookup("from-step").Value.Set(fmt.Sprint(origin.Step))
}

// inheritFrom finds the run at --from again, of a run that goes on and may have to begin with its
// weights again: seen from folder, where that one was started last, if it is not there seen from
// this one. The flag stays as it is, since ranks compare it.
func (o *options) inheritFrom(folder string) {
	if o.from == "" || folder == "" || filepath.IsAbs(o.from) || o.beganAt(o.from) {
		return
	}
	if there := filepath.Join(folder, o.from); o.beganAt(there) {
		o.fromThere = there
	}
}

// samePath says whether path, seen from here, is what was is, seen from folder.
func samePath(path, was, folder string) bool {
	if was != "" && !filepath.IsAbs(was) {
		was = filepath.Join(folder, was)
	}
	now, err := filepath.Abs(path)
	return err == nil && path != "" && now == filepath.Clean(was)
}

// fromPath is where the run at --from is.
func (o *options) fromPath() string { return cmp.Or(o.fromThere, o.from) }

// beganAt says whether the run at path has the checkpoint that this run began with.
func (o *options) beganAt(path string) bool {
	digest, err := ckpt.LearnedDigest(fromCheckpoint(path, o.fromStep))
	return err == nil && digest == o.settings.From
}

// checkWeights reports the first weight of the model that is not among theirs, before
// anything is written or read, and gives the networks that begin with theirs, nil for all.
func (o *options) checkWeights(theirs []nn.Variable) (networks []string, err error) {
	mine, err := o.weights()
	if err != nil {
		return nil, err
	}
	if networks, err = o.chooseNetworks(mine, theirs); err != nil {
		return nil, err
	}
	there := map[string]graph.Type{}
	for _, v := range theirs {
		there[v.Name] = v.Type
	}
	for _, v := range nn.OfNetworks(mine, networks) {
		switch typ, ok := there[v.Name]; {
		case !ok && networks == nil:
			return nil, cliflag.Usage("the model of %s has no %s, which the new one needs: give a run of the same networks, or say with --from-networks which of its networks (%s) the new one begins with", o.from, v.Name, strings.Join(nn.Networks(theirs), ", "))
		case !ok:
			return nil, cliflag.Usage("the model of %s has no %s, which the new one needs: give a run whose network %s is the same", o.from, v.Name, nn.NetworkOf(v.Name))
		case typ != v.Type:
			return nil, cliflag.Usage("%s is %v in the model of %s, and %v in the new one: give a run of networks of the same size", v.Name, typ, o.from, v.Type)
		}
	}
	if networks == nil {
		return nil, nil
	}
	return networks, o.checkNoMore(mine, nn.OfNetworks(theirs, networks))
}

// fromCheckpoint is the folder of a checkpoint of the run at path; "" if that is.
func fromCheckpoint(path string, step int64) string {
	if path == "" {
		return ""
	}
	return filepath.Join(rundir.Layout(path).Ckpt(), ckpt.Name(step))
}
