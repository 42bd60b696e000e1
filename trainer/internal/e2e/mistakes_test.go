package e2e

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// mistake is something a user gets wrong.
type mistake struct {
	name string
	env  string // KEY=value, separated by spaces
	args string // command line, separated by spaces
	code int
	want string // regular expression for the sentence
}

// mistakes are made in a folder that holds: run, a finished run of four steps;
// shards, small, grey, tall and text, data sets; file, corpus.txt and corpus.png, files of text;
// empty, a folder.
var mistakes = []mistake{
	// Command lines.
	{"no flags", "", "train", 2, `^--out is required: .*for example --out runs/a`},
	{"unknown flag", "", "train --bogus --out z", 2, `^unknown flag --bogus \(see train --help\)`},
	{"unknown flag of a method", "", "train --algo cd --bogus --out z", 2, `^unknown flag --bogus \(see train --algo cd --help\)`},
	{"unknown flag of a preset", "", "train --preset cd-board --bogus --out z", 2, `^unknown flag --bogus \(see train --preset cd-board --help\)`},
	{"no algorithm", "", "train --out z --algo=", 2, `^unknown --algo "": want one of bidvl.*\(see train --algo help\)$`},
	{"unknown flag, one dash", "", "train -bogus --out z", 2, `^unknown flag -bogus \(see train --help\)`},
	{"flag without value", "", "train --out z --steps", 2, `^--steps needs a value: want a whole number`},
	{"steps not a number", "", "train --out z --steps ten", 2, `^--steps "ten": want a whole number`},
	{"seed negative", "", "train --out z --seed -1", 2, `^--seed "-1": want a whole number of at least 0`},
	{"flip not a boolean", "", "train --out z --flip=maybe", 2, `^--flip "maybe": want true or false`},
	{"flips of points", "", "train --preset sm-board-dsm --data checkerboard --flip --out z", 2, `^--flip mirrors pictures, and --data checkerboard holds points of 2 values: leave it out`},
	{"steps 0", "", "train --out z --steps 0", 2, `^want --steps of at least 1, got 0`},
	{"averages of a decay of 1", "", "train --out z --ema 1", 2, `^want --ema above 0 and below 1, as 0.999, or 0 for no averages, got 1`},
	{"averages of a negative decay", "", "train --out z --ema -0.9", 2, `^want --ema above 0 and below 1, .* got -0.9`},
	{"averages from now on", "", "train --resume --out run --ema 0.9", 2, `^the run in run has --ema 0, not --ema 0.9: a resumed run computes the same thing`},
	{"batch negative", "", "train --out z --batch -4", 2, `^want --batch of at least 1, got -4`},
	{"threads negative", "", "train --out z --threads -1", 2, `^want --threads from 1 to [0-9]+, or 0 to share the cores, got -1`},
	{"threads too many", "", "train --out z --threads 100000", 2, `^want --threads from 1 to [0-9]+, or 0 to share the cores, got 100000`},
	{"learning rate NaN", "", "train --out z --lr nan", 2, `^want --lr above 0.*, got NaN`},
	{"learning rate 0", "", "train --out z --lr-energy 0", 2, `^want --lr-energy above 0.*, got 0`},
	{"beta 2", "", "train --out z --beta1 2", 2, `^want --beta1 of at least 0 and below 1.*, got 2`},
	{"width odd", "", "train --out z --width 7", 2, `^want --width of a multiple of 4, got 7`},
	{"unknown algorithm", "", "train --out z --algo gan", 2, `^unknown --algo "gan": want one of bidvl`},
	{"unknown networks", "", "train --out z --net resnet", 2, `^unknown --net "resnet": want one of conv32, conv64, resnet32, resnet128`},
	{"unknown order", "", "train --out z --order both", 2, `^unknown --order "both": want upper-lower or lower-upper`},
	{"unknown device", "", "train --out z --device gpu", 2, `^unknown --device "gpu": want one of auto, cpu, cuda, ref`},
	{"unknown precision", "", "train --out z --precision f16", 2, `^unknown --precision "f16": want one of f32, tf32, bf16`},
	{"a precision of GPUs", "EBTRAIN_CUDA_LIBS=-", "train --out z --precision tf32", 1, `--precision tf32: only NVIDIA GPUs multiply in TF32, and --device auto computes on the CPU here \(this machine has no NVIDIA driver\): use --precision f32`},
	{"a graph of GPUs", "EBTRAIN_CUDA_LIBS=-", "train --out z --cuda-graph on", 1, `^--cuda-graph on: only NVIDIA GPUs capture steps, and --device auto computes on the CPU here \(this machine has no NVIDIA driver\): leave it out`},
	{"a graph on a processor", "", "train --out z --device cpu --cuda-graph on", 2, `^--cuda-graph on: only NVIDIA GPUs capture steps, and --device cpu computes on the CPU: leave it out`},
	{"batch of pairs", "", "ddplaunch -nproc 2 train --out z --preset vages-ksd-board --data checkerboard --batch 6", 2, `^--batch 6 gives each of 2 ranks 3 samples, and --algo vages takes samples in groups of 2: want a multiple of 4`},
	{"latents that know no picture", "", "train --out z --preset lebm-svhn --data synth --posterior-steps 0", 2, `^want --posterior-steps of at least 1, got 0`},
	{"a prior's chain of no steps", "", "train --out z --preset lebm-svhn --data synth --prior-steps 0", 2, `^--prior-steps 0 leaves the samples of the EBM prior at N\(0, I\): take at least 1, or say --prior gaussian`},
	{"a chain of a prior that has none", "", "train --out z --preset lebm-svhn --data synth --prior gaussian --prior-steps 80", 2, `^--prior-steps 80 is of no use to --prior gaussian: leave it out, or say --prior ebm`},
	{"no latents", "", "train --out z --preset lebm-svhn --data synth --latent 0", 2, `^want --latent of at least 1, got 0`},
	{"a chain of no step size", "", "train --out z --preset lebm-svhn --data synth --posterior-step-size 0", 2, `^want --posterior-step-size above 0.*, got 0`},
	{"no GPU", "EBTRAIN_CUDA_LIBS=-", "train --out z --device cuda", 1, `^--device cuda: this machine has no NVIDIA driver: .*: use --device cpu, or auto`},
	{"bf16 on the reference", "", "train --out z --device ref --precision bf16", 2, `^--device ref computes in float32 only, and --precision is bf16: use --device cpu`},
	{"bf16 without instructions", "DNNL_MAX_CPU_ISA=AVX2 GODEBUG=cpu.avx512f=off", "train --out z --precision bf16", 1, `^--precision bf16: .*: use --precision f32$`},
	{"argument that is no flag", "", "train celeba --out z", 2, `^unexpected argument "celeba": every setting of train is a flag`},
	{"batch beyond memory", "", "train --out z --batch 1000000000", 1, `one value of the program, .* takes [0-9.]+ TiB, and this machine has [0-9.]+ GiB`},
	{"several at once on two ranks", "", "ddplaunch -nproc 2 train --steps 0", 2, `^--out is required`},
	{"batch that three cannot share", "", "ddplaunch -nproc 3 train --out z --batch 4", 2, `^--batch 4 is over all ranks and cannot be shared equally by 3: want a multiple of 3`},

	// Folders to write.
	{"out holds a run", "", "train --out run", 1, `^run holds another run of .*: use --resume to go on with it, or give another --out`},
	{"out holds a run, two ranks", "", "ddplaunch -nproc 2 train --out run", 1, `run holds another run of .*: use --resume`},
	{"out holds other things", "", "train --out shards", 1, `^shards is not empty \(it has index.json\) and is not a run directory: give another --out`},
	{"out where no folder can be made", "", "train --out /proc/z/run", 1, `^the run directory /proc/z/run cannot be made: .*: give another --out`},
	{"out is a file", "", "train --out file", 1, `^file cannot be a run directory: it, or what it lies in, is a file`},
	{"out below a file", "", "ddplaunch -nproc 2 train --out file/run", 1, `file/run cannot be a run directory: it, or what it lies in, is a file`},
	{"resume with other settings", "", "ddplaunch -nproc 2 train --out run --resume --width 8 --latent 4 --batch 8 --lr 0.1", 2,
		`^the run in run has --width 4 --lr 0.0003, not --width 8 --lr 0.1: .*or give another --out`},
	{"resume in another precision", "", "train --out run --resume --precision bf16", 2, `^the run in run has --precision f32, not --precision bf16: `},
	{"resume with other data", "", "train --out run --resume --data shards", 1, `^--data shards \(split train\) does not hold the samples that the run in run was trained on`},
	{"resume with fewer steps", "", "ddplaunch -nproc 2 train --out run --resume --steps 3", 2, `^--steps 3, but the run in run has done 4 steps: `},
	{"resume of nothing", "", "train --out z --resume", 2, `^--out z holds no run to resume`},

	// Data.
	{"no such data", "", "train --out z --data nowhere", 1, `nowhere: no such data set; make it with mkshards`},
	{"not shards", "", "train --out z --data empty", 1, `empty/index.json: missing, so empty is not a whole data set`},
	{"data is a file", "", "train --out z --data file", 1, `file`},
	{"no such split", "", "train --out z --data shards --split night", 2, `^--split: shards: no split "night"; it has .*train`},
	{"unknown setting of synth", "", "train --out z --data synth:colour=1", 2, `^--data: data set "synth:colour=1": unknown setting "colour"; known are seed, size, test, train, val`},
	{"wrong size", "", "train --out z --data small", 1, `--data small holds 16x16 pictures, and --net conv32 takes 32x32: make shards with mkshards --size 32`},
	{"memory that holds no blocks", "", "train --out z --net conv64 --width 4 --data synth:size=64 --shuffle-memory 1", 2, `^want --shuffle-memory of at least 2 MiB, which hold two blocks of --data synth:size=64, got 1 `},
	{"wrong size of a preset", "", "train --out z --preset lebm-celeba64 --data shards", 1, `--data shards holds 32x32 pictures, and --net celeba64 takes 64x64: make shards with mkshards --size 64`},
	{"points for pictures", "", "train --out z --preset lebm-svhn --data checkerboard", 1, `--data checkerboard holds points of 2 values, and --net svhn takes 32x32: give --data of pictures`},
	{"damaged index", "", "train --out z --data torn-index", 1, `torn-index/index.json: .+`},
	{"damaged shard", "", "train --out z --width 4 --latent 4 --batch 8 --data torn-shard", 1, `torn-shard/train/shard-00000.safetensors.zst: .+`},
	{"damaged shard, two ranks", "", "ddplaunch -nproc 2 train --out z --width 4 --latent 4 --batch 8 --data torn-shard", 1, `torn-shard/train/shard-00000.safetensors.zst: .+`},
	{"all data damaged and left out", "", "train --out z --width 4 --latent 4 --batch 8 --data torn-shard --on-bad-data skip", 1, `^step 0: loader: every block that has a sample for the place of number [0-9]+ is damaged, as its own is: copy or import the data set again$`},
	{"damaged sentences", "", "train --out z --preset lm-snli --embed 4 --hidden 4 --batch 4 --data torn-text", 1, `torn-text/train/shard-00000.safetensors.zst: .+; copy or import the data set again, or leave out what is damaged with --on-bad-data skip$`},

	// Environments.
	{"RANK alone", "RANK=0", "train --out z", 1, `^WORLD_SIZE is not set although RANK is: set both, or neither to run alone`},
	{"WORLD_SIZE alone", "WORLD_SIZE=2", "train --out z", 1, `^RANK is not set although WORLD_SIZE is`},
	{"RANK too high", "RANK=2 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=1", "train --out z", 1, `^rank 2 is not below the number of ranks, 2`},
	{"RANK not a number", "RANK=one WORLD_SIZE=2", "train --out z", 1, `^RANK="one" is not a whole number`},
	{"ranks without a launcher", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 LOCAL_WORLD_SIZE=2", "train --out z", 1, `ranks meet through ddplaunch only: run ddplaunch -nproc 2`},
	{"half a launcher", "EBTRAIN_CONTROL_FD=7", "train --out z", 1, `^RANK is not set although EBTRAIN_CONTROL_FD is`},
	{"descriptor that is no launcher", "EBTRAIN_CONTROL_FD=77 EBTRAIN_PROGRESS_FD=78 EBTRAIN_GROUP=x EBTRAIN_EPOCH=0 RANK=0 WORLD_SIZE=1", "train --out z", 1,
		`^EBTRAIN_CONTROL_FD=77 is not the socket of a launcher .*: unset the EBTRAIN_ variables and RANK to run alone`},
	{"unknown kind of progress", "EBTRAIN_PROGRESS=loud", "train --out z", 1, `^EBTRAIN_PROGRESS="loud": expected tty or plain`},
	{"port not a number", "RANK=0 WORLD_SIZE=1 MASTER_PORT=http", "train --out z", 1, `^MASTER_PORT="http" is not a whole number`},
	{"threads of OpenMP", "OMP_NUM_THREADS=many", "train --out z", 1, `^OMP_NUM_THREADS="many": want a number of threads`},
	{"threads of OpenMP, two ranks", "OMP_NUM_THREADS=0", "ddplaunch -nproc 2 train --out z", 1, `OMP_NUM_THREADS="0": want a number of threads`},
	{"outside a SLURM step", "SLURM_NTASKS=4", "train --out z", 1, `^SLURM_NTASKS=4 but this process is not in a step .*: start it with srun or ddplaunch`},
	{"mpirun without a secret", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=4", "train --out z", 2, `^mpirun has given its tasks no common secret: start them with EBTRAIN_KEY=\$\(openssl rand -hex 32\) mpirun -x EBTRAIN_KEY \.\.\. \(see train --help\)$`},
	{"mpirun without a host", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2 EBTRAIN_KEY=abcdefghijklmnop", "train --out z", 2, `^mpirun has not told its tasks, on several hosts, that of rank 0: start them with mpirun -x MASTER_ADDR=HOST \.\.\., which names it`},
	{"mpirun without both", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2", "train --out z", 2, `^mpirun has given its tasks, on several hosts, no common secret, nor told them that of rank 0: start them with EBTRAIN_KEY=.* mpirun -x EBTRAIN_KEY -x MASTER_ADDR=HOST \.\.\., which names it`},
	{"mpirun with a short secret", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=4 EBTRAIN_KEY=abc", "train --out z", 2, `^EBTRAIN_KEY has 3 characters, want at least 16`},
	{"mpirun from which a variable is missing", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4", "train --out z", 1, `^OMPI_COMM_WORLD_LOCAL_RANK is not set although OMPI_COMM_WORLD_RANK is`},
	{"mpiexec without its socket", "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4", "train --out z", 2, `^mpiexec has given its tasks no common secret: start them with EBTRAIN_KEY=\$\(openssl rand -hex 32\) mpiexec \.\.\.`},
	{"mpiexec whose socket was closed", "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=4 PMI_FD=77", "train --out z", 1, `^PMI_FD=77 is not a socket of srun or mpiexec: was it closed on the way\?`},
	{"PMIx alone", "PMIX_RANK=0", "train --out z", 1, `^PMIX_RANK is set but no variable tells the number of ranks`},

	// ddplaunch.
	{"no program", "", "ddplaunch -nproc 2", 2, `^no program to start: ddplaunch -nproc 2 train`},
	{"no ranks", "", "ddplaunch -nproc 0 train", 2, `^--nproc-per-node "0": want a number from 1 to`},
	{"ranks not a number", "", "ddplaunch -nproc two train", 2, `^--nproc-per-node "two": want a number from 1 to`},
	{"unknown flag of ddplaunch", "", "ddplaunch -procs 2 train", 2, `^unknown flag -procs: did you mean -nproc\? \(see ddplaunch --help\)`},
	{"program that is nowhere", "", "ddplaunch -nproc 2 trian --out z", 2, `^program "trian" is neither in .*, beside ddplaunch, nor on PATH: did you mean train\? \(see ddplaunch --help\)$`},
	{"the launcher's flag behind the program", "", "ddplaunch train -nproc 2 --out z", 2, `unknown flag -nproc: it is one of ddplaunch, and stands before the program`},
	{"unknown preset of a method", "", "train --algo bidvl --preset bidvl-cifr10 --data synth --out z", 2, `^unknown --preset "bidvl-cifr10": did you mean bidvl-cifar10\? \(see train --algo bidvl --preset help\)$`},
	{"unknown preset", "", "bench --preset bidvl-cifr10", 2, `^bench: unknown --preset "bidvl-cifr10": did you mean bidvl-cifar10\? \(see bench --preset help\)$`},
	{"unknown experiment", "", "experiment run freyy", 2, `^experiment: unknown experiment "freyy": did you mean frey\? \(see experiment list\)$`},
	{"mistyped built-in data", "", "train --out z --data snyth", 1, `^snyth: no such data set: did you mean the built-in synth\? others are made with mkshards$`},
	{"program that is no program", "", "ddplaunch -nproc 2 ./file", 2, `^program ./file is not executable: chmod \+x it`},
	{"grace below 0", "", "ddplaunch --grace -1s train", 2, `^--grace "-1s": want a time above zero`},
	{"several under mpirun", "OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2", "ddplaunch -nproc 2 train --out z", 2, `^mpirun has started several ddplaunch on one node: want one on each \(mpirun -npernode 1\), or no ddplaunch and one task for each rank \(mpirun train`},
	{"another number under mpiexec", "PMI_RANK=0 PMI_SIZE=4 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=1", "ddplaunch --nnodes 3 -nproc 2 train --out z", 2, `^--nnodes 3, but mpiexec has started ddplaunch on 4 nodes: leave --nnodes out`},
	{"log folder that is a file", "", "ddplaunch --log-dir file/logs train --out z", 2, `^--log-dir file/logs: file is a file, want a folder: give another`},

	// sample and evaluate.
	{"sample without a run", "", "sample --out z.png", 2, `^--run is required`},
	{"sample of nothing", "", "sample --run nowhere --out z.png", 1, `^nowhere is not a run directory, the --out of a train run: it does not exist`},
	{"sample of shards", "", "sample --run shards --out z.png", 1, `^shards is not a run directory, .*: it has no config.json`},
	{"sample not a PNG", "", "sample --run run --out z.jpg", 2, `^--out z.jpg: want a name that ends in .png`},
	{"sample into no folder", "", "sample --run run --out nowhere/z.png", 1, `^--out nowhere/z.png: there is no folder nowhere: make it first`},
	{"sample over a text that is there", "", "sample --run run --out corpus.txt", 1, `^--out corpus.txt: it is there already: give another name, or replace it with --force$`},
	{"sample over what is no picture", "", "sample --run run --out corpus.png", 1, `^--out corpus.png: it is there already, and no PNG, so it is not replaced: give another name, or replace it with --force$`},
	{"evaluate over what is no picture", "", "evaluate --run run --picture corpus.png", 1, `^the picture corpus.png cannot be written: it is there already, and no PNG, so it is not replaced: give another place with --picture FILE.png, or --picture none$`},
	{"samples of no averages", "", "sample --run run --out z.png --ema", 1, `^run/ckpt/step-00000004 has no moving averages of weights, as a run has that is trained with --ema: leave --ema out`},
	{"no averages measured", "", "evaluate --run run --ema", 1, `^run/ckpt/step-00000004 has no moving averages of weights`},
	{"averages of no run", "", "evaluate --samples-from shards --data shards --ema", 2, `^--ema is of a --run, and the samples are those of --samples-from: leave it out`},
	{"no samples", "", "sample --run run --out z.png --n 0", 2, `^want --n from 1 to [0-9]+, got 0`},
	{"unknown statistics", "", "sample --run run --out z.png --stats mine", 2, `^unknown --stats "mine": want batch or running`},
	{"config.json is not JSON", "", "sample --run torn-config --out z.png", 1, `^torn-config/config.json is damaged: .+`},
	{"run of another version", "", "sample --run later-run --out z.png", 1, `^later-run/config.json was written by another version of this program: it has format 2, and this one reads 1: go on with the programs that wrote it`},
	{"evaluate where the data have gone", "", "evaluate --run moved-data", 1, `^gone: no such data set; make it with mkshards; if the data of the run in moved-data have moved, say where they are with --data`},
	{"config.json was changed", "", "evaluate --run changed-config", 1, `^changed-config/config.json is damaged: .*changed by hand`},
	{"all checkpoints damaged", "", "ddplaunch -nproc 2 train --resume --out torn-ckpt --width 4 --latent 4 --batch 8", 1,
		`none of the 2 checkpoints in torn-ckpt/ckpt can be used: .*weights.safetensors: .*damaged`},
	{"metrics damaged in the middle", "", "train --resume --out torn-metrics --width 4 --latent 4 --batch 8", 1, `torn-metrics/metrics.jsonl: line 2: .+`},
	{"evaluate without checkpoint", "", "evaluate --run no-ckpt", 1, `^no-ckpt holds no checkpoint yet: train writes one every --ckpt-every steps and at the end`},
	{"evaluate one at a time", "", "evaluate --run run --batch 1", 2, `^want --batch from 2 to [0-9]+, got 1`},
	{"evaluate without a place for the picture", "", "evaluate --run no-samples", 1, `^the picture no-samples/samples/recon-test-step-00000004.png cannot be written: .*: give another place with --picture`},
	{"sample where no file can be made", "", "sample --run run --out /proc/z.png", 1, `^--out /proc/z.png: no file can be made there`},
	{"evaluate with a folder for a classifier", "", "evaluate --data synth --train-classifier shards", 1, `^--train-classifier shards: it is a folder: give the name of a file in it`},
	{"evaluate with a file that a classifier would replace", "", "evaluate --data synth --train-classifier file", 1, `^--train-classifier file: it is there already, and no classifier, so it is not replaced: give another name`},
	{"evaluate on pictures of another kind", "", "evaluate --run run --data grey", 1, `^grey holds pictures of 1×32×32, and the model of run takes pictures of 3×32×32: make shards with mkshards --size 32 --channels 3`},
	{"evaluate of a step that was not kept", "", "evaluate --run run --step 3", 1, `^run holds no checkpoint of step 3: it has those of steps 2, 4 \(train keeps`},
	{"sample of a step below 0", "", "sample --run run --step -3 --out z.png", 2, `^want --step of at least 0, or -1 for the newest checkpoint, got -3`},
	{"sample with the latents of no data", "", "sample --run run --out z.png --interpolate 4", 2, `^--split and --interpolate go with --given`},
	{"sample mirrored rows without rows", "", "sample --run run --out z.png --given shards --mirror 3", 2, `^--mirror goes with --interpolate`},
	{"sample with latents of a model that takes none", "", "sample --run run --out z.png --given shards", 1, `^the model of run, of --algo bidvl, does not draw samples with given latents: leave --given out`},
	{"evaluate what the method has not", "", "evaluate --run run --measures ll", 1, `^--measures ll of run, a run of --algo bidvl: its models cannot be normalised`},
	{"evaluate few samples", "", "evaluate --run run --measures kid,frechet --samples 100", 2, `^--samples 100: a Fréchet distance wants at least 2048, with fewer it says more of their number than of them`},
	{"evaluate with a flag of no effect", "", "evaluate --run run --measures rmse --reference 500", 2, `^--reference is for --measures frechet,kid,swd,prdc,c2st,neighbours,is, none of which is asked for: name one, or leave --reference out`},
	{"evaluate by a classifier of nothing", "", "evaluate --run run --measures kid --classifier nowhere", 1, `^--classifier: open nowhere: no such file or directory`},
	{"evaluate by an absent classifier", "", "evaluate --run run --measures is", 1, `^--measures is of run, a run of --algo bidvl: it is of a classifier, and neither --classifier nor --inception is given`},
	{"evaluate against nothing", "", "evaluate --run run --limit 8 --ood nowhere", 1, `^--ood: nowhere: no such data set`},
	{"evaluate against two without names", "", "evaluate --run run --ood shards --ood grey", 2, `^--ood grey: there is something called ood already: name each data set, as in --ood svhn=`},

	// mkshards.
	{"no command", "", "mkshards", 2, `^no command given \(see mkshards --help\)`},
	{"unknown command", "", "mkshards imagenet --out z", 2, `^unknown command "imagenet"`},
	{"unknown flag of mkshards", "", "mkshards synth --sise 32 --out z", 2, `^synth: unknown flag --sise: did you mean --size\? \(see mkshards synth --help\)`},
	{"pictures that are not there", "", "mkshards folder --src nowhere --size 32 --out z", 1, `nowhere`},
	{"no pictures", "", "mkshards folder --src empty --size 32 --out z", 1, `empty`},
	{"out holds a data set", "", "mkshards synth --out shards", 1, `^shards: exists; choose another place, or replace it with --force`},
	{"verify damaged shards", "", "mkshards verify torn-shard", 1, `torn-shard/train/shard-00000.safetensors.zst: .+; copy or import the data set again$`},
	{"measure damaged shards", "", "evaluate --run run --data torn-shard", 1, `torn-shard/train/shard-00000.safetensors.zst: .+; copy or import the data set again$`},
}

func TestMistakes(t *testing.T) {
	long(t)
	s := newSite(t)
	s.setting()
	before := s.state("z")
	for _, m := range mistakes {
		t.Run(m.name, func(t *testing.T) {
			s.t, s.env = t, strings.Fields(m.env)
			args, ranks := strings.Fields(m.args), 0
			if args[0] == "ddplaunch" {
				ranks = 2
			}
			checkSentence(t, s.run(args...), ranks, m.code, m.want)
			_, err := os.Stat(s.path("z"))
			if begun := err == nil; begun != slices.Contains([]string{"damaged shard", "damaged shard, two ranks", "all data damaged and left out", "damaged sentences"}, m.name) { // found when the run has begun
				t.Errorf("--out is there: %v", begun)
			}
			if err := os.RemoveAll(s.path("z")); err != nil {
				t.Fatal(err)
			}
			if m.name == "all checkpoints damaged" { // the ranks have compared what they have, and the launcher may keep what they did last
				if err := os.RemoveAll(s.path("torn-ckpt/flight.txt")); err != nil {
					t.Error(err)
				}
			}
			after := s.state("z")
			for name, text := range after {
				if old, ok := before[name]; !ok || old != text {
					t.Errorf("left behind or changed: %s", name)
				}
			}
			for name := range before {
				if _, ok := after[name]; !ok {
					t.Errorf("removed: %s", name)
				}
			}
			before = after
		})
	}
}

// checkSentence wants one sentence on stderr, once: under a launcher it is from
// its ranks or from itself.
func checkSentence(t *testing.T, e ended, ranks, code int, want string) {
	t.Helper()
	if e.code != code {
		t.Errorf("exit code %d, want %d", e.code, code)
	}
	distinct, lines := map[string]bool{}, 0
	for line := range strings.Lines(e.stderr) {
		line = strings.TrimSpace(line)
		text := strings.TrimPrefix(regexp.MustCompile(`^\[[0-9,-]+\] ?`).ReplaceAllString(line, ""), "ddplaunch: ")
		if text == "" || strings.HasPrefix(text, "libgomp: ") || strings.Contains(text, ": warning: ") {
			continue // not ours, or a warning
		}
		for _, p := range []string{"train: ", "sample: ", "evaluate: ", "mkshards: "} {
			text = strings.TrimPrefix(text, p)
		}
		distinct[text] = true
		lines++
	}
	if len(distinct) != 1 || lines != 1 || strings.Contains(e.stderr, "goroutine ") {
		t.Errorf("want one sentence, once; got %d\n%s", lines, e.stderr)
	}
	for text := range maps.Keys(distinct) {
		if ranks > 0 {
			text = regexp.MustCompile(`^rank [0-9]+ \([^)]+\): `).ReplaceAllString(text, "")
		}
		if !regexp.MustCompile(want).MatchString(text) {
			t.Errorf("want a sentence like %s\ngot %s", want, text)
		}
	}
}

// setting makes what the mistakes need.
func (s *site) setting() {
	t := s.t
	s.must(tiny("run", "--steps", "4", "--ckpt-every", "2")...)
	s.must("mkshards", "synth", "--size", "32", "--train", "64", "--val", "8", "--test", "8", "--out", "shards")
	s.must("mkshards", "synth", "--size", "32", "--train", "16", "--val", "8", "--test", "8", "--out", "gone")
	s.must("mkshards", "synth", "--size", "16", "--train", "16", "--val", "8", "--test", "8", "--out", "small")
	s.prose("text")
	s.must("mkshards", "folder", "--src", s.pictures(), "--channels", "1", "--size", "32", "--test-percent", "50", "--out", "grey")
	for _, c := range []struct{ from, to string }{
		{"shards", "torn-index"}, {"shards", "torn-shard"}, {"text", "torn-text"}, {"run", "torn-config"}, {"run", "changed-config"}, {"run", "torn-ckpt"},
		{"run", "torn-metrics"}, {"run", "later-run"}, {"run", "no-ckpt"}, {"run", "half-ckpt"}, {"run", "no-samples"},
	} {
		if err := os.CopyFS(s.path(c.to), os.DirFS(s.path(c.from))); err != nil {
			t.Fatal(err)
		}
	}
	s.change("torn-index/index.json", func(b []byte) []byte { return b[:len(b)/2] })
	s.change("torn-shard/train/shard-00000.safetensors.zst", func(b []byte) []byte { b[len(b)/3] ^= 1; return b })
	s.change("torn-text/train/shard-00000.safetensors.zst", func(b []byte) []byte { b[len(b)/3] ^= 1; return b })
	s.change("torn-config/config.json", func(b []byte) []byte { return b[:len(b)/2] })
	s.change("changed-config/config.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"seed": 1`, `"seed": 2`, 1)) })
	s.change("later-run/config.json", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"format": 1`, `"format": 2`, 1)) })
	s.must(tiny("moved-data", "--data", "gone", "--steps", "1")...)
	if err := os.RemoveAll(s.path("gone")); err != nil {
		t.Fatal(err)
	}
	s.change("torn-ckpt/ckpt/step-00000002/weights.safetensors", func(b []byte) []byte { b[len(b)-1] ^= 1; return b })
	s.change("torn-ckpt/ckpt/step-00000004/weights.safetensors", func(b []byte) []byte { return b[:len(b)-8] })
	s.change("half-ckpt/ckpt/step-00000004/weights.safetensors", func(b []byte) []byte { return b[:len(b)-8] })
	s.change("torn-metrics/metrics.jsonl", func(b []byte) []byte { return []byte(strings.Replace(string(b), `"step":1,`, `"step:1,`, 1)) })
	if err := os.RemoveAll(s.path("no-ckpt/ckpt")); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(s.path("no-samples/samples")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path("no-samples/samples"), nil, 0o644); err != nil { // takes no file, not even from root
		t.Fatal(err)
	}
	if err := os.Mkdir(s.path("empty"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"file", "corpus.txt", "corpus.png"} {
		if err := os.WriteFile(s.path(name), []byte("text\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// change rewrites a file, which must then be another.
func (s *site) change(name string, f func([]byte) []byte) {
	s.t.Helper()
	b, err := os.ReadFile(s.path(name))
	if err != nil {
		s.t.Fatal(err)
	}
	old := string(b)
	b = f(b)
	if string(b) == old {
		s.t.Fatalf("%s was not changed", name)
	}
	if err := os.WriteFile(s.path(name), b, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// state is all that a failed command must leave as it was: every file and
// folder but locks and logs, which a resume may touch, and the folder without.
func (s *site) state(without string) map[string]string {
	s.t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(s.dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.Name() == ".lock" || strings.HasPrefix(d.Name(), "rank-") {
			return err
		}
		if path == s.path(without) {
			return filepath.SkipDir
		}
		if d.IsDir() {
			files[path] = ""
			return nil
		}
		b, err := os.ReadFile(path)
		files[path] = string(b)
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
	return files
}

// TestOlderCheckpoint resumes and samples where the newest checkpoint is torn.
func TestOlderCheckpoint(t *testing.T) {
	long(t)
	s := newSite(t)
	s.setting()
	warning := regexp.MustCompile(`(?m)^(\[[01-]+\] train|sample): warning: checkpoint skipped: half-ckpt/ckpt/step-00000004/weights.safetensors: .*damaged$`)
	e := s.must("sample", "--run", "half-ckpt", "--n", "4", "--out", "z.png")
	if !strings.Contains(e.stdout, "after 2 steps") || len(warning.FindAllString(e.stderr, -1)) != 1 {
		t.Errorf("want samples after 2 steps and one warning, got %v", e)
	}
	e = s.must(on(2, tiny("half-ckpt", "--resume", "--steps", "4", "--ckpt-every", "2"))...)
	var told []int // each rank tells it once, mostly in one line: how far apart they come is the machine's
	for _, line := range warning.FindAllString(e.stderr, -1) {
		told = append(told, speakers(line)...)
	}
	if slices.Sort(told); !slices.Equal(told, []int{0, 1}) || strings.Count(e.stderr, "\n") != len(warning.FindAllString(e.stderr, -1)) {
		t.Errorf("want one warning of each rank, got %v", e)
	}
	s.close("run", "half-ckpt", jump) // one rank began it
	// A last line torn by a kill is no damage: it is made again.
	s.change("run/metrics.jsonl", func(b []byte) []byte { return b[:len(b)-9] })
	if err := os.RemoveAll(s.path("run/ckpt/step-00000004")); err != nil {
		t.Fatal(err)
	}
	s.must(tiny("run", "--resume", "--steps", "4", "--ckpt-every", "2")...)
	if n := len(s.losses("run")); n != 4 {
		t.Errorf("%d lines after a resume, want 4", n)
	}
}
