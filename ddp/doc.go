// Package ddp makes programs data-parallel: it averages gradients over ranks
// in flat buckets, and checks that ranks run the same program and hold the
// same weights.
//
// Gradients are averaged by ops of the graph itself (see Sync), so the
// compiler starts each bucket as soon as its last gradient exists and the rest
// of the backward pass runs meanwhile. What else ranks share is a change of that
// graph too: one batch cut into virtual shards (Virtualise), an optimiser's state of
// which each rank keeps a part (ShardOptimizer). The checks are collectives: every rank
// calls them at the same point, and every rank gets the same verdict.
package ddp
