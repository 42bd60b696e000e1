package cuda

import "errors"

// check makes an error of what a call of the driver's returned, and keeps in mind whether
// the context is lost.
func (d *Device) check(call string, code int) error {
	err := check(d.drv, call, code)
	e, ok := errors.AsType[*Error](err)
	if ok && e.Sticky() {
		d.lost.Store(true)
	}
	if ok && e.Code == codeOutOfMemory && e.Call != callPin {
		return d.outOfMemory(err)
	}
	return err
}

// closing is check of a call that frees something. What a lost context had is gone with it,
// and each such call fails for the same reason, hundreds of them at the end of a program:
// what has been said is not said again.
func (d *Device) closing(call string, code int) error {
	said := d.lost.Load()
	err := d.check(call, code)
	if e, ok := errors.AsType[*Error](err); said && ok && e.Sticky() {
		return nil
	}
	return err
}

// Lost says that a call has found the context lost: the process must end, and what other
// libraries say of freeing what they had on the device means nothing.
func (d *Device) Lost() bool { return d.lost.Load() }
