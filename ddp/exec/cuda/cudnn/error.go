package cudnn

import (
	"fmt"
	"path/filepath"
)

// Error is a call of cuDNN that failed.
type Error struct {
	Call   string // the function, as the header calls it
	On     string // what it was about: "execution plan"
	Status int
	Name   string // the status, as CUDNN_STATUS_BAD_PARAM
	Text   string // what cuDNN says about it, if anything
	Path   string // the library's file
}

// Statuses that say something about the installation, or about what was asked.
const (
	statusVersionMismatch = 1002
	statusPartMissing     = 1008
	statusDriverTooOld    = 3005 // the first of those by which this machine lacks something
	statusNoPart          = 3009 // the last of them
	statusNoHostMemory    = 4003
	statusNoDeviceMemory  = 4004
)

func (e *Error) Error() string {
	dir := filepath.Dir(e.Path)
	switch e.Status {
	case statusVersionMismatch:
		return fmt.Sprintf("cuDNN's parts are of different versions (%s, %d): %s was loaded from %s, another part from elsewhere; all libcudnn_*.so.9 must lie in that folder and be of one version, so remove the other cuDNN or take it out of LD_LIBRARY_PATH",
			e.Name, e.Status, filepath.Base(e.Path), dir)
	case statusPartMissing:
		return fmt.Sprintf("a part of cuDNN is missing (%s, %d): all libcudnn_*.so.9 must lie beside %s in %s; install cuDNN 9 as a whole%s",
			e.Name, e.Status, filepath.Base(e.Path), dir, said(e.Text))
	}
	on := ""
	if e.On != "" {
		on = " of " + e.On
	}
	return fmt.Sprintf("cuDNN: %s%s failed: %s (%d)%s", e.Call, on, e.Name, e.Status, said(e.Text))
}

func said(text string) string {
	if text == "" {
		return ""
	}
	return ": " + text
}

// Unsupported says whether cuDNN only says that it cannot do what was asked; not where
// the machine lacks something (driver, CUDA, NVRTC, a part of cuDNN) with which it could:
// that is said.
func (e *Error) Unsupported() bool { return e.Status/1000 == 3 && !e.lacks() }

func (e *Error) lacks() bool { return e.Status >= statusDriverTooOld && e.Status <= statusNoPart }

// ofEngine says whether a failed plan tells more about its engine than about the
// machine: others may work. Of a context that is lost the next call tells, too.
func (e *Error) ofEngine() bool {
	switch e.Status / 1000 {
	case 2, 5:
		return true
	case 3:
		return e.lacks()
	}
	return e.Status/1000 == 4 && e.Status != statusNoHostMemory && e.Status != statusNoDeviceMemory
}

// DeviceFull says whether cuDNN found too little of the device's memory.
func (e *Error) DeviceFull() bool { return e.Status == statusNoDeviceMemory }

// VersionError is a cuDNN that cannot be used.
type VersionError struct {
	Path string
	Why  string // what it is, what was expected, what to do
}

func (e *VersionError) Error() string { return fmt.Sprintf("%s cannot be used: %s", e.Path, e.Why) }
