package cublaslt

import "fmt"

// Error is a call of cuBLASLt that failed.
type Error struct {
	Call   string // the function, as the header calls it
	On     string // what it was about, if not the library itself
	Status int
	Name   string // the status, as CUBLAS_STATUS_INVALID_VALUE
	Text   string // what cuBLASLt says about it
}

// statusNoMemory is the driver's or the library's lack of memory.
const statusNoMemory = 3 // CUBLAS_STATUS_ALLOC_FAILED

// DeviceFull says whether cuBLASLt found too little of the device's memory.
func (e *Error) DeviceFull() bool { return e.Status == statusNoMemory }

func (e *Error) Error() string {
	on := ""
	if e.On != "" {
		on = " for " + e.On
	}
	return fmt.Sprintf("cuBLASLt: %s%s failed: %s (%s, %d)", e.Call, on, e.Text, e.Name, e.Status)
}
