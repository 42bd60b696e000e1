// Package cell is a cell of an experiment, one row with one seed, on the disk:
//
//	OUT/EXPERIMENT/ROW/seed-N/     the run directory of train
//	    cell.json                  what was begun, and what it cost so far, with a checksum
//	    console.log                what the programs printed
//	    measured.json              what came out, with a checksum; the cell is finished
//
// cell.json is written before anything else, so that a cell begun by other
// programs or with other settings is known for one. Both files are replaced as a
// whole. Whoever writes cells of an experiment holds its lock (Lock); anyone may
// read them at any time.
package cell
