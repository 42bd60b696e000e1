// Package cuda binds NVIDIA's driver and its run-time compiler, and loads the
// libraries that stand on them.
//
// Nothing of NVIDIA takes part in the build. Libraries are found and opened when
// they are asked for ([Open]), their ABI is declared in the folder abi, and one binary
// runs with and without a GPU. In a program that was built without cgo
// everything answers [ErrNoCgo].
//
// A [Device] holds the device's primary context, the one that cuDNN, cuBLASLt
// and NCCL use, too. Any goroutine may call any method of this package: each
// call makes the device's context current on the thread that it happens to run
// on. A capture begins and ends on one thread, so it belongs into [Device.Do],
// which runs a function on a thread that the device keeps for that.
//
// Work is asynchronous: a method of [Stream] returns when its operation is
// queued. Memory that an operation uses must stay until the stream has come
// past it.
//
// Every error of a library's call is an [*Error]. Some are typed besides:
// [ErrNoDriver], [ErrNoDevice], [ErrDriverTooOld], [*OutOfMemory],
// [*LoadError], [*CompileError].
package cuda
