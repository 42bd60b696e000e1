// Package abi holds the declarations in C of what is called of NVIDIA's
// libraries. The binding, its check against the real headers and the doubles all
// compile these files.
package abi

import "embed"

// Files are the headers: driver.h and nvrtc.h.
//
//go:embed *.h
var Files embed.FS
