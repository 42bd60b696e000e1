package cuda

// Machine stands for the machine that a search looks at.
type Machine = machine

// ArchFor is what a device's code is compiled for.
var ArchFor = archFor

// NewMachine is one with files below root only.
func NewMachine(env map[string]string, root, home, python string) Machine {
	return machine{getenv: func(k string) string { return env[k] }, root: root, home: home, arch: "amd64", python: func() string { return python }}
}

// OnArm is the same machine with an Arm processor.
func (m Machine) OnArm() Machine {
	m.arch = "arm64"
	return m
}

// Folders are where a family is looked for, "" for the dynamic linker.
func (m Machine) Folders(f Family) []string {
	var out []string
	for _, p := range m.places(families[f]) {
		out = append(out, p.folder)
	}
	return out
}

// Loader opens libraries as a process would that had none.
type Loader struct{ l loader }

func NewLoader(m Machine) *Loader { return &Loader{loader{machine: m, open: map[key]*Library{}}} }

func (l *Loader) Open(f Family) (*Library, error) { return l.l.family(f, 0) }

// CallSize calls a function of a library.
func CallSize(l *Library, name string) (int, error) {
	f, err := l.Symbol(name)
	if err != nil {
		return 0, err
	}
	return callSize(f), nil
}

// Major is the version of CUDA that a library was built for.
func (l *Library) Major() int { return l.major }

// CaptureHostFunc puts a function of the host's into a capture, as other libraries may.
func CaptureHostFunc(s *Stream) error {
	return s.check("cuLaunchHostFunc", s.d.drv.hostFunc(s.d.ctx, s.handle, func() {}))
}

// InstantiateUnseen leaves it to the driver to refuse a body.
func InstantiateUnseen(g *Graph) (*Exec, error) {
	list, err := g.bodyNodes()
	if err != nil {
		return nil, err
	}
	return g.instantiateHolder(list)
}

// Codes are the driver's codes that are told more of, by their names in cuda.h.
func Codes() map[string]int {
	all := map[string]int{}
	for code, m := range meanings {
		all["CUDA_ERROR_"+m.name] = code
	}
	return all
}
