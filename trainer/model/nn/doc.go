// Package nn builds neural networks into graphs: layers with PyTorch's
// conventions, and the variables they own.
//
// A Context is a graph under construction together with the model's variables.
// Layers are plain structs; applying one emits its ops and declares its
// variables under the layer's name ("energy.conv3.weight"). State is threaded,
// not mutated: Context remembers the newest value of each variable (a running
// mean after a forward pass, a weight after an optimiser step), later layers
// read that value, and Commit assigns what changed at the end of the run. So a
// training step in which networks are updated in turn is one graph.
//
// Shapes: images (N, C, H, W), vectors (N, D).
//
// Concurrency: a Context belongs to one goroutine.
package nn
