// Package sweep makes many trainings on many machines: a grid of runs, whose cells workers take over NATS JetStream.
//
// A Plan is read from a file: task, base configuration, axes, seeds. Its cells are ordinary runs in the folder of an
// ordinary grid, so that verify, reports and everything else understand them. A Pool is a run.Pool: it hands cells to
// workers and brings what they make below the grid's folder. A Worker takes cells, one after the other.
//
//	file.go axes.go table.go halving.go   what is to be trained, tabulated, and given up early
//	pool.go collect.go look.go status.go  the pool: posts cells and watches them
//	accept.go leave.go                    how it takes results, those of its own process as folders
//	worker.go cell.go                     a worker, and how it makes one cell
//	board.go blobs.go data.go             what both see: cells, files, data sets
//	server.go keys.go connect.go          the embedded server, secrets, connections
//	emit.go                               scripts that start workers on clusters
//
// # Protocol
//
// All state is in JetStream, in three places that are named after the sweep's id. A key-value bucket has an entry for
// each cell: to do, claimed, done or failed; who has it, how far it is, and where its newest checkpoint and its result
// lie. An object store has those, as tar files of runs, and data sets, all named with their SHA-256; only results of the
// pool's own workers lie in a folder, and the entry has the hash. A work queue has a message for each cell that is to
// do: it says where to look, and nothing depends on it.
//
// Every change of an entry is a compare-and-set on its revision. To claim a cell is to change its entry, and raises its
// epoch, the fencing token; to renew the claim, to ship a checkpoint and to hand in a result are changes by the same
// claim. When an entry has not changed for the time of a lease, on the pool's own clock, the pool sets it back: the
// next change of the worker that had it fails, and it drops the cell. So there is one result for each cell, and its
// bits do not depend on who made it, since a run that goes on from a checkpoint ends as one that never stopped.
//
// A pool that was killed begins with what lies in the grid's folder: cells that are finished there need no entry.
// Entries of others are kept if they are of the same settings.
//
// Worker and pool must be the same program: its build is part of the sweep's head, and of each claim.
package sweep
