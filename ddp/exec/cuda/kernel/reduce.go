package kernel

import "ebtrain/ddp/exec/plan"

func (m *making) reducing(f *plan.Fused, in, out []operand) ([]Launch, error) { panic("soon") }
