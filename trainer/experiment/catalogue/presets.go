package catalogue

import (
	"math"

	"ebtrain/trainer/experiment/judge"
	"ebtrain/trainer/experiment/plan"
)

// presetsOf are presets of train that are run on one data set. A batch is that of the
// preset, unless it is too large for a step to be waited for.
type presetsOf struct {
	data  *plan.DataSet
	names []string
	batch string
}

// allPresets are all presets of train, the quick ones first.
func allPresets() []presetsOf {
	faces := func(size string) *plan.DataSet {
		return &plan.DataSet{
			Name: "celeba" + size, Make: []string{"celeba", "--crop", "160", "--size", size},
			Source: "CelebA's aligned pictures, or some of them, for all methods alike",
		}
	}
	svhn := svhnData()
	text := &plan.DataSet{
		Name: "sentences", Sentences: true,
		Make:   []string{"text", "--lowercase", "--split-punctuation", "--min-count", "2", "--val", "50", "--test", "50"},
		Source: "sentences of SNLI, for all corpora alike",
	}
	gauss := func(d string) *plan.DataSet {
		return &plan.DataSet{Name: "gauss-" + d, Builtin: "gauss:dim=" + d + ",modes=1,sd=1,train=2000"}
	}
	return []presetsOf{
		{data: checkerboardData(), names: []string{
			"bism-board-dsm", "bism-board-ssm", "sm-board-ssm", "sm-board-dsm", "cd-board", "pcd-board",
			"nce-board", "vnce-board", "vages-ksd-board", "vages-dsm-board"}},
		{data: gauss("200"), names: []string{"fisher-200"}},
		{data: gauss("500"), names: []string{"fisher-500"}},
		{data: freyData(), names: []string{"bism-frey", "sm-frey", "cd-frey", "vnce-frey", "vages-frey"}},
		{data: text, names: []string{"lm-snli", "lm-ptb", "lm-yahoo", "lebm-snli", "lebm-ptb", "lebm-yahoo"}},
		{data: &svhn, names: []string{"bidvl-svhn", "lebm-svhn"}},
		{data: faces("32"), names: []string{"bidvl-celeba32", "lebm-celeba32"}},
		{data: mnistData(), names: []string{"mdsm-mnist", "bism-mnist", "vages-mnist"}},
		{data: cifarData(), names: []string{"vae-cifar10", "bidvl-cifar10", "bidvl-cifar10-resnet", "sngan-cifar10", "lebm-cifar10"}},
		{data: faces("64"), names: []string{"vae-celeba64", "bidvl-celeba64", "sngan-celeba64", "lebm-celeba64"}},
		{data: faces("128"), names: []string{"bidvl-celeba128", "sngan-celeba128"}},
		{data: cifarData(), names: []string{"bism-cifar10", "vages-cifar10"}},
		{data: faces("64"), names: []string{"bism-celeba64", "vages-celeba64"}, batch: "20"},
	}
}

// fullSize is every preset at full size, for two steps on one rank and on two.
func fullSize() plan.Experiment {
	ofPaper := []string{"days-here", "tera-ops", "days-h100"}
	var rows []plan.Row
	var checks []judge.Check
	for _, group := range allPresets() {
		for _, name := range group.names {
			r := plan.Row{Name: name, Preset: name, Data: group.data}
			if group.batch != "" {
				r.Flags = map[string]string{"batch": group.batch}
			}
			if group.data.Sentences {
				r.Lacks = ofPaper
			}
			rows = append(rows, r)
		}
		checks = append(checks,
			judge.Bound{Of: judge.Rows("loss-gap", group.names...), Lo: 0, Hi: 0},
			judge.Bound{Of: judge.Rows("mem-1", group.names...), Lo: math.Inf(-1), Hi: mostMemory},
			judge.Bound{Of: judge.Rows("mem-2", group.names...), Lo: math.Inf(-1), Hi: mostMemory})
	}
	return plan.Experiment{
		Name: "presets",
		About: "Every preset of train, with the networks and the batch of its publication, for two steps on one rank and on two, each rank with one thread: ddplaunch starts train with --deterministic, and all numbers of both steps have the same bits. " +
			"--deterministic cuts a batch into up to eight parts, which are computed one after the other, so memory is that of a part; --batch in a row is a smaller batch than the publication's. " +
			"Memory is the largest resident size of the first rank. Seconds are those of the second step, whatever else the machine does; CPU is the processor time of a step, all ranks together: no more than its share of the whole run, start included, and than what the ranks had. " +
			"Days are those of as many samples as the publication's run saw: here on two processors that do nothing else, from that processor time; on an H100 as its peak in float32 without tensor cores, 67·10¹² operations a second, has it for the convolutions and matrix products of a step, counted. That is a bound that no program reaches, and nothing was run on one. " +
			"Sentences are five thousand of SNLI for all corpora, short and of 2,000 words: steps are not those of the publications, and have no days; and the second step may be of another length, so that its program is compiled in it.",
		Source:  "the same bits on one rank and on two",
		Seeds:   []uint64{1},
		Alone:   true,
		Ranks:   []int{1, 2},
		Flags:   map[string]string{"steps": "2", "deterministic": "true"},
		Columns: append([]string{"losses", "loss-gap", "step-s-1", "step-s-2", "cpu-step", "mem-1", "mem-2", "batch-published", "steps-published"}, ofPaper...),
		Rows:    rows,
		Checks:  checks,
	}
}

// mostMemory is what a rank may have of this size of machines, in MiB: of 24 GiB, two
// ranks and a system have room.
const mostMemory = 10 << 10
