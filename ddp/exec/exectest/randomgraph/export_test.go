package randomgraph

// Wild says which values that are not near 1 the program has, if any.
func (p *Program) Wild() string { return p.wild.String() }
