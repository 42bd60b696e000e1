package launcher

import (
	"errors"

	"ebtrain/launch/cliflag"
	"ebtrain/launch/env"
)

// unmet is what several launchers lack that have no store to meet in: a common secret,
// which is key, or where node 0 is. It says what to type.
func (o Options) unmet(key []byte) error {
	const same = "set EBTRAIN_KEY to the same value on all of them, for example the output of openssl rand -hex 32"
	secret, head := key == nil, o.Endpoint == "" && (o.NodeRank != 0 || o.Step.Source != "")
	switch {
	case !secret && !head:
		return nil
	case o.Step.Source == env.SourceOMPI:
		return unmetTasks("mpirun", " -x EBTRAIN_KEY", " -x MASTER_ADDR=HOST", secret, head)
	case o.Step.Source == env.SourcePMI: // it passes all variables on
		return unmetTasks("mpiexec", "", " -genv MASTER_ADDR HOST", secret, head)
	case secret && o.Step.Source == env.SourceSLURM:
		return cliflag.Usage("the tasks of this step have no common secret: start them with srun --mpi=pmi2, which brings one along, or %s", same)
	case o.Step.Source == env.SourceSLURM:
		return cliflag.Usage("where a list distributes the tasks (-m arbitrary), Slurm does not say on which host the first one is: start them with srun --mpi=pmi2, or give ddplaunch --rdzv-endpoint HOST")
	case secret:
		return cliflag.Usage("several nodes need a common secret: %s, or name a file that holds it with --key-file", same)
	}
	return errors.New("nobody says where node 0 is")
}

// unmetTasks is that of tasks which by has started, and which it gives a secret and
// the host of the first by some flags.
func unmetTasks(by, keyFlag, headFlag string, secret, head bool) error {
	const random = "EBTRAIN_KEY=$(openssl rand -hex 32) "
	switch {
	case !head:
		return cliflag.Usage("%s has given its tasks no common secret: start them with %s%s%s ...", by, random, by, keyFlag)
	case !secret:
		return cliflag.Usage("%s has not told its tasks, on several hosts, that of rank 0: start them with %s%s ..., which names it", by, by, headFlag)
	}
	return cliflag.Usage("%s has given its tasks, on several hosts, no common secret, nor told them that of rank 0: start them with %s%s%s%s ..., which names it", by, random, by, keyFlag, headFlag)
}
