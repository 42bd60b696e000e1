package main

import (
	"math"
	"slices"

	"ebtrain/ddp/exec"
	"ebtrain/trainer/eval"
	"ebtrain/trainer/model/nn"
	"ebtrain/trainer/run/rundir"
	"ebtrain/trainer/stepbench/distance"
	"ebtrain/trainer/stepbench/flops"
)

// result is what is printed. Names without a comment are those of the PyTorch
// peers and mean the same; lists have an entry for each rank.
type result struct {
	Bench   string `json:"bench"`
	Lib     string `json:"lib"`
	Model   string `json:"model"`
	Ch      int    `json:"ch"`
	World   int    `json:"world"`
	Threads int    `json:"threads"` // per rank
	Batch   int    `json:"batch"`   // per rank, as the peers'
	Global  int    `json:"global_batch"`
	Prec    string `json:"precision"`
	DDP     bool   `json:"ddp"`
	BF16    bool   `json:"bf16"`

	StepMS     float64 `json:"step_ms"`
	MinMS      float64 `json:"min_ms"`
	MaxMS      float64 `json:"max_ms"`
	ImgS       float64 `json:"img_s"`
	ImgSBest   float64 `json:"img_s_best"`
	GFlopImg   float64 `json:"gflop_per_img"` // of our own graph
	GFLOPS     float64 `json:"gflops"`        // of our own graph
	Peak       float64 `json:"peak_gflops"`   // matrix product, all ranks together; 0 if not measured
	PeakShare  float64 `json:"peak_share"`    // gflops / peak_gflops
	PeakSize   int     `json:"peak_size"`
	PerSample  int     `json:"steps_per_sample"`
	NIters     int     `json:"n_iters"` // samples
	NQuiet     int     `json:"n_quiet"`
	OtherCPU   float64 `json:"other_cpu_used"`
	CPUPerStep float64 `json:"cpu_s_per_step_rank0"`

	Processors int       `json:"processors"` // that rank 0 may use
	LineNS     []float64 `json:"line_ns"`    // between the nearest and the farthest two, before the steps or after; null if not measured

	MaxRSS    []int     `json:"maxrss_mb"`
	Allocs    []float64 `json:"allocs_step"`   // objects allocated in a step
	RSSGrowth []float64 `json:"rss_growth_mb"` // of the resident size, over all timed steps
	PlannedMB float64   `json:"planned_mb"`    // intermediate values of a rank
	VarsMB    float64   `json:"vars_mb"`       // weights, moments, buffers of a rank
	MomentsMB float64   `json:"moments_mb"`    // of them, the optimisers' state
	CommMS    []float64 `json:"comm_ms"`       // waited for collectives in a step: exposed communication
	CompileMS float64   `json:"compile_ms"`
	Nodes     int       `json:"nodes"`
	Kernels   int       `json:"kernels"`

	ParamsM  float64            `json:"params_m"`
	Losses   map[string]float64 `json:"losses"` // of the last step
	Finite   bool               `json:"finite"`
	Replicas *bool              `json:"replicas_equal"`

	Device string `json:"device"`
	Commit string `json:"commit"`
	Go     string `json:"go"`

	described string            // Device, and why it is not another
	distances string            // of the processors, in words
	work      flops.Count       // of one step over all ranks
	steps     float64           // in all samples
	ops       map[string]opTime // of rank 0, nil if not profiled
}

// opTime is the time of a kind of op in one step.
type opTime struct {
	MS     float64 `json:"ms"`
	Calls  float64 `json:"calls"`
	GFLOPS float64 `json:"gflops"`
}

// columns of what each rank contributes.
const (
	colRSS = iota
	colComm
	colPeak
	colCPU
	colAllocs
	colGrowth
	numCols
)

// result makes rank 0's account of the samples s.
func (b *bench) result(s *samples, inner int, steps float64, before, after exec.Stats, ranks []float64) *result {
	build := rundir.ThisBuild()
	r := &result{
		Bench: b.net.bench, Lib: "ebtrain", Model: b.o.net, Ch: b.o.width, World: b.world, Threads: b.o.how.Threads,
		Batch: b.o.batch / b.world, Global: b.o.batch, Prec: b.o.how.Precision, DDP: b.world > 1,
		PeakSize: b.o.peakSize, PerSample: inner, NIters: len(s.all), NQuiet: s.quiet(),
		PlannedMB: mib(after.PeakBytes), VarsMB: mib(after.VarBytes),
		MomentsMB: mib(nn.RoleBytes(nn.OfRank(b.specs, b.parts.State), nn.Moment)), CompileMS: round(1e3*b.compile.Seconds(), 1),
		Nodes: after.Nodes, Kernels: after.Steps, ParamsM: round(float64(params(b.specs))/1e6, 3),
		Losses: map[string]float64{}, Finite: true, // one reports the first that is not
		Device: b.backend.Name(), Commit: build.Commit, Go: build.Go,
		described: exec.Describe(b.backend), work: flops.Of(b.graph), steps: steps,
	}
	if b.world > 1 {
		equal := true // checkReplicas reports what is not
		r.Replicas = &equal
	}
	for i, name := range b.names {
		r.Losses[name] = b.losses[i]
	}
	for i := range b.world {
		rank := ranks[i*numCols:]
		r.MaxRSS = append(r.MaxRSS, int(math.Round(rank[colRSS])))
		r.Allocs = append(r.Allocs, round(rank[colAllocs], 3))
		r.RSSGrowth = append(r.RSSGrowth, mib(int64(rank[colGrowth])))
		r.CommMS = append(r.CommMS, round(1e3*rank[colComm], 3))
		r.Peak += rank[colPeak]
	}
	r.CPUPerStep = round(ranks[colCPU], 4)
	for kind := range r.work {
		r.work[kind] *= int64(b.world)
	}
	r.times(s.used())
	if b.o.profile {
		r.ops = perOp(before, after, steps)
	}
	return r
}

// times fills in what follows from the samples that count.
func (r *result) times(used []sample) {
	var step, other []float64
	for _, x := range used {
		step, other = append(step, x.step), append(other, x.other)
	}
	m, least := eval.Median(step), slices.Min(step)
	images, work := float64(r.Global), float64(r.work.Total())/1e9
	r.StepMS, r.MinMS, r.MaxMS = round(1e3*m, 3), round(1e3*least, 3), round(1e3*slices.Max(step), 3)
	r.ImgS, r.ImgSBest = round(images/m, 3), round(images/least, 3)
	r.GFlopImg, r.GFLOPS, r.OtherCPU = round(work/images, 6), round(work/m, 2), round(eval.Median(other), 3)
	if r.Peak > 0 {
		r.PeakShare = round(work/m/r.Peak, 3)
	}
	r.Peak = round(r.Peak, 1)
}

// apart fills in how far the processors are from each other.
func (r *result) apart(d distance.Distances) {
	r.Processors, r.distances = d.Processors, d.String()
	if d.Missing == "" {
		r.LineNS = []float64{round(d.Nearest, 1), round(d.Farthest, 1)}
	}
}

func params(specs []nn.Variable) (n int) {
	for _, v := range specs {
		if v.Role == nn.Weight {
			n += v.Type.Shape.Len()
		}
	}
	return n
}

func mib(bytes int64) float64 { return round(float64(bytes)/(1<<20), 1) }

func round(x float64, digits int) float64 {
	p := math.Pow(10, float64(digits))
	return math.Round(x*p) / p
}
