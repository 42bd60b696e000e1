package cost

// A Model is what the parts of a collective cost, so that one can be simulated on
// groups that were never measured. It is fitted to reports by simulate.Fit, through
// the schedule that the transport carries out. The zero Model is that of a machine
// on which collectives take no time.
type Model struct {
	Version int   `json:"version"`
	Within  Costs `json:"within"`  // between ranks of a host: shared memory
	Between Costs `json:"between"` // between the leaders of hosts: TCP

	// Precision is the inverse of the covariance of the eight fitted costs, within hosts and
	// then between them, each Latency, Message, PerByte, Reduce; 0 of a cost that was not
	// measured. Intervals are those of one cost, whatever the others are; simulate.Draw
	// draws all together.
	Precision [][]float64 `json:"precision,omitempty"`

	// Measured is what the model says of the times that it was fitted to.
	Measured []Residual `json:"measured,omitempty"`
	// Doubts are reasons not to believe it, a sentence each: links that changed
	// while they were measured, too few sizes, a part that nothing was measured of.
	Doubts []string `json:"doubts,omitempty"`
}

// ModelVersion is that of Model. It grows when a field changes its meaning or goes.
const ModelVersion = 1

// Costs are those of one kind of connection.
type Costs struct {
	// Latency is a round's: between hosts, from when a message has left its sender
	// until the receiver has begun to read it; within a host, from when the last rank
	// has entered a barrier until all have left it.
	Latency Interval `json:"latency_us"`
	// Message is what each message occupies its sender for, before the next; within a
	// host, what a barrier takes longer for each rank beyond the first.
	Message Interval `json:"message_us"`
	// PerByte is the time of a byte: between hosts on the link of a host, which all
	// its flows share, in either direction; within a host where a rank copies it.
	PerByte Interval `json:"per_byte_ns"`
	// Reduce is the time of a byte that is read to be reduced.
	Reduce Interval `json:"reduce_ns"`

	// Busy is what a message takes of processors in a step where others want them, too:
	// sending one and receiving one after computing, with being woken for it. BusyPerByte
	// is that of a byte that is sent and one that is received. They are no time of a
	// collective whose ranks have processors enough: what of them does not overlap is in
	// the costs above.
	Busy        Interval `json:"busy_us,omitzero"`
	BusyPerByte Interval `json:"busy_per_byte_ns,omitzero"`
}

// Residual is one measured time beside that of the model.
type Residual struct {
	Ranks    []int   `json:"ranks_on_hosts"`
	Bytes    int     `json:"bytes"`
	Measured float64 `json:"measured_us"`
	Model    float64 `json:"model_us"`
}

// Relative is measured over modelled time, less 1.
func (r Residual) Relative() float64 { return r.Measured/r.Model - 1 }
