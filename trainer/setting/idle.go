package setting

import (
	"fmt"
	"slices"
)

// idle are settings that another one may leave without effect.
type idle struct {
	names   []string
	to      func() string // what does, as a flag with its value; "" if nothing does
	instead string        // the flag with which they have one
}

// Idle says of settings that they have no effect while to is not "": it is what leaves them
// without, as a flag with its value, and instead is the flag with which they have one. One
// that was changed all the same is refused; its usual value is not.
func (s *Set) Idle(to func() string, instead string, names ...string) {
	s.idle = append(s.idle, idle{names, to, instead})
}

// While is Idle for settings that have no effect while idle is true; to says what that is.
func (s *Set) While(idle func() bool, to, instead string, names ...string) {
	s.Idle(func() string {
		if idle() {
			return to
		}
		return ""
	}, instead, names...)
}

// For is Idle for settings that have an effect with one value of another only: p is that
// of the setting called name.
func For[T ~string](s *Set, name string, p *T, value T, names ...string) {
	s.Idle(func() string {
		if *p == value {
			return ""
		}
		return fmt.Sprintf("--%s %s", name, *p)
	}, fmt.Sprintf("--%s %s", name, value), names...)
}

// Useless says whether the setting of that name has no effect beside what the others are.
func (s *Set) Useless(name string) bool {
	return slices.ContainsFunc(s.idle, func(i idle) bool { return slices.Contains(i.names, name) && i.to() != "" })
}

// checkIdle reports the first setting that was changed to no effect.
func (s *Set) checkIdle() error {
	for _, i := range s.idle {
		to := i.to()
		if to == "" {
			continue
		}
		for _, one := range s.all {
			if got := one.show(); got != one.usual && slices.Contains(i.names, one.Name) {
				return fmt.Errorf("--%s %s is of no use to %s: leave it out, or say %s", one.Name, got, to, i.instead)
			}
		}
	}
	return nil
}
