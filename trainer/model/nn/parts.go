package nn

import (
	"slices"

	"ebtrain/ddp"
)

// Named names those of vars that have a role.
func Named(vars []Variable, r Role) map[string]bool {
	names := map[string]bool{}
	for _, v := range vars {
		if v.Role == r {
			names[v.Name] = true
		}
	}
	return names
}

// OfRank are vars as a rank has them that keeps parts of some.
func OfRank(vars []Variable, parts []ddp.Sharded) []Variable {
	vars, types := slices.Clone(vars), map[string]ddp.Sharded{}
	for _, p := range parts {
		types[p.Name] = p
	}
	for i, v := range vars {
		if p, ok := types[v.Name]; ok {
			vars[i].Type = p.Part
		}
	}
	return vars
}

// RoleBytes is the size of those of vars that have a role.
func RoleBytes(vars []Variable, r Role) (n int64) {
	for _, v := range vars {
		if v.Role == r {
			n += int64(v.Type.Bytes())
		}
	}
	return n
}
