package ddp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"ebtrain/collective"
	"ebtrain/ddp/exec"
)

// Replicas compares variables of all ranks, any number of times. It allocates
// nothing while the ranks agree, and is used by one goroutine.
type Replicas struct {
	vars  exec.Vars
	agree *agreement
	list  []variable
	at    *variable // the one that note describes
	note  func(*exec.Tensor)
	text  []byte // a line for each variable
}

// variable is one that is compared, and the begin of its line, once it has been seen: a
// variable keeps its type.
type variable struct{ name, title string }

// NewReplicas compares the named variables of vars over the ranks of c.
func NewReplicas(c collective.Comm, vars exec.Vars, names []string) *Replicas {
	r := &Replicas{vars: vars, agree: newAgreement(c, "weights"), list: make([]variable, len(names))}
	r.note = r.describe // bound once
	for i, name := range names {
		r.list[i].name = name
	}
	return r
}

// Compare compares the variables of all ranks, bit for bit. If they differ, or
// a rank lacks one, every rank gets the same error, which names the ranks and
// the first variable.
func (r *Replicas) Compare(ctx context.Context) error {
	var missing []error
	r.text = r.text[:0]
	for i := range r.list {
		r.at = &r.list[i]
		if err := r.vars.View(r.at.name, r.note); err != nil { // the others wait for this rank's verdict all the same
			missing = append(missing, err)
			r.text = fmt.Appendf(r.text, "%s: %v\n", r.at.name, err)
		}
	}
	if err := r.agree.on(ctx, r.text); err != nil {
		return err
	}
	return errors.Join(missing...)
}

// describe appends the line of the variable t: its name, type and hash.
func (r *Replicas) describe(t *exec.Tensor) {
	if r.at.title == "" {
		r.at.title = fmt.Sprintf("%s %v ", r.at.name, t.Type)
	}
	hash := sha256.Sum256(t.Bytes())
	r.text = append(r.text, r.at.title...)
	r.text = hex.AppendEncode(r.text, hash[:8])
	r.text = append(r.text, '\n')
}
